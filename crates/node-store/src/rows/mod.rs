//! Rows: the newest blocks' in memory, the others' in the database.
//!
//! Every row a block writes has a new key, so taking a block back means deleting its rows. Memory has two generations:
//! new blocks go to the young one; when it is full, the old one goes to the database in one commit, and the young one
//! becomes old. Blocks that leave the chain after they went to the database are hidden there by a limit. Within a key, every row of the young generation is newer than any of the old, and those are newer than
//! any of the database.

mod database;
mod memory;

pub(crate) use database::{Definition, SnapshotId, Tables, definition};
pub(crate) use memory::{Generation, Value, first_version_above};

use crate::error::StoreError;
use crate::keys::Key;
use node_types::BlockNumber;
use std::ops::ControlFlow;
use std::sync::Arc;

/// All rows of a chain. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Rows {
    pub(crate) young: Generation,
    pub(crate) old: Generation,
    pub(crate) database: Arc<Tables>,
    /// The last block of the database that is still canonical. What is above it was taken back; the next commit
    /// deletes it.
    pub(crate) limit: BlockNumber,
}

impl Rows {
    /// The row of a key without versions.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        match self.in_memory(key, u64::MAX) {
            Some((_, value)) => Ok(Some(Arc::clone(value))),
            None => self.database.get_up_to(key, self.limit),
        }
    }

    /// The newest row of `key` from this block or an earlier one, with its block.
    pub(crate) fn newest(&self, key: &Key, block: u64) -> Result<Option<(u64, Value)>, StoreError> {
        if let Some((version, value)) = self.in_memory(key, block) {
            return Ok(Some((version, Arc::clone(value))));
        }
        let mut newest = None;
        self.database.newest_first(key, block.min(self.limit), |version, value| {
            newest = Some((version, Value::from(value)));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(newest)
    }

    /// Visits the rows of `key` from this block and earlier ones, the newest first.
    pub(crate) fn newest_first(
        &self,
        key: &Key,
        block: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        for generation in [&self.young, &self.old] {
            for (version, value) in generation.newest_first(key, block) {
                if visit(version, value)?.is_break() {
                    return Ok(());
                }
            }
        }
        self.database.newest_first(key, block.min(self.limit), visit)
    }

    /// Whether a code or another row that is the same for whoever writes it is there.
    pub(crate) fn contains(&self, key: &Key) -> Result<bool, StoreError> {
        Ok(self.get(key)?.is_some())
    }

    fn in_memory(&self, key: &Key, version: u64) -> Option<(u64, &Value)> {
        self.young.newest(key, version).or_else(|| self.old.newest(key, version))
    }
}
