//! Why bytes are no consensus object.

use crate::U256;
use crate::consensus::TransactionType;

/// Why bytes are not the encoding of a consensus object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes, or the list around the item, end before the item does.
    #[error("{field} is cut off")]
    Truncated {
        /// What was being read.
        field: &'static str,
    },
    /// Bytes are left behind the object.
    #[error("{count} bytes follow the {object}")]
    TrailingBytes {
        /// What was read.
        object: &'static str,
        /// How many bytes are left.
        count: usize,
    },
    /// A list ended before this item.
    #[error("{field} is missing")]
    MissingField {
        /// The item that should follow.
        field: &'static str,
    },
    /// A list goes on behind its last item.
    #[error("{object} has too many items")]
    SurplusItems {
        /// What the list encodes.
        object: &'static str,
    },
    /// A byte string stands where a list belongs.
    #[error("{field} is not a list")]
    NotAList {
        /// What was being read.
        field: &'static str,
    },
    /// A list stands where a byte string belongs.
    #[error("{field} is not a byte string")]
    NotBytes {
        /// What was being read.
        field: &'static str,
    },
    /// A length prefix is longer than need be.
    #[error("the length of {field} is not in its shortest form")]
    NonCanonicalLength {
        /// What was being read.
        field: &'static str,
    },
    /// An integer starts with a zero byte.
    #[error("{field} has leading zeros")]
    LeadingZeros {
        /// What was being read.
        field: &'static str,
    },
    /// An integer is too large.
    #[error("{field} exceeds {bits} bits")]
    Overflow {
        /// What was being read.
        field: &'static str,
        /// How many bits it may have.
        bits: u32,
    },
    /// A byte string of fixed length has another one.
    #[error("{field} has {got} bytes instead of {expected}")]
    UnexpectedLength {
        /// What was being read.
        field: &'static str,
        /// Bytes it must have.
        expected: usize,
        /// Bytes it has.
        got: usize,
    },
    /// A type byte that names no transaction type.
    #[error("transaction type {0} is not supported")]
    UnknownTransactionType(u8),
    /// A blob or set-code transaction without a receiver.
    #[error("a transaction of type {} cannot create a contract", *transaction_type as u8)]
    ContractCreation {
        /// Its type.
        transaction_type: TransactionType,
    },
    /// `v` is neither a y parity nor, for a legacy transaction, 27, 28 or a value of EIP-155 with a 64-bit chain id.
    #[error("signature v {v} is invalid")]
    InvalidV {
        /// The value found.
        v: U256,
    },
    /// A receipt's status is neither 0 nor 1 nor a state root.
    #[error("receipt status is invalid")]
    InvalidStatus,
    /// A version byte that names no form of a blob sidecar.
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
            DecodeError::ContractCreation { .. } => Self::Custom("transaction without receiver"),
            DecodeError::InvalidV { .. } => Self::Custom("invalid signature v"),
            DecodeError::InvalidStatus => Self::Custom("invalid receipt status"),
            DecodeError::UnknownSidecarVersion(_) => Self::Custom("unknown blob sidecar version"),
        }
    }
}
