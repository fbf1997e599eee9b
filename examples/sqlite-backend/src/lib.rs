//! A backend that keeps a chain in SQLite. `docs/embedding.md` explains it step by step.
//!
//! States are served from a [`MemoryBackend`], which knows tries, proofs and views. SQLite makes every change of it durable,
//! in tables that anyone can query, and refills it when the file is opened.

use node_core::backend::{
    BackendError, BackendHealth, HeadChange, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite,
    StateBackend, View,
};
use node_core::block::ExecutedBlock;
use node_core::caches::CacheUse;
use node_types::BlockNumber;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::path::Path;
use std::sync::Arc;

mod rows;

// Step 1: the tables. Blocks are found by hash; `canonical` says which form the chain.
const TABLES: &str = "
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS block (hash BLOB PRIMARY KEY, number INTEGER, canonical INTEGER, rlp BLOB,
        senders BLOB, receipts BLOB, total_difficulty BLOB);
    CREATE TABLE IF NOT EXISTS account (block BLOB, address BLOB, leaf BLOB, cleared INTEGER);
    CREATE TABLE IF NOT EXISTS slot (block BLOB, address BLOB, slot BLOB, value BLOB);
    CREATE TABLE IF NOT EXISTS code (block BLOB, hash BLOB, code BLOB);
    CREATE INDEX IF NOT EXISTS account_by_block ON account (block);
    CREATE INDEX IF NOT EXISTS slot_by_block ON slot (block);
    CREATE INDEX IF NOT EXISTS code_by_block ON code (block);
    CREATE TABLE IF NOT EXISTS record (kind INTEGER, key BLOB, value BLOB, PRIMARY KEY (kind, key));";

/// A chain in a SQLite database.
pub struct SqliteBackend {
    memory: MemoryBackend,
    /// Held during a change. Listeners of a change may write records, so the database is locked only while it is used.
    writer: Mutex<()>,
    database: Mutex<Connection>,
    health: Mutex<BackendHealth>,
}

impl SqliteBackend {
    /// Opens the chain in the file `path`, which begins with `genesis` if it is new.
    ///
    /// # Errors
    /// If the file cannot be used, or holds a chain with another genesis block.
    pub fn open(path: &Path, genesis: ExecutedBlock) -> Result<Self, BackendError> {
        Self::on(Connection::open(path).map_err(storage)?, genesis)
    }

    // Step 2: open. A new file receives the genesis block, an old one is read into memory block by block.
    fn on(mut database: Connection, genesis: ExecutedBlock) -> Result<Self, BackendError> {
        database.execute_batch(TABLES).map_err(storage)?;
        let stored = "SELECT hash FROM block WHERE number = 0 AND canonical";
        let stored = database.query_row(stored, [], |row| row.get::<_, Vec<u8>>(0)).optional().map_err(storage)?;
        match stored {
            None => write(&mut database, |transaction| rows::insert(transaction, &genesis, true))?,
            Some(hash) if hash != genesis.header.hash.as_bytes() => {
                return Err(BackendError::NotGenesis(genesis.header.block_ref()));
            }
            Some(_) => {}
        }
        let memory = MemoryBackend::new(genesis)?;
        for block in rows::blocks(&database, true).map_err(storage)?.into_iter().skip(1) {
            memory.append(block)?;
        }
        for block in rows::blocks(&database, false).map_err(storage)? {
            memory.keep_side_block(block)?;
        }
        Ok(Self { memory, writer: Mutex::default(), database: Mutex::new(database), health: Mutex::default() })
    }

    // Step 3: change. Memory checks the block. If SQLite cannot store it, memory goes back to where it was.
    fn change(
        &self,
        back_to: BlockNumber,
        change: impl FnOnce(&MemoryBackend) -> Result<HeadChange, BackendError>,
        save: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<HeadChange, BackendError> {
        let _writer = self.writer.lock();
        let done = change(&self.memory)?;
        self.write(save).inspect_err(|_| drop(self.undo(back_to, &done)))?;
        Ok(done)
    }

    /// Undoes a change of memory, which keeps the blocks that it removed.
    fn undo(&self, back_to: BlockNumber, done: &HeadChange) -> Result<(), BackendError> {
        let view = self.memory.view()?;
        let removed = done.removed.iter().rev().map(|block| view.side_block(block.hash));
        let branch = removed.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?;
        self.memory.switch(back_to, branch).map(drop)
    }

    fn write(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), BackendError> {
        write(&mut self.database.lock(), work).inspect_err(|_| self.health.lock().failed_writes += 1)
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, BackendError> {
        let read = work(&self.database.lock());
        read.inspect_err(|_| self.health.lock().failed_reads += 1).map_err(storage)
    }
}

// Step 4: the port. Reads are those of memory; every change goes through SQLite.
impl StateBackend for SqliteBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.memory.view()
    }

    fn append(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        let stored = block.clone();
        let append = |memory: &MemoryBackend| {
            let added = vec![block.header.block_ref()];
            memory.append(block).map(|()| HeadChange { removed: Vec::new(), added })
        };
        let parent = stored.header.header.number.saturating_sub(1);
        self.change(parent, append, |transaction| rows::insert(transaction, &stored, true)).map(drop)
    }

    fn switch(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError> {
        let stored = branch.clone();
        self.change(
            ancestor,
            |memory| memory.switch(ancestor, branch),
            |transaction| {
                transaction.execute("UPDATE block SET canonical = 0 WHERE number > ?", [ancestor as i64])?;
                stored.iter().try_for_each(|block| rows::insert(transaction, block, true))
            },
        )
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        let _writer = self.writer.lock();
        if self.memory.view()?.canonical_hash(block.header.header.number)? == Some(block.header.hash) {
            return Ok(());
        }
        self.write(|transaction| rows::insert(transaction, &block, false))?;
        self.memory.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.memory.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.memory.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write(|transaction| {
            writes.iter().try_for_each(|write| {
                match write {
                    RecordWrite::Put(kind, Record { key, value }) => transaction
                        .execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?)", params![*kind as i64, key, value]),
                    RecordWrite::Delete(kind, key) => {
                        transaction.execute("DELETE FROM record WHERE kind = ? AND key = ?", params![*kind as i64, key])
                    }
                }
                .map(drop)
            })
        })
    }

    // Step 5: durability. With `synchronous = FULL` every transaction is synced when it is committed.
    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write_records_unsynced(writes)
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

    fn caches(&self) -> Vec<CacheUse> {
        self.memory.caches()
    }

    // Each change is tried anew, so no failure lasts.
    fn health(&self) -> BackendHealth {
        self.health.lock().clone()
    }
}

/// Runs `work` in one transaction of the database.
fn write(
    database: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), BackendError> {
    let run = || {
        let transaction = database.transaction()?;
        work(&transaction)?;
        transaction.commit()
    };
    run().map_err(storage)
}

fn storage(error: rusqlite::Error) -> BackendError {
    BackendError::Storage(Box::new(error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use node_core::backend::suite::{self, Random, check_view};

    // Step 6: the tests that every backend must pass.
    #[test]
    fn passes_the_suite() {
        suite::run(&|genesis| Box::new(SqliteBackend::on(Connection::open_in_memory().unwrap(), genesis).unwrap()));
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
        check_view(&*backend.view().unwrap(), &side);
        assert_eq!(backend.record(RecordKind::Filter, &[1]).unwrap(), Some(vec![2]));
        assert_eq!(backend.records(RecordKind::Filter).unwrap(), [record]);
        backend.switch(5, main.above(5)).unwrap();
        drop(backend);
        check_view(&*open().view().unwrap(), &main);

        let other = SqliteBackend::open(&path, Random(8).chain(0).blocks()[0].clone());
        assert!(matches!(other.err(), Some(BackendError::NotGenesis(_))));
    }

    #[test]
    fn a_change_that_sqlite_refuses_changes_nothing() {
        let mut random = Random(9);
        let main = random.chain(8);
        let mut side = main.up_to(5);
        random.extend(&mut side, 5);
        let backend = SqliteBackend::on(Connection::open_in_memory().unwrap(), main.blocks()[0].clone()).unwrap();
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
