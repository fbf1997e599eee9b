//! Pruning of old states.

use super::meta::{CHECKED_FLOOR, META, Meta, encode_floor};
use super::{Shared, Store};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::keys::{Key, Suffix, Table, TrieId, trie_of, version_of};
use crate::rows::{Tables, definition};
use crate::trie;
use crate::values::AccountRow;
use node_core::backend::BackendError;
use node_types::BlockNumber;
use redb::{ReadableDatabase, ReadableTable};
use std::collections::HashSet;
use std::sync::Arc;

impl Store {
    /// Drops the states before that of block `floor`, which becomes the earliest state. Blocks, receipts and the index
    /// of logs stay. Reads of earlier states, and switches to branches that begin before the floor, then fail with
    /// [`BackendError::StatePruned`]. Does nothing if the floor is not above the current one. Returns the number of
    /// deleted rows.
    ///
    /// Takes time in proportion to the size of the database. Writers wait for it, readers do not.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if the floor is above the head. After another error, or a crash, every state from
    /// `floor` on is intact, but some unneeded rows may remain; pruning again deletes them.
    pub fn prune_before(&self, floor: BlockNumber) -> Result<u64, BackendError> {
        self.shared.prune_before(floor)
    }
}

impl Shared {
    fn prune_before(&self, floor: BlockNumber) -> Result<u64, BackendError> {
        let mut writer = loop {
            self.flush()?;
            let mut writer = self.writer.lock();
            self.wait_for_flusher(&mut writer);
            self.check(&writer)?;
            if floor > self.current.read().head.number {
                return Err(BackendError::UnknownBlock(floor));
            }
            // Rows of blocks that left the chain would be taken for the newest. And a floor above the head of the
            // database would make the changes in the log fail.
            let limit = self.current.read().rows.limit;
            if writer.database_head.number == limit && floor <= limit {
                break writer;
            }
        };
        let mut chain = ChainVersion::clone(&self.current.read());
        let floor = floor.max(chain.earliest);
        // Rows of changes are deleted last: if any are left, pruning was not completed.
        let pruned = floor == chain.earliest && changes_up_to(&chain.rows.database, floor).next().is_none();
        if floor == 0 || pruned {
            return Ok(0);
        }
        chain.earliest = floor;
        // `meta` says so before anything is deleted.
        let done = self.set_earliest(floor).and_then(|()| {
            self.publish(chain.clone());
            let mut dropped = self.drop_superseded(&chain.rows.database, Table::Accounts, floor, |_| true)?;
            let tries = self.storage_tries()?;
            let in_use =
                |key: &[u8]| trie_of(key).is_some_and(|trie| trie == TrieId::ACCOUNTS || tries.contains(&trie));
            for table in [Table::Storage, Table::Trie] {
                dropped += self.drop_superseded(&chain.rows.database, table, floor, in_use)?;
            }
            let mut changes = Deletion::new(self, Table::Changes);
            for key in changes_up_to(&chain.rows.database, floor) {
                changes.add([key?])?;
            }
            dropped += changes.finish()?;
            chain.rows.database = Arc::new(Tables::open(&self.database().begin_read()?)?);
            self.publish(chain);
            Ok(dropped)
        });
        // After a failure some of the rows are gone. The next commit of the flusher repeats the row of `meta`.
        Ok(done.inspect_err(|error| self.commit_failed(&mut writer, error))?)
    }

    fn set_earliest(&self, earliest: BlockNumber) -> Result<(), StoreError> {
        let transaction = self.begin_write()?;
        {
            let mut table = transaction.open_table(META)?;
            let meta = Meta::read(&table)?.ok_or(StoreError::Missing { table: "meta" })?;
            for (name, value) in (Meta { earliest, ..meta }).rows() {
                table.insert(name, &*value)?;
            }
            table.insert(CHECKED_FLOOR, &*encode_floor(earliest))?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns the storage tries of all accounts that are left, as of any block.
    fn storage_tries(&self) -> Result<HashSet<TrieId>, StoreError> {
        let mut tries = HashSet::new();
        for row in Tables::open(&self.database().begin_read()?)?.table(Table::Accounts).iter()? {
            let account = AccountRow::decode(row?.1.value())?;
            tries.extend(account.and_then(|account| account.storage).map(|(trie, _)| trie));
        }
        Ok(tries)
    }

    /// Deletes the rows of `table` that no state from `floor` on needs, and rows up to `floor` whose keys are not
    /// `in_use`. For each prefix, the newest row up to `floor` stays, with the rows to which it is a delta. If that row is
    /// empty, it is deleted too, after all older rows of the prefix, which would otherwise be found in its place.
    fn drop_superseded(
        &self,
        tables: &Tables,
        table: Table,
        floor: BlockNumber,
        in_use: impl Fn(&[u8]) -> bool,
    ) -> Result<u64, StoreError> {
        let mut deletion = Deletion::new(self, table);
        let mut prefix = Vec::new();
        // The rows of `prefix` to delete, in the order of the table: the newest first.
        let mut superseded = Vec::new();
        // Whether older rows of `prefix` are not needed.
        let mut covered = false;
        for row in rows(tables, table) {
            let (key, value) = row?;
            let Some(version) = version_of(Suffix::Block, &key) else { continue };
            let own = &key[..key.len() - Suffix::Block.len()];
            if own != prefix {
                deletion.add(superseded.drain(..).rev())?;
                prefix = own.to_vec();
                covered = false;
            }
            if version > floor {
                continue;
            }
            if covered || !in_use(&key) {
                superseded.push(key);
                continue;
            }
            covered = table != Table::Trie || !trie::is_delta(&value);
            let nothing = if table == Table::Trie { trie::is_empty(&value) } else { value.is_empty() };
            if nothing {
                superseded.push(key);
            }
        }
        deletion.add(superseded.drain(..).rev())?;
        deletion.finish()
    }
}

/// Deletes rows of one table in commits of about [`Options::prune_rows`](super::Options::prune_rows).
pub(super) struct Deletion<'a> {
    shared: &'a Shared,
    table: Table,
    keys: Vec<Vec<u8>>,
    deleted: u64,
}

impl<'a> Deletion<'a> {
    pub(super) fn new(shared: &'a Shared, table: Table) -> Self {
        Self { shared, table, keys: Vec::new(), deleted: 0 }
    }

    /// Adds rows that must be deleted in one commit, or in the given order.
    pub(super) fn add(&mut self, keys: impl IntoIterator<Item = Vec<u8>>) -> Result<(), StoreError> {
        self.keys.extend(keys);
        if self.keys.len() >= self.shared.options.prune_rows { self.commit() } else { Ok(()) }
    }

    /// Deletes the remaining rows. Returns the total number of deleted rows.
    pub(super) fn finish(mut self) -> Result<u64, StoreError> {
        if !self.keys.is_empty() {
            self.commit()?;
        }
        Ok(self.deleted)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let transaction = self.shared.begin_write()?;
        {
            let mut table = transaction.open_table(definition(self.table))?;
            for key in &self.keys {
                table.remove(&**key)?;
            }
        }
        transaction.commit()?;
        self.deleted += self.keys.len() as u64;
        self.keys.clear();
        Ok(())
    }
}

/// Returns the keys of the rows of changes of blocks up to and including `floor`, which cannot leave the chain any
/// more.
fn changes_up_to(tables: &Tables, floor: BlockNumber) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> {
    let end = Key::of_block(Table::Changes, floor).versioned(0);
    let up_to = move |key: &Vec<u8>| **key <= *end;
    rows(tables, Table::Changes).map(|entry| entry.map(|(key, _)| key)).take_while(move |key| match key {
        Ok(key) => up_to(key),
        Err(_) => true,
    })
}

type Entry = Result<(Vec<u8>, Vec<u8>), StoreError>;

fn rows(tables: &Tables, table: Table) -> Box<dyn Iterator<Item = Entry> + '_> {
    match tables.table(table).iter() {
        Ok(rows) => Box::new(rows.map(|row| {
            let (key, value) = row?;
            Ok((key.value().to_vec(), value.value().to_vec()))
        })),
        Err(error) => Box::new(std::iter::once(Err(error.into()))),
    }
}
