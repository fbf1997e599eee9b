//! The port to the database.
//!
//! A backend stores blocks, receipts and every state of the canonical chain. It enforces only one of Ethereum's
//! rules: it computes state roots itself, and refuses a block whose header has a different one.
//!
//! The state "as of block n" is the state after block n was executed.
//!
//! The shortest backend serves reads from a [`MemoryBackend`], and stores each change in the closure that it passes
//! to [`append_with`](MemoryBackend::append_with) and similar methods, with blocks encoded by
//! [`ExecutedBlock::encode`].
//!
//! The traits define the contract. The module `suite` (feature backend-tests) tests all of it except durability,
//! because it cannot reopen a backend. In short:
//!
//! * A [`View`] is a snapshot: later changes do not affect it.
//! * A change that fails leaves everything as it was.
//! * Reads of numbers above the head fail with [`BackendError::UnknownBlock`] where a state or a range is requested,
//!   and return `None` where a block is requested.
//! * Listeners receive exactly the changes that moved the head, in order.
//! * [`View::log_candidates`] may return logs that do not match, even every log of the range, but must not leave out
//!   any that match.

mod base;
mod branch;
mod candidates;
mod error;
mod health;
mod layered;
mod memory;
mod record;
mod state_cache;
#[cfg(any(test, feature = "backend-tests"))]
pub mod suite;
mod view;

pub use base::{BaseRead, BaseState};
pub use branch::{Branch, GrowingBranch};
pub use error::{BackendError, NotRead};
pub use health::{BackendHealth, CacheUse, PublicationHealth, RequestUse};
pub use layered::LayeredView;
pub use memory::MemoryBackend;
pub use record::{Record, RecordKind, RecordValues, RecordWrite, records_of_kind};
pub use state_cache::StateCache;
pub use view::{
    AccountProof, FeeRow, LogFilter, LogSearch, StateView, StorageProof, View, fee_row, first_without_state_root,
    has_storage_after,
};

use crate::block::{BlockRef, ExecutedBlock};
use node_types::BlockNumber;
use std::sync::Arc;

/// A database that stores one chain with all its states.
///
/// A backend implements [`append_recording`](Self::append_recording) and
/// [`switch_recording`](Self::switch_recording); the methods without records call them.
///
/// # Errors
/// All methods fail if the storage does.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait StateBackend: Send + Sync {
    /// Returns a consistent snapshot of the chain as it is now.
    fn view(&self) -> Result<Arc<dyn View>, BackendError>;

    /// Appends `block` to the head. On an error nothing has changed.
    ///
    /// # Errors
    /// [`BackendError::NotAChild`] unless the head is the block's parent, and [`BackendError::StateRootMismatch`] if
    /// its changes do not produce the state root of its header.
    fn append(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.append_recording(block, &[])
    }

    /// Like [`append`](Self::append), and applies `writes` in order. A crash leaves all of it or nothing. Listeners that
    /// are notified of the block already see the records.
    ///
    /// # Errors
    /// Those of [`append`](Self::append).
    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError>;

    /// Replaces all canonical blocks above `ancestor` with `branch`, in one step. The replaced blocks become side
    /// blocks. An empty `branch` makes `ancestor` the head. On an error nothing has changed.
    ///
    /// # Errors
    /// Those of [`append`](Self::append); [`BackendError::UnknownBlock`] if `ancestor` is above the head, and
    /// [`BackendError::StatePruned`] if its state is not kept.
    fn switch(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError> {
        self.switch_recording(ancestor, branch, &[])
    }

    /// Like [`switch`](Self::switch), and applies `writes` in order, even if the head stays as it is. A crash leaves all
    /// of it or nothing. Listeners that are notified of the switch already see the records.
    ///
    /// # Errors
    /// Those of [`switch`](Self::switch).
    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError>;

    /// Stores a block that is not canonical. Side blocks are kept no matter how far below the head they are, since a
    /// branch of any length may become canonical. A block that is already canonical is ignored. Listeners are not
    /// notified.
    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError>;

    /// Registers a listener, which is called after each future change of the head, in the order of the changes.
    /// Failed changes, and switches that change nothing, are not reported.
    fn subscribe(&self, listener: Arc<dyn HeadListener>);

    /// Returns whether [`StateView::proof`] takes microseconds for every block. Must be `false` if proofs of old
    /// states rebuild a trie.
    fn proves_quickly(&self) -> bool;

    /// Applies all of `writes`, in order, or none of them. They are durable once [`sync_records`](Self::sync_records) returns or
    /// any later change is durable. If any caller's write fails before that, they are undone, and
    /// [`record`](Self::record) returns the previous values.
    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError>;

    /// Makes all records durable.
    fn sync_records(&self) -> Result<(), BackendError>;

    /// Applies all of `writes`, in order, or none of them, and makes them durable.
    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write_records_unsynced(writes)?;
        self.sync_records()
    }

    /// Returns the value of a record, or `None` if there is no such record.
    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError>;

    /// Returns all records of one kind, in the order of their keys as byte strings.
    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError>;

    /// Returns the statistics of each of the backend's caches; empty if it has none. Must not wait for other work.
    fn caches(&self) -> Vec<CacheUse>;

    /// Returns whether reads and writes succeed, with counts of failures. Must not wait for other work.
    fn health(&self) -> BackendHealth;
}

/// A change of the canonical chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadChange {
    /// Blocks that left it, newest first.
    pub removed: Vec<BlockRef>,
    /// Blocks that joined it, oldest first.
    pub added: Vec<BlockRef>,
}

/// Is notified of every change of the canonical chain's head.
pub trait HeadListener: Send + Sync {
    /// Called after `change` was committed, on the thread that made it, which has not ended the change. Must return
    /// quickly, and must not change the chain: that would wait for this change to end.
    fn head_changed(&self, change: &HeadChange);
}
