//! Publishing the chain to a store that many servers share: this server is its only writer.
//!
//! Two threads share the right to write. The *publisher* copies the entries of the write-ahead log, once they are
//! durable, to the log of the shared store. The *uploader* copies the runs of each new manifest, and announces it.
//! Neither needs the lock under which the chain is changed.
//!
//! The entries are read back from the log's files, so that nothing is encoded twice or kept in memory.

mod entries;
mod health;
mod marker;
mod restore;
mod runs;
mod start;

pub(super) use marker::{MARKER_NAME, Marked, Marker};
pub use restore::RestoreProgress;

use super::{Shared, Store};
use crate::error::StoreError;
use crate::shared::{
    Cancel, Counted, Epoch, LogNumber, Objects, RetryPolicy, Retrying, RunFault, SharedError, Witness, Writer,
};
use crate::wal::{Sequence, Wal};
use node_core::backend::{BackendError, PublicationHealth};
use node_core::clock::{Clock, SystemClock};
use node_core::context::Context;
use parking_lot::{Condvar, Mutex, MutexGuard};
use runs::Uploads;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two checks whether the caller of a function that waits has cancelled it.
const CHECK: Duration = Duration::from_millis(100);

/// Options for publishing a chain.
#[derive(Clone)]
pub struct PublishOptions {
    /// Whether a change is acknowledged only when the shared store has it. If changes are synced on demand,
    /// [`Store::sync`] waits for that instead.
    pub sync: bool,
    /// Minimum time between two objects of the log, unless someone waits for them; at least a millisecond. Each costs a
    /// request.
    pub interval: Duration,
    /// Minimum time between two manifests. Rows that are merged in the meantime are uploaded once.
    pub manifest_interval: Duration,
    /// Time after which an object without entries shows readers that the writer is alive, and after which the writer checks
    /// that the shared store is still there.
    pub heartbeat: Duration,
    /// Size in bytes of unpublished changes at which blocks have to wait.
    pub max_unpublished: u64,
    /// How long readers may use a manifest after it was replaced.
    pub keep_for: Duration,
    /// How long the end of the store may be delayed by publishing the last changes.
    pub closing: Duration,
    /// How failed requests are repeated.
    pub retry: RetryPolicy,
    /// Cancelled when the process should end: [`Store::publish`] then fails, and changes that wait for the shared store fail
    /// after `closing`.
    pub context: Context,
    pub clock: Arc<dyn Clock>,
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self {
            sync: false,
            interval: Duration::from_millis(250),
            manifest_interval: Duration::from_secs(10),
            heartbeat: Duration::from_secs(5),
            max_unpublished: 64 << 20,
            keep_for: Duration::from_secs(24 * 3_600),
            closing: Duration::from_secs(5),
            retry: RetryPolicy::default(),
            context: Context::unbounded(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for PublishOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PublishOptions").field("sync", &self.sync).finish_non_exhaustive()
    }
}

/// The right to write to a shared store, and how far it has all changes.
pub(super) struct Publication {
    objects: Arc<Retrying>,
    counted: Arc<Counted>,
    cancel: Arc<Cancel>,
    options: PublishOptions,
    epoch: u64,
    witness: Witness,
    /// The last entry that the folder had when publishing began.
    had: Sequence,
    /// Locked during each request of it.
    writer: Mutex<Writer>,
    marker: Mutex<Marker>,
    state: Mutex<State>,
    /// Notified when the publisher should look at `state`.
    entries: Condvar,
    /// Notified when the uploader should look at `state`.
    uploads: Condvar,
    /// Notified when something was published, and when nothing will be any longer.
    progress: Condvar,
    /// Whether uploads must end.
    stopped: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    /// The last entry in the shared store.
    published: Sequence,
    /// The last entry for which someone waits.
    wanted: Sequence,
    /// Whether runs must be announced before entries can be published: the shared store has no chain yet, or the log no
    /// longer has the entries that the store lacks.
    needs_runs: bool,
    /// Whether someone waits until the newest runs are announced.
    wants_runs: bool,
    /// The size of the entries that were not published at the beginning, minus that of those that became durable before.
    backlog: i64,
    /// Bytes of entries that were published.
    published_bytes: u64,
    published_entries: u64,
    uploaded_bytes: u64,
    /// What is left of an upload of many runs, in bytes.
    uploading: Option<u64>,
    /// Since when there are durable entries that are not published.
    behind: Option<Instant>,
    /// Why the last attempt of each thread failed; `None` if it did not.
    failures: [Option<String>; 2],
    /// Set when publishing has ended for good.
    end: Option<End>,
    /// Whether publishing ends as soon as all durable entries are published.
    closing: bool,
    /// Whether nothing is published for a moment, so that another server can become the writer.
    yields: bool,
    /// When publishing must have ended, because the process should.
    deadline: Option<Instant>,
    /// Whether a change was refused whose entry is in the log, so that memory lacks it.
    has_refused: bool,
}

/// Why publishing has ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Fenced(Option<Epoch>),
    /// The shared store has disappeared.
    Vanished(LogNumber),
    Closed,
    /// A thread has panicked.
    Failed,
}

impl End {
    /// Returns the end that an error means, or `None` if the operation can be repeated.
    fn of(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::Fenced { by } => Some(Self::Fenced(*by)),
            StoreError::Shared(SharedError::Vanished(number)) => Some(Self::Vanished(*number)),
            _ => None,
        }
    }

    fn error(self) -> StoreError {
        match self {
            Self::Fenced(by) => StoreError::Fenced { by },
            Self::Vanished(number) => StoreError::Vanished(number),
            Self::Closed => StoreError::Unpublished,
            Self::Failed => StoreError::Poisoned,
        }
    }
}

/// The threads, as indexes of `State::failures`.
const PUBLISHER: usize = 0;
const UPLOADER: usize = 1;

impl Store {
    /// Becomes the writer of a shared store, and publishes the chain and all further changes to it until the store is
    /// dropped. [`Options::publish`](crate::Options::publish) must be set. Changes that another writer made since this
    /// folder was published are applied first, so this must be called before the chain is used.
    ///
    /// Returns the runs that the shared store should have and does not have. They are uploaded again, unless the folder no
    /// longer needs them.
    ///
    /// If another server becomes the writer, or the shared store disappears, all changes are refused from then on.
    ///
    /// # Errors
    /// [`StoreError::Volatile`], [`StoreError::Unpublishable`], [`StoreError::OtherGenesis`], [`StoreError::OtherFolder`],
    /// [`StoreError::Diverged`] and [`StoreError::Outdated`], and [`StoreError::Shared`] if the shared store cannot be read
    /// and written. The store must not be used then.
    pub fn publish(&self, objects: Arc<dyn Objects>, options: PublishOptions) -> Result<Vec<RunFault>, BackendError> {
        if self.folder().is_volatile() {
            return Err(StoreError::Volatile.into());
        }
        if self.shared.chain().rows.base.is_some() {
            return Err(StoreError::Unpublishable.into());
        }
        let options = PublishOptions { interval: options.interval.max(Duration::from_millis(1)), ..options };
        let cancel = Arc::new(Cancel::with(&options.context));
        let counted = Arc::new(Counted::new(objects));
        let objects = Arc::new(Retrying::new(Arc::clone(&counted) as _, options.retry, Arc::clone(&cancel)));
        let begun = self.shared.begin_publishing(&objects, &options)?;
        cancel.release();
        let publication = Arc::new(Publication {
            objects,
            counted,
            cancel,
            options,
            epoch: begun.writer.epoch().0,
            witness: begun.writer.witness(),
            had: self.shared.log.last(),
            writer: Mutex::new(begun.writer),
            marker: Mutex::new(begun.marker),
            state: Mutex::new(begun.state),
            entries: Condvar::new(),
            uploads: Condvar::new(),
            progress: Condvar::new(),
            stopped: AtomicBool::new(false),
            threads: Mutex::default(),
        });
        // Only one call can get here: the second one has fenced the first, whose changes are refused.
        if self.shared.publication.set(Arc::clone(&publication)).is_err() {
            return Err(StoreError::Fenced { by: None }.into());
        }
        let (from, uploads) = (begun.from, begun.uploads);
        let shared = Arc::clone(&self.shared);
        let run = move |publication: &Publication| shared.run_publisher(publication, from);
        spawn(&publication, "store-publisher", run)?;
        let shared = Arc::clone(&self.shared);
        let run = move |publication: &Publication| shared.run_uploader(publication, uploads);
        spawn(&publication, "store-uploader", run)?;
        Ok(begun.faults)
    }

    /// Waits until the shared store has everything that was durable when this was called, in runs as far as this store
    /// has it there. Returns at once if the chain is not published. Calls `progress` regularly.
    ///
    /// # Errors
    /// If publishing has ended, or the context is cancelled.
    pub fn wait_until_published(
        &self,
        context: &Context,
        mut progress: impl FnMut(PublicationHealth),
    ) -> Result<(), BackendError> {
        let Some(publication) = self.shared.publication.get() else { return Ok(()) };
        let last = self.shared.log.synced();
        let mut state = publication.state.lock();
        state.wanted = state.wanted.max(last);
        state.wants_runs = true;
        publication.entries.notify_one();
        publication.uploads.notify_one();
        while state.published < last || state.wants_runs {
            if let Some(end) = state.end {
                return Err(end.error().into());
            }
            context.check()?;
            if publication.progress.wait_for(&mut state, CHECK).timed_out() {
                MutexGuard::unlocked(&mut state, || progress(publication.health(&self.shared.log)));
            }
        }
        Ok(())
    }

    /// Publishes what is durable and ends publishing, at the latest after [`PublishOptions::closing`]. Changes are refused
    /// afterwards. Dropping the store does the same.
    pub fn stop_publishing(&self) {
        if let Some(publication) = self.shared.publication.get() {
            publication.close();
        }
    }
}

fn spawn(
    publication: &Arc<Publication>,
    name: &str,
    run: impl FnOnce(&Publication) + Send + 'static,
) -> Result<(), StoreError> {
    let shared = Arc::clone(publication);
    let run = move || {
        if catch_unwind(AssertUnwindSafe(|| run(&shared))).is_err() {
            shared.end(End::Failed);
        }
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    publication.threads.lock().push(thread.map_err(StoreError::File)?);
    Ok(())
}

impl Shared {
    /// Fails if publishing has ended.
    pub(super) fn check_publication(&self) -> Result<(), StoreError> {
        let end = self.publication.get().and_then(|publication| publication.state.lock().end);
        end.map_or(Ok(()), |end| Err(end.error()))
    }

    /// Fails if the log has a change that was refused because it was not published in time. Runs must not claim to have
    /// it.
    pub(super) fn check_refused(&self) -> Result<(), StoreError> {
        let state = self.publication.get().map(|publication| publication.state.lock());
        match state {
            Some(state) if state.has_refused => Err(state.end.map_or(StoreError::Poisoned, End::error)),
            _ => Ok(()),
        }
    }

    /// Waits until the shared store has the durable entry `sequence`, if changes are acknowledged only then.
    pub(super) fn wait_until_published(&self, sequence: Sequence) -> Result<(), StoreError> {
        match self.publication.get() {
            Some(publication) if publication.options.sync => publication.wait(sequence),
            _ => Ok(()),
        }
    }
}

impl Publication {
    fn wait(&self, sequence: Sequence) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(sequence);
        self.entries.notify_one();
        while state.published < sequence {
            if let Some(end) = self.ended(&mut state) {
                state.has_refused = true;
                return Err(end.error());
            }
            self.progress.wait_for(&mut state, CHECK);
        }
        Ok(())
    }

    /// Returns why publishing has ended for someone who waits for it, or `None` if they must wait.
    fn ended(&self, state: &mut State) -> Option<End> {
        if self.options.context.check().is_err() {
            let deadline = *state.deadline.get_or_insert_with(|| Instant::now() + self.options.closing);
            if state.end.is_none() && Instant::now() >= deadline {
                self.end_in(state, End::Closed);
            }
        }
        state.end
    }

    /// Waits as long as too much is not published, or nothing is published because another server becomes the writer, which
    /// would then lack the change. A first upload of runs is not waited for.
    pub(super) fn wait_for_room(&self, log: &Wal) {
        let synced = log.synced_bytes();
        let mut state = self.state.lock();
        while !state.needs_runs
            && (state.yields || state.lag_bytes(synced) > self.options.max_unpublished)
            && self.ended(&mut state).is_none()
        {
            self.progress.wait_for(&mut state, CHECK);
        }
    }

    /// Ends publishing for good.
    fn end(&self, end: End) {
        self.end_refusing(end, false);
    }

    /// Ends publishing for good. `has_refused` is whether the log has changes that were refused.
    fn end_refusing(&self, end: End, has_refused: bool) {
        let mut state = self.state.lock();
        state.has_refused |= has_refused;
        self.end_in(&mut state, end);
    }

    fn end_in(&self, state: &mut State, end: End) {
        state.end.get_or_insert(end);
        self.stopped.store(true, Ordering::SeqCst);
        self.cancel.cancel();
        self.entries.notify_all();
        self.uploads.notify_all();
        self.progress.notify_all();
    }

    fn close(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        let deadline = *state.deadline.get_or_insert_with(|| Instant::now() + self.options.closing);
        self.entries.notify_all();
        self.uploads.notify_all();
        while state.end.is_none() && !self.progress.wait_until(&mut state, deadline).timed_out() {}
        drop(state);
        self.end(End::Closed);
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.into_iter().for_each(|thread| drop(thread.join()));
        if !matches!(self.state.lock().end, Some(End::Fenced(_) | End::Vanished(_))) {
            // If this fails, the folder is compared with more of the store at the next start.
            let _ = self.marker.lock().advance(self.writer.lock().position());
        }
    }

    fn note(&self, thread: usize, failure: Option<String>) {
        self.state.lock().failures[thread] = failure;
    }
}

impl State {
    fn lag_bytes(&self, synced: u64) -> u64 {
        (self.backlog + synced as i64 - self.published_bytes as i64).max(0) as u64
    }
}

/// What [`Store::publish`] begins with.
struct Begun {
    writer: Writer,
    marker: Marker,
    state: State,
    uploads: Uploads,
    /// The runs that the newest manifest lists and the shared store does not have.
    faults: Vec<RunFault>,
    /// The entry after which the publisher begins.
    from: Sequence,
}
