//! The status of transactions.

use super::{PoolError, PoolTransaction};
use node_types::{Address, H256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The status of a transaction in the pool. This does not include whether it is mined; look it up on the chain first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolStatus {
    /// It can be included in the next block.
    Pending,
    /// It waits for an earlier nonce or for balance.
    Queued,
    Dropped(DropReason),
    /// The pool never contained it, or no longer remembers it.
    Unknown,
}

/// Why a transaction was dropped from the pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// Another transaction with the same nonce and higher caps replaced it.
    #[error("replaced by {by:#x}")]
    Replaced { by: H256 },
    #[error("the pool was full, and others paid more")]
    Evicted,
    #[error("too many transactions of the account wait for earlier nonces or for balance")]
    AccountLimit,
    #[error("it waited for {waited} s for an earlier nonce or for balance")]
    Expired {
        /// Seconds that it waited.
        waited: u64,
    },
    #[error(transparent)]
    Invalid(PoolError),
    /// It was neither in the pool nor in a block when the snapshot was taken.
    #[error("the chain was reverted to a snapshot without it")]
    Reverted,
    #[error("its block was removed by a rollback")]
    RolledBack,
    #[error("its block was replaced by a reorganization with other transactions")]
    Reorganized,
    #[error("the chain was reset")]
    Reset,
    #[error("it could not be stored")]
    NotStored,
    /// A block that contains it is invalid when it is finished, for this reason.
    #[error("a block with it is invalid: {0}")]
    InvalidBlock(String),
    #[error("dropped on request")]
    Requested,
}

/// All transactions of the pool by sender, each in ascending order of nonces.
#[derive(Clone, Debug, Default)]
pub struct PoolContent {
    pub pending: BTreeMap<Address, Vec<Arc<PoolTransaction>>>,
    pub queued: BTreeMap<Address, Vec<Arc<PoolTransaction>>>,
}

/// The arrival of a transaction in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the arrival. Later arrivals have higher numbers, even after a restart.
    pub number: u64,
    pub hash: H256,
}

/// A page of the most recent arrivals in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The arrivals in order.
    pub transactions: Vec<Arrival>,
    /// The number from which to continue. If there are no further arrivals, this is the number of the next one.
    pub next: u64,
}
