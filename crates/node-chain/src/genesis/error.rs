//! Errors of genesis files.

/// Why a genesis file is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenesisError {
    /// The file is not JSON, or does not have the structure of a genesis file.
    #[error("not a genesis file")]
    Json(#[source] serde_json::Error),
    /// A required property is missing.
    #[error("{field} is missing")]
    Missing {
        /// Path of the property.
        field: String,
    },
    /// A property is not a number, or not the bytes that are expected.
    #[error("{field} is malformed")]
    Number {
        /// Path of the property.
        field: String,
        /// The cause.
        #[source]
        source: NumberError,
    },
    /// A property has the wrong JSON type.
    #[error("{field} has the wrong type")]
    Type {
        /// Path of the property.
        field: String,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
    /// A fork is unknown.
    #[error("unknown fork {key}")]
    UnknownFork {
        /// The property.
        key: String,
    },
    /// The chain uses another consensus engine than Ethereum's mainnet.
    #[error("consensus by {key} is not supported")]
    UnsupportedConsensus {
        /// The property.
        key: String,
    },
    /// A fork activates before an earlier one.
    #[error("{later} at {later_at} comes before {earlier} at {earlier_at}")]
    ForkOrder {
        /// The earlier fork.
        earlier: String,
        /// Its block number or timestamp.
        earlier_at: u64,
        /// The later fork.
        later: String,
        /// Its block number or timestamp.
        later_at: u64,
    },
    /// A fork is set although an earlier one is not.
    #[error("{later} is set, but {earlier}, which it requires, is not")]
    ForkMissing {
        /// The earlier fork, which is not set.
        earlier: String,
        /// The later fork, which is set.
        later: String,
    },
    /// EIP-155 and EIP-158 activate at different block numbers.
    #[error("eip155Block and eip158Block differ: {eip155:?} and {eip158:?}")]
    SplitSpuriousDragon {
        /// Block number of EIP-155.
        eip155: Option<u64>,
        /// Block number of EIP-158.
        eip158: Option<u64>,
    },
    /// An upgrade that changes blob parameters has no entry with them.
    #[error("blobSchedule has no entry {fork}")]
    BlobScheduleMissing {
        /// Name of the entry.
        fork: String,
    },
    /// The blob parameters of an entry are invalid.
    #[error(
        "blobSchedule.{fork}: target {target}, max {max}, update fraction {fraction}; \
         expected 0 < target <= max <= 2^32 and a fraction above 0"
    )]
    BlobSchedule {
        /// Name of the entry.
        fork: String,
        /// Target number of blobs per block.
        target: u64,
        /// Maximum number of blobs per block.
        max: u64,
        /// Update fraction of the blob base fee.
        fraction: u64,
    },
    /// A header field is set although its fork is not active at genesis.
    #[error("{field} is set, but its fork is not active at genesis")]
    UnexpectedField {
        /// The field.
        field: &'static str,
    },
    /// The number of the first block is not 0.
    #[error("number is {got}, expected 0")]
    BlockNumber {
        /// In the file.
        got: u64,
    },
    /// An account has two entries, with and without 0x.
    #[error("alloc has two entries for {address:#x}")]
    DuplicateAccount {
        /// The account.
        address: node_types::Address,
    },
}

/// Why a value is not a number, or not the expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// Neither a JSON integer nor a string.
    #[error("expected an unsigned integer, or a string with one")]
    NotANumber,
    /// A character is not a digit.
    #[error("expected decimal digits, or hex digits after 0x")]
    Digit,
    /// The number is too large.
    #[error("more than {bits} bits")]
    Overflow {
        /// Maximum number of bits.
        bits: u32,
    },
    /// A byte string has the wrong length.
    #[error("{got} bytes, expected {expected}")]
    Length {
        /// Actual length.
        got: usize,
        /// Expected length.
        expected: usize,
    },
}
