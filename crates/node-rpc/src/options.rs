//! Names of the server options that set limits. Error messages of both interfaces mention them at the end.

use node_core::executor::TransactionError;
use node_core::node::{Fault, Limit, NodeError};
use node_core::pool::PoolError;
use node_core::sources::Sources;

/// Returns the name of `limit` in metrics, which is the name of its option if it has one.
pub fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::Addresses => "max-addresses",
        Limit::BlockRange => "max-block-range",
        Limit::CallTimeout => "call-timeout",
        Limit::Filters => "max-filters",
        Limit::GasCap => "gas-cap",
        Limit::Logs => "max-logs",
        Limit::Percentiles => "max-percentiles",
        Limit::StorageKeys => "max-storage-keys",
        Limit::Topics => "max-topics",
        Limit::TraceBytes => "max-trace-bytes",
    }
}

/// Appends the option that sets `limit` to a message, if there is one.
pub(crate) fn with_option(message: impl ToString, limit: Option<Limit>) -> String {
    let message = message.to_string();
    match limit {
        None | Some(Limit::Percentiles) => message,
        Some(limit) => format!("{message} (`{}`)", name(limit)),
    }
}

/// Returns the message of an error, followed by the options that set the exceeded limits.
pub fn message(error: &NodeError) -> String {
    match error {
        NodeError::TransactionRejected(rejection) => {
            let reasons: Vec<_> = rejection.reasons.iter().map(pool_message).collect();
            reasons.join("; ")
        }
        NodeError::NotBuilt(_) => Sources(error).to_string(),
        error => with_option(error, error.limit()),
    }
}

/// Returns the message of a fault, followed by the option that sets the exceeded limit.
pub fn fault_message(fault: &Fault) -> String {
    with_option(&fault.message, fault.limit)
}

/// Returns the pool's reason for rejecting a transaction, followed by the options that set the exceeded limits.
pub fn pool_message(reason: &PoolError) -> String {
    let options = match reason {
        PoolError::PoolFull { .. } => " (`pool-transactions`, `pool-bytes`)",
        PoolError::QueueFull { .. } => " (`pool-queued`)",
        PoolError::Invalid(TransactionError::GasLimitCap { .. }) => {
            " (a development chain with `hardfork` prague or earlier has no such limit)"
        }
        _ => "",
    };
    format!("{}{options}", Sources(reason))
}
