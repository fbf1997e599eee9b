//! Errors of genesis files.

/// Why a genesis file is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenesisError {
    #[error("not a genesis file")]
    Json(#[source] serde_json::Error),
    #[error("{field} is missing")]
    Missing { field: String },
    #[error("{field} is malformed")]
    Number { field: String, source: NumberError },
    #[error("{field} has the wrong type")]
    Type { field: String, source: serde_json::Error },
    /// A key differs from a known one only in case. geth would accept it as the known one.
    #[error("{key} must be spelled {known}")]
    Spelling { key: String, known: &'static str },
    #[error("unknown fork {key}")]
    UnknownFork { key: String },
    #[error("consensus by {key} is not supported")]
    UnsupportedConsensus { key: String },
    #[error("{later} at {later_at} comes before {earlier} at {earlier_at}")]
    ForkOrder { earlier: String, earlier_at: u64, later: String, later_at: u64 },
    #[error("{later} is set, but {earlier}, which it requires, is not")]
    ForkMissing { earlier: String, later: String },
    /// EIP-155 and EIP-158 activate at different block numbers.
    #[error(
        "eip155Block is {} and eip158Block is {}, but they must be equal",
        block_or_not_set(.eip155),
        block_or_not_set(.eip158)
    )]
    SplitSpuriousDragon { eip155: Option<u64>, eip158: Option<u64> },
    #[error("blobSchedule has no entry {fork}")]
    BlobScheduleMissing { fork: String },
    /// The blob parameters of an entry are invalid.
    #[error(
        "blobSchedule.{fork}: target {target}, max {max}, update fraction {fraction}; \
         expected 0 < target <= max <= 2^32 and a fraction above 0"
    )]
    BlobSchedule { fork: String, target: u64, max: u64, fraction: u64 },
    #[error("{field} is set, but its fork is not active at genesis")]
    UnexpectedField { field: &'static str },
    #[error("number is {got}, expected 0")]
    BlockNumber { got: u64 },
    #[error("alloc has two entries for {address:#x}")]
    DuplicateAccount { address: node_types::Address },
    #[error("alloc.{account} has two entries for the slot {slot:#x}")]
    DuplicateSlot { account: String, slot: node_types::H256 },
    #[error("stateRoot is {stated:#x}, but the root of the accounts in alloc is {computed:#x}")]
    StateRoot { computed: node_types::H256, stated: node_types::H256 },
    /// The accounts of a large genesis cannot be sorted in temporary files.
    #[error("the accounts cannot be sorted in temporary files")]
    Scratch(#[source] std::io::Error),
    #[error(transparent)]
    Interrupted(#[from] node_core::context::Interrupted),
}

fn block_or_not_set(block: &Option<u64>) -> String {
    block.map_or_else(|| "not set".to_owned(), |block| block.to_string())
}

/// Why a value is not a number, or not the expected bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    #[error("expected an unsigned integer, or a string with one")]
    NotANumber,
    #[error("expected decimal digits, or hex digits after 0x")]
    Digit,
    #[error("an odd number of hex digits: {digits}")]
    OddDigits { digits: usize },
    #[error("more than {bits} bits")]
    Overflow { bits: u32 },
    #[error("{got} bytes, expected {expected}")]
    Length { got: usize, expected: usize },
}
