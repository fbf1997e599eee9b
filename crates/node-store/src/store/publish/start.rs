//! Becoming the writer: comparing the folder with the shared store, and applying what it lacks.

use super::marker::{Marked, Marker};
use super::runs::Uploads;
use super::{Begun, PublishOptions, State};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::shared::{self, Claim, LogNumber, Manifest, Objects, Position, Retrying, SharedError, Step};
use crate::store::Shared;
use crate::store::open::{Logged, apply};
use crate::store::reader::unwrap;
use crate::wal::{Entry, Sequence, WalError};
use node_types::H256;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Shared {
    pub(super) fn begin_publishing(
        &self,
        objects: &Arc<Retrying>,
        options: &PublishOptions,
    ) -> Result<Begun, StoreError> {
        let meta = self.archive.meta().ok_or(StoreError::NoChain)?;
        let marked = Marker::read(&*self.folder)?;
        let objects = Arc::clone(objects) as Arc<dyn Objects>;
        // Compared before the present writer is fenced: a folder that has diverged must not end it.
        if let Some((reader, manifest)) = shared::Reader::open(Arc::clone(&objects))?
            && let Some(position) = shared_position(&manifest, meta.genesis, marked.as_ref())?
        {
            self.compare(&mut Preview { reader, manifest }, position, &mut |_| Ok(()))?;
        }
        let mut claim = Claim::acquire(Arc::clone(&objects), Arc::clone(&options.clock))?;
        let position = claim.manifest().map(|manifest| shared_position(manifest, meta.genesis, marked.as_ref()));
        let position = position.transpose()?.flatten();
        if let Some(position) = position {
            self.compare(&mut claim, position, &mut |entry| self.apply_published(entry))?;
            self.log.sync()?;
        }
        let writer = claim.into_writer()?;
        // Only runs that the newest manifest lists are certain to exist, unless somebody else has deleted them.
        let manifest = writer.manifest();
        let mut listed: Vec<_> = manifest.iter().flat_map(|manifest| manifest.content.runs()).collect();
        let faults = manifest.map(|manifest| shared::run_faults(&*objects, &manifest.content)).transpose();
        let faults = faults.map_err(SharedError::from)?.unwrap_or_default();
        listed.retain(|run| faults.iter().all(|fault| fault.run != *run));
        let known = marked.map_or_else(BTreeMap::new, |marked| {
            let names = marked.runs.keys().filter_map(|id| Some((*id, marked.name(*id)?)));
            names.filter(|(_, name)| listed.contains(name)).collect()
        });
        let mut marker = Marker::open(&*self.folder)?;
        let runs = known.iter().map(|(id, name)| (*id, name.epoch)).collect();
        marker.write(Marked { position: writer.position(), refused_after: None, runs })?;
        // From here on, the log keeps what is not published.
        let mut kept_after = self.kept_after.lock();
        *kept_after = writer.last();
        let first = self.log.first();
        drop(kept_after);
        let from = writer.last().max(first.previous());
        let (synced, mut backlog) = (self.log.synced_bytes(), 0);
        for entry in self.log.entries_after(from) {
            backlog += entry?.logged_bytes();
        }
        let state = State {
            published: writer.last(),
            needs_runs: position.is_none() || from > writer.last(),
            backlog: backlog as i64 - synced as i64,
            ..State::default()
        };
        Ok(Begun { writer, marker, state, uploads: Uploads::new(known), faults, from })
    }

    /// Checks that the folder continues the log of the store, which it did at `position`. Passes the entries that it lacks
    /// to `lacking`.
    fn compare(
        &self,
        log: &mut dyn Log,
        position: Position,
        lacking: &mut dyn FnMut(&Entry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (start, before) = log.start().ok_or(StoreError::Diverged)?;
        let mut is_met = false;
        if position.number.0 + 1 == start.0 {
            is_met = before == position.sum;
        } else if position.number < start {
            log.move_to(position);
            is_met = true;
        }
        let last = self.log.synced();
        if last < position.last {
            return Err(StoreError::Diverged);
        }
        let mut own = self.log.entries_after(position.last);
        while let Some(Step { object, skips, .. }) = log.next().map_err(outdated)? {
            let header = object.header;
            if !is_met {
                is_met = header.number == position.number && header.sum() == position.sum;
                continue;
            }
            if skips {
                // The folder has the skipped entries only if it was the one that announced their runs.
                let is_own = (header.epoch, header.writer) == (position.epoch, position.writer);
                if !is_own || header.first.previous() > last {
                    return Err(StoreError::Outdated);
                }
                own = self.log.entries_after(header.first.previous());
            }
            for entry in object.entries {
                if entry.sequence > last {
                    lacking(&entry)?;
                    continue;
                }
                match own.next().transpose() {
                    Ok(Some(own)) if own == entry => {}
                    // What cannot be compared may differ.
                    Ok(_) | Err(WalError::Missing { .. }) => return Err(StoreError::Diverged),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if is_met { Ok(()) } else { Err(StoreError::Diverged) }
    }

    /// Applies a change that another writer made.
    fn apply_published(&self, entry: &Entry) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        self.check(&writer)?;
        let mut chain = ChainVersion::clone(&self.current.read());
        let Logged { change, records } = match apply(&mut chain, &entry.payload) {
            Ok(applied) => applied,
            Err(error) => {
                self.forget(&mut writer);
                return Err(unwrap(error));
            }
        };
        let sequence: Sequence = self.log_with_records(&entry.payload, &records)?;
        if sequence != entry.sequence {
            return Err(StoreError::Diverged);
        }
        writer.published = sequence;
        if let Some(change) = change {
            writer.stamp(&change, sequence);
            self.publish(chain);
            self.notify(&change);
        }
        self.flush_when_full(&mut writer);
        Ok(())
    }
}

/// Returns the error for a log that no longer has what the folder lacks.
fn outdated(error: SharedError) -> StoreError {
    match error {
        SharedError::Collected(_) => StoreError::Outdated,
        SharedError::Discontinuous(_) => StoreError::Diverged,
        error => error.into(),
    }
}

/// Returns the position up to which a folder is the same as a store with this manifest, or `None` if the store has no chain
/// yet. Entries are published only after the chain, so there is nothing to compare then.
fn shared_position(
    manifest: &Manifest,
    expected: H256,
    marked: Option<&Marked>,
) -> Result<Option<Position>, StoreError> {
    let Some(chain) = &manifest.content.chain else { return Ok(None) };
    if chain.genesis != expected {
        return Err(StoreError::OtherGenesis { found: chain.genesis, expected });
    }
    Ok(Some(marked.ok_or(StoreError::OtherFolder)?.position))
}

/// The log of a shared store from its newest manifest on.
trait Log {
    /// Returns the first object that the manifest needs, and the checksum of the one before it.
    fn start(&self) -> Option<(LogNumber, u64)>;
    fn move_to(&mut self, position: Position);
    fn next(&mut self) -> Result<Option<Step>, SharedError>;
}

impl Log for Claim {
    fn start(&self) -> Option<(LogNumber, u64)> {
        self.manifest().map(|manifest| (manifest.start, manifest.before))
    }

    fn move_to(&mut self, position: Position) {
        self.move_to(position);
    }

    fn next(&mut self) -> Result<Option<Step>, SharedError> {
        self.poll()
    }
}

/// The log as long as another server may be the writer, up to where it ended when it was opened. What that server adds
/// since is compared when it can no longer write.
struct Preview {
    reader: shared::Reader,
    manifest: Manifest,
}

impl Log for Preview {
    fn start(&self) -> Option<(LogNumber, u64)> {
        Some((self.manifest.start, self.manifest.before))
    }

    fn move_to(&mut self, position: Position) {
        self.reader.move_to(position);
    }

    fn next(&mut self) -> Result<Option<Step>, SharedError> {
        if self.reader.has_caught_up() {
            return Ok(None);
        }
        self.reader.poll()?.ok_or(SharedError::Collected(self.reader.position())).map(Some)
    }
}
