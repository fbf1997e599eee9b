//! The store: a folder with runs and a write-ahead log, or runs in memory.

mod archive;
mod backup;
mod flush;
mod fork;
mod healing;
mod manifest;
mod merger;
mod open;
mod options;
mod prune;
mod publish;
mod reader;
mod records;
mod shared_snapshot;
mod snapshot;
mod stats;
mod verify;

pub use backup::{Backup, BackupError, BackupProgress, check_outside};
#[cfg(test)]
pub(crate) use backup::{Failure, Older};
#[cfg(any(test, feature = "test-faults"))]
pub(crate) use manifest::seal as seal_manifest;
#[cfg(test)]
pub(crate) use manifest::{Listed, Manifest};
pub use open::BASE_FOLDER;
pub use options::{Options, SyncPolicy};
pub use publish::{PublishOptions, RestoreProgress};
pub use reader::{Refreshing, SharedOptions, StoreReader};
pub use stats::{Stats, TableStats};
pub use verify::{Difference, RowFault, Verified, VerifyOptions, VerifyProgress};

use crate::block_bytes::BlockBytes;
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::files::Folder;
use crate::journal;
use crate::wal::{Sequence, Wal, WalError};
use archive::Archive;
use healing::FailedWrites;
use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend,
    View, records_of_kind,
};
use node_core::block::{BlockRef, ExecutedBlock};
use node_types::BlockNumber;
use parking_lot::{Condvar, Mutex, RwLock};
use publish::Publication;
use records::Records;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A [`StateBackend`] that stores a chain in one folder, or in memory, with every state of the chain.
///
/// A change is made to a clone of the newest version of the chain, which shares unchanged data; it is written to the
/// log and synced; then the clone replaces the original. Views are references to the version that was newest when
/// they were opened. Listeners are called while the writer lock is held: they may read the chain and write records,
/// but must not change the chain.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (genesis, blocks): (node_core::block::ExecutedBlock, Vec<node_core::block::ExecutedBlock>) = unreachable!();
/// use node_core::backend::StateBackend;
/// use node_store::{Options, Store, SyncPolicy};
///
/// let store = Store::open("data", genesis, Options { sync: SyncPolicy::OnDemand, ..Options::default() })?;
/// for block in blocks {
///     store.append(block)?;
/// }
/// store.set_sync_policy(SyncPolicy::Always)?;
/// println!("head {}", store.view()?.head());
/// # Ok(())
/// # }
/// ```
pub struct Store {
    shared: Arc<Shared>,
    /// The threads that move rows to runs and that merge runs. They end when the writer is being closed.
    threads: Vec<JoinHandle<()>>,
}

/// State shared by callers and the threads of a store.
struct Shared {
    folder: Arc<dyn Folder>,
    options: Options,
    /// Whether changes are synced before they are acknowledged.
    sync_always: AtomicBool,
    archive: Archive,
    log: Wal,
    /// Later entries remain in the log, although they may be in runs.
    kept_after: Mutex<Sequence>,
    /// Set once the chain is published to a shared store.
    publication: OnceLock<Arc<Publication>>,
    /// Number of refused changes that were removed from the log when it was opened.
    refused: u64,
    /// Held for reading from the append of an entry until its sync returns; for writing while the log is rolled back.
    logging: RwLock<()>,
    failed_writes: Mutex<FailedWrites>,
    current: RwLock<Arc<ChainVersion>>,
    /// Locked before all other locks.
    writer: Mutex<Writer>,
    /// Notified when `flushing` or `closing` of the writer, or `merged`, changes.
    turn: Condvar,
    /// Whether merging must stop.
    merges_end: Mutex<bool>,
    /// Notified when there is a new run, or when `merges_end` changes.
    merge_turn: Condvar,
    /// Whether runs were merged since the chain was published.
    merged: AtomicBool,
    /// Number of bytes appended to the log since the young generation was created.
    log_bytes: AtomicUsize,
    records: RwLock<Records>,
    listeners: RwLock<Vec<Arc<dyn HeadListener>>>,
}

/// State of the thread that changes the chain. There is only one at a time.
struct Writer {
    state: WriterState,
    /// The last entry of the log that runs have.
    logged: Sequence,
    /// The blocks in memory, the lowest first, each with the entry of the log that contains it.
    entries: VecDeque<(BlockNumber, Sequence)>,
    /// Whether the old generation is being written to a run.
    flushing: bool,
    /// Whether the flusher must end.
    closing: bool,
    /// While the log is replayed: the last entry that was applied.
    replaying: Option<Sequence>,
    /// The last entry whose change is in the published chain.
    published: Sequence,
}

/// Whether the chain can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterState {
    Ready,
    /// A run could not be written, and will be written again.
    Retrying,
    /// Memory may differ from the disk, so the folder must be opened again.
    Poisoned,
}

impl Store {
    /// Makes all acknowledged changes durable.
    ///
    /// # Errors
    /// Fails if the log cannot be synced.
    pub fn sync(&self) -> Result<(), BackendError> {
        Ok(self.shared.sync().inspect_err(|error| self.shared.note_failure(error))?)
    }

    /// Changes the sync policy, for an import into a store that serves requests afterwards. When it returns, all
    /// earlier changes are durable.
    ///
    /// # Errors
    /// Fails if the log cannot be synced.
    pub fn set_sync_policy(&self, policy: SyncPolicy) -> Result<(), BackendError> {
        self.shared.sync_always.store(policy == SyncPolicy::Always, Ordering::SeqCst);
        self.sync()
    }

    /// Moves all changes to runs, so that the next start does not have to read the log. Does nothing for a store in
    /// memory.
    ///
    /// # Errors
    /// Fails if a run or the manifest cannot be written.
    pub fn flush(&self) -> Result<(), BackendError> {
        if self.folder().is_volatile() { Ok(()) } else { Ok(self.shared.flush()?) }
    }

    /// Returns the genesis file of the chain, or `None` if none was recorded.
    ///
    /// Blocks do not contain the rules under which they were executed, so the genesis file is recorded with them.
    pub fn genesis_file(&self) -> Option<Vec<u8>> {
        self.shared.archive.genesis_file()
    }

    /// Records the genesis file of the chain, durably.
    ///
    /// # Errors
    /// Fails if the manifest cannot be written.
    pub fn record_genesis_file(&self, file: &[u8]) -> Result<(), BackendError> {
        Ok(self.shared.archive.set_genesis_file(file)?)
    }

    /// Returns all side blocks, in no particular order.
    pub fn side_blocks(&self) -> Vec<BlockRef> {
        self.shared.chain().side_blocks.all()
    }

    /// Returns the folder that contains the store.
    pub fn folder(&self) -> &Arc<dyn Folder> {
        &self.shared.folder
    }
}

impl Drop for Store {
    /// Moves everything to runs, so that the next start does not have to read the log. If this fails, the log has
    /// everything.
    fn drop(&mut self) {
        self.stop_publishing();
        let _ = self.flush();
        self.shared.writer.lock().closing = true;
        self.shared.turn.notify_all();
        // An unfinished merge is abandoned.
        *self.shared.merges_end.lock() = true;
        self.shared.merge_turn.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn chain(&self) -> Arc<ChainVersion> {
        Arc::clone(&self.current.read())
    }

    /// Applies `change` to a clone of the chain, logs the entry that it returns, which contains `writes`, publishes the
    /// clone and notifies the listeners.
    fn change(
        &self,
        writes: &[RecordWrite],
        change: impl FnOnce(&mut ChainVersion) -> Result<(HeadChange, Vec<u8>), BackendError>,
    ) -> Result<HeadChange, BackendError> {
        if let Some(publication) = self.publication.get() {
            publication.wait_for_room(&self.log);
        }
        let mut writer = self.writer.lock();
        self.check_publication()?;
        self.check(&writer)?;
        // If `change` panics, the resulting state is unknown.
        writer.state = WriterState::Poisoned;
        let mut chain = ChainVersion::clone(&self.current.read());
        let (change, entry) = match change(&mut chain) {
            Ok(done) => done,
            Err(error) => {
                self.forget(&mut writer);
                return Err(error);
            }
        };
        let sequence = match self.write_log(&entry, writes) {
            Ok(sequence) => sequence,
            Err(error) => {
                self.forget(&mut writer);
                self.note_failure(&error);
                self.roll_back_refused(&writer);
                return Err(error.into());
            }
        };
        writer.state = WriterState::Ready;
        writer.published = sequence;
        writer.stamp(&change, sequence);
        self.publish(chain);
        self.notify(&change);
        self.flush_when_full(&mut writer);
        Ok(change)
    }

    /// Removes the rows of blocks that were not added.
    fn forget(&self, writer: &mut Writer) {
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.forget_above_head();
        self.publish(chain);
        writer.state = WriterState::Ready;
    }

    fn publish(&self, chain: ChainVersion) {
        // The old chain may be freed here, after the lock is released.
        let _old = std::mem::replace(&mut *self.current.write(), Arc::new(chain));
    }

    fn notify(&self, change: &HeadChange) {
        if !change.removed.is_empty() || !change.added.is_empty() {
            let listeners = self.listeners.read().clone();
            listeners.iter().for_each(|listener| listener.head_changed(change));
        }
    }

    fn append_to_log(&self, entry: &[u8]) -> Result<Sequence, WalError> {
        let sequence = self.log.append(entry)?;
        self.log_bytes.fetch_add(entry.len(), Ordering::Relaxed);
        Ok(sequence)
    }

    fn write_log(&self, entry: &[u8], writes: &[RecordWrite]) -> Result<Sequence, StoreError> {
        self.logged(|| self.log_with_records(entry, writes))
    }

    /// Calls `append`, which returns the entry that it appended to the log. Unless the policy is to sync on demand, makes
    /// it durable, and waits until it is published if it has to be.
    fn logged(&self, append: impl FnOnce() -> Result<Sequence, StoreError>) -> Result<Sequence, StoreError> {
        let logging = self.logging.read();
        let sequence = append()?;
        if self.sync_always.load(Ordering::SeqCst) {
            self.log.sync_through(sequence)?;
            // A durable entry is never rolled back.
            drop(logging);
            self.wait_until_published(sequence)?;
        }
        Ok(sequence)
    }

    /// Makes all entries of the log durable, and waits until they are published if they have to be.
    fn sync(&self) -> Result<(), StoreError> {
        let last = self.log.last();
        self.log.sync_through(last)?;
        self.wait_until_published(last)
    }
}

impl Shared {
    /// Fails if the chain cannot be changed.
    fn check(&self, writer: &Writer) -> Result<(), StoreError> {
        self.check_refused()?;
        match writer.state {
            WriterState::Ready => Ok(()),
            WriterState::Poisoned => Err(StoreError::Poisoned),
            WriterState::Retrying => {
                let reason = self.failed_writes.lock().reason.clone().unwrap_or_default();
                Err(StoreError::Unwritable { reason })
            }
        }
    }
}

impl Writer {
    fn is_ready(&self) -> bool {
        self.state == WriterState::Ready
    }

    /// Records which entry of the log contains the added blocks.
    fn stamp(&mut self, change: &HeadChange, sequence: Sequence) {
        if let Some(first) = change.removed.iter().chain(&change.added).map(|block| block.number).min() {
            self.entries.truncate(self.entries.partition_point(|(number, _)| *number < first));
        }
        self.entries.extend(change.added.iter().map(|block| (block.number, sequence)));
    }
}

fn append(
    chain: &mut ChainVersion,
    block: &ExecutedBlock,
    writes: &[RecordWrite],
) -> Result<(HeadChange, Vec<u8>), BackendError> {
    let bytes = BlockBytes::encode(block);
    chain.extend(block, &bytes)?;
    Ok((HeadChange { removed: Vec::new(), added: vec![chain.head] }, journal::append(block, &bytes, writes)))
}

fn switch(
    chain: &mut ChainVersion,
    ancestor: BlockNumber,
    branch: Vec<ExecutedBlock>,
    writes: &[RecordWrite],
) -> Result<(HeadChange, Vec<u8>), BackendError> {
    if ancestor > chain.head.number {
        return Err(BackendError::UnknownBlock(ancestor));
    }
    if ancestor < chain.earliest {
        return Err(BackendError::StatePruned { block: ancestor, earliest: chain.earliest });
    }
    let mut change = HeadChange { removed: chain.remove_above(ancestor)?, added: Vec::new() };
    let mut encoded = Vec::with_capacity(branch.len());
    for block in branch {
        let bytes = BlockBytes::encode(&block);
        chain.extend(&block, &bytes)?;
        change.added.push(chain.head);
        encoded.push((block, bytes));
    }
    Ok((change, journal::switch(ancestor, &encoded, writes)))
}

/// Returns whether a change was refused because it is too large for one entry of the log.
fn is_too_large(error: &BackendError) -> bool {
    let BackendError::Storage(error) = error else { return false };
    matches!(error.downcast_ref(), Some(StoreError::Log(WalError::TooLarge { .. })))
}

fn keep_side_block(chain: &mut ChainVersion, block: ExecutedBlock) -> Result<(HeadChange, Vec<u8>), BackendError> {
    let entry = journal::side_block(&block);
    let BlockRef { hash, .. } = block.header.block_ref();
    if chain.locate(hash.into())?.is_none() {
        chain.side_blocks.insert(block);
    }
    Ok((HeadChange { removed: Vec::new(), added: Vec::new() }, entry))
}

impl StateBackend for Store {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        Ok(self.shared.chain())
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        // Before the chain is locked, because it may take long.
        self.shared.chain().fetch(&block)?;
        self.shared.change(writes, |chain| append(chain, &block, writes)).map(drop)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        let switched = self.shared.change(writes, |chain| switch(chain, ancestor, branch.clone(), writes));
        if !switched.as_ref().is_err_and(is_too_large) {
            return switched;
        }
        // An entry of the log for each block, and one that refers to them.
        branch.iter().try_for_each(|block| self.keep_side_block(block.clone()))?;
        self.shared.change(writes, |chain| {
            let entry = journal::switch_to(ancestor, &branch, writes);
            Ok((switch(chain, ancestor, branch, &[])?.0, entry))
        })
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.shared.change(&[], |chain| keep_side_block(chain, block)).map(drop)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.shared.listeners.write().push(listener);
    }

    fn proves_quickly(&self) -> bool {
        true
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.shared.log_records(writes).inspect_err(|error| self.shared.refuse_records(error))?;
        self.shared.flush_when_log_is_long();
        Ok(())
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        if !self.shared.sync_always.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.shared.sync().map_err(|error| {
            self.shared.note_failure(&error);
            // The caller will refuse the change, so it must be removed from the log.
            self.shared.roll_back_refused(&self.shared.writer.lock());
            error.into()
        })
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.shared.write_records(writes).inspect_err(|error| self.shared.refuse_records(error))?;
        self.shared.flush_when_log_is_long();
        Ok(())
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.shared.records.read().values.get(&(kind, key.to_vec())).cloned())
    }

    fn health(&self) -> BackendHealth {
        self.shared.health()
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        Ok(records_of_kind(&self.shared.records.read().values, kind))
    }

    fn caches(&self) -> Vec<CacheUse> {
        let mut caches = vec![self.shared.archive.shared().cache.usage()];
        caches.extend(self.shared.chain().caches.usage());
        caches
    }
}
