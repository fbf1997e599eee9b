//! A backend that keeps a chain in SQLite.
//!
//! States are served from a [`MemoryBackend`], which knows tries, proofs and views. SQLite makes every change of it
//! durable, and refills it when the file is opened.
//!
//! 1. **Tables.** Each block is a row with its bytes; `ExecutedBlock::encode` includes senders, receipts and state
//!    changes. The column `canonical` marks the blocks that form the chain. Records are rows keyed by kind and key.
//! 2. **Open.** A new file receives the genesis block. An existing one is read into memory: canonical blocks are
//!    appended, others are kept as side blocks. The memory backend computes every state root, but a damaged row may
//!    pass as another block: SQLite's own checks, or a checksum beside each row, detect it.
//! 3. **Change.** `append_with` and similar methods check the block and call a closure that stores it before readers
//!    see it. If the closure fails, nothing changes. Listeners run during the change and may write records, so the
//!    database must be locked only while it is used.
//! 4. **Durability.** With `synchronous = FULL`, SQLite syncs each transaction when it is committed, so `sync_records`
//!    has nothing to do.

use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite,
    StateBackend, View,
};
use node_core::block::ExecutedBlock;
use node_types::BlockNumber;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::path::Path;
use std::sync::Arc;

// Step 1: the tables. Blocks are found by hash; `canonical` says which form the chain. Another process cannot open the
// file.
const TABLES: &str = "
    PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS block (hash BLOB PRIMARY KEY, number INTEGER, canonical INTEGER, bytes BLOB);
    CREATE TABLE IF NOT EXISTS record (kind INTEGER, key BLOB, value BLOB, PRIMARY KEY (kind, key));";

/// A chain in a SQLite database.
pub struct SqliteBackend {
    memory: MemoryBackend,
    database: Mutex<Connection>,
    health: Mutex<BackendHealth>,
}

impl SqliteBackend {
    // Step 2: open. A new file receives the genesis block, an old one is read into memory: first the chain, then side
    // blocks.
    /// Opens the chain in the file `path`, which begins with `genesis` if it is new. `:memory:` is a database without a
    /// file.
    ///
    /// # Errors
    /// If the file cannot be used, or holds a chain with another genesis block.
    pub fn open(path: impl AsRef<Path>, genesis: ExecutedBlock) -> Result<Self, BackendError> {
        let database = Connection::open(path).map_err(storage)?;
        database.execute_batch(TABLES).map_err(storage)?;
        let memory = MemoryBackend::new(genesis.clone())?;
        let backend = Self { memory, database: Mutex::new(database), health: Mutex::default() };
        let blocks = backend.read(|database| {
            let mut select = database.prepare("SELECT canonical, bytes FROM block ORDER BY canonical DESC, number")?;
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<Vec<(bool, Vec<u8>)>, _>>()
        })?;
        if blocks.is_empty() {
            backend.write(|transaction| insert(transaction, &genesis, true))?;
        }
        for (canonical, bytes) in blocks {
            let block = ExecutedBlock::decode(&bytes)?;
            match block.header.header.number {
                0 if canonical && block.header.hash == genesis.header.hash => {}
                0 if canonical => return Err(BackendError::NotGenesis(genesis.header.block_ref())),
                _ if canonical => backend.memory.append(block)?,
                _ => backend.memory.keep_side_block(block)?,
            }
        }
        Ok(backend)
    }

    fn write(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), BackendError> {
        let mut database = self.database.lock();
        let done =
            database.transaction().and_then(|transaction| work(&transaction).and_then(|()| transaction.commit()));
        done.inspect_err(|_| self.health.lock().failed_writes += 1).map_err(storage)
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, BackendError> {
        let read = work(&self.database.lock());
        read.inspect_err(|_| self.health.lock().failed_reads += 1).map_err(storage)
    }
}

/// Inserts a block. One that is there already only changes its place.
fn insert(transaction: &Transaction<'_>, block: &ExecutedBlock, canonical: bool) -> rusqlite::Result<()> {
    let upsert = "INSERT INTO block VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET canonical = excluded.canonical";
    let (hash, number) = (block.header.hash.as_bytes(), block.header.header.number as i64);
    transaction.execute(upsert, params![hash, number, canonical, block.encode()]).map(drop)
}

fn record(transaction: &Transaction<'_>, writes: &[RecordWrite]) -> rusqlite::Result<()> {
    writes.iter().try_for_each(|write| match write {
        RecordWrite::Put(kind, Record { key, value }) => {
            transaction.execute("REPLACE INTO record VALUES (?, ?, ?)", params![*kind as i64, key, value]).map(drop)
        }
        RecordWrite::Delete(kind, key) => {
            transaction.execute("DELETE FROM record WHERE kind = ? AND key = ?", params![*kind as i64, key]).map(drop)
        }
    })
}

fn storage(error: rusqlite::Error) -> BackendError {
    BackendError::Storage(Box::new(error))
}

// Step 3: changes. Memory checks a block; SQLite stores it before anyone can read it, or nothing has changed.
impl StateBackend for SqliteBackend {
    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.memory.append_with(block.clone(), || {
            self.write(|transaction| {
                insert(transaction, &block, true)?;
                record(transaction, writes)
            })
        })
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.memory.switch_with(ancestor, branch.clone(), || {
            self.write(|transaction| {
                transaction.execute("UPDATE block SET canonical = 0 WHERE number > ?", [ancestor as i64])?;
                branch.iter().try_for_each(|block| insert(transaction, block, true))?;
                record(transaction, writes)
            })
        })
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.memory.keep_side_block_with(block.clone(), || self.write(|transaction| insert(transaction, &block, false)))
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write(|transaction| record(transaction, writes))
    }

    // Step 4: durability. With `synchronous = FULL` every transaction is synced when it is committed.
    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    // Step 5: reads. The chain is read from memory, records from SQLite.
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.memory.view()
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        let select = "SELECT value FROM record WHERE kind = ? AND key = ?";
        self.read(|database| database.query_row(select, params![kind as i64, key], |row| row.get(0)).optional())
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.read(|database| {
            let mut select = database.prepare("SELECT key, value FROM record WHERE kind = ? ORDER BY key")?;
            select.query_map([kind as i64], |row| Ok(Record { key: row.get(0)?, value: row.get(1)? }))?.collect()
        })
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.memory.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.memory.proves_quickly()
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.memory.caches()
    }

    // Each change is tried again, so no failure is permanent.
    fn health(&self) -> BackendHealth {
        self.health.lock().clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use node_core::backend::suite::{self, Random, check_view};

    // Step 6: the tests that every backend must pass.
    #[test]
    fn passes_the_suite() {
        suite::run(&|genesis| Box::new(SqliteBackend::open(":memory:", genesis).unwrap()));
    }

    #[test]
    fn a_file_has_the_same_chain_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.sqlite");
        let mut random = Random(7);
        let main = random.chain(12);
        let mut side = main.up_to(5);
        random.extend(&mut side, 9);
        let open = || SqliteBackend::open(&path, main.blocks()[0].clone()).unwrap();
        let backend = open();
        main.above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        backend.switch(5, side.above(5)).unwrap();
        let record = Record { key: vec![1], value: vec![2] };
        backend.write_records(&[RecordWrite::Put(RecordKind::Filter, record.clone())]).unwrap();
        drop(backend);

        let backend = open();
        let second = SqliteBackend::open(&path, main.blocks()[0].clone()).err().unwrap();
        assert!(matches!(second, BackendError::Storage(error) if error.to_string().contains("locked")));
        check_view(&*backend.view().unwrap(), &side);
        assert_eq!(backend.record(RecordKind::Filter, &[1]).unwrap(), Some(vec![2]));
        assert_eq!(backend.records(RecordKind::Filter).unwrap(), [record]);
        backend.switch(5, main.above(5)).unwrap();
        drop(backend);
        check_view(&*open().view().unwrap(), &main);

        let other = SqliteBackend::open(&path, Random(8).chain(0).blocks()[0].clone());
        assert!(matches!(other.err(), Some(BackendError::NotGenesis(_))));
        Connection::open(&path).unwrap().execute("UPDATE block SET bytes = x'c0' WHERE number = 3", []).unwrap();
        let damaged = SqliteBackend::open(&path, main.blocks()[0].clone());
        assert!(matches!(damaged.err(), Some(BackendError::Storage(_))));
    }

    #[test]
    fn a_change_that_sqlite_refuses_changes_nothing() {
        let mut random = Random(9);
        let main = random.chain(8);
        let mut side = main.up_to(5);
        random.extend(&mut side, 5);
        let backend = SqliteBackend::open(":memory:", main.blocks()[0].clone()).unwrap();
        main.above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        backend.database.lock().execute_batch("PRAGMA query_only = ON").unwrap();
        assert!(matches!(backend.switch(5, side.above(5)), Err(BackendError::Storage(_))));
        assert!(matches!(backend.switch(3, Vec::new()), Err(BackendError::Storage(_))));
        check_view(&*backend.view().unwrap(), &main);
        assert_eq!(backend.health().failed_writes, 2);
        backend.database.lock().execute_batch("PRAGMA query_only = OFF").unwrap();
        backend.switch(5, side.above(5)).unwrap();
        check_view(&*backend.view().unwrap(), &side);
    }
}
