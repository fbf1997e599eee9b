//! Errors with the codes and messages of geth, so that clients recognize them.

use crate::options::{fault_message, message, pool_message, with_option};
use node_core::executor::{ExecutionError, TransactionError};
use node_core::node::{ErrorKind, Fault, Field, NodeError};
use node_core::pool::{PoolError, Rejection};
use node_types::wire::Data;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Why a method failed.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Code of the kind of error.
    pub code: i64,
    /// One sentence for humans.
    pub message: String,
    /// Data for programs: the output of a reverted call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// The message is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A defect of the node.
    pub const INTERNAL: i64 = -32603;
    /// Any other error of the node.
    pub const SERVER: i64 = -32000;
    /// The request took too long.
    pub const TIMEOUT: i64 = -32002;
    /// The responses of a batch are too long together.
    pub const RESPONSE_TOO_LARGE: i64 = -32003;
    /// The request exceeds a limit (EIP-1474).
    pub const LIMIT: i64 = -32005;
    /// A call reverted.
    pub const REVERTED: i64 = 3;

    /// Returns the code of a kind of error.
    pub fn code_of(kind: ErrorKind) -> i64 {
        match kind {
            ErrorKind::InvalidRequest => Self::INVALID_PARAMS,
            ErrorKind::ExecutionReverted => Self::REVERTED,
            ErrorKind::TooManyFilters | ErrorKind::LimitExceeded => Self::LIMIT,
            ErrorKind::NotProducing => Self::METHOD_NOT_FOUND,
            ErrorKind::Timeout | ErrorKind::Cancelled => Self::TIMEOUT,
            ErrorKind::BlockNotFound
            | ErrorKind::TransactionNotFound
            | ErrorKind::FilterNotFound
            | ErrorKind::StatePruned
            | ErrorKind::AccountEdited
            | ErrorKind::ExecutionFailed
            | ErrorKind::TransactionRejected
            | ErrorKind::ControlRefused
            | ErrorKind::UnknownAccount
            | ErrorKind::NotTraceable => Self::SERVER,
            // A test ensures that every other kind is listed.
            _ => Self::INTERNAL,
        }
    }

    /// Returns an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns an error with the code [`SERVER`](Self::SERVER).
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(Self::SERVER, message)
    }

    /// Returns the error of an invalid argument. `position` counts from 0.
    pub fn argument(position: usize, reason: impl std::fmt::Display) -> Self {
        Self::new(Self::INVALID_PARAMS, format!("invalid argument {position}: {reason}"))
    }

    /// Returns the error of a call that reverted with `output`. `reason` is its decoded message.
    pub fn reverted(reason: Option<&str>, output: &[u8]) -> Self {
        let message = reason.map_or("execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"));
        let data = to_raw_value(&Data(node_types::Bytes::from(output.to_vec()))).ok();
        Self { code: Self::REVERTED, message, data }
    }
}

impl From<NodeError> for RpcError {
    fn from(error: NodeError) -> Self {
        match &error {
            NodeError::Invalid(faults) => {
                let faults: Vec<_> = faults.iter().map(fault).collect();
                return Self::new(Self::INVALID_PARAMS, faults.join("; "));
            }
            NodeError::ExecutionReverted { reason, output } => return Self::reverted(reason.as_deref(), output),
            NodeError::ExecutionFailed { reason, limit } => return Self::server(with_option(reason, *limit)),
            NodeError::TransactionRejected(rejection) => return Self::server(rejected(rejection)),
            NodeError::BlockNotFound { .. } => return Self::server(format!("header not found: {error}")),
            NodeError::FilterNotFound => return Self::server("filter not found"),
            NodeError::NotBuilt(ExecutionError::Refused(refusal)) => return Self::server(of_transaction(refusal)),
            _ => {}
        }
        let code = Self::code_of(error.kind());
        if code == Self::INTERNAL {
            tracing::error!(error = &error as &dyn std::error::Error, "a method failed");
            return Self::new(code, "internal error");
        }
        Self::new(code, message(&error))
    }
}

/// The message of a fault, after the name of the parameter.
fn fault(fault: &Fault) -> String {
    match fault.field {
        Field::Request => fault_message(fault),
        field => format!("{field}: {}", fault_message(fault)),
    }
}

fn rejected(rejection: &Rejection) -> String {
    let reasons: Vec<_> = rejection.reasons.iter().map(of_pool).collect();
    reasons.join("; ")
}

/// Returns the pool's reason with the phrases that clients look for.
fn of_pool(error: &PoolError) -> String {
    match error {
        PoolError::Invalid(error) => of_transaction(error),
        PoolError::Oversized { .. } => format!("oversized data: {error}"),
        PoolError::TipTooLow { tip, minimum } => {
            format!("transaction underpriced: gas tip cap {tip}, minimum needed {minimum}")
        }
        PoolError::ReplacementUnderpriced { .. } => format!("replacement transaction underpriced: {error}"),
        PoolError::PoolFull { .. } | PoolError::QueueFull { .. } => {
            format!("txpool is full: {}", pool_message(error))
        }
        PoolError::Undecodable(_)
        | PoolError::AccountLimit { .. }
        | PoolError::MissingSidecar
        | PoolError::UnexpectedSidecar
        | PoolError::SidecarVersion { .. }
        | PoolError::Blob(_)
        | PoolError::DelegatedInFlight { .. }
        | PoolError::DelegatedOutOfOrder { .. }
        | PoolError::AuthorityReserved { .. } => pool_message(error),
    }
}

/// Returns the rule that a transaction breaks with the phrases that clients look for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_internal_errors_are_defects() {
        for kind in ErrorKind::ALL {
            assert_eq!(RpcError::code_of(kind) == RpcError::INTERNAL, kind == ErrorKind::Internal, "{kind:?}");
        }
    }
}
