//! Moving rows to the database, on a separate thread.

use super::meta::{META, Meta, RECORDS, SIDE_BLOCKS, side_block_key};
use super::{RecordId, Shared, Writer, WriterState};
use crate::block_bytes::BlockBytes;
use crate::chain::{ChainVersion, keys_of_block};
use crate::error::StoreError;
use crate::journal::kind_byte;
use crate::keys::{Key, LogId, Suffix, Table};
use crate::rows::{Generation, Tables, definition};
use crate::wal::Sequence;
use crate::{postings, values};
use node_core::block::{BlockRef, ExecutedBlock};
use node_types::BlockNumber;
use parking_lot::MutexGuard;
use redb::{ReadableDatabase, ReadableTable, WriteTransaction};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The contents of one commit.
struct Batch {
    /// The chain whose old generation is written.
    chain: Arc<ChainVersion>,
    /// The head of the database before the commit.
    database_head: BlockRef,
    /// After the commit, the database has all entries of the log up to this one.
    logged: Sequence,
    /// The records that changed, with their current values.
    records: Vec<(RecordId, Option<Vec<u8>>)>,
}

impl Shared {
    /// Moves all rows, records and side blocks to the database.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        let wanted = self.log.last();
        loop {
            self.wait_for_flusher(&mut writer);
            self.check(&writer)?;
            // The log was not read to its end.
            if writer.replaying.is_some() {
                return Err(StoreError::Poisoned);
            }
            if writer.logged >= wanted {
                return Ok(());
            }
            self.age(&mut writer);
        }
    }

    /// If the young generation is full, sends it to the database. Waits for the previous one to be committed.
    pub(super) fn flush_when_full(&self, writer: &mut MutexGuard<'_, Writer>) {
        let full = || {
            let chain = self.current.read();
            let young_blocks = chain.head.number - chain.old_end;
            self.log_is_long()
                || chain.rows.young.count() >= self.options.commit_rows && young_blocks >= self.options.blocks_in_memory
        };
        while full() && writer.is_ready() {
            if !writer.flushing {
                return self.age(writer);
            }
            self.turn.wait(writer);
        }
    }

    /// As [`Self::flush_when_full`], for changes that add no rows. Does nothing if the chain is being changed, because
    /// that change will call it.
    pub(super) fn flush_when_log_is_long(&self) {
        if self.log_is_long()
            && let Some(mut writer) = self.writer.try_lock()
            && !writer.flushing
            && writer.is_ready()
        {
            self.age(&mut writer);
        }
    }

    fn log_is_long(&self) -> bool {
        self.log_bytes.load(Ordering::Relaxed) >= self.options.memory_bytes
    }

    pub(super) fn wait_for_flusher(&self, writer: &mut MutexGuard<'_, Writer>) {
        while writer.flushing {
            self.turn.wait(writer);
        }
    }

    /// Turns the young generation into the old one and wakes the flusher, which must be idle.
    pub(super) fn age(&self, writer: &mut Writer) {
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.age();
        self.publish(chain);
        self.log_bytes.store(0, Ordering::Relaxed);
        writer.flushing = true;
        self.turn.notify_all();
    }

    /// Runs the flusher's thread until the store is closed.
    pub(super) fn run_flusher(&self) {
        let mut writer = self.writer.lock();
        let mut healed = Instant::now();
        loop {
            if writer.flushing {
                let done = catch_unwind(AssertUnwindSafe(|| self.flush_old(&mut writer)));
                writer.flushing = false;
                if let Err(error) = done.unwrap_or(Err(StoreError::Poisoned)) {
                    self.commit_failed(&mut writer, &error);
                }
                self.turn.notify_all();
            } else if writer.closing {
                return;
            } else if let Some(left) = self.options.retry.checked_sub(healed.elapsed()) {
                self.turn.wait_for(&mut writer, left);
            } else {
                if let Err(error) = self.heal(&mut writer) {
                    self.failed_writes.lock().reason = Some(error.with_causes());
                }
                healed = Instant::now();
            }
        }
    }

    /// Prepares the next attempt after a commit has failed with `error`.
    pub(super) fn commit_failed(&self, writer: &mut Writer, error: &StoreError) {
        self.note_failure(error);
        // Acknowledged changes are in the log.
        writer.state = match error {
            StoreError::Poisoned => WriterState::Poisoned,
            _ => WriterState::Retrying,
        };
        // Reads must not wait for the next attempt.
        let _ = self.reopen_failed_database(writer);
    }

    /// Moves the old generation to the database and drops the entries of the log that the database has. Releases the
    /// writer's lock most of the time.
    pub(super) fn flush_old(&self, writer: &mut MutexGuard<'_, Writer>) -> Result<(), StoreError> {
        self.check(writer)?;
        let batch = self.batch(writer)?;
        match MutexGuard::unlocked(writer, || self.commit(&batch)) {
            Ok((meta, tables)) => {
                let mut chain = ChainVersion::clone(&self.current.read());
                self.moved_to_database(writer, &mut chain, &meta, tables);
                self.publish(chain);
            }
            Err(error) => {
                self.records.write().dirty.extend(batch.records.into_iter().map(|(id, _)| id));
                return Err(error);
            }
        }
        MutexGuard::unlocked(writer, || Ok(self.log.drop_through(batch.logged)?))
    }

    fn batch(&self, writer: &Writer) -> Result<Batch, StoreError> {
        let mut records = self.records.write();
        // Records are logged under the lock of `records`, so `records` has all entries up to this one.
        let last = writer.replaying.unwrap_or_else(|| self.log.last());
        // The database must not contain changes that a crash or a failure could remove from the log. The lock excludes that
        // the log is rolled back before this returns.
        self.log.sync_through(last)?;
        let records = &mut *records;
        let dirty = std::mem::take(&mut records.dirty).into_iter();
        let records = dirty.map(|id| (id.clone(), records.values.get(&id).cloned())).collect();
        let chain = self.chain();
        // An entry may contain blocks of both generations.
        let young = writer.entries.iter().find(|(number, _)| *number > chain.old_end);
        let logged = young.map_or(last, |(_, sequence)| sequence.previous());
        Ok(Batch { chain, database_head: writer.database_head, logged, records })
    }

    /// Writes a batch in one commit. Returns the new row of `meta`, and a snapshot of the tables.
    fn commit(&self, batch: &Batch) -> Result<(Meta, Tables), StoreError> {
        let Batch { chain, .. } = batch;
        let missing = StoreError::Missing { table: Table::Headers.name() };
        let (Some(genesis), Some(hash)) = (chain.canonical(0)?, chain.canonical(chain.old_end)?) else {
            return Err(missing);
        };
        let head = BlockRef { number: chain.old_end, hash };
        let meta = Meta { genesis, head, earliest: chain.earliest, logged: batch.logged };
        let transaction = self.begin_write()?;
        for number in chain.rows.limit + 1..=batch.database_head.number {
            delete_block(&transaction, chain, number)?;
        }
        write_rows(&transaction, &chain.rows.old)?;
        write_side_blocks(&transaction, chain)?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for ((kind, key), value) in &batch.records {
                let row = [&[kind_byte(*kind)][..], key].concat();
                match value {
                    Some(value) => drop(table.insert(&*row, &**value)?),
                    None => drop(table.remove(&*row)?),
                }
            }
            let mut table = transaction.open_table(META)?;
            for (name, value) in meta.rows() {
                table.insert(name, &*value)?;
            }
        }
        *self.attempted.lock() = Some(head);
        transaction.commit()?;
        Ok((meta, Tables::open(&self.database().begin_read()?)?))
    }

    /// Updates the writer and the chain after a commit of the old generation.
    pub(super) fn moved_to_database(&self, writer: &mut Writer, chain: &mut ChainVersion, meta: &Meta, tables: Tables) {
        writer.database_head = meta.head;
        writer.logged = meta.logged;
        chain.old_is_in_database(Arc::new(tables));
        let in_memory = writer.entries.partition_point(|(number, _)| *number <= chain.rows.limit);
        writer.entries.drain(..in_memory);
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database().begin_write()?;
        // Without quick repair, opening after a crash would read the whole database.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }
}

/// Writes all rows of a generation, table by table in the order of their keys.
fn write_rows(transaction: &WriteTransaction, generation: &Generation) -> Result<(), StoreError> {
    let mut tables: [Vec<_>; Table::ALL.len()] = Default::default();
    generation.for_each(|key, rows| {
        let table = &mut tables[key.table() as usize];
        if key.table() == Table::Postings {
            for (first, chunk) in postings::join(rows)? {
                table.push((key.versioned(first.0), chunk.into()));
            }
        } else {
            table.extend(rows.iter().map(|(version, value)| (key.versioned(*version), Arc::clone(value))));
        }
        Ok::<_, StoreError>(())
    })?;
    for (table, mut rows) in Table::ALL.into_iter().zip(tables) {
        rows.sort_unstable_by(|(a, _), (b, _)| (**a).cmp(b));
        let mut table = transaction.open_table(definition(table))?;
        for (key, value) in rows {
            table.insert(&*key, &*value)?;
        }
    }
    Ok(())
}

/// Deletes the rows of a block in the database that is not canonical any more.
fn delete_block(transaction: &WriteTransaction, chain: &ChainVersion, number: BlockNumber) -> Result<(), StoreError> {
    let read = |table: Table| {
        let row = chain.rows.database.get(&Key::of_block(table, number))?;
        row.ok_or(StoreError::Missing { table: table.name() })
    };
    let row = values::decode_changes_row(&read(Table::Changes)?)?;
    let block = ExecutedBlock {
        header: Arc::new(values::decode_header(&read(Table::Headers)?)?),
        body: Arc::new(values::decode_body(&read(Table::Bodies)?)?),
        receipts: Arc::new(values::decode_receipts(&read(Table::Receipts)?)?),
        changes: Arc::default(),
    };
    for key in keys_of_block(&block, &row)? {
        if key.table().suffix() == Suffix::Log {
            cut_postings(transaction, &key, LogId::first_of(number))?;
        } else {
            transaction.open_table(definition(key.table()))?.remove(&*key.versioned(number))?;
        }
    }
    Ok(())
}

/// Removes the logs from `end` on from the chunks of a term.
fn cut_postings(transaction: &WriteTransaction, key: &Key, end: LogId) -> Result<(), StoreError> {
    let mut table = transaction.open_table(definition(Table::Postings))?;
    loop {
        let (from, to) = (key.versioned(0), key.versioned(u64::MAX));
        let last = match table.range::<&[u8]>(&*from..=&*to)?.next_back().transpose()? {
            Some((found, value)) => {
                let Some(first) = crate::keys::version_of(Suffix::Log, found.value()) else { return Ok(()) };
                (first, postings::decode(first, value.value())?)
            }
            None => return Ok(()),
        };
        let (first, ids) = last;
        let kept = ids.partition_point(|id| *id < end);
        if kept == ids.len() {
            return Ok(());
        }
        let row = key.versioned(first);
        table.remove(&*row)?;
        if kept > 0 {
            table.insert(&*row, &*postings::encode(&ids[..kept]))?;
            return Ok(());
        }
    }
}

/// Updates the table of side blocks to those of `chain`.
fn write_side_blocks(transaction: &WriteTransaction, chain: &ChainVersion) -> Result<(), StoreError> {
    let mut table = transaction.open_table(SIDE_BLOCKS)?;
    let mut stored = BTreeSet::new();
    for row in table.iter()? {
        stored.insert(row?.0.value().to_vec());
    }
    for (reference, block) in chain.side_blocks.iter() {
        let key = side_block_key(reference);
        if !stored.remove(&key) {
            let mut value = Vec::new();
            BlockBytes::encode(block).append(block, &mut value);
            table.insert(&*key, &*value)?;
        }
    }
    for key in stored {
        table.remove(&*key)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::files::faults::FaultyDisk;
    use crate::wal::Sequence;
    use crate::{Options, Store};
    use node_core::backend::StateBackend;
    use node_core::backend::suite::Random;

    #[test]
    fn flushing_fails_if_the_log_was_not_read_to_its_end() {
        let chain = Random(1).chain(10);
        let disk = FaultyDisk::new();
        let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), Options::default()).unwrap();
        chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
        assert_eq!(store.shared.log.last(), Sequence(10));
        let mut writer = store.shared.writer.lock();
        writer.replaying = Some(Sequence(4));
        store.shared.age(&mut writer);
        store.shared.wait_for_flusher(&mut writer);
        assert!(writer.is_ready());
        assert_eq!(writer.logged, Sequence(4));
        assert_eq!(store.shared.log.entries_after(writer.logged).count(), 6);
        writer.replaying = None;
    }
}
