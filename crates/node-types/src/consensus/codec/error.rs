//! Errors of decoding consensus objects.

use crate::U256;
use crate::consensus::TransactionType;

/// Why bytes are not the encoding of a consensus object. `field` and `object` name the item in error messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    #[error("{field} is cut off")]
    Truncated { field: &'static str },
    #[error("{count} bytes follow the {object}")]
    TrailingBytes { object: &'static str, count: usize },
    #[error("{field} is missing")]
    MissingField { field: &'static str },
    #[error("{object} has too many items")]
    SurplusItems { object: &'static str },
    #[error("{field} is not a list")]
    NotAList { field: &'static str },
    #[error("{field} is not a byte string")]
    NotBytes { field: &'static str },
    #[error("the length of {field} is not in its shortest form")]
    NonCanonicalLength { field: &'static str },
    #[error("{field} has leading zeros")]
    LeadingZeros { field: &'static str },
    #[error("{field} exceeds {bits} bits")]
    Overflow { field: &'static str, bits: u32 },
    #[error("{field} has {got} bytes instead of {expected}")]
    UnexpectedLength { field: &'static str, expected: usize, got: usize },
    #[error("transaction type {0} is not supported")]
    UnknownTransactionType(u8),
    #[error("request type {0} is not supported")]
    UnknownRequestType(u8),
    #[error("a transaction of type {} cannot create a contract", *transaction_type as u8)]
    ContractCreation { transaction_type: TransactionType },
    /// `v` is not a y parity; or, in a legacy transaction, neither 27, 28 nor a value of EIP-155 with a 64-bit chain
    /// id.
    #[error("signature v {v} is invalid")]
    InvalidV { v: U256 },
    #[error("receipt status is invalid")]
    InvalidStatus,
    #[error("blob sidecar version {0} is not supported")]
    UnknownSidecarVersion(u8),
}

impl From<DecodeError> for rlp::DecoderError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Truncated { .. } => Self::RlpIsTooShort,
            DecodeError::TrailingBytes { .. } => Self::RlpIsTooBig,
            DecodeError::MissingField { .. } | DecodeError::SurplusItems { .. } => Self::RlpIncorrectListLen,
            DecodeError::NotAList { .. } => Self::RlpExpectedToBeList,
            DecodeError::NotBytes { .. } => Self::RlpExpectedToBeData,
            DecodeError::NonCanonicalLength { .. } | DecodeError::LeadingZeros { .. } => Self::RlpInvalidIndirection,
            DecodeError::Overflow { .. } | DecodeError::UnexpectedLength { .. } => Self::RlpInvalidLength,
            DecodeError::UnknownTransactionType(_) => Self::Custom("unknown transaction type"),
            DecodeError::UnknownRequestType(_) => Self::Custom("unknown request type"),
            DecodeError::ContractCreation { .. } => Self::Custom("transaction without recipient"),
            DecodeError::InvalidV { .. } => Self::Custom("invalid signature v"),
            DecodeError::InvalidStatus => Self::Custom("invalid receipt status"),
            DecodeError::UnknownSidecarVersion(_) => Self::Custom("unknown blob sidecar version"),
        }
    }
}
