//! Rows of older blocks, in runs.

use super::memory::Value;
use super::scan::{Scan, Visible, visible};
use crate::error::StoreError;
use crate::keys::{Key, LogId, RowKey, Suffix, Table, filter_part, version_of};
use crate::postings;
use crate::runs::{Cursor, Run};
use crate::values;
use node_types::BlockNumber;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run, and the limit up to which its rows are visible.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) run: Arc<Run>,
    /// The last block whose rows are visible; later blocks have left the chain. Code, side blocks and records are
    /// always visible.
    pub(crate) limit: BlockNumber,
}

impl Part {
    /// Returns the first block whose rows the run has. If it is above the limit, no rows of blocks are visible.
    pub(crate) fn first(&self) -> BlockNumber {
        *self.run.properties().blocks.start()
    }
}

/// A snapshot of all runs, the oldest first. They cover ascending ranges of blocks.
pub(crate) struct Tables {
    id: SnapshotId,
    /// Numbered runs: those with the tables whose rows are keyed by block numbers. Each row is in the run that has
    /// its block. Runs whose blocks have all left the chain are not included.
    numbered: Vec<Part>,
    /// Keyed runs: those with the other tables.
    keyed: Vec<Part>,
    /// Whether a run is on another machine.
    pub(super) is_remote: bool,
}

/// Identifies the canonical blocks of a snapshot within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotId(u64);

impl SnapshotId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    #[cfg(test)]
    pub(crate) fn of_test(id: u64) -> Self {
        Self(id)
    }
}

/// Where a visit of rows ended.
type Flow = Result<ControlFlow<()>, StoreError>;

impl Tables {
    pub(crate) fn new(numbered: Vec<Part>, keyed: Vec<Part>) -> Self {
        Self::with_id(SnapshotId::next(), numbered, keyed)
    }

    /// Returns a snapshot with different runs that have the same rows.
    pub(crate) fn with_same_rows(&self, numbered: Vec<Part>, keyed: Vec<Part>) -> Self {
        Self::with_id(self.id, numbered, keyed)
    }

    fn with_id(id: SnapshotId, numbered: Vec<Part>, keyed: Vec<Part>) -> Self {
        let is_remote = numbered.iter().chain(&keyed).any(|part| part.run.is_remote());
        Self { id, numbered, keyed, is_remote }
    }

    pub(crate) fn id(&self) -> SnapshotId {
        self.id
    }

    /// Returns the runs that have rows of `table`, the oldest first.
    pub(crate) fn parts_of(&self, table: Table) -> &[Part] {
        if table.is_numbered() { &self.numbered } else { &self.keyed }
    }

    /// Returns all runs.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        self.numbered.iter().chain(&self.keyed)
    }

    /// Returns the row of a key without versions.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        self.get_up_to(key, BlockNumber::MAX)
    }

    /// Returns the row of a key without versions, or `None` if it belongs to a block above `limit`.
    pub(crate) fn get_up_to(&self, key: &Key, limit: BlockNumber) -> Result<Option<Value>, StoreError> {
        let table = key.table();
        debug_assert_eq!(table.suffix(), Suffix::None);
        if table.is_numbered() {
            let number = key.block_number();
            let found = if number <= limit { self.row_of_block(key, number)? } else { None };
            return Ok(found.map(|(row, _)| value_of(row)));
        }
        for part in self.keyed.iter().rev() {
            let found = part.run.seek_part(key.as_slice(), key.as_slice())?;
            let Some(row) = found.filter(|row| row.key() == key.as_slice()) else { continue };
            let block = match table {
                Table::Numbers => values::decode_number(row.value())?,
                Table::Transactions => values::decode_position(row.value())?.block,
                // Code remains when its block leaves the chain.
                _ if part.first() <= limit => return Ok(Some(value_of(row))),
                _ => continue,
            };
            if block <= part.limit.min(limit) {
                return Ok(Some(value_of(row)));
            }
        }
        Ok(None)
    }

    /// Returns the row of block `number`, whose key is `key`, with the limit of its run.
    fn row_of_block(&self, key: &Key, number: BlockNumber) -> Result<Option<(Cursor, BlockNumber)>, StoreError> {
        let Some(part) = self.part_of_block(number) else { return Ok(None) };
        let row = part.run.seek(key.as_slice())?.filter(|row| row.key() == key.as_slice());
        Ok(row.map(|row| (row, part.limit)))
    }

    /// Returns the run with the numbered rows of block `number`.
    pub(super) fn part_of_block(&self, number: BlockNumber) -> Option<&Part> {
        let index = self.numbered.partition_point(|part| part.first() <= number);
        let part = index.checked_sub(1).map(|index| &self.numbered[index]);
        part.filter(|part| number <= part.limit)
    }

    /// Returns a reader of the rows of blocks in `table`.
    pub(crate) fn of_blocks(&self, table: Table) -> RowsOfBlocks<'_> {
        debug_assert!(table.is_numbered());
        RowsOfBlocks { tables: self, table, row: None }
    }

    /// Returns the row with exactly this key, which must not be in the table `postings`.
    pub(crate) fn exactly(&self, key: &RowKey) -> Result<Option<Value>, StoreError> {
        let Some(table) = Table::of_key(key) else { return Ok(None) };
        for part in self.parts_of(table).iter().rev() {
            let found = match filter_part(key) {
                Some(filtered) => part.run.seek_part(filtered, key)?,
                None => part.run.seek(key)?,
            };
            if let Some(row) = found.filter(|row| *row.key() == **key)
                && matches!(visible(Some(table), row.key(), row.value(), part.limit)?, Visible::Yes)
            {
                return Ok(Some(value_of(row)));
            }
        }
        Ok(None)
    }

    /// Returns the last block whose rows may be visible.
    pub(crate) fn end(&self) -> BlockNumber {
        self.keyed.iter().map(|part| part.limit).max().unwrap_or_default()
    }

    /// Returns the newest row of `key` with this version or a lower one, with its version.
    pub(crate) fn newest(&self, key: &Key, version: u64) -> Result<Option<(u64, Value)>, StoreError> {
        let mut newest = None;
        self.newest_first(key, version, |version, value| {
            newest = Some((version, Value::from(value)));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(newest)
    }

    /// Visits the rows of `key` with this version or a lower one, the newest first.
    pub(crate) fn newest_first(
        &self,
        key: &Key,
        version: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Flow,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(key.table().suffix(), Suffix::Block);
        for part in self.keyed.iter().rev() {
            let version = version.min(part.limit);
            if part.first() > version {
                continue;
            }
            let Some(mut row) = part.run.seek_part(key.as_slice(), &key.versioned(version))? else { continue };
            while let Some(version) = version_in(key, row.key()) {
                if visit(version, row.value())?.is_break() {
                    return Ok(());
                }
                if !row.advance()? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the logs in the first chunk of `key` that does not end before `wanted`, up to those of block `limit`,
    /// or `None` if there is no such chunk.
    pub(crate) fn chunk_from(
        &self,
        key: &Key,
        wanted: LogId,
        limit: BlockNumber,
    ) -> Result<Option<Vec<LogId>>, StoreError> {
        debug_assert_eq!(key.table().suffix(), Suffix::Log);
        for part in &self.keyed {
            let limit = part.limit.min(limit);
            if part.first() > limit || wanted.position().block > limit {
                continue;
            }
            let Some(row) = part.run.seek_part(key.as_slice(), &key.versioned(wanted.0))? else { continue };
            let Some(last) = version_in(key, row.key()) else { continue };
            let ids = cut(postings::decode(last, row.value())?, limit);
            if ids.last().is_some_and(|last| *last >= wanted) {
                return Ok(Some(ids));
            }
        }
        Ok(None)
    }

    /// Returns the visible rows of a table, ascending.
    pub(crate) fn scan(&self, table: Table) -> Result<Scan, StoreError> {
        Scan::new(self.parts_of(table), &[table as u8], Some(table))
    }

    /// Returns the visible rows of a table, starting with the first whose key begins with `prefix`.
    pub(crate) fn scan_prefix(&self, prefix: &[u8]) -> Result<Scan, StoreError> {
        let table = Table::of_key(prefix).unwrap_or(Table::Headers);
        Scan::new(self.parts_of(table), prefix, Some(table))
    }
}

/// Reads a table whose rows are keyed by block numbers. Rows near the one that was read last are found faster than
/// others, because several are in the same block of a run.
pub(crate) struct RowsOfBlocks<'a> {
    tables: &'a Tables,
    table: Table,
    /// The row that was read last, with the limit of its run.
    row: Option<(Cursor, BlockNumber)>,
}

impl RowsOfBlocks<'_> {
    /// Returns the row of block `number`, or `None` if there is none.
    pub(crate) fn get(&mut self, number: BlockNumber) -> Result<Option<&[u8]>, StoreError> {
        let key = Key::of_block(self.table, number);
        let is_near = match &mut self.row {
            Some((row, limit)) => number <= *limit && row.move_to(key.as_slice())?,
            None => false,
        };
        if !is_near {
            self.row = self.tables.row_of_block(&key, number)?;
        }
        Ok(self.row.as_ref().map(|(row, _)| row.value()))
    }

    /// Returns the row of block `number`, which must exist.
    pub(crate) fn existing(&mut self, number: BlockNumber) -> Result<&[u8], StoreError> {
        let table = self.table.name();
        self.get(number)?.ok_or(StoreError::Missing { table })
    }
}

/// Returns the ids of logs of blocks up to and including `limit`.
pub(super) fn cut(mut ids: Vec<LogId>, limit: BlockNumber) -> Vec<LogId> {
    ids.truncate(ids.partition_point(|id| id.position().block <= limit));
    ids
}

fn value_of(row: Cursor) -> Value {
    Value::from(row.value())
}

/// Returns the version in `found`, or `None` if it does not have the prefix of `key`.
fn version_in(key: &Key, found: &[u8]) -> Option<u64> {
    let suffix = key.table().suffix();
    let rest = found.strip_prefix(key.as_slice())?;
    version_of(suffix, rest).filter(|_| rest.len() == suffix.len())
}
