//! Rows: the newest blocks' in memory, the others' in the database.
//!
//! Every row a block writes has a new key. Memory has two generations: new blocks go to the young one; when it is full,
//! it becomes the old one, which goes to the database in one commit. Blocks that leave the chain after they went to the
//! database are hidden there by a limit. Within a key, every row of the young generation is newer than any of the old,
//! and those are newer than any of the database.

mod database;
mod memory;

pub(crate) use database::{Definition, SnapshotId, Tables, definition};
pub(crate) use memory::{Generation, Value};

use crate::error::StoreError;
use crate::keys::Key;
use node_types::BlockNumber;
use std::ops::ControlFlow;
use std::sync::Arc;

/// All rows of a chain. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Rows {
    /// The last block. The young generation may have rows of later ones, which belong to newer versions of the chain.
    pub(crate) head: BlockNumber,
    pub(crate) young: Arc<Generation>,
    pub(crate) old: Arc<Generation>,
    pub(crate) database: Arc<Tables>,
    /// The last block of the database that is still canonical. What is above it was taken back; the next commit
    /// deletes it.
    pub(crate) limit: BlockNumber,
}

impl Rows {
    /// The row of a key without versions.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        match self.in_memory(key, self.head) {
            Some((_, value)) => Ok(Some(value)),
            None => self.database.get_up_to(key, self.limit),
        }
    }

    /// The newest row of `key` from this block or an earlier one, with its block.
    pub(crate) fn newest(&self, key: &Key, block: u64) -> Result<Option<(u64, Value)>, StoreError> {
        if let Some(row) = self.in_memory(key, block.min(self.head)) {
            return Ok(Some(row));
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
            if generation.newest_first(key, block.min(self.head), &mut visit)?.is_break() {
                return Ok(());
            }
        }
        self.database.newest_first(key, block.min(self.limit), visit)
    }

    fn in_memory(&self, key: &Key, version: u64) -> Option<(u64, Value)> {
        self.young.newest(key, version).or_else(|| self.old.newest(key, version))
    }
}
