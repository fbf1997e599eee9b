//! Opening a folder: creating a chain in it, or applying the log entries that are not in runs.

use super::archive::Archive;
use super::healing::PROBE;
use super::manifest;
use super::publish::{MARKER_NAME, Marked, Marker};
use super::snapshot::SnapshotFolder;
use super::{Options, Records, Shared, Store, SyncPolicy, Writer, WriterState, append, keep_side_block, switch};
use crate::base;
use crate::block_bytes::BlockBytes;
use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::codec::Malformed;
use crate::error::StoreError;
use crate::files::{DiskFolder, Folder, LOCK_FILE, MemoryFolder, Nowhere};
use crate::journal::{LoggedChange, kind_of};
use crate::keys::{Key, Table};
use crate::rows::{PRESENT, Tables};
use crate::runs::RunId;
use crate::side_blocks::SideBlocks;
use crate::state::{self, Before};
use crate::wal::{self, Sequence, Wal};
use node_core::backend::{BackendError, BaseState, HeadChange, RecordWrite};
use node_core::block::{BlockRef, ExecutedBlock};
use node_core::state::StateChanges;
use node_types::H256;
use node_types::consensus::EMPTY_ROOT;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

/// The first block of a new chain.
pub(super) struct Start<'a> {
    pub(super) first: ExecutedBlock,
    /// Its state in parts, if it is neither in `first` nor in a base.
    pub(super) state: Option<&'a mut dyn Iterator<Item = Result<StateChanges, BackendError>>>,
}

/// Maximum number of accounts in a genesis state that is written in parts: storage tries are numbered with 24 bits.
const MAX_GENESIS_ACCOUNTS: u32 = 1 << 24;

/// The folder in which Linux file systems put what they recover. A volume has it from the beginning.
const LOST_AND_FOUND: &str = "lost+found";

/// The folder in the data folder of a chain that continues another one in which its base may be kept. The store does not use
/// it, and does not mind it when it creates a chain.
pub const BASE_FOLDER: &str = "fork";

/// Fails if there is no chain in a folder, or if the folder cannot be read.
pub(super) fn require_chain(path: &Path) -> Result<(), StoreError> {
    let files = match std::fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreError::NoFolder),
        files => files?,
    };
    let names: Vec<_> = files.filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned())).collect();
    if names.iter().any(|name| manifest::number_of(name).is_some()) {
        return Ok(());
    }
    refuse_other_files(&names)?;
    let has_runs = names.iter().any(|name| RunId::of_file_name(name).is_some());
    Err(if has_runs { StoreError::NoManifest } else { StoreError::NoChain })
}

/// Fails if a folder has runs that an interrupted start cannot have left: it creates the log before the first run, or the
/// marker if the folder is restored.
fn refuse_unlisted_runs(path: &Path) -> Result<(), StoreError> {
    let mut files = std::fs::read_dir(path)?.filter_map(|file| file.ok()?.file_name().into_string().ok());
    if files.any(|name| wal::is_log_file(&name) || name == MARKER_NAME) { Ok(()) } else { Err(StoreError::NoManifest) }
}

/// Fails if a folder without a chain has other files than those that an interrupted start leaves. It is not the folder
/// of a chain then, but somebody else's, and a chain created there would hide that.
fn refuse_other_files(names: &[String]) -> Result<(), StoreError> {
    let is_ours = |name: &str| {
        [LOCK_FILE, PROBE, LOST_AND_FOUND, MARKER_NAME, BASE_FOLDER].contains(&name)
            || wal::is_log_file(name)
            || RunId::of_file_name(name).is_some()
            || manifest::number_of(name).is_some()
    };
    // The first one in alphabetical order, so that the error is the same each time.
    match names.iter().filter(|name| !is_ours(name)).min() {
        Some(file) => Err(StoreError::OtherFiles { file: file.clone() }),
        None => Ok(()),
    }
}

impl Store {
    /// Opens the chain in `path` with the given genesis block, or creates it if the folder is empty.
    ///
    /// # Errors
    /// [`BackendError::Locked`] if another process has opened the folder. Also fails if it contains another chain or an
    /// unsupported layout, if files are damaged, or if it has no chain but other files. In these cases the folder is not
    /// changed.
    pub fn open(path: impl AsRef<Path>, genesis: ExecutedBlock, options: Options) -> Result<Self, BackendError> {
        Self::check_usable(path.as_ref())?;
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_in(Arc::new(folder), genesis, options)
    }

    /// Creates a chain in memory with the given genesis block. It is lost when the store is dropped.
    ///
    /// It works like a chain in a folder, with the same runs, but without a log. [`Options::in_memory`] returns
    /// suitable options.
    ///
    /// # Errors
    /// [`BackendError::NotGenesis`] unless the number of `genesis` is 0, [`BackendError::StateRootMismatch`] if its
    /// changes do not produce its state root, and an error if no thread can be started.
    pub fn in_memory(genesis: ExecutedBlock, options: Options) -> Result<Self, BackendError> {
        Self::open_in(Arc::new(MemoryFolder::default()), genesis, options)
    }

    /// Like [`Self::open`], in any implementation of [`Folder`].
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_in(folder: Arc<dyn Folder>, genesis: ExecutedBlock, options: Options) -> Result<Self, BackendError> {
        Self::open_or_begin(folder, Some(Start { first: genesis, state: None }), None, options)
    }

    /// Like [`Self::open_in`], for a genesis state that need not fit into memory. A new chain reads it from `state`,
    /// whose items are its accounts in parts, in ascending order of the hashes of their addresses. `genesis` must
    /// have no changes.
    ///
    /// [`View::changes`](node_core::backend::View::changes) returns `None` for the genesis block of such a chain.
    ///
    /// # Errors
    /// Those of [`Self::open_in`] and of `state`, and [`StoreError::BeyondLimits`] if there are more than 2^24
    /// accounts. After an error there is no chain in the folder.
    pub fn open_large_in(
        folder: Arc<dyn Folder>,
        genesis: ExecutedBlock,
        mut state: impl Iterator<Item = Result<StateChanges, BackendError>>,
        options: Options,
    ) -> Result<Self, BackendError> {
        Self::open_or_begin(folder, Some(Start { first: genesis, state: Some(&mut state) }), None, options)
    }

    /// Opens the chain in `path`. Never creates one.
    ///
    /// # Errors
    /// As [`Self::open`]; also if there is no chain.
    pub fn open_existing(path: impl AsRef<Path>, options: Options) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_or_begin(Arc::new(folder), None, None, options)
    }

    /// Opens a snapshot of the chain in `path`, without locking or changing the folder: another process may continue
    /// to write to it, and only read permission is needed. Changes are kept in memory and lost when the store is
    /// dropped.
    ///
    /// The chain has every change that was acknowledged before the call, and possibly changes that are being written.
    ///
    /// # Errors
    /// Fails if there is no chain, if its layout is not supported, if files are damaged or cannot be read.
    pub fn open_snapshot(path: impl AsRef<Path>, options: Options) -> Result<Self, BackendError> {
        require_chain(path.as_ref())?;
        let folder = SnapshotFolder::open(path.as_ref()).map_err(StoreError::File)?;
        // Merged runs would be kept in memory, which may take as much as the size of the folder.
        Self::open_or_begin(Arc::new(folder), None, None, Options { merge: false, ..options })
    }

    /// Checks that the folder `path` has a chain or could get one: that it does not exist, is empty, or has only files
    /// of an interrupted start. Does not change it, unlike [`DiskFolder::open`], which creates a file.
    ///
    /// # Errors
    /// [`StoreError::OtherFiles`]; [`StoreError::NoManifest`] if there are only runs; and errors of reading the folder.
    pub fn check_usable(path: impl AsRef<Path>) -> Result<(), BackendError> {
        match require_chain(path.as_ref()) {
            Ok(()) | Err(StoreError::NoChain | StoreError::NoFolder) => Ok(()),
            Err(StoreError::NoManifest) => Ok(refuse_unlisted_runs(path.as_ref())?),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that there is a chain in `path`.
    ///
    /// # Errors
    /// [`StoreError::NoFolder`], [`StoreError::NoChain`], [`StoreError::NoManifest`] or [`StoreError::OtherFiles`] if there
    /// is none, and errors of reading the folder.
    pub fn check_exists(path: impl AsRef<Path>) -> Result<(), BackendError> {
        Ok(require_chain(path.as_ref())?)
    }

    /// Returns whether there is a chain in `path`. Returns false if the folder cannot be read.
    pub fn exists(path: impl AsRef<Path>) -> bool {
        require_chain(path.as_ref()).is_ok()
    }

    pub(super) fn open_or_begin(
        folder: Arc<dyn Folder>,
        start: Option<Start<'_>>,
        base: Option<Arc<dyn BaseState>>,
        options: Options,
    ) -> Result<Self, BackendError> {
        let first = start.as_ref().map(|start| &start.first.header);
        match (first, &base) {
            (Some(header), None) if header.header.number != 0 => {
                return Err(BackendError::NotGenesis(header.block_ref()));
            }
            (Some(header), Some(base)) => base::check_root(&**base, &header.header)?,
            _ => {}
        }
        // An earlier process may have been killed before it removed the file.
        let _ = folder.remove(PROBE);
        let archive = Archive::open(Arc::clone(&folder), options.run_cache_bytes())?;
        let meta = archive.meta();
        let (head, number) = match (&meta, &first) {
            (Some(meta), Some(first)) if meta.genesis != first.hash => {
                let expected = first.hash;
                return Err(StoreError::OtherGenesis { found: meta.genesis, expected }.into());
            }
            (Some(meta), _) => {
                meta.check_base(base.is_some())?;
                (meta.head, meta.base.unwrap_or_default())
            }
            (None, Some(first)) => (first.block_ref(), first.header.number),
            (None, None) => return Err(StoreError::NoChain.into()),
        };
        let marked = Marker::read(&*folder)?;
        if meta.is_none() && marked.is_some() {
            return Err(StoreError::Unrestored.into());
        }
        if meta.is_some() {
            Wal::check_presence(&*folder).map_err(StoreError::from)?;
            // Opening the log removes the entries that are in runs, so these must be durable.
            archive.settle()?;
        }
        let logged = meta.map_or(Sequence::default(), |meta| meta.logged);
        let refused = remove_refused(&*folder, logged, marked.as_ref())?;
        let tables = archive.tables();
        let (side_blocks, records) = (SideBlocks::read(&tables)?, read_records(&tables)?);
        let cache_bytes = options.cache_bytes as u64 - options.run_cache_bytes();
        let caches = Arc::new(if base.is_some() { Caches::with_base(cache_bytes) } else { Caches::new(cache_bytes) });
        let earliest = meta.map_or(number, |meta| meta.earliest);
        let chain = ChainVersion::in_runs(head, earliest, tables, side_blocks, caches).with_base(number, base);
        if let (Some(_), Some(base)) = (&meta, &chain.rows.base) {
            base::check_root(&**base, &chain.canonical_header(number)?.header)?;
        }
        let log_folder = if folder.is_volatile() { Arc::new(Nowhere) } else { Arc::clone(&folder) };
        // What the shared store may lack remains in the log.
        let kept_after = match options.publish {
            true => marked.map_or(Sequence(0), |marked| marked.position.last),
            false => Sequence(u64::MAX),
        };
        let log = Wal::open_keeping(log_folder, logged, kept_after, options.log).map_err(StoreError::from)?;
        let writer = Writer {
            state: WriterState::Ready,
            logged,
            entries: VecDeque::new(),
            flushing: false,
            closing: false,
            replaying: Some(logged),
            published: logged,
        };
        let shared = Arc::new(Shared {
            folder,
            options,
            sync_always: AtomicBool::new(options.sync == SyncPolicy::Always),
            archive,
            log,
            kept_after: Mutex::new(kept_after),
            publication: OnceLock::new(),
            refused,
            logging: RwLock::default(),
            failed_writes: Mutex::default(),
            current: RwLock::new(Arc::new(chain)),
            writer: Mutex::new(writer),
            turn: Condvar::new(),
            merges_end: Mutex::new(false),
            merge_turn: Condvar::new(),
            merged: AtomicBool::new(false),
            log_bytes: AtomicUsize::new(0),
            records: RwLock::new(records),
            listeners: RwLock::default(),
        });
        let mut store = Self { shared, threads: Vec::new() };
        // Removes the remains of a killed process. If they cannot be removed now, they are removed after the next
        // flush.
        let _ = store.shared.archive.remove_unlisted();
        let begin = |store: &mut Self| {
            store.spawn("store-flusher", Shared::run_flusher)?;
            if options.merge {
                store.spawn("store-merger", Shared::run_merger)?;
            }
            if let (None, Some(start)) = (&meta, start) {
                store.shared.begin(start)?;
            }
            store.shared.replay(logged)
        };
        if let Err(error) = begin(&mut store) {
            let shared = Arc::clone(&store.shared);
            // No thread uses the log any longer.
            drop(store);
            shared.log.remove_empty_segment();
            return Err(error);
        }
        Ok(store)
    }

    /// Returns the number of changes that were removed from the log when the folder was opened: an earlier process had refused
    /// them because another server had become the writer of the shared store.
    pub fn removed_refused(&self) -> u64 {
        self.shared.refused
    }

    fn spawn(&mut self, name: &str, run: fn(&Shared)) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(move || run(&shared)).map_err(StoreError::File)?);
        Ok(())
    }
}

/// Removes from the log of a folder what was refused because another server had become the writer of the shared store,
/// unless it is in runs. `logged` is the last entry in runs. Returns the number of removed entries.
fn remove_refused(folder: &dyn Folder, logged: Sequence, marked: Option<&Marked>) -> Result<u64, StoreError> {
    let Some(last) = marked.and_then(|marked| marked.refused_after) else { return Ok(0) };
    let removed = if logged <= last { wal::remove_after(folder, last)? } else { 0 };
    // Before anything is added to the log.
    Marker::open(folder)?.refuse_after(None)?;
    Ok(removed)
}

impl Shared {
    /// Writes the first block to the first run.
    fn begin(&self, Start { first, state }: Start<'_>) -> Result<(), BackendError> {
        let mut writer = self.writer.lock();
        let mut chain = ChainVersion::clone(&self.current.read());
        let bytes = BlockBytes::encode(&first);
        let of_base = chain.rows.base.as_ref().map(|base| base.root());
        match (state, of_base) {
            (Some(state), _) => {
                let root = self.write_genesis_state(&mut chain, first.header.block_ref(), state)?;
                chain.begin_with_state(&first, &bytes, root)?;
            }
            (None, Some(root)) => chain.begin_with_state(&first, &bytes, root)?,
            (None, None) => chain.begin(&first, &bytes)?,
        }
        chain.age();
        self.publish(chain);
        self.flush_old(&mut writer)?;
        self.archive.keep_up();
        Ok(())
    }

    /// Writes the state of the genesis block to runs. Returns its root.
    fn write_genesis_state(
        &self,
        chain: &mut ChainVersion,
        block: BlockRef,
        state: &mut dyn Iterator<Item = Result<StateChanges, BackendError>>,
    ) -> Result<H256, BackendError> {
        let (mut accounts, mut root) = (0u32, EMPTY_ROOT);
        for part in state {
            let part = part?;
            let new = state::apply(&chain.rows, None, Before::Genesis { accounts }, 0, &part)?;
            let count = u32::try_from(part.accounts.len()).ok().and_then(|count| accounts.checked_add(count));
            accounts = count.filter(|count| *count <= MAX_GENESIS_ACCOUNTS).ok_or(StoreError::BeyondLimits(block))?;
            root = new.root;
            let of_state = new.rows.into_iter();
            let code = part.code.iter().map(|(hash, code)| (Key::of_hash(Table::Code, *hash), code.to_vec()));
            let mut rows: Vec<_> = of_state.chain(code).map(|(key, value)| (key.versioned(0), value)).collect();
            rows.sort_unstable_by(|(a, _), (b, _)| a.order(b));
            self.archive.add_part_of_genesis(&mut rows.iter().map(|(key, value)| (&**key, &**value)))?;
            chain.rows.tables = self.archive.tables();
        }
        Ok(root)
    }

    /// Applies the log entries that are not in runs.
    fn replay(&self, logged: Sequence) -> Result<(), BackendError> {
        let mut writer = self.writer.lock();
        for entry in self.log.entries_after(logged) {
            let wal::Entry { sequence, payload } = entry.map_err(StoreError::from)?;
            self.check(&writer)?;
            let mut chain = ChainVersion::clone(&self.current.read());
            let Logged { change, records } = apply(&mut chain, &payload)?;
            drop(self.records.write().write(records));
            if let Some(change) = change {
                writer.stamp(&change, sequence);
                self.publish(chain);
            }
            writer.replaying = Some(sequence);
            writer.published = sequence;
            self.log_bytes.fetch_add(payload.len(), Ordering::Relaxed);
            self.flush_when_full(&mut writer);
        }
        writer.replaying = None;
        Ok(())
    }
}

/// The content of an entry of the log.
pub(super) struct Logged {
    /// The change of the chain; `None` if there is none, or if it is already in runs.
    pub(super) change: Option<HeadChange>,
    pub(super) records: Vec<RecordWrite>,
}

/// Applies the change of an entry of the log to `chain`, but not its records.
pub(super) fn apply(chain: &mut ChainVersion, payload: &[u8]) -> Result<Logged, BackendError> {
    let (change, records) = match LoggedChange::decode(payload)? {
        LoggedChange::Records(records) => (None, records),
        // The changes of the first entries may already be in runs.
        LoggedChange::Append(block, records)
            if chain.canonical(block.header.header.number)? == Some(block.header.hash) =>
        {
            (None, records)
        }
        LoggedChange::Append(block, records) => (Some(append(chain, &block, &[])?), records),
        LoggedChange::Switch(ancestor, branch, records) => (Some(switch(chain, ancestor, branch, &[])?), records),
        LoggedChange::SwitchTo(ancestor, branch, records) => {
            let block = |hash: H256| chain.side(hash.into())?.ok_or(Malformed("an entry of the log").into());
            let branch = branch.into_iter().map(block).collect::<Result<_, StoreError>>()?;
            (Some(switch(chain, ancestor, branch, &[])?), records)
        }
        LoggedChange::SideBlock(block) => (Some(keep_side_block(chain, block)?), Vec::new()),
    };
    Ok(Logged { change: change.map(|(change, _)| change), records })
}

/// Reads the records in runs.
pub(super) fn read_records(tables: &Tables) -> Result<Records, StoreError> {
    let mut records = Records::default();
    let mut scan = tables.scan(Table::Records)?;
    while let Some((key, value)) = scan.next()? {
        if let Some((&PRESENT, value)) = value.split_first() {
            let (kind, key) = key.get(1..).and_then(<[u8]>::split_first).ok_or(Malformed("the key of a record"))?;
            let kind = kind_of(*kind).ok_or(Malformed("the key of a record"))?;
            records.values.insert((kind, key.to_vec()), value.to_vec());
        }
    }
    Ok(records)
}
