//! Errors of genesis files.

/// Why a genesis file is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum GenesisError {
    /// The file is not JSON, or does not have the structure of a genesis file.
    #[error("not a genesis file")]
    Json(#[source] serde_json::Error),
    /// A required property is missing.
    #[error("{field} is missing")]
    Missing { field: String },
    /// A property is not a number, or not the bytes that are expected.
    #[error("{field} is malformed")]
    Number { field: String, source: NumberError },
    /// A property has the wrong JSON type.
    #[error("{field} has the wrong type")]
    Type { field: String, source: serde_json::Error },
    /// A key differs from a known one only in case. geth would accept it as the known one.
    #[error("{key} must be spelled {known}")]
    Spelling { key: String, known: &'static str },
    /// A fork is unknown.
    #[error("unknown fork {key}")]
    UnknownFork { key: String },
    /// The chain uses a different consensus engine than Ethereum's mainnet.
    #[error("consensus by {key} is not supported")]
    UnsupportedConsensus { key: String },
    /// A fork activates before an earlier one.
    #[error("{later} at {later_at} comes before {earlier} at {earlier_at}")]
    ForkOrder { earlier: String, earlier_at: u64, later: String, later_at: u64 },
    /// A fork is set although an earlier one is not.
    #[error("{later} is set, but {earlier}, which it requires, is not")]
    ForkMissing { earlier: String, later: String },
    /// EIP-155 and EIP-158 activate at different block numbers.
    #[error(
        "eip155Block is {} and eip158Block is {}, but they must be equal",
        block_or_not_set(.eip155),
        block_or_not_set(.eip158)
    )]
    SplitSpuriousDragon { eip155: Option<u64>, eip158: Option<u64> },
    /// An upgrade that changes blob parameters has no entry with them.
    #[error("blobSchedule has no entry {fork}")]
    BlobScheduleMissing { fork: String },
    /// The blob parameters of an entry are invalid.
    #[error(
        "blobSchedule.{fork}: target {target}, max {max}, update fraction {fraction}; \
         expected 0 < target <= max <= 2^32 and a fraction above 0"
    )]
    BlobSchedule { fork: String, target: u64, max: u64, fraction: u64 },
    /// A header field is set although its fork is not active at genesis.
    #[error("{field} is set, but its fork is not active at genesis")]
    UnexpectedField { field: &'static str },
    /// The number of the first block is not 0.
    #[error("number is {got}, expected 0")]
    BlockNumber { got: u64 },
    /// An account has two entries, with and without 0x.
    #[error("alloc has two entries for {address:#x}")]
    DuplicateAccount { address: node_types::Address },
    /// A slot of an account has two entries.
    #[error("alloc.{account} has two entries for the slot {slot:#x}")]
    DuplicateSlot { account: String, slot: node_types::H256 },
    /// The file states another root than that of its accounts.
    #[error("stateRoot is {stated:#x}, but the root of the accounts in alloc is {computed:#x}")]
    StateRoot { computed: node_types::H256, stated: node_types::H256 },
    /// The accounts of a large genesis cannot be sorted in temporary files.
    #[error("the accounts cannot be sorted in temporary files")]
    Scratch(#[source] std::io::Error),
    /// The context was cancelled, or its deadline has passed.
    #[error(transparent)]
    Interrupted(#[from] node_core::context::Interrupted),
}

fn block_or_not_set(block: &Option<u64>) -> String {
    block.map_or_else(|| "not set".to_owned(), |block| block.to_string())
}

/// Why a value is not a number, or not the expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum NumberError {
    /// Neither a JSON integer nor a string.
    #[error("expected an unsigned integer, or a string with one")]
    NotANumber,
    /// A character is not a digit.
    #[error("expected decimal digits, or hex digits after 0x")]
    Digit,
    /// A byte string ends with half a byte.
    #[error("an odd number of hex digits: {digits}")]
    OddDigits { digits: usize },
    /// The number is too large.
    #[error("more than {bits} bits")]
    Overflow { bits: u32 },
    /// A byte string has the wrong length.
    #[error("{got} bytes, expected {expected}")]
    Length { got: usize, expected: usize },
}
