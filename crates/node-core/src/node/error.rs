//! Errors of operations.

use super::fault::{Fault, Field, Property};
use super::limits::Limit;
use crate::backend::BackendError;
use crate::context::{Context, Interrupted};
use crate::executor::{CallFailure, ExecutionError, TransactionError};
use crate::filters::{FilterError, InvalidFilterId};
use crate::pool::{AddError, PoolError, Rejection};
use crate::producer::ProducerError;
use crate::sources::Sources;
use node_types::buffer::BufferFull;
use node_types::proof::InvalidProof;
use node_types::{Address, BlockId, BlockNumber, Bytes, H256};
use std::fmt;

/// Why an operation failed. `Display` is one sentence for the caller; programs should use [`kind`](Self::kind).
/// `field` is the field of the request that caused the error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    #[error("the request is invalid{}", listed(.0))]
    Invalid(Vec<Fault>),
    #[error("the canonical chain has no block {block}{}", taken_for_hash(block))]
    BlockNotFound { block: BlockId, field: Field },
    /// A range of getLogs that ends above the head, or begins above it and ends at a tag that is below.
    #[error("block range extends beyond current head block {head}")]
    RangeAboveHead {
        head: BlockNumber,
        /// All faults of the range.
        faults: Vec<Fault>,
    },
    #[error("no filter has this id")]
    FilterNotFound,
    #[error("the state as of block {block} is not kept; the earliest kept is that of block {earliest}")]
    StatePruned { block: BlockNumber, earliest: BlockNumber, field: Field },
    #[error("the account was edited after block {0}, and no header commits to it until the next block is mined")]
    Edited(BlockNumber),
    #[error("execution reverted{}", Reason(.reason.as_deref()))]
    ExecutionReverted {
        /// The decoded `Error(string)` or `Panic(uint256)`, or `custom error` with the selector; `None` if the output
        /// is no error.
        reason: Option<String>,
        output: Bytes,
    },
    /// The call failed for a reason other than a revert. The limit is
    /// [`Limit::CallTimeout`] if it timed out.
    #[error("{reason}")]
    ExecutionFailed {
        /// A sentence that begins with geth's text for the reason.
        reason: String,
        /// The limit that the call exceeded, if that is the reason.
        limit: Option<Limit>,
        /// The properties of the call that may have caused the error, most likely first; empty if it is the call as a
        /// whole.
        fields: Vec<Field>,
    },
    /// The call breaks a rule for transactions, so it could not be executed.
    #[error(transparent)]
    CallRefused(TransactionError),
    #[error(transparent)]
    TransactionRejected(Rejection),
    #[error(transparent)]
    Control(ProducerError),
    #[error("the chain is being imported, and transactions are refused until that has ended")]
    Importing,
    /// The node reads a chain that another process writes, whose pool it does not know.
    #[error(
        "this server only reads the chain: it accepts no transactions and has no pool; use the server that writes the chain"
    )]
    ReadOnly,
    /// The node no longer writes the chain: another one does, or the store for which it wrote has disappeared.
    #[error("{0}")]
    NotWriter(String),
    /// The node does not produce blocks, so its chain cannot be controlled.
    #[error("this node does not produce blocks")]
    NotProducing,
    #[error("unknown account {0:#x}: the node has no key for it, and does not impersonate it")]
    UnknownAccount(Address),
    /// No more filters may be installed.
    #[error(
        "no more filters can be installed: the limit is {limit}, and one client may use at most half of those that others do not use"
    )]
    TooManyFilters { limit: usize },
    /// No more addresses and topics of filters, subscriptions and event streams may be kept.
    #[error(
        "the filter takes too much memory: filters and subscriptions may have at most {limit} bytes of addresses and topics, and one \
         client at most half of what the others leave"
    )]
    FilterMemory { limit: usize },
    #[error("the query spans {blocks} blocks, but at most {limit} are allowed")]
    TooManyBlocks {
        blocks: u64,
        limit: u64,
        /// Last block of the longest range that is allowed.
        to_block: BlockNumber,
        field: Field,
    },
    #[error("more than {limit} logs match")]
    TooManyLogs {
        limit: usize,
        /// Last block of a range whose logs fit; `None` if a single block has too many.
        to_block: Option<BlockNumber>,
        field: Field,
    },
    /// Too many logs match a filter. Its range cannot be changed.
    #[error("more than {limit} logs match the filter")]
    TooManyFilterLogs { limit: usize },
    /// The logs that match do not fit into a response.
    #[error("{full}")]
    LogsTooLarge {
        full: BufferFull,
        /// Last block of a range whose logs fit; `None` if those of a single block do not, or if the range cannot be
        /// changed.
        to_block: Option<BlockNumber>,
        field: Field,
    },
    #[error("{0}")]
    ResponseTooLarge(BufferFull),
    #[error("transaction not found")]
    TransactionNotFound { hash: H256 },
    #[error("genesis is not traceable")]
    GenesisNotTraceable,
    #[error("the trace takes more than {limit} bytes of memory")]
    TraceTooLarge { limit: u64 },
    #[error(transparent)]
    Interrupted(Interrupted),
    /// Something that the chain does not store cannot be read from the one that it continues.
    #[error("{}", Sources(&**.0))]
    Upstream(Box<dyn std::error::Error + Send + Sync>),
    /// Nothing can be proven about the state: the header of its block has no state root, or the state is read without proofs.
    #[error(transparent)]
    NoStateRoot(BackendError),
    #[error("the backend failed")]
    Backend(#[source] BackendError),
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No block on top of the head is valid: a system contract of the active fork is missing or failed.
    #[error("there is no pending block: system contract {address:#x}: {reason}")]
    NoPendingBlock { address: Address, reason: String },
    /// The transaction waits in the pool, but no block on top of the head is valid.
    #[error("transaction {hash:#x} is in the pool, but no block can be sealed: {reason}")]
    NoBlock { hash: H256, reason: String },
    /// The transaction entered the pool, but was dropped when a block with it turned out to be invalid.
    #[error("transaction {hash:#x} was dropped: {reason}")]
    Dropped { hash: H256, reason: String },
    #[error("the pending block cannot be executed")]
    PendingBlock(#[source] ExecutionError),
    #[error("the block cannot be built")]
    NotBuilt(#[source] ExecutionError),
    #[error("the proof as of block {block} does not hold")]
    Proof { block: BlockNumber, source: InvalidProof },
}

impl NodeError {
    /// Returns the error for a single invalid field.
    pub(super) fn invalid(field: Field, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Fault::new(field, message)])
    }

    /// Returns the error for a call that failed for a reason other than a limit.
    pub(super) fn execution_failed(reason: impl ToString) -> Self {
        Self::ExecutionFailed { reason: reason.to_string(), limit: None, fields: Vec::new() }
    }

    /// Returns the limit that the request exceeded, or `None` if it failed for another reason. The faults of
    /// [`NodeError::Invalid`] have their own limits.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::TooManyFilters { .. } => Some(Limit::Filters),
            Self::FilterMemory { .. } => Some(Limit::FilterBytes),
            Self::TooManyBlocks { .. } => Some(Limit::BlockRange),
            Self::TooManyLogs { .. } | Self::TooManyFilterLogs { .. } => Some(Limit::Logs),
            Self::TraceTooLarge { .. } => Some(Limit::TraceBytes),
            Self::LogsTooLarge { full, .. } | Self::ResponseTooLarge(full) => Some(match full {
                BufferFull::TooLong { .. } => Limit::Response,
                BufferFull::OverMemory { .. } | BufferFull::NoMemory { .. } => Limit::TransferMemory,
            }),
            Self::Interrupted(Interrupted::DeadlineExceeded) => Some(Limit::CallTimeout),
            Self::ExecutionFailed { limit, .. } => *limit,
            Self::Interrupted(Interrupted::Cancelled)
            | Self::Invalid(_)
            | Self::BlockNotFound { .. }
            | Self::TransactionNotFound { .. }
            | Self::RangeAboveHead { .. }
            | Self::FilterNotFound
            | Self::StatePruned { .. }
            | Self::Edited(_)
            | Self::ExecutionReverted { .. }
            | Self::CallRefused(_)
            | Self::NoPendingBlock { .. }
            | Self::NoBlock { .. }
            | Self::Dropped { .. }
            | Self::NotBuilt(_)
            | Self::TransactionRejected(_)
            | Self::Control(_)
            | Self::Importing
            | Self::ReadOnly
            | Self::NotWriter(_)
            | Self::NotProducing
            | Self::UnknownAccount(_)
            | Self::GenesisNotTraceable
            | Self::Upstream(_)
            | Self::NoStateRoot(_)
            | Self::Backend(_)
            | Self::Internal(_)
            | Self::PendingBlock(_)
            | Self::Proof { .. } => None,
        }
    }

    /// Converts the error of a call that ran in `context`.
    pub(super) fn of_call(error: ExecutionError, context: &Context) -> Self {
        match error {
            ExecutionError::Refused(refusal) => Self::CallRefused(refusal),
            ExecutionError::SystemContract { .. } | ExecutionError::Override(_) => Self::execution_failed(error),
            ExecutionError::Backend(BackendError::Interrupted(interrupted))
            | ExecutionError::Interrupted(interrupted) => match interrupted {
                Interrupted::DeadlineExceeded => Self::ExecutionFailed {
                    reason: match context.timeout() {
                        Some(timeout) => format!("execution aborted (timeout = {timeout:?})"),
                        None => "execution aborted".to_owned(),
                    },
                    limit: Some(Limit::CallTimeout),
                    fields: Vec::new(),
                },
                Interrupted::Cancelled => Self::Interrupted(interrupted),
            },
            ExecutionError::Backend(error) => error.into(),
            ExecutionError::Internal(error) => Self::Internal(error),
        }
    }
}

impl From<BackendError> for NodeError {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            BackendError::Uncommitted(block) => Self::Edited(block),
            BackendError::NotWriter(reason) => Self::NotWriter(reason.to_string()),
            BackendError::Upstream(source) | BackendError::Unobtainable(source) => Self::Upstream(source),
            BackendError::NoStateRoot { .. } | BackendError::Unproven(_) => Self::NoStateRoot(error),
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

impl From<FilterError> for NodeError {
    fn from(error: FilterError) -> Self {
        match error {
            FilterError::NotFound(_) => Self::FilterNotFound,
            FilterError::NotALogFilter(_) => Self::invalid(Field::FilterId, error.to_string()),
            FilterError::TooMany(limit) => Self::TooManyFilters { limit },
            FilterError::OutOfMemory(limit) => Self::FilterMemory { limit },
            FilterError::CursorForgotten(block) => {
                Self::BlockNotFound { block: block.hash.into(), field: Field::FilterId }
            }
            FilterError::Backend(error) => error.into(),
        }
    }
}

/// Returns a colon followed by the faults, or an empty string if there are none.
fn listed(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
    if faults.is_empty() { String::new() } else { format!(": {}", faults.join("; ")) }
}

/// Returns a hint if `block` is a hash that was probably meant as a number.
fn taken_for_hash(block: &BlockId) -> &'static str {
    match block {
        BlockId::Hash(hash) if hash.0.starts_with(&[0; 24]) => {
            " (0x and 64 hex digits are taken for a hash, not for a number)"
        }
        _ => "",
    }
}

impl From<InvalidFilterId> for NodeError {
    /// Reports an invalid id as an unknown filter.
    fn from(_: InvalidFilterId) -> Self {
        Self::FilterNotFound
    }
}

impl From<ProducerError> for NodeError {
    fn from(error: ProducerError) -> Self {
        match error {
            ProducerError::Backend(BackendError::StatePruned { block, earliest }) => {
                Self::StatePruned { block, earliest, field: Field::Request }
            }
            ProducerError::Backend(error) => error.into(),
            ProducerError::Execution(error) => error.into(),
            ProducerError::StateTooLarge(full) => Self::ResponseTooLarge(full),
            other => Self::Control(other),
        }
    }
}

impl TransactionError {
    /// Returns the properties of the transaction that may have caused the error, most likely first; empty if no
    /// property did.
    pub fn fields(&self) -> Vec<Field> {
        fields_of(match self {
            Self::NonceTooLow { .. } | Self::NonceTooHigh { .. } | Self::NonceOverflow => &[Property::Nonce],
            Self::SenderHasCode(_) => &[Property::From],
            Self::InsufficientFunds { fees_exceed_value: false, .. } => &[Property::Value],
            Self::InsufficientFunds { fees_exceed_value: true, .. } => {
                &[Property::MaxFeePerGas, Property::GasPrice, Property::MaxFeePerBlobGas, Property::Value]
            }
            Self::FeeCapTooLow { price, .. } => return vec![Field::Property(*price)],
            Self::FeesBeyond128Bits => &[Property::MaxFeePerGas, Property::GasPrice, Property::MaxFeePerBlobGas],
            Self::TipAboveFeeCap { .. } => &[Property::MaxPriorityFeePerGas],
            Self::IntrinsicGas { .. }
            | Self::FloorGas { .. }
            | Self::BlockGasExceeded { .. }
            | Self::GasLimitCap { .. } => &[Property::Gas],
            Self::InitCodeTooLong { .. } => &[Property::Data],
            Self::BlobVersion { index, .. } => return vec![Field::BlobVersionedHash(*index)],
            Self::NoBlobs | Self::TooManyBlobs { .. } => &[Property::BlobVersionedHashes],
            Self::BlobFeeCapTooLow { .. } => &[Property::MaxFeePerBlobGas],
            Self::NoAuthorizations => &[Property::AuthorizationList],
            Self::CannotCreate => &[Property::To],
            Self::TypeNotSupported(_)
            | Self::ChainId { .. }
            | Self::ReplayProtectionTooEarly { .. }
            | Self::Signature(_)
            | Self::Other(_) => &[],
        })
    }
}

impl PoolError {
    /// Returns the properties of the transaction that may have caused the error, most likely first; empty if no
    /// property did.
    pub fn fields(&self) -> Vec<Field> {
        fields_of(match self {
            Self::Invalid(error) => return error.fields(),
            Self::Oversized { .. } => &[Property::Data],
            Self::TipTooLow { cap, .. } => return vec![Field::Property(*cap)],
            // If the node chose the price, the nonce is what was sent.
            Self::ReplacementUnderpriced { cap, .. } => {
                return vec![Field::Property(*cap), Field::Property(Property::Nonce)];
            }
            Self::QueueFull { .. } | Self::AccountLimit { .. } | Self::DelegatedOutOfOrder { .. } => &[Property::Nonce],
            Self::DelegatedInFlight { .. } => &[Property::From],
            Self::AuthorityReserved { .. } => &[Property::AuthorizationList],
            Self::Undecodable(_)
            | Self::PoolFull { .. }
            | Self::MissingSidecar
            | Self::UnexpectedSidecar
            | Self::SidecarVersion { .. }
            | Self::Blob(_) => &[],
        })
    }
}

fn fields_of(properties: &[Property]) -> Vec<Field> {
    properties.iter().copied().map(Field::Property).collect()
}

impl ProducerError {
    /// Returns the field of the request that caused the error.
    pub fn field(&self) -> Field {
        match self {
            Self::TimestampTooLow { .. } | Self::TimestampTooHigh { .. } | Self::TimeBeforeHead { .. } => {
                Field::Timestamp
            }
            Self::TooFarAhead { .. } | Self::ZeroInterval => Field::Seconds,
            Self::IntervalTooLong { .. } => Field::Interval,
            Self::NoBaseFee => Field::BaseFee,
            Self::TooManyBlocks { .. } | Self::ReorganizationTooDeep { .. } => Field::Blocks,
            Self::NoWithdrawals => Field::Withdrawals,
            Self::UnknownSnapshot(_) | Self::SnapshotLost(_) => Field::SnapshotId,
            Self::GasLimitRange { .. }
            | Self::NoPrevRandao
            | Self::NotIncluded { .. }
            | Self::NoSuchBlock { .. }
            | Self::NotSigned
            | Self::EditsTooLarge(_)
            | Self::SnapshotsTooLarge(_)
            | Self::TooManyImpersonated(_)
            | Self::StateTooLarge(_)
            | Self::Execution(_)
            | Self::NotAFork
            | Self::Replay { .. }
            | Self::Fork(_)
            | Self::Backend(_) => Field::Request,
        }
    }
}

impl From<ExecutionError> for NodeError {
    /// Converts an error of the pending block; those of calls go through `of_call`.
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::Backend(error) => error.into(),
            ExecutionError::Internal(error) => Self::Internal(error),
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
            CallFailure::Halted { reason, out_of_gas } => {
                let fields = if out_of_gas { vec![Field::Property(Property::Gas)] } else { Vec::new() };
                Self::ExecutionFailed { reason, limit: None, fields }
            }
            CallFailure::GasCap { cap } => Self::ExecutionFailed {
                reason: format!(
                    "gas required exceeds allowance ({cap}), the least of its gas limit, what the balance pays, the block's gas \
                     limit, the cap of a transaction (EIP-7825), and the node's cap"
                ),
                limit: Some(Limit::GasCap),
                fields: vec![Field::Property(Property::Gas)],
            },
        }
    }
}

/// Displays the reason of a revert as the end of a sentence; empty if there is no reason.
struct Reason<'a>(Option<&'a str>);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
