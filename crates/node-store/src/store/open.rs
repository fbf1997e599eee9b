//! Opening a folder: creating a chain in it, or applying the entries of the log that the database does not have.

use super::healing::PROBE;
use super::meta::{META, Meta, RECORDS, SIDE_BLOCKS};
use super::{
    OpenDatabase, Options, Records, Shared, Store, SyncPolicy, Writer, WriterState, append, keep_side_block,
    page_cache_bytes, switch,
};
use crate::block_bytes::{BlockBytes, decode_block};
use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::codec::{Malformed, Reader};
use crate::error::StoreError;
use crate::files::{DatabaseFile, DiskFolder, Folder};
use crate::journal::{Entry, kind_of};
use crate::keys::Table;
use crate::rows::{Tables, definition};
use crate::side_blocks::SideBlocks;
use crate::state::{node_cache, nodes_usage};
use crate::wal::{self, Sequence, Wal};
use node_core::backend::BackendError;
use node_core::block::ExecutedBlock;
use parking_lot::{Condvar, Mutex, RwLock};
use redb::{Database, ReadableDatabase, ReadableTable, TableError};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Name of the file of the database.
pub(super) const DATABASE: &str = "chain.redb";

/// Name of the file of checksums.
pub(super) const CHECKSUMS: &str = "chain.sums";

impl Store {
    /// Opens the chain in `path` with the given genesis block, or creates it if the folder is empty.
    ///
    /// # Errors
    /// Fails if another process has opened the folder, if it contains another chain or an unsupported layout, or if
    /// files are damaged. The folder does not change then. [`StoreError::DamagedState`] if an earlier version damaged the
    /// earliest state while pruning, and it cannot be repaired.
    pub fn open(path: impl AsRef<Path>, genesis: ExecutedBlock, options: Options) -> Result<Self, BackendError> {
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_in(Arc::new(folder), genesis, options)
    }

    /// As [`Self::open`], in any implementation of [`Folder`].
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_in(folder: Arc<dyn Folder>, genesis: ExecutedBlock, options: Options) -> Result<Self, BackendError> {
        let block = genesis.header.block_ref();
        if block.number != 0 {
            return Err(BackendError::NotGenesis(block));
        }
        Self::open_or_begin(folder, Some(genesis), options)
    }

    /// Opens the chain in `path` with the given genesis block, or creates it if the folder is empty.
    ///
    /// # Errors
    /// As [`Self::open`]; also if there is no chain, in which case none is created.
    pub fn open_existing(path: impl AsRef<Path>, options: Options) -> Result<Self, BackendError> {
        if !Self::exists(&path) {
            return Err(StoreError::NoChain.into());
        }
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::open_or_begin(Arc::new(folder), None, options)
    }

    /// Returns whether there is a chain in `path`.
    pub fn exists(path: impl AsRef<Path>) -> bool {
        path.as_ref().join(DATABASE).exists()
    }

    fn open_or_begin(
        folder: Arc<dyn Folder>,
        genesis: Option<ExecutedBlock>,
        options: Options,
    ) -> Result<Self, BackendError> {
        // An earlier process may have ended before it removed the file.
        let _ = folder.remove(PROBE);
        let file = DatabaseFile::open(&*folder, DATABASE, CHECKSUMS).map_err(StoreError::File)?;
        let open = open_database(file, &options)?;
        let database = Arc::clone(&open.database);
        let meta = read_meta(&database)?;
        let head = match (&meta, &genesis) {
            (Some(meta), Some(genesis)) if meta.genesis != genesis.header.hash => {
                let expected = genesis.header.hash;
                return Err(StoreError::OtherGenesis { found: meta.genesis, expected }.into());
            }
            (Some(meta), _) => meta.head,
            (None, Some(genesis)) => {
                create_tables(&database)?;
                genesis.header.block_ref()
            }
            (None, None) => return Err(StoreError::NoChain.into()),
        };
        if meta.is_some() {
            Wal::check_presence(&*folder).map_err(StoreError::from)?;
        }
        let logged = meta.map_or(Sequence::default(), |meta| meta.logged);
        let log = Wal::open(Arc::clone(&folder), logged, options.log).map_err(StoreError::from)?;
        let nodes = node_cache(options.cache_bytes / 8);
        let (tables, side_blocks, records) = read_tables(&database)?;
        let caches = Arc::new(Caches::new(options.cache_bytes as u64 / 4));
        let earliest = meta.map_or(0, |meta| meta.earliest);
        let chain = ChainVersion::in_database(head, earliest, Arc::new(tables), side_blocks, caches);
        let nodes_use = nodes_usage(&nodes);
        let writer = Writer {
            nodes,
            state: WriterState::Ready,
            database_head: head,
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
            open: RwLock::new(open),
            log,
            logging: RwLock::default(),
            failed_writes: Mutex::default(),
            attempted: Mutex::default(),
            current: RwLock::new(Arc::new(chain)),
            writer: Mutex::new(writer),
            turn: Condvar::new(),
            log_bytes: AtomicUsize::new(0),
            records: RwLock::new(records),
            listeners: RwLock::default(),
            nodes: Mutex::new(nodes_use),
        });
        let flusher = {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("store-flusher".to_owned());
            thread.spawn(move || shared.run_flusher()).map_err(StoreError::File)?
        };
        let mut store = Self { shared, flusher: Some(flusher), repaired_rows: 0 };
        let begun = match (&meta, &genesis) {
            (None, Some(genesis)) => store.shared.begin(genesis),
            _ => Ok(()),
        };
        begun.and_then(|()| store.shared.replay(logged))?;
        store.repaired_rows = store.shared.repair_earliest_state()?;
        Ok(store)
    }
}

impl Shared {
    /// Writes the genesis block to an empty database.
    fn begin(&self, genesis: &ExecutedBlock) -> Result<(), BackendError> {
        let mut writer = self.writer.lock();
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.begin(genesis, &BlockBytes::encode(genesis))?;
        chain.age();
        self.publish(chain);
        Ok(self.flush_old(&mut writer)?)
    }

    /// Applies the entries of the log that the database does not have.
    fn replay(&self, logged: Sequence) -> Result<(), BackendError> {
        let mut writer = self.writer.lock();
        for entry in self.log.entries_after(logged) {
            let wal::Entry { sequence, payload } = entry.map_err(StoreError::from)?;
            self.check(&writer)?;
            let mut chain = ChainVersion::clone(&self.current.read());
            let nodes = &mut writer.nodes;
            let change = match Entry::decode(&payload)? {
                Entry::Records(writes) => {
                    drop(self.records.write().write(writes));
                    None
                }
                // The database may have the first entries already.
                Entry::Append(block) if chain.canonical(block.header.header.number)? == Some(block.header.hash) => None,
                Entry::Append(block) => Some(append(&mut chain, &block, nodes)?),
                Entry::Switch(ancestor, branch) => Some(switch(&mut chain, ancestor, branch, nodes)?),
                Entry::SwitchTo(ancestor, branch) => {
                    let block = |hash| chain.side_blocks.get(hash).cloned().ok_or(Malformed("an entry of the log"));
                    let branch = branch.into_iter().map(block).collect::<Result<_, _>>().map_err(StoreError::from)?;
                    Some(switch(&mut chain, ancestor, branch, nodes)?)
                }
                Entry::SideBlock(block) => Some(keep_side_block(&mut chain, block)?),
            };
            if let Some((change, _)) = change {
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

/// Opens the database in a file.
pub(super) fn open_database(file: DatabaseFile, options: &Options) -> Result<OpenDatabase, StoreError> {
    let mut builder = Database::builder();
    let database = builder.set_cache_size(page_cache_bytes(options)).create_with_backend(file.clone())?;
    Ok(OpenDatabase { file, database: Arc::new(database) })
}

pub(super) fn read_meta(database: &Database) -> Result<Option<Meta>, StoreError> {
    let transaction = database.begin_read()?;
    match transaction.open_table(META) {
        Ok(table) => Meta::read(&table),
        Err(TableError::TableDoesNotExist(_)) if transaction.list_tables()?.next().is_none() => Ok(None),
        Err(TableError::TableDoesNotExist(_) | TableError::TableTypeMismatch { .. }) => Err(StoreError::Foreign),
        Err(error) => Err(error.into()),
    }
}

/// Creates all tables, without rows.
fn create_tables(database: &Database) -> Result<(), StoreError> {
    let mut transaction = database.begin_write()?;
    // `DatabaseFile` requires commits with two phases, which quick repair implies.
    transaction.set_quick_repair(true);
    for table in Table::ALL {
        transaction.open_table(definition(table))?;
    }
    transaction.open_table(META)?;
    transaction.open_table(SIDE_BLOCKS)?;
    transaction.open_table(RECORDS)?;
    Ok(transaction.commit()?)
}

fn read_tables(database: &Database) -> Result<(Tables, SideBlocks, Records), StoreError> {
    let transaction = database.begin_read()?;
    let mut side_blocks = SideBlocks::new();
    for row in transaction.open_table(SIDE_BLOCKS)?.iter()? {
        side_blocks.insert(decode_block(&mut Reader::new(row?.1.value(), "a side block"))?);
    }
    let mut records = Records::default();
    for row in transaction.open_table(RECORDS)?.iter()? {
        let (key, value) = row?;
        let (kind, key) = key.value().split_first().ok_or(Malformed("the key of a record"))?;
        let kind = kind_of(*kind).ok_or(Malformed("the key of a record"))?;
        records.values.insert((kind, key.to_vec()), value.value().to_vec());
    }
    Ok((Tables::open(&transaction)?, side_blocks, records))
}
