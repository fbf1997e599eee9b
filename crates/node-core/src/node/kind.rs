//! The kinds of errors, for programs that handle them.

use super::NodeError;
use crate::context::Interrupted;
use crate::producer::ProducerError;
use std::fmt;

macro_rules! kinds {
    ($(#[doc = $doc:literal] $kind:ident = $slug:literal,)+) => {
        /// The kind of a [`NodeError`]. Kinds and their slugs are stable: they never change their meaning, but new ones
        /// may be added.
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
            $(#[doc = $doc] $kind),+
        }

        impl ErrorKind {
            /// Every kind of error.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Returns the name of the kind in kebab case, for logs and text-based interfaces.
            pub const fn slug(self) -> &'static str {
                match self {
                    $(Self::$kind => $slug),+
                }
            }
        }
    };
}

kinds! {
    /// Fields of the request are out of range, or contradict each other.
    InvalidRequest = "invalid-request",
    /// The canonical chain has no such block.
    BlockNotFound = "block-not-found",
    /// The canonical chain has no such transaction.
    TransactionNotFound = "transaction-not-found",
    /// A range of blocks does not end at or below the head.
    RangeAboveHead = "range-above-head",
    /// There is no such filter.
    FilterNotFound = "filter-not-found",
    /// The state of the block has been pruned.
    StatePruned = "state-pruned",
    /// The account was edited, and no header commits to it yet.
    AccountEdited = "account-edited",
    /// A call reverted.
    ExecutionReverted = "execution-reverted",
    /// A call or a block could not be executed.
    ExecutionFailed = "execution-failed",
    /// The pool rejected the transaction.
    TransactionRejected = "transaction-rejected",
    /// The chain cannot be changed as requested.
    ControlRefused = "control-refused",
    /// The chain is being imported; the same request may succeed later.
    Importing = "importing",
    /// The node only reads the chain.
    ReadOnly = "read-only",
    /// The node no longer writes the chain, because another one does.
    NotWriter = "not-writer",
    /// The node does not produce blocks.
    NotProducing = "not-producing",
    /// The node has no key for the account.
    UnknownAccount = "unknown-account",
    /// The block cannot be traced.
    NotTraceable = "not-traceable",
    /// No more filters may be installed.
    TooManyFilters = "too-many-filters",
    /// The result is larger than a limit allows.
    LimitExceeded = "limit-exceeded",
    /// The operation took too long.
    Timeout = "timeout",
    /// The caller cancelled the operation.
    Cancelled = "cancelled",
    /// The chain continues another one, from which something that is not known here cannot be read.
    UpstreamUnavailable = "upstream-unavailable",
    /// Nothing can be proven about the state, because trie nodes of the chain that this one continues could not be had.
    NoStateRoot = "no-state-root",
    /// The backend failed, or the node has a bug.
    Internal = "internal",
}

impl fmt::Display for ErrorKind {
    /// Displays the [slug](Self::slug).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl NodeError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::InvalidRequest,
            Self::BlockNotFound { .. } => ErrorKind::BlockNotFound,
            Self::TransactionNotFound { .. } => ErrorKind::TransactionNotFound,
            Self::RangeAboveHead { .. } => ErrorKind::RangeAboveHead,
            Self::FilterNotFound => ErrorKind::FilterNotFound,
            Self::StatePruned { .. } => ErrorKind::StatePruned,
            Self::Edited(_) => ErrorKind::AccountEdited,
            Self::ExecutionReverted { .. } => ErrorKind::ExecutionReverted,
            Self::ExecutionFailed { .. }
            | Self::CallRefused(_)
            | Self::NoPendingBlock { .. }
            | Self::NoBlock { .. }
            | Self::NotBuilt(_) => ErrorKind::ExecutionFailed,
            Self::TransactionRejected(_) | Self::Dropped { .. } => ErrorKind::TransactionRejected,
            Self::Control(
                ProducerError::SnapshotsTooLarge(_)
                | ProducerError::EditsTooLarge(_)
                | ProducerError::TooManyImpersonated(_),
            ) => ErrorKind::LimitExceeded,
            Self::Control(_) => ErrorKind::ControlRefused,
            Self::Importing => ErrorKind::Importing,
            Self::ReadOnly => ErrorKind::ReadOnly,
            Self::NotProducing => ErrorKind::NotProducing,
            Self::UnknownAccount(_) => ErrorKind::UnknownAccount,
            Self::GenesisNotTraceable => ErrorKind::NotTraceable,
            Self::TooManyFilters { .. } => ErrorKind::TooManyFilters,
            Self::FilterMemory { .. }
            | Self::TooManyBlocks { .. }
            | Self::TooManyLogs { .. }
            | Self::TooManyFilterLogs { .. }
            | Self::LogsTooLarge { .. }
            | Self::ResponseTooLarge(_)
            | Self::TraceTooLarge { .. } => ErrorKind::LimitExceeded,
            Self::Interrupted(Interrupted::DeadlineExceeded) => ErrorKind::Timeout,
            Self::Interrupted(Interrupted::Cancelled) => ErrorKind::Cancelled,
            Self::NotWriter(_) => ErrorKind::NotWriter,
            Self::Upstream(_) => ErrorKind::UpstreamUnavailable,
            Self::NoStateRoot(_) => ErrorKind::NoStateRoot,
            Self::Backend(_) | Self::Internal(_) | Self::PendingBlock(_) | Self::Proof { .. } => ErrorKind::Internal,
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
