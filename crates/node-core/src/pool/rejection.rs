//! Why the pool rejects a transaction.

use crate::backend::BackendError;
use crate::crypto::BlobError;
use crate::executor::{Property, TransactionError};
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
    #[error("{}", tip_too_low("gas tip cap", tip, minimum))]
    TipTooLow {
        /// [`Property::GasPrice`] or [`Property::MaxPriorityFeePerGas`].
        cap: Property,
        /// Tip cap in wei per gas.
        tip: U256,
        minimum: u64,
    },
    /// The account has another transaction with this nonce, and the new one does not raise the cap enough to replace
    /// it.
    #[error("{}", replacement_underpriced(cap_words(cap), got, old, required))]
    ReplacementUnderpriced {
        /// The gas price, or one of the caps of a transaction that has them.
        cap: Property,
        got: U256,
        old: U256,
        required: U256,
    },
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

fn tip_too_low(name: &str, tip: &U256, minimum: &u64) -> String {
    format!("transaction underpriced: {name} {tip}, minimum needed {minimum}")
}

fn replacement_underpriced(name: &str, got: &U256, old: &U256, required: &U256) -> String {
    format!(
        "replacement transaction underpriced: {name} {got} does not replace {old} with the same nonce, at least {required} is \
         needed"
    )
}

/// Returns how geth calls a cap of a transaction.
fn cap_words(cap: &Property) -> &'static str {
    match cap {
        Property::GasPrice => "gas price",
        Property::MaxPriorityFeePerGas => "tip cap",
        Property::MaxFeePerBlobGas => "blob fee cap",
        _ => "fee cap",
    }
}

impl PoolError {
    /// Returns the text with the properties of the transaction as `name` calls them, where `Display` has geth's words.
    pub fn text(&self, name: impl Fn(Property) -> String) -> String {
        match self {
            Self::Invalid(error) => error.text(name),
            Self::TipTooLow { cap, tip, minimum } => tip_too_low(&name(*cap), tip, minimum),
            Self::ReplacementUnderpriced { cap, got, old, required } => {
                replacement_underpriced(&name(*cap), got, old, required)
            }
            other => Sources(other).to_string(),
        }
    }
}
