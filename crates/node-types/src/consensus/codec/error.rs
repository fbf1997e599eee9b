//! Errors of decoding consensus objects.

use crate::U256;
use crate::consensus::TransactionType;

/// Why bytes are not the encoding of a consensus object. `field` and `object` name the item in error messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum DecodeError {
    /// The bytes, or the list around the item, end before the item does.
    #[error("{field} is cut off")]
    Truncated { field: &'static str },
    /// Bytes follow the object.
    #[error("{count} bytes follow the {object}")]
    TrailingBytes { object: &'static str, count: usize },
    /// A list ends before this item.
    #[error("{field} is missing")]
    MissingField { field: &'static str },
    /// A list has more items than the object has fields.
    #[error("{object} has too many items")]
    SurplusItems { object: &'static str },
    /// Expected a list, found a byte string.
    #[error("{field} is not a list")]
    NotAList { field: &'static str },
    /// Expected a byte string, found a list.
    #[error("{field} is not a byte string")]
    NotBytes { field: &'static str },
    /// A length is not encoded in the fewest bytes.
    #[error("the length of {field} is not in its shortest form")]
    NonCanonicalLength { field: &'static str },
    /// An integer starts with a zero byte.
    #[error("{field} has leading zeros")]
    LeadingZeros { field: &'static str },
    /// An integer is too large.
    #[error("{field} exceeds {bits} bits")]
    Overflow { field: &'static str, bits: u32 },
    /// A byte string of fixed length has another length.
    #[error("{field} has {got} bytes instead of {expected}")]
    UnexpectedLength { field: &'static str, expected: usize, got: usize },
    /// The type byte is not that of a known transaction type.
    #[error("transaction type {0} is not supported")]
    UnknownTransactionType(u8),
    /// The type byte is not that of a known request type.
    #[error("request type {0} is not supported")]
    UnknownRequestType(u8),
    /// A blob or set-code transaction has no recipient.
    #[error("a transaction of type {} cannot create a contract", *transaction_type as u8)]
    ContractCreation { transaction_type: TransactionType },
    /// `v` is not a y parity; or, in a legacy transaction, neither 27, 28 nor a value of EIP-155 with a 64-bit chain
    /// id.
    #[error("signature v {v} is invalid")]
    InvalidV { v: U256 },
    /// A receipt's status is neither 0 nor 1 nor a state root.
    #[error("receipt status is invalid")]
    InvalidStatus,
    /// The version byte is not that of a known form of blob sidecars.
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
