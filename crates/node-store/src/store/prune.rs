//! Dropping old states.

use super::meta::{META, Meta};
use super::{Shared, Store};
use crate::chain::Chain;
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

/// Rows that are deleted in one commit.
const COMMIT_ROWS: usize = 200_000;

impl Store {
    /// Drops the states below block `floor`, which becomes the earliest that has one; blocks, receipts and the index of
    /// logs stay. Reads as of blocks below it answer [`BackendError::StatePruned`] from now on, as do switches that would
    /// go behind it. Takes time in proportion to the database; writers wait for it, readers do not. A floor that is no higher
    /// than the one before changes nothing, at once. Answers how many rows were dropped.
    ///
    /// # Errors
    ///
    /// [`BackendError::UnknownBlock`] if the floor is beyond the head. After another error, or a crash, some rows may be
    /// left that nothing needs; pruning again drops them.
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
            writer.check()?;
            if floor > self.current.read().head.number {
                return Err(BackendError::UnknownBlock(floor));
            }
            // Rows of blocks that were taken back would pass for the newest, and a floor above all that the database has
            // would refuse the changes that the log still holds.
            let limit = self.current.read().rows.limit;
            if writer.database_head == limit && floor <= limit {
                break writer;
            }
        };
        let mut chain = Chain::clone(&self.current.read());
        let floor = floor.max(chain.earliest);
        // Changes are dropped last: where there are some left, pruning did not come to its end.
        let pruned = floor == chain.earliest && changes_up_to(&chain.rows.database, floor).next().is_none();
        if floor == 0 || pruned {
            return Ok(0);
        }
        chain.earliest = floor;
        // Nothing is deleted before the database says so.
        let done = self.set_earliest(floor).and_then(|()| {
            self.publish(chain.clone());
            let all = |_: &[u8]| true;
            let accounts = superseded(&chain.rows.database, Table::Accounts, floor, &all);
            let mut dropped = self.delete_in_batches(Table::Accounts, accounts)?;
            let tries = self.storage_tries()?;
            let in_use =
                |key: &[u8]| trie_of(key).is_some_and(|trie| trie == TrieId::ACCOUNTS || tries.contains(&trie));
            for table in [Table::Storage, Table::Trie] {
                dropped += self.delete_in_batches(table, superseded(&chain.rows.database, table, floor, &in_use))?;
            }
            dropped += self.delete_in_batches(Table::Changes, changes_up_to(&chain.rows.database, floor))?;
            chain.rows.database = Arc::new(Tables::open(&self.database.begin_read()?)?);
            self.publish(chain);
            Ok(dropped)
        });
        if done.is_err() {
            writer.failure = Some(None);
        }
        Ok(done?)
    }

    fn set_earliest(&self, earliest: BlockNumber) -> Result<(), StoreError> {
        let transaction = self.begin_write()?;
        {
            let mut table = transaction.open_table(META)?;
            let meta = Meta::read(&table)?.ok_or(StoreError::Missing { table: "meta" })?;
            for (name, value) in (Meta { earliest, ..meta }).rows() {
                table.insert(name, &*value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// The storage tries of all accounts that are left, as of any block.
    fn storage_tries(&self) -> Result<HashSet<TrieId>, StoreError> {
        let mut tries = HashSet::new();
        for row in Tables::open(&self.database.begin_read()?)?.table(Table::Accounts).iter()? {
            let account = AccountRow::decode(row?.1.value())?;
            tries.extend(account.and_then(|account| account.storage).map(|(trie, _)| trie));
        }
        Ok(tries)
    }

    fn delete_in_batches(
        &self,
        table: Table,
        keys: impl Iterator<Item = Result<Vec<u8>, StoreError>>,
    ) -> Result<u64, StoreError> {
        let mut keys = keys.peekable();
        let mut deleted = 0;
        while keys.peek().is_some() {
            let transaction = self.begin_write()?;
            {
                let mut table = transaction.open_table(definition(table))?;
                for key in keys.by_ref().take(COMMIT_ROWS) {
                    table.remove(&*key?)?;
                    deleted += 1;
                }
            }
            transaction.commit()?;
        }
        Ok(deleted)
    }
}

/// The keys of all rows that no state from `floor` on needs: of each prefix, all that are older than the newest row at or
/// before the floor and the rows that it is the difference to; that row too, if it says that nothing is there. All rows
/// whose keys are not `in_use`.
fn superseded<'a>(
    tables: &'a Tables,
    table: Table,
    floor: BlockNumber,
    in_use: &'a dyn Fn(&[u8]) -> bool,
) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> + 'a {
    let suffix = Suffix::Block.len();
    let mut prefix = Vec::new();
    // Whether the rows from here on, which are older, are needed by none.
    let mut covered = false;
    let mut row = move |key: &[u8], value: &[u8]| {
        let (own, _) = key.split_at_checked(key.len().saturating_sub(suffix))?;
        if own != prefix {
            prefix = own.to_vec();
            covered = false;
        }
        if version_of(Suffix::Block, key)? > floor {
            return None;
        }
        if covered || !in_use(key) {
            return Some(key.to_vec());
        }
        covered = table != Table::Trie || !trie::is_delta(value);
        let nothing = if table == Table::Trie { trie::is_empty(value) } else { value.is_empty() };
        nothing.then(|| key.to_vec())
    };
    rows(tables, table).filter_map(move |entry| match entry {
        Ok((key, value)) => row(&key, &value).map(Ok),
        Err(error) => Some(Err(error)),
    })
}

/// The keys of the rows of changes of blocks up to and including `floor`, which cannot be taken back any more.
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
