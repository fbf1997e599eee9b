//! Blocks.

use super::{AddressData, BloomData, BytesData, Data, HashData, NonceData, Quantity64, Quantity256, Transaction};
use crate::H256;
use serde::{Deserialize, Serialize};

/// The response of getBlockByNumber.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getBlockByNumber))]
#[serde(rename_all = "PascalCase")]
pub struct GetBlockByNumberOutput {
    /// The block; null if it does not exist.
    pub block: Option<Block>,
}

/// The response of getBlockByHash.
pub type GetBlockByHashOutput = GetBlockByNumberOutput;

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Response_Block))]
#[serde(rename_all = "PascalCase")]
pub struct Block {
    /// Base fee in wei per gas; null before London (EIP-1559).
    pub base_fee_per_gas: Option<Quantity64>,
    /// Proof-of-work difficulty; zero since the merge.
    pub difficulty: Quantity256,
    /// Up to 32 bytes that the producer chose.
    pub extra_data: BytesData,
    /// Most gas that all transactions together may use.
    pub gas_limit: Quantity64,
    /// Gas used by all transactions.
    pub gas_used: Quantity64,
    /// Hash of the block; null while it is pending.
    pub hash: Option<HashData>,
    /// Bloom filter of the block's logs; null while it is pending.
    pub logs_bloom: Option<BloomData>,
    /// Recipient of the fees.
    pub miner: AddressData,
    /// Proof-of-work mix hash as a number; PREVRANDAO since the merge (EIP-4399).
    pub mix_hash: Quantity256,
    /// Proof-of-work nonce; null while the block is pending.
    pub nonce: Option<NonceData>,
    /// Number of the block; null while it is pending.
    pub number: Option<Quantity64>,
    /// Hash of the parent.
    pub parent_hash: HashData,
    /// Root of the receipts trie.
    pub receipts_root: HashData,
    /// Keccak of the RLP list of ommer headers.
    pub sha3_uncles: HashData,
    /// Length of the encoded block in bytes.
    pub size: Quantity64,
    /// Root of the state trie after the block.
    pub state_root: HashData,
    /// Unix time in seconds.
    pub timestamp: Quantity64,
    /// Sum of the difficulties of all blocks up to and including this one.
    pub total_difficulty: Quantity256,
    /// Transactions in the order of execution.
    pub transactions: BlockTransactions,
    /// Root of the trie of transactions.
    pub transactions_root: HashData,
    /// Hashes of the ommers.
    pub uncles: Vec<HashData>,
    /// Withdrawals; null before Shanghai (EIP-4895).
    pub withdrawals: Option<Vec<Withdrawal>>,
    /// Root of the trie of withdrawals; null before Shanghai (EIP-4895).
    pub withdrawals_root: Option<HashData>,
}

/// The transactions of a block: whole, or only their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockTransactions {
    /// Whole transactions.
    Full(Vec<Transaction>),
    /// Hashes of the transactions.
    Hashes(Vec<H256>),
}

/// A withdrawal from the consensus layer (EIP-4895).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Response_Withdrawals))]
#[serde(rename_all = "PascalCase")]
pub struct Withdrawal {
    /// Recipient.
    pub address: AddressData,
    /// Amount in gwei.
    pub amount: Quantity64,
    /// Index of the withdrawal, ascending over all blocks.
    pub index: u64,
    /// Index of the validator.
    pub validator_index: u64,
}

impl Default for BlockTransactions {
    fn default() -> Self {
        Self::Hashes(Vec::new())
    }
}

/// The hash-only form of a transaction.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct TransactionHash {
    hash: Data<H256>,
}

/// An element of the array of a block's transactions.
#[derive(Deserialize)]
#[serde(untagged)]
enum TransactionOrHash {
    Hash(TransactionHash),
    Full(Box<Transaction>),
}

impl Serialize for BlockTransactions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Full(transactions) => transactions.serialize(serializer),
            Self::Hashes(hashes) => {
                serializer.collect_seq(hashes.iter().map(|hash| TransactionHash { hash: Data(*hash) }))
            }
        }
    }
}

impl<'de> Deserialize<'de> for BlockTransactions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut full = Vec::new();
        let mut hashes = Vec::new();
        for item in Vec::<TransactionOrHash>::deserialize(deserializer)? {
            match item {
                TransactionOrHash::Full(transaction) => full.push(*transaction),
                TransactionOrHash::Hash(TransactionHash { hash }) => hashes.push(hash.0),
            }
        }
        match (full.is_empty(), hashes.is_empty()) {
            (true, _) => Ok(Self::Hashes(hashes)),
            (false, true) => Ok(Self::Full(full)),
            (false, false) => Err(serde::de::Error::custom("whole transactions and hashes in one block")),
        }
    }
}
