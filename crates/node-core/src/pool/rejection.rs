//! Why the pool does not take a transaction.

use crate::backend::BackendError;
use crate::crypto::BlobError;
use crate::executor::TransactionError;
use node_types::consensus::DecodeError;
use node_types::{Address, U256};
use std::fmt;

/// A transaction was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// It breaks rules.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The backend did not answer, or did not keep it.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Every reason found against a transaction; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reasons, those that need no state first.
    pub reasons: Vec<PoolError>,
}

impl Rejection {
    /// A rejection if there is a reason for one.
    pub(super) fn unless_empty(reasons: Vec<PoolError>) -> Result<(), Self> {
        if reasons.is_empty() { Ok(()) } else { Err(Self { reasons }) }
    }
}

impl From<PoolError> for Rejection {
    fn from(reason: PoolError) -> Self {
        Self { reasons: vec![reason] }
    }
}

impl std::error::Error for Rejection {}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("transaction refused: ")?;
        for (index, reason) in self.reasons.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{reason}")?;
        }
        Ok(())
    }
}

/// One reason against a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The bytes are no transaction.
    #[error("not a transaction: {0}")]
    Undecodable(DecodeError),
    /// It breaks a rule that holds in blocks, too.
    #[error(transparent)]
    Invalid(#[from] TransactionError),
    /// Its encoding is too long.
    #[error("{size} bytes, at most {limit} are accepted")]
    Oversized {
        /// Bytes, those of the blobs left out.
        size: usize,
        /// Accepted.
        limit: usize,
    },
    /// Its tip is below what the pool asks of every transaction.
    #[error("tip cap {tip} is below the minimum of {minimum} wei per gas")]
    TipTooLow {
        /// Tip cap in wei per gas.
        tip: U256,
        /// Demanded.
        minimum: u64,
    },
    /// The account has another transaction with this nonce, and this one does not pay enough more.
    #[error("{cap} {got} does not replace {old} with the same nonce, at least {required} is needed")]
    ReplacementUnderpriced {
        /// Which of the caps.
        cap: FeeCap,
        /// In the transaction.
        got: U256,
        /// In the one that is there.
        old: U256,
        /// The least that replaces it.
        required: U256,
    },
    /// The pool is full, and what is in it pays at least as well.
    #[error(
        "the pool is full: {transactions} transactions with {bytes} bytes, none that pays less could make room \
             (`pool-transactions`, `pool-bytes`)"
    )]
    PoolFull {
        /// Transactions in the pool.
        transactions: usize,
        /// Bytes of them.
        bytes: usize,
    },
    /// The part of the pool for transactions that wait for an earlier nonce is full.
    #[error("{queued} transactions wait for earlier nonces already, at most {limit} may (`pool-queued`)")]
    QueueFull {
        /// Transactions that wait.
        queued: usize,
        /// Allowed.
        limit: usize,
    },
    /// The account has too many transactions that wait for an earlier nonce.
    #[error(
        "{queued} transactions of the account wait for earlier nonces already, at most {limit} may \
             (`pool-queued-per-account`)"
    )]
    AccountLimit {
        /// Transactions of the account that wait.
        queued: usize,
        /// Allowed.
        limit: usize,
    },
    /// A blob transaction came without its blobs.
    #[error("a blob transaction must be sent with its blobs")]
    MissingSidecar,
    /// Blobs came with a transaction that names none.
    #[error("only a blob transaction carries blobs")]
    UnexpectedSidecar,
    /// The sidecar is of the wrong version for the fork in force.
    #[error("blob sidecar of version {got}, expected {expected}")]
    SidecarVersion {
        /// Sent.
        got: u8,
        /// In force.
        expected: u8,
    },
    /// The blobs are not those that the transaction names.
    #[error("invalid blobs: {0}")]
    Blob(BlobError),
    /// Code runs in the name of the sender (EIP-7702), so that more than one transaction could be
    /// made invalid at once.
    #[error("sender {sender:#x} delegates to code and has a transaction in the pool already")]
    DelegatedInFlight {
        /// The sender.
        sender: Address,
    },
    /// A sender that delegates to code (EIP-7702) may not leave nonces out.
    #[error("sender {sender:#x} delegates to code: nonce {got} must be the next one, {expected}")]
    DelegatedOutOfOrder {
        /// The sender.
        sender: Address,
        /// In the transaction.
        got: u64,
        /// The account's.
        expected: u64,
    },
    /// An authorization (EIP-7702) would make several transactions in the pool invalid at once.
    #[error("authority {authority:#x} has {count} transactions in the pool, at most 1 is allowed")]
    AuthorityReserved {
        /// Who signed the authorization.
        authority: Address,
        /// Transactions of that account in the pool.
        count: usize,
    },
}

/// A cap on what a transaction pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeeCap {
    /// On base fee and tip.
    Fee,
    /// On the tip.
    Tip,
    /// On the blob base fee.
    BlobFee,
}

impl fmt::Display for FeeCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fee => "fee cap",
            Self::Tip => "tip cap",
            Self::BlobFee => "blob fee cap",
        })
    }
}
