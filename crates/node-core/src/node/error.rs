//! Why an operation gave no answer.

use super::proof::InvalidProof;
use crate::backend::BackendError;
use crate::context::Interrupted;
use crate::executor::{CallFailure, ExecutionError};
use crate::pool::{AddError, Rejection};
use crate::producer::ProducerError;
use node_types::wire::{Data, ErrorDetail, Quantity};
use node_types::{Address, BlockId, BlockNumber, Bytes, H256};
use std::fmt;
use std::time::Duration;

/// Why an operation gave no answer. `Display` is one sentence for the caller; [`details`](Self::details) lists every fault.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Fields out of range, or contradicting each other.
    #[error("the request is invalid")]
    Invalid(Vec<ErrorDetail>),
    /// The canonical chain has no such block.
    #[error("the canonical chain has no block {block}")]
    BlockNotFound {
        /// What was asked for.
        block: BlockId,
        /// Where the request asks for it.
        location: &'static str,
    },
    /// The filter never was, was uninstalled, or was not used for too long.
    #[error("no filter has this id")]
    FilterNotFound {
        /// What was asked for.
        id: String,
    },
    /// The state was dropped.
    #[error("the state as of block {block} is not kept; the earliest kept is that of block {earliest}")]
    StatePruned {
        /// Block asked for.
        block: BlockNumber,
        /// Lowest block with a state.
        earliest: BlockNumber,
        /// Where the request asks for it.
        location: &'static str,
    },
    /// The account was changed by hand after the block.
    #[error("the account was edited after block {0}, and no header commits to it until the next block is mined")]
    Edited(BlockNumber),
    /// The call reverted.
    #[error("execution reverted{}", Reason(.reason.as_deref()))]
    ExecutionReverted {
        /// The decoded `Error(string)` or `Panic(uint256)`.
        reason: Option<String>,
        /// What the call returned.
        output: Bytes,
    },
    /// The call could not be run, or not to its end.
    #[error("execution failed: {reason}")]
    ExecutionFailed {
        /// In a few words.
        reason: String,
    },
    /// The pool does not take the transaction.
    #[error(transparent)]
    TransactionRejected(Rejection),
    /// The chain is not changed as asked.
    #[error("{source}")]
    Control {
        /// Why.
        source: ProducerError,
        /// Where the request asks for it.
        location: &'static str,
    },
    /// The node does not produce blocks, and its chain cannot be controlled.
    #[error("this node does not produce blocks")]
    NotProducing,
    /// The node has no key of the account, and nobody may send in its name.
    #[error("unknown account {0:#x}")]
    UnknownAccount(Address),
    /// There are as many filters as may be.
    #[error("there are {limit} filters already, which is all there may be (`max-filters`)")]
    TooManyFilters {
        /// Most filters at a time.
        limit: usize,
    },
    /// The query spans too many blocks.
    #[error("the query spans {blocks} blocks, and {limit} are the most (`max-block-range`)")]
    TooManyBlocks {
        /// Blocks that it spans.
        blocks: u64,
        /// Most blocks of one query.
        limit: u64,
        /// Last block that would fit.
        to_block: BlockNumber,
        /// Where the request sets the last block.
        location: &'static str,
    },
    /// The answer would hold too many logs.
    #[error("more than {limit} logs match (`max-logs`)")]
    TooManyLogs {
        /// Most logs in one answer.
        limit: usize,
        /// Last block up to which the answer would fit; none where one block alone holds too many.
        to_block: Option<BlockNumber>,
        /// Where the request sets the last block.
        location: &'static str,
    },
    /// The answer would hold too many logs of a filter, whose range is fixed.
    #[error("more than {limit} logs match the filter (`max-logs`)")]
    TooManyFilterLogs {
        /// Most logs in one answer.
        limit: usize,
    },
    /// The canonical chain holds no such transaction.
    #[error("transaction not found")]
    TransactionNotFound {
        /// What was asked for.
        hash: H256,
    },
    /// Nothing leads to the genesis block.
    #[error("genesis is not traceable")]
    GenesisNotTraceable,
    /// What was recorded of the run takes too much memory.
    #[error("the trace takes more than {limit} bytes of memory (`max-trace-bytes`)")]
    TraceTooLarge {
        /// Most bytes of a trace.
        limit: u64,
    },
    /// The request ended before the work was done.
    #[error(transparent)]
    Interrupted(Interrupted),
    /// The backend failed.
    #[error("the backend failed")]
    Backend(#[source] BackendError),
    /// No block on top of the head is valid: a system contract of the fork in force is missing or failed.
    #[error("there is no pending block: system contract {address:#x}: {reason}")]
    NoPendingBlock {
        /// The contract.
        address: Address,
        /// What happened.
        reason: String,
    },
    /// A block cannot be executed on top of the head.
    #[error("the pending block cannot be executed")]
    PendingBlock(#[source] ExecutionError),
    /// The block that was asked for cannot be made.
    #[error("the block cannot be made: {0}")]
    NotBuilt(#[source] ExecutionError),
    /// The backend answered a proof that does not hold.
    #[error("the proof as of block {block} does not hold")]
    Proof {
        /// Block asked for.
        block: BlockNumber,
        /// What is wrong with it.
        #[source]
        source: InvalidProof,
    },
}

impl NodeError {
    /// Every fault, with where it is in the request.
    pub fn details(&self) -> Vec<ErrorDetail> {
        let here = |location: &str| ErrorDetail::new(location, self.to_string());
        match self {
            Self::Invalid(faults) => faults.clone(),
            Self::BlockNotFound { block, location } => vec![here(location).with_value(block)],
            Self::FilterNotFound { id } => vec![here("path.FilterId").with_text(id)],
            Self::StatePruned { block, location, .. } => vec![here(location).with_value(&Quantity(*block))],
            Self::ExecutionFailed { .. } => vec![here("body.Transaction")],
            Self::ExecutionReverted { output, .. } => {
                vec![here("body.Transaction").with_value(&Data(output.clone()))]
            }
            Self::TransactionRejected(rejection) => {
                let reasons = rejection.reasons.iter();
                reasons.map(|reason| ErrorDetail::new("body.Data", reason.to_string())).collect()
            }
            Self::TooManyLogs { to_block: Some(block), location, .. } => {
                let message = format!("the logs up to block {block} would fit");
                vec![ErrorDetail::new(*location, message).with_value(&Quantity(*block))]
            }
            Self::TooManyLogs { to_block: None, location, .. } => {
                vec![ErrorDetail::new(*location, "a single block holds too many; narrow the filter, or ask for pages")]
            }
            Self::TooManyBlocks { to_block, location, .. } => {
                let message = format!("the blocks up to {to_block} would fit");
                vec![ErrorDetail::new(*location, message).with_value(&Quantity(*to_block))]
            }
            Self::TooManyFilterLogs { .. } => {
                let message = "make a narrower filter, or ask getLogs for fewer blocks at a time";
                vec![ErrorDetail::new("path.FilterId", message)]
            }
            Self::Control { location, .. } => vec![here(location)],
            Self::TransactionNotFound { .. }
            | Self::GenesisNotTraceable
            | Self::TraceTooLarge { .. }
            | Self::TooManyFilters { .. }
            | Self::NotProducing
            | Self::UnknownAccount(_)
            | Self::Edited(_)
            | Self::Interrupted(_)
            | Self::Backend(_)
            | Self::NoPendingBlock { .. }
            | Self::PendingBlock(_)
            | Self::NotBuilt(_)
            | Self::Proof { .. } => Vec::new(),
        }
    }

    /// What became of a call that the executor did not finish.
    pub(super) fn of_call(error: ExecutionError, timeout: Duration) -> Self {
        match error {
            ExecutionError::Refused(refusal) => Self::ExecutionFailed { reason: refusal.to_string() },
            ExecutionError::SystemContract { .. } | ExecutionError::Override(_) => {
                Self::ExecutionFailed { reason: error.to_string() }
            }
            ExecutionError::Backend(BackendError::Interrupted(interrupted))
            | ExecutionError::Interrupted(interrupted) => match interrupted {
                Interrupted::DeadlineExceeded => Self::ExecutionFailed {
                    reason: format!("it took longer than the {timeout:?} allowed (`call-timeout`)"),
                },
                Interrupted::Cancelled => Self::Interrupted(interrupted),
            },
            ExecutionError::Backend(error) => error.into(),
        }
    }
}

impl From<BackendError> for NodeError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            BackendError::Uncommitted(block) => Self::Edited(block),
            other => Self::Backend(other),
        }
    }
}

impl From<AddError> for NodeError {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Rejected(rejection) => Self::TransactionRejected(rejection),
            AddError::Backend(error) => error.into(),
        }
    }
}

impl From<ProducerError> for NodeError {
    fn from(error: ProducerError) -> Self {
        match error {
            ProducerError::Backend(BackendError::StatePruned { block, earliest }) => {
                Self::StatePruned { block, earliest, location: "body" }
            }
            ProducerError::Backend(error) => error.into(),
            ProducerError::Execution(error) => error.into(),
            other => Self::Control { location: control_location(&other), source: other },
        }
    }
}

/// Where a request asks for what the producer does not do.
fn control_location(error: &ProducerError) -> &'static str {
    match error {
        ProducerError::TimestampTooLow { .. } | ProducerError::TimestampTooHigh { .. } => "body.Timestamp",
        ProducerError::TooFarAhead { .. } => "body.Seconds",
        ProducerError::IntervalTooLong { .. } => "body.Interval",
        ProducerError::NoBaseFee => "body.BaseFee",
        // Of operations that REST does not have.
        ProducerError::GasLimitRange { .. }
        | ProducerError::NoPrevRandao
        | ProducerError::NotIncluded { .. }
        | ProducerError::NoSuchBlock { .. }
        | ProducerError::NotSigned => "body",
        ProducerError::TooManyBlocks { .. } | ProducerError::ReorganizationTooDeep { .. } => "body.Blocks",
        ProducerError::NoWithdrawals => "body.Withdrawals",
        ProducerError::UnknownSnapshot(_) | ProducerError::SnapshotLost(_) => "body.SnapshotId",
        ProducerError::NonceTooLow { .. } => "body.Nonce",
        ProducerError::NotImpersonated(_) => "body.Transaction.From",
        ProducerError::TooManySnapshots(_) | ProducerError::Execution(_) | ProducerError::Backend(_) => "body",
    }
}

impl From<ExecutionError> for NodeError {
    /// Of the pending block; what becomes of a call is told by `of_call`.
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::Backend(error) => error.into(),
            ExecutionError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            ExecutionError::SystemContract { address, reason } => Self::NoPendingBlock { address, reason },
            other @ (ExecutionError::Refused(_) | ExecutionError::Override(_)) => Self::PendingBlock(other),
        }
    }
}

impl From<Interrupted> for NodeError {
    fn from(interrupted: Interrupted) -> Self {
        Self::Interrupted(interrupted)
    }
}

impl From<CallFailure> for NodeError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Reverted { reason, output } => Self::ExecutionReverted { reason, output },
            CallFailure::Halted { reason } => Self::ExecutionFailed { reason },
            CallFailure::GasCap { cap } => Self::ExecutionFailed {
                reason: format!(
                    "it needs more than the {cap} gas that Gas, the balance, the block and `gas-cap` allow"
                ),
            },
        }
    }
}

/// The end of a sentence that may give a reason.
struct Reason<'a>(Option<&'a str>);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
