//! Moving rows to the database.

use super::meta::{META, Meta, RECORDS, SIDE_BLOCKS, side_block_key};
use super::{Store, Writer};
use crate::block_bytes::BlockBytes;
use crate::chain::{Chain, first_log_above, keys_of_block};
use crate::error::StoreError;
use crate::journal::kind_byte;
use crate::keys::{Key, LogId, Suffix, Table};
use crate::rows::{Generation, Tables, definition};
use crate::wal::Sequence;
use crate::{postings, values};
use node_core::backend::BackendError;
use node_core::block::{BlockRef, ExecutedBlock};
use node_types::{BlockNumber, H256};
use redb::{ReadableDatabase, ReadableTable, WriteTransaction};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Store {
    /// Moves everything to the database, so that the next start has nothing to read from the log.
    pub fn flush(&self) -> Result<(), BackendError> {
        let mut writer = self.writer.lock();
        writer.check()?;
        if writer.logged == self.log.last() {
            return Ok(());
        }
        self.log.sync().map_err(StoreError::from)?;
        let done = self.age(&mut writer).and_then(|()| self.flush_old(&mut writer));
        if done.is_err() {
            writer.failure = Some(None);
        }
        Ok(done?)
    }

    /// When the young generation is full, moves the old one to the database and makes the young one old.
    pub(super) fn flush_when_full(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let chain = self.chain();
        let young_blocks = chain.head.number - chain.old_end;
        if chain.rows.young.count() < self.options.commit_rows || young_blocks < self.options.blocks_in_memory {
            return Ok(());
        }
        self.age(writer)
    }

    /// Moves the old generation to the database, if there is one, and makes the young one old.
    fn age(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let chain = self.chain();
        if chain.old_end > chain.rows.limit {
            self.flush_old(writer)?;
        }
        let mut chain = Chain::clone(&self.current.read());
        chain.age();
        *self.current.write() = Arc::new(chain);
        Ok(())
    }

    /// Moves the old generation, which is not empty unless the young one is, to the database, with all records and
    /// side blocks.
    fn flush_old(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let mut chain = Chain::clone(&self.current.read());
        // The entry of the last block is read again after a crash: it may hold more blocks than those that are flushed.
        let logged = match chain.old_sequence() {
            Some(sequence) if chain.old_end < chain.head.number => sequence.previous(),
            _ => {
                debug_assert_eq!(chain.old_end, chain.head.number);
                self.log.last()
            }
        };
        self.log.sync_through(logged)?;
        let tables = self.commit(writer, &chain, logged)?;
        chain.old_is_in_database(tables);
        *self.current.write() = Arc::new(chain);
        Ok(self.log.drop_through(logged)?)
    }

    pub(super) fn begin_write(&self) -> Result<WriteTransaction, StoreError> {
        let mut transaction = self.database.begin_write()?;
        // Without it, opening after a crash would read the whole database.
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    /// Writes the old generation of `chain`, what was taken back, side blocks and records in one commit; answers the
    /// tables as they are then.
    pub(super) fn commit(
        &self,
        writer: &mut Writer,
        chain: &Chain,
        logged: Sequence,
    ) -> Result<Arc<Tables>, StoreError> {
        let transaction = self.begin_write()?;
        for number in chain.rows.limit + 1..=writer.database_head {
            delete_block(&transaction, chain, number)?;
        }
        write_rows(&transaction, &chain.rows.old)?;
        write_side_blocks(&transaction, chain)?;
        // Held until the commit, so that what is written meanwhile is dirty again.
        let mut records = self.records.write();
        {
            let mut table = transaction.open_table(RECORDS)?;
            for (kind, key) in &records.dirty {
                let row = [&[kind_byte(*kind)][..], key].concat();
                match records.values.get(&(*kind, key.clone())) {
                    Some(value) => drop(table.insert(&*row, &**value)?),
                    None => drop(table.remove(&*row)?),
                }
            }
            let hash = chain.canonical(chain.old_end)?.ok_or(StoreError::Missing { table: Table::Headers.name() })?;
            let genesis: H256 = chain.canonical(0)?.ok_or(StoreError::Missing { table: Table::Headers.name() })?;
            let head = BlockRef { number: chain.old_end, hash };
            let mut table = transaction.open_table(META)?;
            for (name, value) in (Meta { genesis, head, earliest: chain.earliest, logged }).rows() {
                table.insert(name, &*value)?;
            }
        }
        transaction.commit()?;
        records.dirty.clear();
        writer.database_head = chain.old_end;
        writer.logged = logged;
        Ok(Arc::new(Tables::open(&self.database.begin_read()?)?))
    }
}

impl Drop for Store {
    /// Spares the next start the reading of the log. If it fails, the log has everything.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Writes all rows of a generation, table by table in the order of their keys.
fn write_rows(transaction: &WriteTransaction, generation: &Generation) -> Result<(), StoreError> {
    let mut tables: [Vec<_>; Table::ALL.len()] = Default::default();
    for (key, rows) in generation.iter() {
        let table = &mut tables[key.table() as usize];
        if key.table() == Table::Postings {
            for (first, chunk) in postings::join(&rows)? {
                table.push((key.versioned(first.0), chunk.into()));
            }
        } else {
            table.extend(rows.into_iter().map(|(version, value)| (key.versioned(version), Arc::clone(value))));
        }
    }
    for (table, mut rows) in Table::ALL.into_iter().zip(tables) {
        rows.sort_unstable_by(|(a, _), (b, _)| (**a).cmp(b));
        let mut table = transaction.open_table(definition(table))?;
        for (key, value) in rows {
            table.insert(&*key, &*value)?;
        }
    }
    Ok(())
}

/// Deletes the rows of a block that is in the database and not canonical any more.
fn delete_block(transaction: &WriteTransaction, chain: &Chain, number: BlockNumber) -> Result<(), StoreError> {
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
            cut_postings(transaction, &key, first_log_above(number - 1))?;
        } else {
            transaction.open_table(definition(key.table()))?.remove(&*key.versioned(number))?;
        }
    }
    Ok(())
}

/// Takes the logs from `end` on out of the chunks of a term.
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

/// Makes the table of side blocks hold those of `chain`.
fn write_side_blocks(transaction: &WriteTransaction, chain: &Chain) -> Result<(), StoreError> {
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
