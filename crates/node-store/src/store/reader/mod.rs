//! Reading a chain that another process writes.

mod folder;
mod shared;
#[cfg(test)]
mod tests;
mod visible;
mod warmer;

pub use shared::SharedOptions;
pub(super) use visible::unwrap;

use super::Options;
#[cfg(doc)]
use super::Store;
use super::open::require_chain;
use crate::caches::Caches;
use crate::error::StoreError;
use crate::runs::RunsShared;
use crate::shared::Objects;
use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend,
    View, records_of_kind,
};
use node_core::block::ExecutedBlock;
use node_core::sources::Sources;
use node_types::BlockNumber;
use parking_lot::{Condvar, Mutex};
use shared::{Remote, SharedSource};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use visible::Visible;

/// Time without a successful look at the source after which its content counts as not readable.
const STALE: Duration = Duration::from_secs(10);

/// A [`StateBackend`] for reading a chain that another process writes: a [`Store`] in a folder, or one that is published
/// in a [shared store](crate::shared).
///
/// It needs only permission to read, takes no lock and writes nothing, so several processes may read the chain, on a
/// read-only file system as well. [`refresh`](Self::refresh) makes what was written in the meantime visible, as one
/// step: views that were opened before stay as they are. It reads the new entries of the log, and new runs when the
/// writer has moved blocks to them; only durable changes are seen.
///
/// Views show the writer's edits of the head's state that no block includes yet. Changes of the chain are refused. Records are
/// kept in memory, and those of the writer's pool and filters are not visible.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use node_core::backend::StateBackend;
/// use node_store::{Options, StoreReader};
/// use std::{sync::Arc, time::Duration};
///
/// let reader = Arc::new(StoreReader::open("data", Options::default())?);
/// let _refreshing = reader.refresh_every(Duration::from_millis(100))?;
/// println!("head {}", reader.view()?.head());
/// # Ok(())
/// # }
/// ```
pub struct StoreReader {
    /// `None` for a shared store.
    path: Option<PathBuf>,
    visible: Visible,
    /// Locked while it is read.
    source: Mutex<Box<dyn Source>>,
    /// `None` for a folder.
    remote: Option<Arc<Remote>>,
    looks: Mutex<Looks>,
}

/// From where the chain is read.
trait Source: Send {
    /// Makes everything visible that was durable when this was called.
    fn look(&mut self, visible: &Visible) -> Result<(), StoreError>;

    /// Repeats failed reads of runs, as far as it is time for that.
    fn read_again(&mut self);

    /// Returns the cache and the failures of the open runs.
    fn runs(&self) -> &Arc<RunsShared>;

    /// Returns the genesis file of the chain, or `None` if none was recorded.
    fn genesis_file(&self) -> Option<Vec<u8>>;
}

/// The results of reading the source.
struct Looks {
    runs: Arc<RunsShared>,
    /// When everything durable was read.
    complete: Instant,
    /// How often looks failed until what was read was [`STALE`].
    failures: u64,
    /// Whether the failure of the last look is one of `failures`.
    is_counted: bool,
    /// Why the last look failed; `None` if it did not.
    failure: Option<String>,
}

/// Returns the caches of a reader.
fn new_caches(options: &Options) -> (Arc<RunsShared>, Arc<Caches>) {
    let run_cache = options.run_cache_bytes();
    let rest = (options.cache_bytes as u64).saturating_sub(run_cache);
    (RunsShared::new(run_cache), Arc::new(Caches::new(rest)))
}

impl StoreReader {
    /// Opens the chain in the folder `path` for reading. Of the options, only the size of the caches matters.
    ///
    /// # Errors
    /// Fails if there is no chain, if its layout is not supported, or if files are damaged or cannot be read.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let path = path.as_ref().canonicalize().map_err(StoreError::File)?;
        let folder::Found { source, chain, records } = folder::open(&path, options)?;
        Self::of(Box::new(source), Visible::new(chain, records)?, Some(path), None)
    }

    /// Opens the chain that is published in the shared store `objects`. Failed operations are repeated here.
    ///
    /// # Errors
    /// [`StoreError::NoChain`] if no chain is published yet. Also fails if the layout is not supported, if objects are
    /// damaged or cannot be read, and if the folder of the cache cannot be used.
    pub fn open_shared(objects: Arc<dyn Objects>, options: SharedOptions) -> Result<Self, BackendError> {
        let (source, visible) = SharedSource::open(objects, options)?;
        let remote = Arc::clone(source.remote());
        let reader = Self::of(Box::new(source), visible, None, Some(Arc::clone(&remote)))?;
        remote.opened();
        Ok(reader)
    }

    fn of(
        source: Box<dyn Source>,
        visible: Visible,
        path: Option<PathBuf>,
        remote: Option<Arc<Remote>>,
    ) -> Result<Self, BackendError> {
        let runs = Arc::clone(source.runs());
        let looks = Mutex::new(Looks { runs, complete: Instant::now(), failures: 0, is_counted: false, failure: None });
        let reader = Self { path, visible, source: Mutex::new(source), remote, looks };
        reader.refresh()?;
        Ok(reader)
    }

    /// Makes everything visible that was durable when this was called, and notifies the listeners. Returns whether the
    /// head has changed.
    ///
    /// # Errors
    /// Fails if files or objects are missing, damaged or cannot be read, or if a chain with another genesis took the place
    /// of this one. The chain stays as it was, and another call may succeed.
    pub fn refresh(&self) -> Result<bool, BackendError> {
        let mut source = self.source.lock();
        let before = self.visible.chain().head;
        let begun = Instant::now();
        let refreshed = source.look(&self.visible);
        source.read_again();
        let mut looks = self.looks.lock();
        looks.runs = Arc::clone(source.runs());
        match &refreshed {
            Ok(()) => (looks.complete, looks.failure, looks.is_counted) = (begun, None, false),
            Err(error) => {
                // A failed refresh is retried until it succeeds. All of its retries count as one failure, or as none if one soon succeeds.
                let is_stale = looks.complete.elapsed() > STALE;
                looks.failures += u64::from(is_stale && !looks.is_counted);
                looks.is_counted |= is_stale;
                looks.failure = Some(Sources(error).to_string());
            }
        }
        drop(looks);
        refreshed?;
        Ok(self.visible.chain().head != before)
    }

    /// Starts a thread that [refreshes](Self::refresh) the chain at this interval, until the returned value is dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn refresh_every(self: &Arc<Self>, interval: Duration) -> io::Result<Refreshing> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (reader, stopped) = (Arc::clone(self), Arc::clone(&stop));
        let run = move || {
            let (stopped, changed) = &*stopped;
            let mut is_stopped = stopped.lock();
            while !*is_stopped {
                parking_lot::MutexGuard::unlocked(&mut is_stopped, || {
                    // A failure is part of the health of the backend.
                    let _ = reader.refresh();
                });
                if !*is_stopped {
                    changed.wait_for(&mut is_stopped, interval);
                }
            }
        };
        let thread = thread::Builder::new().name("store-reader".to_owned()).spawn(run)?;
        Ok(Refreshing { stop, thread: Some(thread) })
    }

    /// Returns the time since everything durable was visible. With regular refreshes it is short, unless the source
    /// cannot be read, or is written faster than it is read. In a shared store, it is at least the time since the writer
    /// wrote what was read last, by the clocks of both machines.
    pub fn lag(&self) -> Duration {
        let lag = self.looks.lock().complete.elapsed();
        self.remote.as_ref().map_or(lag, |remote| lag.max(remote.age()))
    }

    /// Returns the genesis file of the chain, or `None` if none was recorded.
    pub fn genesis_file(&self) -> Option<Vec<u8>> {
        self.source.lock().genesis_file()
    }

    /// Makes reads fail that wait for the shared store, now or later, so that whoever waits for them need not any longer.
    pub fn end_reads(&self) {
        self.remote.iter().for_each(|remote| remote.cancel());
    }

    /// Returns the path of the folder, with symbolic links resolved, or `None` for a shared store.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl Drop for StoreReader {
    fn drop(&mut self) {
        self.end_reads();
    }
}

/// A thread that refreshes a [`StoreReader`]. Dropping it ends the thread.
pub struct Refreshing {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Refreshing {
    fn drop(&mut self) {
        let (stopped, changed) = &*self.stop;
        *stopped.lock() = true;
        changed.notify_all();
        self.thread.take().map(JoinHandle::join);
    }
}

impl StateBackend for StoreReader {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        Ok(self.visible.view())
    }

    fn append_recording(&self, _block: ExecutedBlock, _writes: &[RecordWrite]) -> Result<(), BackendError> {
        Err(StoreError::ReadOnly.into())
    }

    fn switch_recording(
        &self,
        _ancestor: BlockNumber,
        _branch: Vec<ExecutedBlock>,
        _writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        Err(StoreError::ReadOnly.into())
    }

    fn keep_side_block(&self, _block: ExecutedBlock) -> Result<(), BackendError> {
        Err(StoreError::ReadOnly.into())
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.visible.listeners.write().push(listener);
    }

    fn proves_quickly(&self) -> bool {
        true
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        let mut records = self.visible.records.write();
        writes.iter().cloned().for_each(|write| write.apply(&mut records));
        Ok(())
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.visible.records.read().get(&(kind, key.to_vec())).cloned())
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        Ok(records_of_kind(&self.visible.records.read(), kind))
    }

    fn caches(&self) -> Vec<CacheUse> {
        let mut caches = vec![self.looks.lock().runs.cache.usage()];
        caches.extend(self.visible.chain().caches.usage());
        caches.extend(self.remote.as_ref().and_then(|remote| remote.disk_usage()));
        caches
    }

    fn health(&self) -> BackendHealth {
        let lag = self.lag();
        let looks = self.looks.lock();
        let stale = (looks.complete.elapsed() > STALE).then(|| {
            let reason = looks.failure.as_deref().unwrap_or("it is read more slowly than it is written");
            format!("the newest blocks were read {} s ago: {reason}", looks.complete.elapsed().as_secs())
        });
        let late = || self.remote.as_ref().and_then(|remote| remote.late(lag));
        BackendHealth {
            failed_reads: looks.failures
                + looks.runs.failed.count()
                + self.remote.as_ref().map_or(0, |remote| remote.failed()),
            read_failure: self
                .remote
                .as_ref()
                .and_then(|remote| remote.outage())
                .or(stale)
                .or_else(late)
                .or_else(|| looks.runs.failed.error()),
            files: self.visible.chain().rows.tables.parts().count() as u64,
            lag: Some(lag),
            requests: self.remote.as_ref().map(|remote| remote.requests()),
            cold_files: self.remote.as_ref().map_or(0, |remote| remote.cold_runs()),
            ..BackendHealth::default()
        }
    }
}
