//! Why the chain was not changed as asked.

use crate::backend::BackendError;
use crate::executor::{ExecutionError, TransactionError};
use crate::gas::BLOCK_GAS_LIMITS;
use node_types::{Address, BlockNumber};

/// Why the chain was not changed as asked.
#[derive(Debug, thiserror::Error)]
pub enum ProducerError {
    /// The next block has to be later than its parent.
    #[error("timestamp {timestamp} is not after the head; the next block's is at least {least}")]
    TimestampTooLow {
        /// Asked for, in Unix seconds.
        timestamp: u64,
        /// Least possible.
        least: u64,
    },
    /// Time has to leave room for what comes after.
    #[error("timestamp {timestamp} is too far ahead; the last is {}", Self::LAST_TIMESTAMP)]
    TimestampTooHigh {
        /// Asked for, in Unix seconds.
        timestamp: u64,
    },
    /// The same of a jump ahead.
    #[error("{seconds} s ahead is too far; the last time of a block is {}", Self::LAST_TIMESTAMP)]
    TooFarAhead {
        /// Asked for.
        seconds: u64,
    },
    /// The same of blocks that are to follow each other.
    #[error(
        "{blocks} blocks every {interval} s end too far ahead; the last time of a block is {}",
        Self::LAST_TIMESTAMP
    )]
    IntervalTooLong {
        /// Asked for.
        blocks: u64,
        /// Seconds from block to block.
        interval: u64,
    },
    /// No block can have this gas limit.
    #[error("gas limit {gas_limit} is not between {} and {}", BLOCK_GAS_LIMITS.start(), BLOCK_GAS_LIMITS.end())]
    GasLimitRange {
        /// Asked for.
        gas_limit: u64,
    },
    /// Before the merge a block has none.
    #[error("PREVRANDAO cannot be set before the merge")]
    NoPrevRandao,
    /// A transaction that was to be in a block is refused.
    #[error("transaction {index} cannot be in block {block}: {source}")]
    NotIncluded {
        /// Its position among those that were given.
        index: usize,
        /// The block.
        block: BlockNumber,
        /// Why.
        source: TransactionError,
    },
    /// A transaction is for a block that is not replaced.
    #[error("transaction {index} is for replaced block {block}, there are {blocks}")]
    NoSuchBlock {
        /// Its position among those that were given.
        index: usize,
        /// Which one, the first being 0.
        block: u64,
        /// How many are replaced.
        blocks: u64,
    },
    /// Blocks that are replaced hold only what their senders signed.
    #[error("a transaction of a replaced block must be signed")]
    NotSigned,
    /// Before London a block has no base fee.
    #[error("the next block has no base fee, for London is not in force")]
    NoBaseFee,
    /// More blocks than one request may make.
    #[error("{blocks} blocks are more than the {limit} that one request may make")]
    TooManyBlocks {
        /// Asked for.
        blocks: u64,
        /// Most.
        limit: u64,
    },
    /// Before Shanghai a block has no withdrawals.
    #[error("the next block has no withdrawals, for Shanghai is not in force")]
    NoWithdrawals,
    /// There are not so many blocks whose parents' states are kept.
    #[error("{blocks} blocks cannot be replaced, at most {most} can")]
    ReorganizationTooDeep {
        /// Asked for.
        blocks: u64,
        /// Most.
        most: u64,
    },
    /// No snapshot has this number, or the chain went back to an earlier one.
    #[error("there is no snapshot {0}")]
    UnknownSnapshot(u64),
    /// A snapshot's block is not known any more.
    #[error("block {0} of the snapshot is not known any more")]
    SnapshotLost(BlockNumber),
    /// As many snapshots as may be.
    #[error("there are {0} snapshots already, which is all there may be")]
    TooManySnapshots(usize),
    /// Transactions would repeat.
    #[error("nonce {nonce} is below the account's {current}: transactions that were mined could be mined again")]
    NonceTooLow {
        /// Asked for.
        nonce: u64,
        /// The account's.
        current: u64,
    },
    /// Nobody asked to act in the name of this account.
    #[error("{0:#x} is not impersonated")]
    NotImpersonated(Address),
    /// A block cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl ProducerError {
    /// The last time that a block may have: what JavaScript's dates can hold, in seconds.
    pub const LAST_TIMESTAMP: u64 = 8_640_000_000_000;
}
