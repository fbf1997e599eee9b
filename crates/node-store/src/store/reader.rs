//! Reading a chain that another process writes.

use super::Options;
#[cfg(doc)]
use super::Store;
use super::manifest::{self, Listed, Manifest};
use super::open::{Logged, apply, read_records, require_chain};
use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::files::{File, Folder, naming, open_read_only};
use crate::rows::{Part, Tables};
use crate::runs::{Run, RunsShared};
use crate::side_blocks::SideBlocks;
use crate::wal::{LogTail, WalError};
use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordValues, RecordWrite,
    StateBackend, View, records_of_kind,
};
use node_core::block::{BlockRef, ExecutedBlock};
use node_core::sources::Sources;
use node_types::BlockNumber;
use parking_lot::{Condvar, Mutex, RwLock};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of attempts to read a folder whose files change in the meantime, and the time between two attempts.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// Number of log entries after which readers see the newer chain, even if there are more entries.
const STEP: usize = 64;

/// Time without a successful look at the folder after which its content counts as not readable.
const STALE: Duration = Duration::from_secs(10);

/// The kinds of records that belong to the chain. Others belong to the process that wrote them: its pool and filters.
const CHAIN_RECORDS: [RecordKind; 2] = [RecordKind::ChainId, RecordKind::EditedBlock];

/// A [`StateBackend`] for reading a chain that another process writes: a [`Store`] in the same folder.
///
/// It needs only permission to read, takes no lock and writes nothing, so several processes may read the folder, on a
/// read-only file system as well. [`refresh`](Self::refresh) makes what was written in the meantime visible, as one
/// step: views that were opened before stay as they are. It reads the new entries of the write-ahead log, and new runs
/// when the writer has moved blocks to them; only durable changes are seen.
///
/// Changes of the chain are refused. Records are kept in memory, and those of the writer's pool and filters are not
/// visible.
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
    path: PathBuf,
    options: Options,
    current: RwLock<Arc<ChainVersion>>,
    /// Locked while the folder is read.
    source: Mutex<Source>,
    records: RwLock<RecordValues>,
    listeners: RwLock<Vec<Arc<dyn HeadListener>>>,
    looks: Mutex<Looks>,
}

/// What was read of the folder.
struct Source {
    folder: Arc<ReadOnlyFolder>,
    shared: Arc<RunsShared>,
    caches: Arc<Caches>,
    manifest: Manifest,
    /// `None` if an entry could not be applied, so that the chain has to be read from the manifest on.
    log: Option<LogTail>,
}

/// The results of reading the folder.
struct Looks {
    shared: Arc<RunsShared>,
    /// When everything durable was read.
    complete: Instant,
    /// How often looks failed until what was read was [`STALE`].
    failures: u64,
    /// Whether the failure of the last look is one of `failures`.
    is_counted: bool,
    /// Why the last look failed; `None` if it did not.
    failure: Option<String>,
}

/// What a look at a folder has found.
struct Found {
    source: Source,
    chain: ChainVersion,
    records: RecordValues,
}

impl StoreReader {
    /// Opens the chain in `path` for reading. Of the options, only the size of the caches matters.
    ///
    /// # Errors
    /// Fails if there is no chain, if its layout is not supported, or if files are damaged or cannot be read.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let path = path.as_ref().canonicalize().map_err(StoreError::File)?;
        let Found { source, chain, records } = retry(|| open(&path, options))?;
        let shared = Arc::clone(&source.shared);
        let looks = Looks { shared, complete: Instant::now(), failures: 0, is_counted: false, failure: None };
        let reader = Self {
            path,
            options,
            current: RwLock::new(Arc::new(chain)),
            source: Mutex::new(source),
            records: RwLock::new(records),
            listeners: RwLock::default(),
            looks: Mutex::new(looks),
        };
        reader.refresh()?;
        Ok(reader)
    }

    /// Makes everything visible that was durable when this was called, and notifies the listeners. Returns whether the
    /// head has changed.
    ///
    /// # Errors
    /// Fails if files are missing, damaged or cannot be read, or if a folder with another genesis took the place of this
    /// one. The chain stays as it was, and another call may succeed.
    pub fn refresh(&self) -> Result<bool, BackendError> {
        let mut source = self.source.lock();
        let before = self.chain().head;
        let begun = Instant::now();
        let refreshed = retry(|| self.look(&mut source));
        source.shared.failed.read_again();
        let mut looks = self.looks.lock();
        looks.shared = Arc::clone(&source.shared);
        match &refreshed {
            Ok(()) => (looks.complete, looks.failure, looks.is_counted) = (begun, None, false),
            Err(error) => {
                // Looks are repeated until one succeeds, which is one failure, and none if that is soon.
                let is_stale = looks.complete.elapsed() > STALE;
                looks.failures += u64::from(is_stale && !looks.is_counted);
                looks.is_counted |= is_stale;
                looks.failure = Some(Sources(error).to_string());
            }
        }
        drop(looks);
        refreshed?;
        Ok(self.chain().head != before)
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

    /// Returns the time since everything durable was visible. With regular refreshes it is short, unless the folder
    /// cannot be read, or is written faster than it is read.
    pub fn lag(&self) -> Duration {
        self.looks.lock().complete.elapsed()
    }

    /// Returns the genesis file of the chain, or `None` if none was recorded.
    pub fn genesis_file(&self) -> Option<Vec<u8>> {
        self.source.lock().manifest.genesis_file.clone()
    }

    /// Returns the path of the folder, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn chain(&self) -> Arc<ChainVersion> {
        Arc::clone(&self.current.read())
    }

    /// Looks for a newer manifest and for new entries of the log.
    fn look(&self, source: &mut Source) -> Result<(), StoreError> {
        if !source.folder.is_current()? {
            return self.replace(source);
        }
        if source.newest_manifest()? != Some(source.manifest.number) || source.log.is_none() {
            let manifest = Manifest::read(&*source.folder)?.ok_or(StoreError::NoChain)?;
            if manifest.number < source.manifest.number || manifest.meta.genesis != source.manifest.meta.genesis {
                // An older copy took the place of the files.
                return self.replace(source);
            }
            let chain = self.chain();
            if manifest.meta == source.manifest.meta && source.log.is_some() {
                // Runs were merged, so the rows are the same.
                let [numbered, keyed] = source.parts(&manifest, &chain.rows.tables)?;
                let mut chain = ChainVersion::clone(&chain);
                chain.rows.tables = Arc::new(chain.rows.tables.with_same_rows(numbered, keyed));
                source.adopt(manifest, &chain);
                *self.current.write() = Arc::new(chain);
            } else {
                let (newer, records) = source.chain_of(&manifest, Some(&chain.rows.tables))?;
                source.log = Some(LogTail::after(manifest.meta.logged));
                source.adopt(manifest, &newer);
                // Not visible before the entries of the log are applied: until then, it may end before the head.
                return self.read_log(source, newer, Some(records));
            }
        }
        let chain = ChainVersion::clone(&self.chain());
        self.read_log(source, chain, None)
    }

    /// Reads a folder that took the place of the one that was read, or older content of it. Another chain is refused:
    /// what was derived from the genesis, such as the rules of the forks, would not fit it.
    fn replace(&self, source: &mut Source) -> Result<(), StoreError> {
        let found = open(&self.path, self.options)?;
        let (expected, found_genesis) = (source.manifest.meta.genesis, found.source.manifest.meta.genesis);
        if found_genesis != expected {
            return Err(StoreError::OtherGenesis { found: found_genesis, expected });
        }
        *source = found.source;
        self.read_log(source, found.chain, Some(found.records))
    }

    /// Applies the durable entries of the log that are new to `chain`, and makes it visible. `records` are those in its
    /// runs, if it was read from runs.
    fn read_log(
        &self,
        source: &mut Source,
        mut chain: ChainVersion,
        mut records: Option<RecordValues>,
    ) -> Result<(), StoreError> {
        // Set again at the end. If this fails, `chain` may have rows of blocks that it does not have.
        let mut log = source.log.take().ok_or(StoreError::Closed)?;
        let through = LogTail::durable(&*source.folder)?;
        let (mut count, visible) = (0, self.chain().head.number);
        let mut writes = Vec::new();
        while let Some(entry) = log.read(&*source.folder, through)? {
            let Logged { records: written, .. } = apply(&mut chain, &entry.payload).map_err(unwrap)?;
            writes.extend(written);
            count += 1;
            // After reading from runs, `chain` may still be behind the visible one.
            if count % STEP == 0 && chain.head.number > visible {
                self.write(records.take(), std::mem::take(&mut writes));
                self.publish(chain.clone())?;
            }
        }
        source.log = Some(log);
        self.write(records, writes);
        self.publish(chain)
    }

    /// Replaces the records of the chain by `replaced`, if it is given, and applies `writes` to them.
    fn write(&self, replaced: Option<RecordValues>, writes: Vec<RecordWrite>) {
        let mut records = self.records.write();
        if let Some(replaced) = replaced {
            records.retain(|(kind, _), _| !CHAIN_RECORDS.contains(kind));
            records.extend(replaced);
        }
        let of_chain = writes.into_iter().filter(|write| CHAIN_RECORDS.contains(&write.kind()));
        of_chain.for_each(|write| write.apply(&mut records));
    }

    /// Makes `chain` visible, and notifies the listeners of what has changed.
    fn publish(&self, chain: ChainVersion) -> Result<(), StoreError> {
        let chain = Arc::new(chain);
        let old = std::mem::replace(&mut *self.current.write(), Arc::clone(&chain));
        if old.head == chain.head {
            return Ok(());
        }
        let change = difference(&old, &chain)?;
        let listeners = self.listeners.read().clone();
        listeners.iter().for_each(|listener| listener.head_changed(&change));
        Ok(())
    }
}

/// Returns the blocks that left the chain and those that joined it.
fn difference(old: &ChainVersion, new: &ChainVersion) -> Result<HeadChange, StoreError> {
    let missing = || StoreError::Missing { table: crate::keys::Table::Headers.name() };
    let mut ancestor = old.head.number.min(new.head.number);
    while old.canonical(ancestor)? != new.canonical(ancestor)? {
        ancestor = ancestor.checked_sub(1).ok_or_else(missing)?;
    }
    let block = |chain: &ChainVersion, number: BlockNumber| -> Result<BlockRef, StoreError> {
        Ok(BlockRef { number, hash: chain.canonical(number)?.ok_or_else(missing)? })
    };
    let removed = (ancestor + 1..=old.head.number).rev().map(|number| block(old, number));
    let added = (ancestor + 1..=new.head.number).map(|number| block(new, number));
    Ok(HeadChange { removed: removed.collect::<Result<_, _>>()?, added: added.collect::<Result<_, _>>()? })
}

/// Opens a folder. The chain has the blocks in runs only.
fn open(path: &Path, options: Options) -> Result<Found, StoreError> {
    let folder = Arc::new(ReadOnlyFolder::open(path).map_err(StoreError::File)?);
    let manifest = Manifest::read(&*folder)?.ok_or(StoreError::NoChain)?;
    let run_cache = options.run_cache_bytes();
    let mut source = Source {
        folder,
        shared: RunsShared::new(run_cache),
        caches: Arc::new(Caches::new((options.cache_bytes as u64).saturating_sub(run_cache))),
        log: Some(LogTail::after(manifest.meta.logged)),
        manifest,
    };
    let manifest = source.manifest.clone();
    let (chain, records) = source.chain_of(&manifest, None)?;
    Ok(Found { source, chain, records })
}

impl Source {
    /// Returns the number of the newest manifest, complete or not.
    fn newest_manifest(&self) -> Result<Option<u64>, StoreError> {
        let names = self.folder.list().map_err(StoreError::File)?;
        Ok(names.iter().filter_map(|name| manifest::number_of(name)).max())
    }

    /// Returns the chain in the runs of `manifest`, and its records. `open` are runs that are open already.
    fn chain_of(
        &mut self,
        manifest: &Manifest,
        open: Option<&Arc<Tables>>,
    ) -> Result<(ChainVersion, RecordValues), StoreError> {
        let none = Arc::new(Tables::new(Vec::new(), Vec::new()));
        let [numbered, keyed] = self.parts(manifest, open.unwrap_or(&none))?;
        let tables = Arc::new(Tables::new(numbered, keyed));
        let side_blocks = SideBlocks::read(&tables)?;
        let mut records = read_records(&tables)?.values;
        records.retain(|(kind, _), _| CHAIN_RECORDS.contains(kind));
        let meta = manifest.meta;
        let chain = ChainVersion::in_runs(meta.head, meta.earliest, tables, side_blocks, Arc::clone(&self.caches));
        Ok((chain, records))
    }

    /// Opens the runs of `manifest` that are not among `open`.
    fn parts(&self, manifest: &Manifest, open: &Tables) -> Result<[Vec<Part>; 2], StoreError> {
        let part = |listed: &Listed| -> Result<Part, StoreError> {
            let known = open.parts().find(|part| part.run.id() == listed.id);
            let run = match known {
                Some(part) => Arc::clone(&part.run),
                None => {
                    let run = Run::open(&*self.folder, listed.id, Arc::clone(&self.shared));
                    Arc::new(run.map_err(StoreError::File)?)
                }
            };
            Ok(Part { run, limit: listed.limit })
        };
        let parts = |runs: &[Listed]| runs.iter().map(part).collect::<Result<Vec<_>, _>>();
        Ok([parts(&manifest.numbered)?, parts(&manifest.keyed)?])
    }

    /// Continues with a newer manifest, whose runs are those of `chain`.
    fn adopt(&mut self, manifest: Manifest, chain: &ChainVersion) {
        let exists = |id| chain.rows.tables.parts().any(|part| part.run.id() == id);
        self.shared.failed.forget(exists);
        self.shared.cache.forget(exists);
        self.manifest = manifest;
    }
}

/// Repeats `attempt` as long as it fails because files were removed that it was about to read.
fn retry<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if was_removed(&error) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

fn was_removed(error: &StoreError) -> bool {
    matches!(error, StoreError::Log(WalError::Missing { .. }))
        || error.io().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns the error of this crate within an error of applying an entry.
pub(super) fn unwrap(error: BackendError) -> StoreError {
    match error {
        BackendError::Storage(source) => match source.downcast::<StoreError>() {
            Ok(error) => *error,
            Err(other) => StoreError::File(io::Error::other(other)),
        },
        other => StoreError::File(io::Error::other(other)),
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
        Ok(self.chain())
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
        self.listeners.write().push(listener);
    }

    fn proves_quickly(&self) -> bool {
        true
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        let mut records = self.records.write();
        writes.iter().cloned().for_each(|write| write.apply(&mut records));
        Ok(())
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.records.read().get(&(kind, key.to_vec())).cloned())
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        Ok(records_of_kind(&self.records.read(), kind))
    }

    fn caches(&self) -> Vec<CacheUse> {
        let mut caches = vec![self.looks.lock().shared.cache.usage()];
        caches.extend(self.chain().caches.usage());
        caches
    }

    fn health(&self) -> BackendHealth {
        let looks = self.looks.lock();
        let lag = looks.complete.elapsed();
        let stale = (lag > STALE).then(|| {
            let reason = looks.failure.as_deref().unwrap_or("the folder is read more slowly than it is written");
            format!("the newest blocks were read {} s ago: {reason}", lag.as_secs())
        });
        BackendHealth {
            failed_reads: looks.failures + looks.shared.failed.count(),
            read_failure: stale.or_else(|| looks.shared.failed.error()),
            files: self.chain().rows.tables.parts().count() as u64,
            lag: Some(lag),
            ..BackendHealth::default()
        }
    }
}

/// A folder that is read while another process writes to it.
#[derive(Debug)]
pub(super) struct ReadOnlyFolder {
    path: PathBuf,
    /// Device and number of the folder.
    identity: (u64, u64),
}

impl ReadOnlyFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    }

    /// Returns whether the path still leads to the same folder.
    fn is_current(&self) -> Result<bool, StoreError> {
        let found = fs::metadata(&self.path).map_err(StoreError::File)?;
        Ok((found.dev(), found.ino()) == self.identity)
    }

    fn refused<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the folder is open for reading only"))
    }
}

impl Folder for ReadOnlyFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        open_read_only(&self.path.join(name)).map_err(|error| naming(name, &error))
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn File>> {
        Self::refused()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Self::refused()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_volatile(&self) -> bool {
        false
    }
}
