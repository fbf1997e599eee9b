//! The publisher: copies durable entries of the write-ahead log to that of the shared store.

use super::{End, PUBLISHER, Publication, State};
use crate::error::StoreError;
use crate::shared::{Fault, SharedError};
use crate::store::Shared;
use crate::wal::{Entry, LogTail, Sequence};
use node_core::sources::Sources;
use std::time::{Duration, Instant};

/// Size in bytes of the entries at which an object of the log is full.
const OBJECT: u64 = 8 << 20;

/// Time after a failure until the next attempt, which is in addition to the pauses between requests.
const PAUSE: Duration = Duration::from_millis(500);

/// Minimum time between two looks whether another server wants to become the writer, and the pause that it then gets to end
/// the right of this one. It needs a few round trips.
const LOOK: Duration = Duration::from_secs(1);
const YIELD: Duration = Duration::from_secs(5);

/// Entries that were read and are not published.
struct Batch {
    tail: LogTail,
    entries: Vec<Entry>,
    bytes: u64,
    /// The last entry that needs no further attention.
    done: Sequence,
}

impl Shared {
    /// Publishes the entries after `from`, until publishing ends.
    pub(super) fn run_publisher(&self, publication: &Publication, from: Sequence) {
        let mut batch = Batch { tail: LogTail::after(from), entries: Vec::new(), bytes: 0, done: from };
        let (mut last, mut checked, mut looked) = (Instant::now(), Instant::now(), Instant::now());
        while let Some((through, seen)) = self.next_entries(publication, batch.done, last) {
            // Between two signs that an idle writer is alive, there is time enough.
            let looks = through > batch.done && looked.elapsed() >= LOOK;
            let yields = looks && publication.yield_to_claimant();
            if looks {
                looked = Instant::now();
            }
            let published = self.publish_entries(publication, &mut batch, through);
            // Before anything is acknowledged.
            let published = publication.check_presence(published, &mut checked);
            match published {
                Ok(()) => {
                    publication.published(&mut batch, seen, self.log.synced());
                    last = Instant::now();
                    if yields {
                        // If this fails, there is another pause.
                        let _ = publication.writer.lock().refuse_claim();
                    }
                }
                Err(error) => {
                    if let Some(end) = End::of(&error) {
                        return self.end_publishing(publication, end);
                    }
                    publication.note(PUBLISHER, Some(Sources(&error).to_string()));
                    let mut state = publication.state.lock();
                    if state.end.is_none() {
                        publication.entries.wait_for(&mut state, PAUSE);
                    }
                }
            }
        }
    }

    /// Waits until there are entries after `done`, or until readers need to see that this writer is alive. `last` is when
    /// the last object was created. Returns the last entry to publish and the time at which it was the last durable one;
    /// `None` if publishing has ended.
    fn next_entries(&self, publication: &Publication, done: Sequence, last: Instant) -> Option<(Sequence, Instant)> {
        let options = &publication.options;
        let mut state = publication.state.lock();
        loop {
            if state.end.is_some() {
                return None;
            }
            let (synced, now) = (self.log.synced(), Instant::now());
            let is_behind = synced > done;
            if is_behind {
                state.behind.get_or_insert(now);
            }
            if state.closing && (!is_behind || state.needs_runs) {
                drop(state);
                publication.end(End::Closed);
                return None;
            }
            let is_urgent = state.wanted > done && synced >= state.wanted || state.closing;
            let pause = if is_behind { options.interval } else { options.heartbeat };
            let left = (last + pause).saturating_duration_since(now);
            if !state.needs_runs && (left.is_zero() || is_behind && is_urgent) {
                return Some((synced, now));
            }
            let pause = if state.needs_runs { options.interval } else { left.min(options.interval) };
            publication.entries.wait_for(&mut state, pause);
        }
    }

    fn publish_entries(
        &self,
        publication: &Publication,
        batch: &mut Batch,
        through: Sequence,
    ) -> Result<(), StoreError> {
        while batch.bytes < OBJECT
            && let Some(entry) = batch.tail.read(&*self.folder, through)?
        {
            batch.bytes += entry.logged_bytes();
            batch.entries.push(entry);
        }
        // Entries that were skipped because they are in runs are not committed.
        publication.writer.lock().commit(&batch.entries)?;
        Ok(())
    }

    /// Ends publishing for good.
    pub(super) fn end_publishing(&self, publication: &Publication, end: End) {
        let mut has_refused = false;
        if let (true, End::Fenced(Some(_))) = (publication.options.sync, end) {
            // Before anyone is refused. What the folder had at the start may have been acknowledged by an earlier process.
            let last = publication.writer.lock().last().max(publication.had);
            // Runs must not have what will be removed from the log.
            has_refused = self.log.last() > last;
            // If this fails, the folder is refused at the next start.
            let _ = publication.marker.lock().refuse_after(Some(last));
        }
        publication.end_refusing(end, has_refused);
        self.note_failure(&end.error());
    }
}

impl Publication {
    /// Checks at intervals, and if a commit has failed in a way that this explains, that the shared store is still there.
    /// Returns the result of the commit if it is.
    fn check_presence(&self, committed: Result<(), StoreError>, checked: &mut Instant) -> Result<(), StoreError> {
        let is_due = match &committed {
            Ok(()) => checked.elapsed() >= self.options.heartbeat,
            Err(StoreError::Shared(SharedError::Objects(error))) => error.fault == Fault::Permanent,
            Err(error) => matches!(error, StoreError::Shared(SharedError::Discontinuous(_) | SharedError::Format(_))),
        };
        if is_due {
            self.witness.check(&*self.objects)?;
            self.writer.lock().check_last()?;
            *checked = Instant::now();
        }
        committed
    }

    /// If another server wants to become the writer, makes a pause in which it can. Returns whether that is so.
    fn yield_to_claimant(&self) -> bool {
        // If this fails, the next commit probably does, too, and is repeated.
        let is_claimed = self.writer.lock().is_claimed().unwrap_or(false);
        if is_claimed {
            let until = Instant::now() + YIELD;
            self.state.lock().yields = true;
            // Whoever wants to become the writer creates the next object of the log, which ends this pause.
            while Instant::now() < until && !self.writer.lock().was_followed().unwrap_or(false) {
                let mut state = self.state.lock();
                if state.end.is_some() || state.closing {
                    break;
                }
                self.entries.wait_for(&mut state, YIELD / 50);
            }
            self.state.lock().yields = false;
            self.progress.notify_all();
        }
        is_claimed
    }

    /// Records that `batch` was published. `synced` is the last durable entry; the one before which `batch` ends was
    /// durable at `seen`.
    fn published(&self, batch: &mut Batch, seen: Instant, synced: Sequence) {
        let mut state = self.state.lock();
        let State { published, published_bytes, published_entries, behind, .. } = &mut *state;
        if let Some(last) = batch.entries.last() {
            *published = (*published).max(last.sequence);
            batch.done = last.sequence;
        }
        *published_bytes += batch.bytes;
        *published_entries += batch.entries.len() as u64;
        *behind = match *behind {
            _ if batch.done >= synced => None,
            Some(_) if batch.bytes < OBJECT => Some(seen),
            behind => behind,
        };
        state.failures[PUBLISHER] = None;
        drop(state);
        batch.entries.clear();
        batch.bytes = 0;
        self.progress.notify_all();
    }
}
