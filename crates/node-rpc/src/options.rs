//! Names of the server options that set limits. Error messages of both interfaces end with them.

use node_core::executor::TransactionError;
use node_core::node::{Fault, Limit, NodeError};
use node_core::pool::PoolError;

/// Returns the name of the option that sets `limit`.
pub fn option(limit: Limit) -> &'static str {
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

/// Appends the option that sets `limit` to a message.
pub(crate) fn with_option(message: impl ToString, limit: Option<Limit>) -> String {
    let message = message.to_string();
    match limit {
        Some(limit) => format!("{message} (`{}`)", option(limit)),
        None => message,
    }
}

/// Returns the message of an error, with the options that set the limits it is about.
pub fn message(error: &NodeError) -> String {
    match error {
        NodeError::TransactionRejected(rejection) => {
            let reasons: Vec<_> = rejection.reasons.iter().map(pool_message).collect();
            reasons.join("; ")
        }
        error => with_option(error, error.limit()),
    }
}

/// Returns the message of a fault, with the option that sets the limit it is about.
pub fn fault_message(fault: &Fault) -> String {
    with_option(&fault.message, fault.limit)
}

/// Returns the pool's reason to reject a transaction, with the options that set the limits it is about.
pub fn pool_message(reason: &PoolError) -> String {
    let options = match reason {
        PoolError::PoolFull { .. } => " (`pool-transactions`, `pool-bytes`)",
        PoolError::QueueFull { .. } => " (`pool-queued`)",
        PoolError::AccountLimit { .. } => " (`pool-queued-per-account`)",
        PoolError::Invalid(TransactionError::GasLimitCap { .. }) => " (`hardfork` of a development chain)",
        _ => "",
    };
    format!("{reason}{options}")
}
