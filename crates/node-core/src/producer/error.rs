//! Why a request to the producer failed.

use super::ReplayDifference;
use crate::backend::BackendError;
use crate::executor::{ExecutionError, TransactionError};
use crate::protocol::gas::BLOCK_GAS_LIMITS;
use node_types::buffer::BufferFull;
use node_types::{BlockNumber, H256};

/// Why a request to the producer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProducerError {
    #[error("timestamp {timestamp} is not after the head; the next block's is at least {least}")]
    TimestampTooLow {
        /// The requested timestamp, in Unix seconds.
        timestamp: u64,
        /// The lowest allowed timestamp, in Unix seconds.
        least: u64,
    },
    #[error("timestamp {timestamp} is too far ahead; the last is {}", Self::LAST_TIMESTAMP)]
    TimestampTooHigh {
        /// The requested timestamp, in Unix seconds.
        timestamp: u64,
    },
    /// The chain's time would be set to before the head.
    #[error(
        "time {timestamp} is before the head, whose timestamp is {head}; only a chain whose blocks may be earlier than \
         their parents allows it (`allow-equal-timestamps`)"
    )]
    TimeBeforeHead {
        /// The requested time, in Unix seconds.
        timestamp: u64,
        /// The timestamp of the head, in Unix seconds.
        head: u64,
    },
    #[error(
        "an interval of zero gives blocks equal timestamps, which the chain does not allow (`allow-equal-timestamps`)"
    )]
    ZeroInterval,
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
    #[error("gas limit {gas_limit} is not between {} and {}", BLOCK_GAS_LIMITS.start(), BLOCK_GAS_LIMITS.end())]
    GasLimitRange { gas_limit: u64 },
    #[error("PREVRANDAO cannot be set before the merge")]
    NoPrevRandao,
    #[error("transaction {index} cannot be in block {block}: {reason}")]
    NotIncluded { index: usize, block: BlockNumber, reason: TransactionError },
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
    #[error("the next block has no base fee, because London is not active")]
    NoBaseFee,
    #[error("{blocks} blocks are more than the {limit} that one request may produce")]
    TooManyBlocks { blocks: u64, limit: u64 },
    #[error("the next block has no withdrawals, because Shanghai is not active")]
    NoWithdrawals,
    /// The request would remove or replace too many blocks, or blocks whose parents' states are not kept.
    #[error("cannot replace {blocks} blocks: at most {most} can be replaced{}", because_of_states(*.earliest))]
    ReorganizationTooDeep {
        blocks: u64,
        most: u64,
        /// The earliest block whose state is kept, if more blocks could be replaced otherwise.
        earliest: Option<BlockNumber>,
    },
    /// There is no snapshot with this number, or the chain was reverted to an earlier one.
    #[error("there is no snapshot {0}")]
    UnknownSnapshot(u64),
    #[error("block {0} of the snapshot is no longer stored")]
    SnapshotLost(BlockNumber),
    #[error("snapshots may take at most {0} bytes; revert to one to delete it and the later ones")]
    SnapshotsTooLarge(usize),
    #[error("edits that no block includes yet may take at most {0} bytes; mine a block to include them")]
    EditsTooLarge(usize),
    #[error("{0} accounts are impersonated already, which is the maximum")]
    TooManyImpersonated(usize),
    #[error("this chain does not continue another one; start the server with the URL of one (`fork-url`)")]
    NotAFork,
    /// The chain that this one continues cannot be changed.
    #[error("{0}")]
    Fork(String),
    /// A transaction of the chain that this one continues was repeated, with another result than there.
    #[error("transaction {transaction:#x} of block {block} cannot be repeated")]
    Replay {
        transaction: H256,
        block: BlockNumber,
        #[source]
        difference: ReplayDifference,
    },
    /// The state takes more memory than the response may.
    #[error("the state is too large: {0}")]
    StateTooLarge(#[from] BufferFull),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Returns the end of a message about blocks that cannot be removed because the states before `earliest` are not kept.
fn because_of_states(earliest: Option<BlockNumber>) -> String {
    let reason = |earliest| {
        let why = "they were pruned, or their blocks come from a dump";
        format!(", because the states before block {earliest} are not kept: {why}")
    };
    earliest.map(reason).unwrap_or_default()
}

impl ProducerError {
    /// Returns whether something of the chain that this one continues could not be read, or not in time.
    pub(crate) fn is_unreadable(&self) -> bool {
        let (Self::Backend(error) | Self::Execution(ExecutionError::Backend(error))) = self else { return false };
        matches!(error, BackendError::Upstream(_) | BackendError::Unobtainable(_) | BackendError::Interrupted(_))
    }

    /// The highest timestamp that a block may have, in Unix seconds: the limit of JavaScript's dates.
    pub const LAST_TIMESTAMP: u64 = 8_640_000_000_000;
}
