//! Why a request to the producer failed.

use crate::backend::BackendError;
use crate::executor::{ExecutionError, TransactionError};
use crate::protocol::gas::BLOCK_GAS_LIMITS;
use node_types::BlockNumber;

/// Why a request to the producer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ProducerError {
    /// The next block must have a later timestamp than its parent.
    #[error("timestamp {timestamp} is not after the head; the next block's is at least {least}")]
    TimestampTooLow {
        /// The requested timestamp, in Unix seconds.
        timestamp: u64,
        /// The lowest allowed timestamp, in Unix seconds.
        least: u64,
    },
    /// The timestamp is above the highest one that a block may have.
    #[error("timestamp {timestamp} is too far ahead; the last is {}", Self::LAST_TIMESTAMP)]
    TimestampTooHigh {
        /// The requested timestamp, in Unix seconds.
        timestamp: u64,
    },
    /// The increased time is above the highest timestamp that a block may have.
    #[error("{seconds} s is too far ahead; the last timestamp of a block is {}", Self::LAST_TIMESTAMP)]
    TooFarAhead { seconds: u64 },
    /// The timestamp of the last of several blocks would be too high.
    #[error(
        "{blocks} blocks every {interval} s end too far in the future; the last timestamp of a block is {}",
        Self::LAST_TIMESTAMP
    )]
    IntervalTooLong {
        blocks: u64,
        /// Seconds between blocks.
        interval: u64,
    },
    /// The gas limit is outside the valid range.
    #[error("gas limit {gas_limit} is not between {} and {}", BLOCK_GAS_LIMITS.start(), BLOCK_GAS_LIMITS.end())]
    GasLimitRange { gas_limit: u64 },
    /// Blocks before the merge have no PREVRANDAO.
    #[error("PREVRANDAO cannot be set before the merge")]
    NoPrevRandao,
    /// A transaction cannot be included in the requested block.
    #[error("transaction {index} cannot be in block {block}: {reason}")]
    NotIncluded { index: usize, block: BlockNumber, reason: TransactionError },
    /// A transaction was given for a block that is not among the replaced ones.
    #[error("transaction {index} is for replaced block {block}, but only {blocks} blocks are replaced")]
    NoSuchBlock {
        index: usize,
        /// Index of the block among the replaced ones, from 0.
        block: u64,
        blocks: u64,
    },
    /// Replacement blocks accept only signed transactions.
    #[error("a transaction of a replaced block must be signed")]
    NotSigned,
    /// Blocks before London have no base fee.
    #[error("the next block has no base fee, because London is not active")]
    NoBaseFee,
    /// The request would produce too many blocks.
    #[error("{blocks} blocks are more than the {limit} that one request may produce")]
    TooManyBlocks { blocks: u64, limit: u64 },
    /// Blocks before Shanghai have no withdrawals.
    #[error("the next block has no withdrawals, because Shanghai is not active")]
    NoWithdrawals,
    /// The request would remove or replace too many blocks, or blocks whose parents' states are not kept.
    #[error("cannot replace {blocks} blocks: at most {most} can be replaced")]
    ReorganizationTooDeep { blocks: u64, most: u64 },
    /// There is no snapshot with this number, or the chain was reverted to an earlier one.
    #[error("there is no snapshot {0}")]
    UnknownSnapshot(u64),
    /// The block of the snapshot is no longer stored.
    #[error("block {0} of the snapshot is no longer stored")]
    SnapshotLost(BlockNumber),
    /// The limit on the number of snapshots is reached.
    #[error("there are already {0} snapshots, which is the maximum")]
    TooManySnapshots(usize),
    /// The block cannot be executed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl ProducerError {
    /// The highest timestamp that a block may have, in Unix seconds: the limit of JavaScript's dates.
    pub const LAST_TIMESTAMP: u64 = 8_640_000_000_000;
}
