//! Why a block is invalid.

use node_core::executor::TransactionError;
use node_core::protocol::Fork;
use node_types::consensus::HeaderField;
use node_types::{Address, Bytes, H256, U256};

/// The rule that a block violates. `got` is the block's value, `expected` the correct one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    #[error("number {got}, expected {expected}")]
    Number { got: u64, expected: u64 },
    #[error("timestamp {got} is not after the parent's {parent}")]
    Timestamp { got: u64, parent: u64 },
    #[error("{length} bytes of extra data, at most 32 are allowed")]
    ExtraDataTooLong { length: usize },
    /// The extra data of the DAO fork is missing, or is present on a chain that refuses the fork (EIP-779).
    #[error("extra data {got}, {} that of the DAO fork", if *.supported { "expected" } else { "which must not be" })]
    DaoExtraData { got: Bytes, supported: bool },
    /// The gas limit differs from the parent's by a 1,024th of it or more (Yellow Paper, section 4.3.4).
    #[error("gas limit {got} is not within 1/1024 of the parent's {parent}")]
    GasLimitStep {
        got: u64,
        /// The parent's gas limit, doubled for the first London block.
        parent: u64,
    },
    #[error("gas limit {got} is not between 5000 and 2^63 - 1")]
    GasLimitRange { got: u64 },
    #[error("gas used {used} is above the gas limit {limit}")]
    GasUsedAboveLimit { used: u64, limit: u64 },
    #[error("difficulty {got}, expected {expected}")]
    Difficulty { got: U256, expected: U256 },
    /// The difficulty is not zero although the parent reaches the terminal total difficulty (EIP-3675).
    #[error("difficulty {got} after the merge, expected 0")]
    DifficultyAfterMerge { got: U256 },
    /// The difficulty is zero although the parent does not reach the terminal total difficulty (EIP-3675).
    #[error(
        "difficulty 0 before the merge: the total difficulty is {total_difficulty}, and the terminal total difficulty {}",
        .terminal.map_or_else(|| "is not set".to_owned(), |terminal| format!("is {terminal}"))
    )]
    MergedTooEarly {
        total_difficulty: U256,
        /// The chain's terminal total difficulty. `None` if the chain never merges.
        terminal: Option<U256>,
    },
    /// The nonce is not zero after the merge (EIP-3675).
    #[error("nonce {got} after the merge, expected 0")]
    NonceAfterMerge { got: u64 },
    /// There are ommers after the merge (EIP-3675).
    #[error("ommers after the merge")]
    OmmersAfterMerge,
    #[error("{field} is present in a block of {fork:?}")]
    UnexpectedField { field: HeaderField, fork: Fork },
    #[error("{field} is missing in a block of {fork:?}")]
    MissingField { field: HeaderField, fork: Fork },
    /// The base fee, in wei per gas, is wrong (EIP-1559).
    #[error("base fee {got}, expected {expected}")]
    BaseFee { got: u64, expected: u64 },
    /// The excess blob gas is wrong (EIP-4844, EIP-7918).
    #[error("excess blob gas {got}, expected {expected}")]
    ExcessBlobGas { got: u64, expected: u64 },
    /// The blob gas used exceeds the limit (EIP-4844).
    #[error("blob gas used {used} is above the limit {limit}")]
    BlobGasUsedAboveLimit { used: u64, limit: u64 },
    /// The blob gas used is not a multiple of the gas of a blob (EIP-4844).
    #[error("blob gas used {got} is not a multiple of a blob's")]
    BlobGasUsedFraction { got: u64 },
    /// The encoded block is too long (EIP-7934).
    #[error("the block has {size} bytes, at most {limit} are allowed")]
    BlockSize { size: u64, limit: u64 },
    #[error("ommers hash {got:#x}, expected {expected:#x}")]
    OmmersHash { got: H256, expected: H256 },
    #[error("transactions root {got:#x}, expected {expected:#x}")]
    TransactionsRoot { got: H256, expected: H256 },
    #[error("withdrawals root {got:#x}, expected {expected:#x}")]
    WithdrawalsRoot { got: H256, expected: H256 },
    #[error("the list of withdrawals is missing")]
    MissingWithdrawals,
    #[error("withdrawals before Shanghai")]
    UnexpectedWithdrawals,
    #[error("{count} ommers, at most 2 are allowed")]
    TooManyOmmers { count: usize },
    #[error("ommer {hash:#x} occurs twice in the block")]
    RepeatedOmmer { hash: H256 },
    #[error("ommer {hash:#x} is an ancestor of the block")]
    OmmerIsAncestor { hash: H256 },
    #[error("ommer {hash:#x} is included in an ancestor")]
    OmmerIncludedBefore { hash: H256 },
    /// The parent of an ommer is not an ancestor of the second to seventh generation.
    #[error("the parent {parent:#x} of ommer {hash:#x} is not an ancestor of the second to seventh generation")]
    OmmerParent { hash: H256, parent: H256 },
    #[error("the header of ommer {hash:#x} is invalid")]
    OmmerHeader { hash: H256, source: Box<BlockError> },
    #[error("transaction {index} is invalid")]
    Transaction { index: usize, source: TransactionError },
    #[error("the executor refuses the block outside of its transactions")]
    Refused(#[source] TransactionError),
    /// A system contract is missing or failed (EIP-6110, EIP-7002, EIP-7251).
    #[error("system contract {address:#x}: {reason}")]
    SystemContract { address: Address, reason: String },
    #[error("gas used {got}, expected {expected}")]
    GasUsed { got: u64, expected: u64 },
    #[error("blob gas used {got}, expected {expected}")]
    BlobGasUsed { got: u64, expected: u64 },
    #[error("the logs bloom does not match the logs")]
    LogsBloom,
    #[error("receipts root {got:#x}, expected {expected:#x}")]
    ReceiptsRoot { got: H256, expected: H256 },
    /// The requests hash does not match the requests of the execution (EIP-7685).
    #[error("requests hash {got:#x}, expected {expected:#x}")]
    RequestsHash { got: H256, expected: H256 },
    #[error("state root {got:#x}, expected {expected:#x}")]
    StateRoot { got: H256, expected: H256 },
}
