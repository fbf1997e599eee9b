//! Why a genesis file is refused.

/// What is wrong with a genesis file.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// Not JSON, or not of the shape of a genesis file.
    #[error("not a genesis file")]
    Json(#[source] serde_json::Error),
    /// A required property is missing.
    #[error("{field} is missing")]
    Missing {
        /// Its path.
        field: String,
    },
    /// A property is not the number or the bytes that it has to be.
    #[error("{field} is malformed")]
    Number {
        /// Its path.
        field: String,
        /// What is wrong with it.
        #[source]
        source: NumberError,
    },
    /// A property has a value of another JSON type.
    #[error("{field} has the wrong type")]
    Type {
        /// Its path.
        field: String,
        /// What the parser says.
        #[source]
        source: serde_json::Error,
    },
    /// A fork that is not known here.
    #[error("unknown fork {key}")]
    UnknownFork {
        /// The property that names it.
        key: String,
    },
    /// Sealing by other rules than those of Ethereum's mainnet.
    #[error("consensus by {key} is not supported")]
    UnsupportedConsensus {
        /// The property that names it.
        key: String,
    },
    /// A fork comes before one that it builds on.
    #[error("{later} at {later_at} comes before {earlier} at {earlier_at}")]
    ForkOrder {
        /// The fork that has to come first.
        earlier: String,
        /// Its height or time.
        earlier_at: u64,
        /// The fork that builds on it.
        later: String,
        /// Its height or time.
        later_at: u64,
    },
    /// A fork is set, and one that it builds on is not.
    #[error("{later} is set, and {earlier}, which it builds on, is not")]
    ForkMissing {
        /// The one that is not set.
        earlier: String,
        /// The one that is.
        later: String,
    },
    /// EIP-155 and EIP-158 come into force at different heights.
    #[error("eip155Block and eip158Block differ: {eip155:?} and {eip158:?}")]
    SplitSpuriousDragon {
        /// Height of the one.
        eip155: Option<u64>,
        /// Height of the other.
        eip158: Option<u64>,
    },
    /// A change of blob parameters without the parameters.
    #[error("blobSchedule has no entry {fork}")]
    BlobScheduleMissing {
        /// The entry.
        fork: String,
    },
    /// Blob parameters that no chain can have.
    #[error(
        "blobSchedule.{fork}: target {target}, max {max}, update fraction {fraction}; \
         expected 0 < target <= max <= 2^32 and a fraction above 0"
    )]
    BlobSchedule {
        /// The entry.
        fork: String,
        /// Blobs a block at which the fee stays as it is.
        target: u64,
        /// Most blobs a block.
        max: u64,
        /// Denominator of the exponent.
        fraction: u64,
    },
    /// A header field whose fork is not in force at genesis.
    #[error("{field} is set before its fork")]
    UnexpectedField {
        /// The field.
        field: &'static str,
    },
    /// The first block has another number than 0.
    #[error("number is {got}, expected 0")]
    BlockNumber {
        /// In the file.
        got: u64,
    },
    /// Two entries for one account, with and without 0x.
    #[error("alloc names {address:#x} twice")]
    DuplicateAccount {
        /// The account.
        address: node_types::Address,
    },
}

/// Why a string is no number, or not the bytes expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Neither a JSON integer nor a string.
    #[error("expected an unsigned integer, or a string with one")]
    NotANumber,
    /// A character that is no digit.
    #[error("expected decimal digits, or hex digits after 0x")]
    Digit,
    /// More bits than fit.
    #[error("more than {bits} bits")]
    Overflow {
        /// How many fit.
        bits: u32,
    },
    /// A byte string of another length.
    #[error("{got} bytes, expected {expected}")]
    Length {
        /// Its length.
        got: usize,
        /// The length it must have.
        expected: usize,
    },
}
