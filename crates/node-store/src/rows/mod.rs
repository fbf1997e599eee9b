//! All rows: those of the newest blocks in memory, and those of older blocks in runs.
//!
//! Every row that a block writes has a new key, except for nodes of a genesis state that is written in parts. Memory
//! has two generations: new blocks are written to the young one. When it is full, it becomes the old generation,
//! which is written to a run. If blocks leave the chain after that, a limit hides their rows in runs. For each key,
//! rows of the young generation are newer than rows of the old one, which are newer than rows in runs.

mod compact;
mod fetch;
mod levels;
mod memory;
mod scan;
mod tables;

pub(crate) use compact::{DELETED, PRESENT, Pruned, Rules, compact};
pub(crate) use levels::choose;
pub(crate) use memory::{BlockRows, Generation, Value};
pub(crate) use scan::Scan;
pub(crate) use tables::{Part, SnapshotId, Tables};

use crate::error::StoreError;
use crate::keys::Key;
use node_core::backend::BaseState;
use node_types::BlockNumber;
use std::ops::ControlFlow;
use std::sync::Arc;

/// All rows of a chain. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rows {
    /// The last block. The young generation may have rows of later blocks, which belong to newer versions of the chain.
    pub(crate) head: BlockNumber,
    pub(crate) young: Arc<Generation>,
    pub(crate) old: Arc<Generation>,
    pub(crate) tables: Arc<Tables>,
    /// The last block in runs that is canonical. The next manifest hides the rows of later blocks, which have left
    /// the chain.
    pub(crate) limit: BlockNumber,
    /// The state with which the chain begins, if most of it has no rows: whatever has no row is as in it.
    pub(crate) base: Option<Arc<dyn BaseState>>,
}

impl Rows {
    /// Returns the row of a key without versions, or `None` if there is none.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        match self.young.newest(key, self.head).or_else(|| self.old.newest(key, self.head)) {
            Some((_, value)) => Ok(Some(value)),
            None => self.tables.get_up_to(key, self.limit),
        }
    }

    /// Returns the newest row of `key` from this block or an earlier one, with the number of its block.
    pub(crate) fn newest(&self, key: &Key, block: u64) -> Result<Option<(u64, Value)>, StoreError> {
        match self.newest_in_memory(key, block) {
            Some(newest) => Ok(Some(newest)),
            None => self.tables.newest(key, block.min(self.limit)),
        }
    }

    /// Like [`newest`](Self::newest), among the rows in memory.
    pub(crate) fn newest_in_memory(&self, key: &Key, block: u64) -> Option<(u64, Value)> {
        // Rows in memory belong to blocks above the limit.
        if block <= self.limit {
            return None;
        }
        let block = block.min(self.head);
        self.young.newest(key, block).or_else(|| self.old.newest(key, block))
    }

    /// Visits the rows of `key` from this block and earlier ones, the newest first.
    pub(crate) fn newest_first(
        &self,
        key: &Key,
        block: u64,
        mut visit: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        // Rows in memory belong to blocks above the limit.
        if block > self.limit {
            for generation in [&self.young, &self.old] {
                if generation.newest_first(key, block.min(self.head), &mut visit)?.is_break() {
                    return Ok(());
                }
            }
        }
        self.tables.newest_first(key, block.min(self.limit), visit)
    }
}
