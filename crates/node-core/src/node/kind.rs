//! The kinds of errors, for programs that handle them.

use super::NodeError;
use crate::context::Interrupted;
use std::fmt;

/// The kind of a [`NodeError`]. Kinds and their slugs are stable: they never change their meaning, but new ones may be added.
///
/// # Examples
/// ```
/// use node_core::node::{ErrorKind, NodeError};
///
/// let error = NodeError::FilterNotFound;
/// assert_eq!(error.kind(), ErrorKind::FilterNotFound);
/// assert_eq!(error.kind().slug(), "filter-not-found");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fields of the request are out of range, or contradict each other.
    InvalidRequest,
    /// The canonical chain has no such block.
    BlockNotFound,
    /// The canonical chain has no such transaction.
    TransactionNotFound,
    /// There is no such filter.
    FilterNotFound,
    /// The state of the block has been pruned.
    StatePruned,
    /// The account was edited, and no header commits to it yet.
    AccountEdited,
    /// A call reverted.
    ExecutionReverted,
    /// A call or a block could not be executed.
    ExecutionFailed,
    /// The pool rejected the transaction.
    TransactionRejected,
    /// The chain cannot be changed as requested.
    ControlRefused,
    /// The chain is being imported; the same request may succeed later.
    Importing,
    /// The node does not produce blocks.
    NotProducing,
    /// The node has no key for the account.
    UnknownAccount,
    /// The block cannot be traced.
    NotTraceable,
    /// No more filters may be installed.
    TooManyFilters,
    /// The result is larger than a limit allows.
    LimitExceeded,
    /// The operation took too long.
    Timeout,
    /// The caller cancelled the operation.
    Cancelled,
    /// The backend failed, or the node has a bug.
    Internal,
}

impl fmt::Display for ErrorKind {
    /// Displays the [slug](Self::slug).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl ErrorKind {
    /// Every kind of error.
    pub const ALL: &[Self] = &[
        Self::InvalidRequest,
        Self::BlockNotFound,
        Self::TransactionNotFound,
        Self::FilterNotFound,
        Self::StatePruned,
        Self::AccountEdited,
        Self::ExecutionReverted,
        Self::ExecutionFailed,
        Self::TransactionRejected,
        Self::ControlRefused,
        Self::Importing,
        Self::NotProducing,
        Self::UnknownAccount,
        Self::NotTraceable,
        Self::TooManyFilters,
        Self::LimitExceeded,
        Self::Timeout,
        Self::Cancelled,
        Self::Internal,
    ];

    /// Returns the name of the kind in kebab case, for logs and text-based interfaces.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid-request",
            Self::BlockNotFound => "block-not-found",
            Self::TransactionNotFound => "transaction-not-found",
            Self::FilterNotFound => "filter-not-found",
            Self::StatePruned => "state-pruned",
            Self::AccountEdited => "account-edited",
            Self::ExecutionReverted => "execution-reverted",
            Self::ExecutionFailed => "execution-failed",
            Self::TransactionRejected => "transaction-rejected",
            Self::ControlRefused => "control-refused",
            Self::Importing => "importing",
            Self::NotProducing => "not-producing",
            Self::UnknownAccount => "unknown-account",
            Self::NotTraceable => "not-traceable",
            Self::TooManyFilters => "too-many-filters",
            Self::LimitExceeded => "limit-exceeded",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

impl NodeError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::InvalidRequest,
            Self::BlockNotFound { .. } => ErrorKind::BlockNotFound,
            Self::TransactionNotFound { .. } => ErrorKind::TransactionNotFound,
            Self::FilterNotFound => ErrorKind::FilterNotFound,
            Self::StatePruned { .. } => ErrorKind::StatePruned,
            Self::Edited(_) => ErrorKind::AccountEdited,
            Self::ExecutionReverted { .. } => ErrorKind::ExecutionReverted,
            Self::ExecutionFailed { .. } | Self::NoPendingBlock { .. } | Self::NotBuilt(_) => {
                ErrorKind::ExecutionFailed
            }
            Self::TransactionRejected(_) => ErrorKind::TransactionRejected,
            Self::Control(_) => ErrorKind::ControlRefused,
            Self::Importing => ErrorKind::Importing,
            Self::NotProducing => ErrorKind::NotProducing,
            Self::UnknownAccount(_) => ErrorKind::UnknownAccount,
            Self::GenesisNotTraceable => ErrorKind::NotTraceable,
            Self::TooManyFilters { .. } => ErrorKind::TooManyFilters,
            Self::TooManyBlocks { .. }
            | Self::TooManyLogs { .. }
            | Self::TooManyFilterLogs { .. }
            | Self::TraceTooLarge { .. } => ErrorKind::LimitExceeded,
            Self::Interrupted(Interrupted::DeadlineExceeded) => ErrorKind::Timeout,
            Self::Interrupted(Interrupted::Cancelled) => ErrorKind::Cancelled,
            Self::Backend(_) | Self::PendingBlock(_) | Self::Proof { .. } => ErrorKind::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn kinds_and_slugs_are_distinct() {
        let kinds: HashSet<_> = ErrorKind::ALL.iter().collect();
        let slugs: HashSet<_> = ErrorKind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!((kinds.len(), slugs.len()), (ErrorKind::ALL.len(), ErrorKind::ALL.len()));
    }
}
