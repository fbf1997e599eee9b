//! The port to whatever keeps the chain.
//!
//! A backend keeps blocks, receipts and every state the canonical chain ever had. It knows no rules of Ethereum
//! but one: it computes the state root itself, and refuses a block whose header names another.
//!
//! "As of block n" always means: after block n was executed.

mod branch;
mod candidates;
mod editable;
mod edited_view;
pub(crate) mod edits;
mod fees;
mod layered;
mod memory;
#[cfg(any(test, feature = "backend-tests"))]
pub mod suite;

pub use branch::{Branch, GrowingBranch};
pub use editable::EditableBackend;
pub use edited_view::as_edited;
pub use edits::{Edits, edited_blocks, first_edited_block};
pub use fees::fee_row;
pub use layered::LayeredView;
pub use memory::MemoryBackend;

use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::caches::CacheUse;
use crate::context::{Context, Interrupted};
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::{Account, Receipt};
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Keeps a chain: opens views of it, takes changes to it, and tells of them.
pub trait StateBackend: Send + Sync {
    /// A consistent snapshot: whatever lands later changes nothing in it.
    fn view(&self) -> Result<Arc<dyn View>, BackendError>;

    /// Appends `block` to the head. On an error nothing has changed.
    fn append(&self, block: ExecutedBlock) -> Result<(), BackendError>;

    /// Makes `branch` canonical behind the canonical block `ancestor`, in one step. Blocks that leave the canonical
    /// chain are kept as side blocks. An empty `branch` sets the head back. On an error nothing has changed.
    fn switch(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError>;

    /// Keeps a block beside the canonical chain. It is not forgotten, however far below the head it is: a branch of any
    /// length may still win.
    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError>;

    /// Calls `listener` after each change of the head, in the order of the changes.
    fn subscribe(&self, listener: Arc<dyn HeadListener>);

    /// Whether [`View::proof`] takes microseconds at any height: no old state has to be built anew for it.
    fn proves_quickly(&self) -> bool {
        false
    }

    /// Puts and deletes small durable records, all of them or none.
    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError>;

    /// As [`write_records`](Self::write_records), but durable only when [`sync_records`](Self::sync_records) returns, or
    /// anything that is written later is durable.
    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.write_records(writes)
    }

    /// Makes all records durable.
    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// All records of one kind, in the order of their keys.
    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError>;

    /// The caches it has. Must not wait for work that is going on.
    fn caches(&self) -> Vec<CacheUse> {
        Vec::new()
    }
}

/// A consistent snapshot of a chain.
///
/// Reads as of a block below [`earliest_state`](View::earliest_state) answer [`BackendError::StatePruned`]; reads as
/// of a block above the head, [`BackendError::UnknownBlock`].
pub trait View: Send + Sync {
    /// The newest block of the canonical chain.
    fn head(&self) -> BlockRef;

    /// The lowest block whose state is kept.
    fn earliest_state(&self) -> BlockNumber;

    /// The number of the head, if the head is a block that is only being assembled.
    fn pending(&self) -> Option<BlockNumber> {
        None
    }

    /// The chain as it is when `branch` takes the place of all blocks behind the canonical block `ancestor`. None from a
    /// view that has nothing better for it than a [`LayeredView`].
    fn fork(&self, _ancestor: BlockNumber, _branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        Ok(None)
    }

    /// The header of a block.
    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError>;

    /// The body of a block.
    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError>;

    /// The receipts of a block.
    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError>;

    /// The hash of the canonical block `number`.
    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError>;

    /// The logs of the canonical block `number`.
    fn logs(&self, number: BlockNumber) -> Result<Option<Arc<BlockLogs>>, BackendError> {
        let Some(hash) = self.canonical_hash(number)? else { return Ok(None) };
        let (Some(body), Some(receipts)) = (self.body(number.into())?, self.receipts(number.into())?) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(BlockLogs::of(hash, &body, &receipts))))
    }

    /// A block that is kept beside the canonical chain.
    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError>;

    /// What the canonical block `number` changed in its parent's state, or what the genesis block holds; none where that is
    /// not kept.
    fn changes(&self, _number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        Ok(None)
    }

    /// Where the canonical chain holds a transaction.
    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError>;

    /// An account as of block `at`; none where it does not exist.
    fn account(&self, address: Address, at: BlockNumber) -> Result<Option<AccountState>, BackendError>;

    /// A storage slot as of block `at`; zero where nothing is stored.
    fn storage(&self, address: Address, slot: H256, at: BlockNumber) -> Result<U256, BackendError>;

    /// Whether any storage slot of the account is not zero as of block `at`.
    fn has_storage(&self, address: Address, at: BlockNumber) -> Result<bool, BackendError>;

    /// Whether any storage slot of the account is not zero after `change` is laid over it as of block `at`.
    fn has_storage_after(
        &self,
        address: Address,
        at: BlockNumber,
        change: &AccountChange,
    ) -> Result<bool, BackendError> {
        if change.storage.values().any(|value| !value.is_zero()) {
            return Ok(true);
        }
        if change.clears_storage() {
            return Ok(false);
        }
        if change.storage.is_empty() {
            return self.has_storage(address, at);
        }
        // Slots were freed. If they were the last, to clear all storage changes nothing.
        let root = |change| {
            let accounts = [(address, change)].into();
            self.state_root(at, &StateChanges { accounts, ..StateChanges::default() })
        };
        let cleared = AccountChange { storage_cleared: true, ..change.clone() };
        Ok(root(change.clone())? != root(cleared)?)
    }

    /// Code by its hash; none where no account ever had it.
    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError>;

    /// The account with the Merkle proofs of it and of `slots`, as of block `at`.
    fn proof(&self, address: Address, slots: &[H256], at: BlockNumber) -> Result<AccountProof, BackendError>;

    /// The state root after `changes` are laid over the state as of block `at`.
    fn state_root(&self, at: BlockNumber, changes: &StateChanges) -> Result<H256, BackendError>;

    /// Positions of logs that may match `filter`, ascending, the first at or after `from`, none beyond block `to`.
    ///
    /// Every log that does match and lies between the first and the last position answered is among them. At most
    /// `limit` positions are answered; fewer only when there are no more up to `to`.
    fn log_candidates(
        &self,
        context: &Context,
        filter: &LogFilter,
        from: LogPosition,
        to: BlockNumber,
        limit: usize,
    ) -> Result<Vec<LogPosition>, BackendError>;

    /// Base fee, gas used ratio and effective tips of consecutive canonical blocks, for the fee history.
    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError>;
}

/// Which logs are asked for, position by position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Contracts; empty for any.
    pub addresses: Vec<Address>,
    /// For each topic position the accepted words; empty for any. A log with fewer topics does not match.
    pub topics: Vec<Vec<H256>>,
}

/// What the fee history needs of one block.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeRow {
    /// The block's header.
    pub header: Arc<SealedHeader>,
    /// Effective tip in wei per gas and gas used of each transaction, ascending by tip; equal tips in block order.
    pub tips: Arc<Vec<(U256, u64)>>,
}

/// An account with its Merkle proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProof {
    /// The account; none where it does not exist, which the proof then shows.
    pub account: Option<Account>,
    /// RLP of the nodes from the root on the way to keccak(address).
    pub proof: Vec<Bytes>,
    /// A proof for each slot asked for, in that order.
    pub storage: Vec<StorageProof>,
}

/// A storage slot with its Merkle proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageProof {
    /// The slot.
    pub slot: H256,
    /// Its value; zero where nothing is stored, which the proof then shows.
    pub value: U256,
    /// RLP of the nodes from the storage root on the way to keccak(slot); empty in an empty trie.
    pub proof: Vec<Bytes>,
}

/// How the canonical chain changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadChange {
    /// Blocks that left it, newest first.
    pub removed: Vec<BlockRef>,
    /// Blocks that joined it, oldest first.
    pub added: Vec<BlockRef>,
}

/// Is told of changes of the head, after they are committed, on the thread that made them.
pub trait HeadListener: Send + Sync {
    /// The head has changed. Must be short.
    fn head_changed(&self, change: &HeadChange);
}

/// What a durable record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// A transaction of the pool.
    PoolTransaction,
    /// A filter with its cursor.
    Filter,
    /// A change of the head's state that no transaction made and no block has taken in.
    PendingEdit,
    /// What was done to a block that no rule of the protocol leads to.
    EditedBlock,
    /// A point in the chain's past to go back to.
    Snapshot,
    /// The chain's identifier, which no block names.
    ChainId,
}

/// A durable record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Key among the records of its kind.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
}

/// A change to the durable records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// Adds or replaces a record.
    Put(RecordKind, Record),
    /// Deletes a record, if there is one.
    Delete(RecordKind, Vec<u8>),
}

/// Why a backend did not answer.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The canonical chain has no such block.
    #[error("block {0} is beyond the head")]
    UnknownBlock(BlockNumber),
    /// The state was dropped.
    #[error("the state as of block {block} is not kept; the earliest kept is that of block {earliest}")]
    StatePruned {
        /// Block asked for.
        block: BlockNumber,
        /// Lowest block with a state.
        earliest: BlockNumber,
    },
    /// No proofs are made for the block: it is not, or not yet, on the canonical chain.
    #[error("no proofs are made for block {0}, which is not on the canonical chain")]
    NoProofs(BlockNumber),
    /// The account was changed by hand after the block, and no header commits to it.
    #[error("the account was edited after block {0}, and no header commits to it until the next block")]
    Edited(BlockNumber),
    /// A chain cannot begin with the block.
    #[error("block {0} is no genesis block")]
    NotGenesis(BlockRef),
    /// The chain has another identifier: its blocks hold transactions that are not valid under this one.
    #[error("the chain has the id {found}, expected {expected}")]
    OtherChainId {
        /// The chain's.
        found: u64,
        /// Asked for.
        expected: u64,
    },
    /// The block does not follow the one it was to be put on.
    #[error("block {block} does not follow block {parent}")]
    NotAChild {
        /// The block.
        block: BlockRef,
        /// Where it was to be put.
        parent: BlockRef,
    },
    /// The changes lead to another state than the header says.
    #[error("block {block} has state root {header:#x}, its changes lead to {computed:#x}")]
    StateRootMismatch {
        /// The block.
        block: BlockNumber,
        /// In the header.
        header: H256,
        /// From the changes.
        computed: H256,
    },
    /// The request ended before the work was done.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// What was kept cannot be read or written.
    #[error("storage failure")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}
