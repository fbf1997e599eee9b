//! Errors with geth's codes and messages, so that clients recognize them.

use crate::options::{fault_message, message, with_option};
use node_core::executor::ExecutionError;
use node_core::node::{ErrorKind, Fault, Field, Limit, NodeError};
use node_core::producer::ProducerError;
use node_core::sources::Sources;
use node_types::Bytes;
use node_types::wire::{BytesData, Data};
use serde::Serialize;
use std::error::Error;

/// Why a method failed.
#[derive(Clone, Debug, Serialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Code of the kind of error.
    pub code: i64,
    /// One sentence for humans.
    pub message: String,
    /// Data for programs: the output of a reverted call, or the hash of a transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<BytesData>,
    /// The internal error with its causes, if the message does not include it. It is for the log and never sent to
    /// clients.
    #[serde(skip)]
    pub internal: Option<String>,
    /// The name of the limit that the request exceeded, for metrics; that of its option if it has one.
    #[serde(skip)]
    pub limit: Option<&'static str>,
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
    /// A bug or a failure of the node.
    pub const INTERNAL: i64 = -32603;
    /// Any other error of the node.
    pub const SERVER: i64 = -32000;
    /// The request took too long.
    pub const TIMEOUT: i64 = -32002;
    /// A resource that the request needs is not available yet (EIP-1474).
    pub const UNAVAILABLE: i64 = -32002;
    /// The total length of the responses of a batch is too large.
    pub const RESPONSE_TOO_LARGE: i64 = -32003;
    /// The pool refuses a transaction (EIP-1474).
    pub const REJECTED: i64 = -32003;
    /// The request exceeds a limit (EIP-1474).
    pub const LIMIT: i64 = -32005;
    /// A call reverted.
    pub const REVERTED: i64 = 3;

    /// Returns the code of a kind of error.
    pub fn code_of(kind: ErrorKind) -> i64 {
        match kind {
            ErrorKind::InvalidRequest | ErrorKind::RangeAboveHead => Self::INVALID_PARAMS,
            ErrorKind::ExecutionReverted => Self::REVERTED,
            ErrorKind::TooManyFilters | ErrorKind::LimitExceeded => Self::LIMIT,
            ErrorKind::Importing | ErrorKind::UpstreamUnavailable => Self::UNAVAILABLE,
            ErrorKind::NotProducing => Self::METHOD_NOT_FOUND,
            ErrorKind::TransactionRejected => Self::REJECTED,
            ErrorKind::Timeout | ErrorKind::Cancelled => Self::TIMEOUT,
            ErrorKind::BlockNotFound
            | ErrorKind::TransactionNotFound
            | ErrorKind::FilterNotFound
            | ErrorKind::StatePruned
            | ErrorKind::NoStateRoot
            | ErrorKind::AccountEdited
            | ErrorKind::ExecutionFailed
            | ErrorKind::ControlRefused
            | ErrorKind::UnknownAccount
            | ErrorKind::ReadOnly
            | ErrorKind::NotWriter
            | ErrorKind::NotTraceable => Self::SERVER,
            // A test ensures that every other kind is listed.
            _ => Self::INTERNAL,
        }
    }

    /// Returns an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, internal: None, limit: None }
    }

    /// Returns the error for a bug or a failure of the node. `error` itself is not sent to clients.
    pub fn internal(error: &dyn Error) -> Self {
        Self { internal: Some(Sources(error).to_string()), ..Self::new(Self::INTERNAL, "internal error") }
    }

    /// Returns an error with the code [`SERVER`](Self::SERVER).
    pub fn server(message: impl Into<String>) -> Self {
        Self::new(Self::SERVER, message)
    }

    /// Returns the error for an invalid argument. `position` counts from 0.
    pub fn argument(position: usize, reason: impl std::fmt::Display) -> Self {
        Self::new(Self::INVALID_PARAMS, format!("invalid argument {position}: {reason}"))
    }

    /// Returns the error for a call that reverted with `output`. `reason` is the decoded revert reason.
    pub fn reverted(reason: Option<&str>, output: &Bytes) -> Self {
        let message = reason.map_or("execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"));
        Self { data: Some(Data(output.clone())), ..Self::new(Self::REVERTED, message) }
    }
}

/// Returns the message of an error without its position, which would be relative to a part of the text.
pub(crate) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

impl From<NodeError> for RpcError {
    fn from(error: NodeError) -> Self {
        Self { limit: error.limit().map(Limit::name), ..Self::of_node(&error) }
    }
}

impl From<ProducerError> for RpcError {
    fn from(error: ProducerError) -> Self {
        NodeError::from(error).into()
    }
}

impl RpcError {
    /// Returns the code, message and data for an error of the node.
    fn of_node(error: &NodeError) -> Self {
        match error {
            NodeError::Invalid(faults) | NodeError::RangeAboveHead { faults, .. } => {
                let faults: Vec<_> = faults.iter().map(fault).collect();
                return Self::new(Self::INVALID_PARAMS, faults.join("; "));
            }
            NodeError::ExecutionReverted { reason, output } => return Self::reverted(reason.as_deref(), output),
            NodeError::ExecutionFailed { reason, limit, .. } => return Self::server(with_option(reason, *limit)),
            NodeError::BlockNotFound { .. } => return Self::server(format!("header not found: {error}")),
            NodeError::FilterNotFound => return Self::server("filter not found"),
            NodeError::NotBuilt(ExecutionError::Refused(refusal)) => return Self::server(refusal.to_string()),
            NodeError::TooManyLogs { to_block: Some(last), .. }
            | NodeError::LogsTooLarge { to_block: Some(last), .. } => {
                return Self::new(Self::LIMIT, format!("{}; the logs up to block {last} would fit", message(error)));
            }
            _ => {}
        }
        let code = Self::code_of(error.kind());
        if code == Self::INTERNAL {
            return Self::internal(error);
        }
        Self::new(code, message(error))
    }
}

/// Returns the message of a fault, preceded by the path of the field if it is about a part of the request.
fn fault(fault: &Fault) -> String {
    match fault.field {
        Field::Request | Field::Transaction => fault_message(fault),
        field => format!("{}: {}", field.path(), fault_message(fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::backend::BackendError;
    use node_core::executor::TransactionError;

    #[test]
    fn only_internal_errors_are_defects() {
        for kind in ErrorKind::ALL.iter().copied() {
            assert_eq!(RpcError::code_of(kind) == RpcError::INTERNAL, kind == ErrorKind::Internal, "{kind:?}");
        }
    }

    #[test]
    fn clients_see_why_a_block_cannot_be_built() {
        let missing = ExecutionError::SystemContract { address: Default::default(), reason: "no code".into() };
        let refused = ExecutionError::Refused(TransactionError::NoBlobs);
        let address = "0x0000000000000000000000000000000000000000";
        for (error, expected) in [
            (missing, format!("the block cannot be built: system contract {address}: no code")),
            (refused, "blob transaction missing blob hashes".to_owned()),
        ] {
            let error = RpcError::from(NodeError::NotBuilt(error));
            assert_eq!((error.code, error.message), (RpcError::SERVER, expected));
        }
    }

    #[test]
    fn clients_do_not_see_what_went_wrong_in_the_node() {
        let failure = BackendError::Storage("disk full".into());
        for (error, internal) in [
            (NodeError::from(failure), "the backend failed: storage failure: disk full"),
            (NodeError::from(ExecutionError::Internal("a bug".into())), "internal error: a bug"),
        ] {
            let error = RpcError::from(error);
            assert_eq!(error.internal.as_deref(), Some(internal));
            let json = serde_json::to_value(&error).unwrap();
            assert_eq!(json, serde_json::json!({"code": -32603, "message": "internal error"}));
        }
    }
}
