//! Rows of older blocks, in the database.

use super::memory::Value;
use crate::error::StoreError;
use crate::files::isolated;
use crate::keys::{Key, Suffix, Table, version_of};
use crate::values;
use node_types::BlockNumber;
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, TableDefinition};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};

/// Type of the definitions of tables.
pub(crate) type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

pub(crate) fn definition(table: Table) -> Definition {
    TableDefinition::new(table.name())
}

pub(crate) struct Tables {
    id: SnapshotId,
    tables: Vec<ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

/// Identifies a snapshot within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotId(u64);

#[cfg(test)]
impl SnapshotId {
    pub(crate) fn of_test(id: u64) -> Self {
        Self(id)
    }
}

impl Tables {
    pub(crate) fn open(transaction: &ReadTransaction) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let open = |table: &Table| transaction.open_table(definition(*table));
        let tables = Table::ALL.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { id: SnapshotId(NEXT.fetch_add(1, Ordering::Relaxed)), tables })
    }

    pub(crate) fn id(&self) -> SnapshotId {
        self.id
    }

    pub(crate) fn table(&self, table: Table) -> &ReadOnlyTable<&'static [u8], &'static [u8]> {
        &self.tables[table as usize]
    }

    /// Returns the row of a key without versions.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        read(|| Ok(self.table(key.table()).get(key.prefix())?.map(|value| Value::from(value.value()))))
    }

    /// Returns the row of a key without versions, or `None` if it belongs to a block above `limit`.
    pub(crate) fn get_up_to(&self, key: &Key, limit: BlockNumber) -> Result<Option<Value>, StoreError> {
        let Some(value) = self.get(key)? else { return Ok(None) };
        let block = match key.table() {
            Table::Code => 0,
            Table::Numbers => values::decode_number(&value)?,
            Table::Transactions => values::decode_position(&value)?.block,
            _ => key.block_number(),
        };
        Ok((block <= limit).then_some(value))
    }

    /// Visits the rows of `key` with this version or a lower one, the newest first.
    pub(crate) fn newest_first(
        &self,
        key: &Key,
        version: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(key.table().suffix(), Suffix::Block);
        let from = key.versioned(version);
        read(|| {
            let mut cursor = self.table(key.table()).lower_bound(Bound::Included(&*from))?;
            while let Some((found, value)) = cursor.next()? {
                let Some(version) = version_in(key, found.value()) else { break };
                if visit(version, value.value())?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns the last row of `key` with this log or an earlier one.
    pub(crate) fn last_up_to(&self, key: &Key, log: u64) -> Result<Option<(u64, Value)>, StoreError> {
        let from = key.versioned(log);
        read(|| {
            let found = self.table(key.table()).upper_bound(Bound::Included(&*from))?.prev()?;
            Ok(found.and_then(|(found, value)| Some((version_in(key, found.value())?, Value::from(value.value())))))
        })
    }

    /// Visits the last row of `key` with this log or an earlier one, if there is one, and then the following rows.
    pub(crate) fn ascending_around(
        &self,
        key: &Key,
        log: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        debug_assert_eq!(key.table().suffix(), Suffix::Log);
        let from = key.versioned(log);
        read(|| {
            let mut cursor = self.table(key.table()).upper_bound(Bound::Included(&*from))?;
            if let Some((found, value)) = cursor.peek_prev()?
                && let Some(first) = version_in(key, found.value())
                && visit(first, value.value())?.is_break()
            {
                return Ok(());
            }
            while let Some((found, value)) = cursor.next()? {
                let Some(first) = version_in(key, found.value()) else { break };
                if visit(first, value.value())?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }
}

/// Runs `read`, which reads tables of a snapshot. If it fails, others can still be read.
pub(crate) fn read<T>(read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    isolated(read).map_err(|error| StoreError::Database(Box::new(redb::Error::Io(error))))?
}

/// Returns the version in `found`, or `None` if it does not have the prefix of `key`.
fn version_in(key: &Key, found: &[u8]) -> Option<u64> {
    let suffix = key.table().suffix();
    let rest = found.strip_prefix(key.prefix())?;
    version_of(suffix, rest)
}
