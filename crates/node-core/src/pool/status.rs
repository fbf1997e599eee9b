//! What became of a transaction.

use super::{PoolError, PoolTransaction};
use node_types::{Address, H256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a transaction is, as far as the pool knows. The chain is to be asked first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolStatus {
    /// It can be in the next block.
    Pending,
    /// It waits for an earlier nonce, or for balance.
    Queued,
    /// It was in the pool, and was given up.
    Dropped(DropReason),
    /// The pool never held it, or does not remember.
    Unknown,
}

/// Why a transaction that was in the pool is not there any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// Another one took its nonce for a higher price.
    #[error("replaced by {by:#x}")]
    Replaced {
        /// The other one's hash.
        by: H256,
    },
    /// Others paid more.
    #[error("the pool was full, and others paid more")]
    Evicted,
    /// The account had too many that wait.
    #[error("too many transactions of the account wait for earlier nonces or for balance")]
    AccountLimit,
    /// It waited too long.
    #[error("it waited for {waited} s for an earlier nonce or for balance")]
    Expired {
        /// Seconds.
        waited: u64,
    },
    /// The chain went on, and it broke a rule then.
    #[error(transparent)]
    Invalid(PoolError),
    /// The chain went back to a time before it came.
    #[error("the chain was set back to a snapshot from before it came")]
    SetBack,
    /// Somebody asked for it.
    #[error("dropped on request")]
    Requested,
}

/// All transactions of the pool, by sender, ascending by nonce.
#[derive(Clone, Debug, Default)]
pub struct PoolContent {
    /// Those that can be in the next block.
    pub pending: BTreeMap<Address, Vec<Arc<PoolTransaction>>>,
    /// Those that wait.
    pub queued: BTreeMap<Address, Vec<Arc<PoolTransaction>>>,
}

/// A transaction that came into the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Numbers of later arrivals are greater, also after a restart.
    pub number: u64,
    /// Hash of the transaction.
    pub hash: H256,
}

/// Transactions that came lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// The transactions in the order of arrival.
    pub transactions: Vec<Arrival>,
    /// The number where to go on: that of the next arrival if these are all.
    pub next: u64,
}
