//! Why a block is invalid.

use node_core::executor::TransactionError;
use node_core::forks::Fork;
use node_types::consensus::HeaderField;
use node_types::{Address, Bytes, H256, U256};

/// The rule that a block breaks. `got` is what the block says, `expected` what it has to say.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// Not one above the parent.
    #[error("number {got}, expected {expected}")]
    Number {
        /// In the header.
        got: u64,
        /// One above the parent's.
        expected: u64,
    },
    /// Not after the parent.
    #[error("timestamp {got} is not after the parent's {parent}")]
    Timestamp {
        /// In the header.
        got: u64,
        /// The parent's.
        parent: u64,
    },
    /// Extra data too long.
    #[error("{length} bytes of extra data, at most 32 are allowed")]
    ExtraDataTooLong {
        /// Length in bytes.
        length: usize,
    },
    /// Not the extra data that the ten blocks from the DAO fork on must have.
    #[error("extra data {got}, expected that of the DAO fork")]
    DaoExtraData {
        /// In the header.
        got: Bytes,
    },
    /// Gas limit too far from the parent's.
    #[error("gas limit {got} is not within 1/1024 of the parent's {parent}")]
    GasLimitStep {
        /// In the header.
        got: u64,
        /// The parent's; doubled for the first London block.
        parent: u64,
    },
    /// Gas limit outside what any block may have.
    #[error("gas limit {got} is not between 5000 and 2^63 - 1")]
    GasLimitRange {
        /// In the header.
        got: u64,
    },
    /// More gas used than allowed.
    #[error("gas used {used} is above the gas limit {limit}")]
    GasUsedAboveLimit {
        /// In the header.
        used: u64,
        /// In the header.
        limit: u64,
    },
    /// Wrong difficulty of a proof-of-work block.
    #[error("difficulty {got}, expected {expected}")]
    Difficulty {
        /// In the header.
        got: U256,
        /// By the fork's formula.
        expected: U256,
    },
    /// A proof-of-work block where the terminal total difficulty is reached (EIP-3675).
    #[error("difficulty {got} after the merge, expected 0")]
    DifficultyAfterMerge {
        /// In the header.
        got: U256,
    },
    /// A block without difficulty before the terminal total difficulty is reached (EIP-3675).
    #[error("difficulty 0 before the merge: total difficulty {total_difficulty}, terminal {terminal:?}")]
    MergedTooEarly {
        /// The parent's.
        total_difficulty: U256,
        /// The chain's; none if it never merges.
        terminal: Option<U256>,
    },
    /// A nonce after the merge (EIP-3675).
    #[error("nonce {got} after the merge, expected 0")]
    NonceAfterMerge {
        /// In the header, as a number.
        got: u64,
    },
    /// Ommers after the merge (EIP-3675).
    #[error("ommers after the merge")]
    OmmersAfterMerge,
    /// A header field whose fork is not in force yet.
    #[error("{field} is present in a block of {fork:?}")]
    UnexpectedField {
        /// The field.
        field: HeaderField,
        /// The fork in force.
        fork: Fork,
    },
    /// A header field that the fork demands is missing.
    #[error("{field} is missing in a block of {fork:?}")]
    MissingField {
        /// The field.
        field: HeaderField,
        /// The fork in force.
        fork: Fork,
    },
    /// Wrong base fee (EIP-1559).
    #[error("base fee {got}, expected {expected}")]
    BaseFee {
        /// In the header.
        got: u64,
        /// From the parent.
        expected: u64,
    },
    /// Wrong excess blob gas (EIP-4844, EIP-7918).
    #[error("excess blob gas {got}, expected {expected}")]
    ExcessBlobGas {
        /// In the header.
        got: u64,
        /// From the parent.
        expected: u64,
    },
    /// More blob gas used than allowed (EIP-4844).
    #[error("blob gas used {used} is above the limit {limit}")]
    BlobGasUsedAboveLimit {
        /// In the header.
        used: u64,
        /// At the block's time.
        limit: u64,
    },
    /// Blob gas used that is no multiple of a blob's (EIP-4844).
    #[error("blob gas used {got} is no multiple of a blob's")]
    BlobGasUsedFraction {
        /// In the header.
        got: u64,
    },
    /// The encoded block is too long (EIP-7934).
    #[error("the block has {size} bytes, at most {limit} are allowed")]
    BlockSize {
        /// Length of the encoding in bytes.
        size: u64,
        /// Allowed.
        limit: u64,
    },
    /// The ommers are not those of the header.
    #[error("ommers hash {got:#x}, expected {expected:#x}")]
    OmmersHash {
        /// In the header.
        got: H256,
        /// Of the body.
        expected: H256,
    },
    /// The transactions are not those of the header.
    #[error("transactions root {got:#x}, expected {expected:#x}")]
    TransactionsRoot {
        /// In the header.
        got: H256,
        /// Of the body.
        expected: H256,
    },
    /// The withdrawals are not those of the header.
    #[error("withdrawals root {got:#x}, expected {expected:#x}")]
    WithdrawalsRoot {
        /// In the header.
        got: H256,
        /// Of the body.
        expected: H256,
    },
    /// No list of withdrawals in the body since Shanghai.
    #[error("the list of withdrawals is missing")]
    MissingWithdrawals,
    /// A list of withdrawals in the body before Shanghai.
    #[error("withdrawals before Shanghai")]
    UnexpectedWithdrawals,
    /// Too many ommers.
    #[error("{count} ommers, at most 2 are allowed")]
    TooManyOmmers {
        /// How many.
        count: usize,
    },
    /// One ommer twice in a block.
    #[error("ommer {hash:#x} stands twice in the block")]
    RepeatedOmmer {
        /// The ommer.
        hash: H256,
    },
    /// An ommer that is no ommer, but an ancestor.
    #[error("ommer {hash:#x} is an ancestor of the block")]
    OmmerIsAncestor {
        /// The ommer.
        hash: H256,
    },
    /// An ommer that an ancestor has already.
    #[error("ommer {hash:#x} is included in an ancestor")]
    OmmerIncludedBefore {
        /// The ommer.
        hash: H256,
    },
    /// The ommer's parent is no ancestor of the second to the seventh generation.
    #[error("the parent {parent:#x} of ommer {hash:#x} is no ancestor of the second to seventh generation")]
    OmmerParent {
        /// The ommer.
        hash: H256,
        /// Its parent.
        parent: H256,
    },
    /// The ommer's own header is invalid.
    #[error("the header of ommer {hash:#x} is invalid")]
    OmmerHeader {
        /// The ommer.
        hash: H256,
        /// Why.
        #[source]
        source: Box<BlockError>,
    },
    /// A transaction is invalid.
    #[error("transaction {index} is invalid")]
    Transaction {
        /// Its position in the block.
        index: usize,
        /// Why.
        #[source]
        source: TransactionError,
    },
    /// The executor refuses what comes before or after all transactions.
    #[error("the executor refuses the block apart from its transactions")]
    Refused(#[source] TransactionError),
    /// A system contract is missing or failed (EIP-6110, EIP-7002, EIP-7251).
    #[error("system contract {address:#x}: {reason}")]
    SystemContract {
        /// The contract.
        address: Address,
        /// What happened.
        reason: String,
    },
    /// Execution used another amount of gas.
    #[error("gas used {got}, expected {expected}")]
    GasUsed {
        /// In the header.
        got: u64,
        /// By execution.
        expected: u64,
    },
    /// Execution used another amount of blob gas.
    #[error("blob gas used {got}, expected {expected}")]
    BlobGasUsed {
        /// In the header.
        got: u64,
        /// By execution.
        expected: u64,
    },
    /// Execution gave other logs.
    #[error("the logs bloom is not that of the logs")]
    LogsBloom,
    /// Execution gave other receipts.
    #[error("receipts root {got:#x}, expected {expected:#x}")]
    ReceiptsRoot {
        /// In the header.
        got: H256,
        /// By execution.
        expected: H256,
    },
    /// Execution gave other requests (EIP-7685).
    #[error("requests hash {got:#x}, expected {expected:#x}")]
    RequestsHash {
        /// In the header.
        got: H256,
        /// By execution.
        expected: H256,
    },
    /// Execution led to another state.
    #[error("state root {got:#x}, expected {expected:#x}")]
    StateRoot {
        /// In the header.
        got: H256,
        /// By execution.
        expected: H256,
    },
}
