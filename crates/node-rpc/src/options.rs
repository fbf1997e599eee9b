//! Messages of errors. They end with the options that set the exceeded limits, in both interfaces.

use node_core::executor::TransactionError;
use node_core::node::{Fault, Limit, NodeError};
use node_core::pool::PoolError;
use node_core::sources::Sources;

/// Appends the option that sets `limit` to a message, if there is one.
pub(crate) fn with_option(message: impl ToString, limit: Option<Limit>) -> String {
    with_options(&message.to_string(), limit.as_slice())
}

fn with_options(message: &str, limits: &[Limit]) -> String {
    let options = limits.iter().filter(|limit| limit.has_option()).map(|limit| format!("`{}`", limit.name()));
    let options: Vec<_> = options.collect();
    if options.is_empty() { message.to_owned() } else { format!("{message} ({})", options.join(", ")) }
}

/// Returns the message of an error, followed by the options that set the exceeded limits.
pub fn message(error: &NodeError) -> String {
    match error {
        NodeError::TransactionRejected(rejection) => {
            let message = |reason: &PoolError| pool_message(reason, &Sources(reason).to_string());
            let reasons: Vec<_> = rejection.reasons.iter().map(message).collect();
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

/// Returns the text of the pool's reason for rejecting a transaction, followed by the options that set the exceeded
/// limits.
pub fn pool_message(reason: &PoolError, text: &str) -> String {
    match reason {
        PoolError::PoolFull { .. } => with_options(text, &[Limit::PoolTransactions, Limit::PoolBytes]),
        PoolError::QueueFull { .. } => with_options(text, &[Limit::PoolQueued]),
        PoolError::Invalid(TransactionError::GasLimitCap { .. }) => {
            format!("{text} (a development chain with `hardfork` prague or earlier has no such limit)")
        }
        _ => text.to_owned(),
    }
}
