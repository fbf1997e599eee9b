//! Why the pool rejects a transaction.

use crate::backend::BackendError;
use crate::crypto::BlobError;
use crate::executor::TransactionError;
use crate::sources::Sources;
use node_types::consensus::DecodeError;
use node_types::{Address, U256};
use std::fmt;

/// Why a transaction was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// All reasons for rejecting a transaction; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The reasons; those found without the state come first.
    pub reasons: Vec<PoolError>,
}

impl Rejection {
    /// Returns an error if there are reasons.
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
        for (index, reason) in self.reasons.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{}", Sources(reason))?;
        }
        Ok(())
    }
}

/// One reason for rejecting a transaction. The text begins with geth's text, by which clients recognize it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    #[error("{}", words(.0))]
    Undecodable(#[source] DecodeError),
    #[error(transparent)]
    Invalid(#[from] TransactionError),
    #[error("oversized data: {size} bytes, at most {limit} are accepted")]
    Oversized { size: usize, limit: usize },
    #[error("transaction underpriced: gas tip cap {tip}, minimum needed {minimum}")]
    TipTooLow {
        /// Tip cap in wei per gas.
        tip: U256,
        minimum: u64,
    },
    /// The account has another transaction with this nonce, and the new one does not raise the caps enough to replace
    /// it.
    #[error(
        "replacement transaction underpriced: {cap} {got} does not replace {old} with the same nonce, at least {required} is \
         needed"
    )]
    ReplacementUnderpriced { cap: FeeCap, got: U256, old: U256, required: U256 },
    #[error("txpool is full: {transactions} transactions with {bytes} bytes, none that pays less could make room")]
    PoolFull { transactions: usize, bytes: usize },
    #[error("txpool is full: {queued} transactions wait for earlier nonces already, at most {limit} may")]
    QueueFull { queued: usize, limit: usize },
    /// The account's limit on queued transactions is reached.
    #[error(
        "account limit exceeded: {queued} transactions of the account wait for earlier nonces already, at most {limit} may"
    )]
    AccountLimit { queued: usize, limit: usize },
    #[error("missing sidecar in blob transaction")]
    MissingSidecar,
    #[error("unexpected sidecar: only a blob transaction carries blobs")]
    UnexpectedSidecar,
    #[error("unexpected sidecar version, want: {expected}, got: {got}")]
    SidecarVersion { got: u8, expected: u8 },
    #[error("invalid blobs")]
    Blob(#[source] BlobError),
    /// The sender delegates to code (EIP-7702), which could invalidate several pending transactions at once, and has
    /// another transaction in the pool.
    #[error(
        "in-flight transaction limit reached for delegated accounts: {sender:#x} has a transaction in the pool already"
    )]
    DelegatedInFlight { sender: Address },
    /// The sender delegates to code (EIP-7702), and the nonce leaves a gap.
    #[error("gapped-nonce tx from delegated accounts: {sender:#x} must use nonce {expected}, got {got}")]
    DelegatedOutOfOrder { sender: Address, got: u64, expected: u64 },
    /// An authorization (EIP-7702) could invalidate several transactions in the pool at once.
    #[error("authority already reserved: {authority:#x} has {count} transactions in the pool, at most 1 is allowed")]
    AuthorityReserved { authority: Address, count: usize },
}

/// Returns geth's text for bytes that are not a transaction.
fn words(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Truncated { .. } => "rlp: value size exceeds available input length",
        DecodeError::TrailingBytes { .. } => "rlp: input contains more than one value",
        DecodeError::MissingField { .. } => "rlp: too few elements",
        DecodeError::SurplusItems { .. } => "rlp: input list has too many elements",
        DecodeError::NotAList { .. } => "rlp: expected input list",
        DecodeError::NotBytes { .. } => "rlp: expected input string or byte",
        DecodeError::NonCanonicalLength { .. } => "rlp: non-canonical size information",
        DecodeError::LeadingZeros { .. } => "rlp: non-canonical integer (leading zero bytes)",
        DecodeError::UnexpectedLength { expected, got, .. } if got < expected => "rlp: input string too short",
        DecodeError::Overflow { .. } | DecodeError::UnexpectedLength { .. } => "rlp: input string too long",
        DecodeError::ContractCreation { .. } => "rlp: input string too short",
        DecodeError::InvalidV { .. } => "invalid transaction v, r, s values",
        _ => "rlp: invalid transaction",
    }
}

/// A fee cap of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeeCap {
    /// Cap on base fee and tip together.
    Fee,
    Tip,
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
