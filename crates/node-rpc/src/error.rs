//! Errors as geth words and numbers them, so that clients which know geth's know these.

use node_core::executor::{ExecutionError, TransactionError};
use node_core::node::NodeError;
use node_core::pool::{PoolError, Rejection};
use node_types::wire::{Data, ErrorDetail};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Why a method gave no result.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// What kind of error it is.
    pub code: i64,
    /// A sentence for people.
    pub message: String,
    /// More for programs: what a call that reverted returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// The body is no JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are not those of the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A defect of the node.
    pub const INTERNAL: i64 = -32603;
    /// Anything else that the node does not do.
    pub const SERVER: i64 = -32000;
    /// It took too long.
    pub const TIMEOUT: i64 = -32002;
    /// The answers of a batch would be too long together.
    pub const RESPONSE_TOO_LARGE: i64 = -32003;
    /// More was asked for than one request may (EIP-1474).
    pub const LIMIT: i64 = -32005;
    /// A call reverted.
    pub const REVERTED: i64 = 3;

    /// An error with a message and nothing else.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// What the node does not do.
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(Self::SERVER, message)
    }

    /// The argument at `position`, counted from 0, is not what the method takes.
    pub fn argument(position: usize, reason: impl std::fmt::Display) -> Self {
        Self::new(Self::INVALID_PARAMS, format!("invalid argument {position}: {reason}"))
    }

    /// A call reverted with `output`; `reason` is what it says, decoded.
    pub fn reverted(reason: Option<&str>, output: &[u8]) -> Self {
        let message = reason.map_or("execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"));
        let data = to_raw_value(&Data(node_types::Bytes::from(output.to_vec()))).ok();
        Self { code: Self::REVERTED, message, data }
    }
}

impl From<NodeError> for RpcError {
    fn from(error: NodeError) -> Self {
        let code = match &error {
            NodeError::Invalid(faults) => {
                let faults: Vec<_> = faults.iter().map(located).collect();
                return Self::new(Self::INVALID_PARAMS, faults.join("; "));
            }
            NodeError::ExecutionReverted { reason, output } => return Self::reverted(reason.as_deref(), output),
            NodeError::ExecutionFailed { reason } => return Self::server(reason),
            NodeError::TransactionRejected(rejection) => return Self::server(rejected(rejection)),
            NodeError::BlockNotFound { .. } => return Self::server(format!("header not found: {error}")),
            NodeError::FilterNotFound { .. } => return Self::server("filter not found"),
            NodeError::TooManyFilters { .. }
            | NodeError::TooManyBlocks { .. }
            | NodeError::TooManyLogs { .. }
            | NodeError::TooManyFilterLogs { .. }
            | NodeError::TraceTooLarge { .. } => Self::LIMIT,
            NodeError::NotProducing => Self::METHOD_NOT_FOUND,
            NodeError::NotBuilt(ExecutionError::Refused(refusal)) => return Self::server(of_transaction(refusal)),
            NodeError::NotBuilt(_)
            | NodeError::StatePruned { .. }
            | NodeError::TransactionNotFound { .. }
            | NodeError::GenesisNotTraceable
            | NodeError::Edited(_)
            | NodeError::Control { .. }
            | NodeError::UnknownAccount(_)
            | NodeError::NoPendingBlock { .. } => Self::SERVER,
            NodeError::Interrupted(_) => Self::TIMEOUT,
            NodeError::Backend(_) | NodeError::PendingBlock(_) | NodeError::Proof { .. } => {
                tracing::error!(error = &error as &dyn std::error::Error, "a method failed");
                return Self::new(Self::INTERNAL, "internal error");
            }
        };
        Self::new(code, error.to_string())
    }
}

/// A fault with the name of the property that is at fault, as this interface writes it.
fn located(fault: &ErrorDetail) -> String {
    let name = fault.location.rsplit('.').next().unwrap_or_default();
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if name != "body" => {
            format!("{}{}: {}", first.to_ascii_lowercase(), letters.as_str(), fault.message)
        }
        _ => fault.message.clone(),
    }
}

fn rejected(rejection: &Rejection) -> String {
    let reasons: Vec<_> = rejection.reasons.iter().map(of_pool).collect();
    reasons.join("; ")
}

/// What the pool says, in the words that clients look for.
fn of_pool(error: &PoolError) -> String {
    match error {
        PoolError::Invalid(error) => of_transaction(error),
        PoolError::Oversized { .. } => format!("oversized data: {error}"),
        PoolError::TipTooLow { tip, minimum } => {
            format!("transaction underpriced: gas tip cap {tip}, minimum needed {minimum}")
        }
        PoolError::ReplacementUnderpriced { .. } => format!("replacement transaction underpriced: {error}"),
        PoolError::PoolFull { .. } | PoolError::QueueFull { .. } => format!("txpool is full: {error}"),
        PoolError::Undecodable(_)
        | PoolError::AccountLimit { .. }
        | PoolError::MissingSidecar
        | PoolError::UnexpectedSidecar
        | PoolError::SidecarVersion { .. }
        | PoolError::Blob(_)
        | PoolError::DelegatedInFlight { .. }
        | PoolError::DelegatedOutOfOrder { .. }
        | PoolError::AuthorityReserved { .. } => error.to_string(),
    }
}

/// Which rule a transaction breaks, in the words that clients look for.
fn of_transaction(error: &TransactionError) -> String {
    match error {
        TransactionError::TypeNotSupported(_) => format!("transaction type not supported: {error}"),
        TransactionError::ChainId { got, expected } => {
            format!("invalid chain id for signer: have {got} want {expected}")
        }
        TransactionError::Signature(_) => format!("invalid sender: {error}"),
        TransactionError::NonceTooLow { got, expected } => {
            format!("nonce too low: next nonce {expected}, tx nonce {got}")
        }
        TransactionError::NonceTooHigh { got, expected } => {
            format!("nonce too high: next nonce {expected}, tx nonce {got}")
        }
        TransactionError::NonceOverflow => format!("nonce has max value: {error}"),
        TransactionError::SenderHasCode(_) => format!("sender not an eoa: {error}"),
        TransactionError::InsufficientFunds { balance, required } => {
            format!("insufficient funds for gas * price + value: balance {balance}, tx cost {required}")
        }
        TransactionError::FeeCapTooLow { cap, base_fee } => {
            format!("max fee per gas less than block base fee: maxFeePerGas: {cap}, baseFee: {base_fee}")
        }
        TransactionError::TipAboveFeeCap { cap, tip } => format!(
            "max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}"
        ),
        TransactionError::IntrinsicGas { limit, required } => {
            format!("intrinsic gas too low: gas {limit}, minimum needed {required}")
        }
        TransactionError::FloorGas { limit, required } => {
            format!("insufficient gas for floor data gas cost: gas {limit}, minimum needed {required}")
        }
        TransactionError::BlockGasExceeded { .. } => format!("exceeds block gas limit: {error}"),
        TransactionError::GasLimitCap { limit, cap } => {
            format!("transaction gas limit too high (cap: {cap}, tx: {limit})")
        }
        TransactionError::InitCodeTooLong { length, limit } => {
            format!("max initcode size exceeded: code size {length}, limit {limit}")
        }
        TransactionError::BlobFeeCapTooLow { .. } => {
            format!("max fee per blob gas less than block blob gas fee: {error}")
        }
        TransactionError::ReplayProtectionTooEarly { .. }
        | TransactionError::FeesBeyond128Bits
        | TransactionError::NoBlobs
        | TransactionError::TooManyBlobs { .. }
        | TransactionError::BlobVersion(_)
        | TransactionError::NoAuthorizations
        | TransactionError::CannotCreate
        | TransactionError::Other(_) => error.to_string(),
    }
}
