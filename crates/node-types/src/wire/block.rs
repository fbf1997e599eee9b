//! Blocks.

use super::decode::wire_objects;
use super::header::header_object;
use super::{AddressData, BloomData, BytesData, Data, HashData, NonceData, Quantity64, Quantity256, Transaction};
use crate::H256;
use crate::consensus::{Header, HeaderField};
use serde::{Deserialize, Serialize};

wire_objects! {
    /// The response of getBlockByNumber.
    response GetBlockByNumberOutput {
        /// The block; null if it does not exist.
        block: Option<Block>,
    }
}

/// The response of getBlockByHash.
pub type GetBlockByHashOutput = GetBlockByNumberOutput;

header_object! {
    /// A block.
    Block as Response_Block {
        /// Base fee in wei per gas; null before London (EIP-1559).
        base_fee_per_gas: Option<Quantity64> = base_fee_per_gas,
        /// Proof-of-work difficulty; zero since the merge.
        difficulty: Quantity256 = difficulty,
        /// Up to 32 bytes that the producer chose.
        extra_data: BytesData = extra_data,
        /// Maximum gas of all transactions together.
        gas_limit: Quantity64 = gas_limit,
        /// Gas used by all transactions.
        gas_used: Quantity64 = gas_used,
        /// Hash of the block; null while it is pending.
        hash: Option<HashData>,
        /// Bloom filter of the block's logs; null while it is pending.
        logs_bloom: Option<BloomData> = logs_bloom,
        /// Recipient of the fees.
        miner: AddressData = beneficiary,
        /// Proof-of-work mix hash as a number; PREVRANDAO since the merge (EIP-4399).
        mix_hash: Quantity256 = mix_hash,
        /// Proof-of-work nonce; null while the block is pending.
        nonce: Option<NonceData> = nonce,
        /// Number of the block; null while it is pending.
        number: Option<Quantity64> = number,
        /// Hash of the parent.
        parent_hash: HashData = parent_hash,
        /// Root of the receipts trie.
        receipts_root: HashData = receipts_root,
        /// Keccak of the RLP list of ommer headers.
        sha3_uncles: HashData = ommers_hash,
        /// Length of the encoded block in bytes.
        size: Quantity64,
        /// Root of the state trie after the block.
        state_root: HashData = state_root,
        /// Unix time in seconds.
        timestamp: Quantity64 = timestamp,
        /// Sum of the difficulties of all blocks up to and including this one.
        total_difficulty: Quantity256,
        /// Transactions in the order of execution.
        transactions: BlockTransactions,
        /// Root of the trie of transactions.
        transactions_root: HashData = transactions_root,
        /// Hashes of the ommers.
        uncles: Vec<HashData>,
        /// Withdrawals; null before Shanghai (EIP-4895).
        withdrawals: Option<Vec<Withdrawal>>,
        /// Root of the trie of withdrawals; null before Shanghai (EIP-4895).
        withdrawals_root: Option<HashData> = withdrawals_root,
    }
}

impl Block {
    /// Returns the header of the block, after checking that its hash is [`hash`](Self::hash).
    ///
    /// A response alone proves nothing: compare the hash with one from another source. Blocks since Cancun
    /// have header fields that this form lacks; use [`BlockHeader::header`] or, on RLP, [`Header::decode`].
    ///
    /// # Errors
    /// [`InvalidBlock`] if the block is pending, lacks a field of an earlier fork than one that it has, or has another
    /// hash.
    pub fn header(&self) -> Result<Header, InvalidBlock> {
        checked(self.unchecked_header(), self.hash)
    }
}

wire_objects! {
    /// The response of getHeader.
    response GetHeaderOutput {
        /// The header; null if the block does not exist.
        header: Option<BlockHeader>,
    }
}

header_object! {
    /// A header with all fields. Those of later forks than the block's are null.
    BlockHeader as Response_Header {
        /// Base fee in wei per gas (EIP-1559).
        base_fee_per_gas: Option<Quantity64> = base_fee_per_gas,
        /// Blob gas used by all transactions (EIP-4844).
        blob_gas_used: Option<Quantity64> = blob_gas_used,
        /// Proof-of-work difficulty; zero since the merge.
        difficulty: Quantity256 = difficulty,
        /// Blob gas above the target, summed over the blocks (EIP-4844).
        excess_blob_gas: Option<Quantity64> = excess_blob_gas,
        /// Up to 32 bytes that the producer chose.
        extra_data: BytesData = extra_data,
        /// Maximum gas of all transactions together.
        gas_limit: Quantity64 = gas_limit,
        /// Gas used by all transactions.
        gas_used: Quantity64 = gas_used,
        /// Hash of the block; null while it is pending.
        hash: Option<HashData>,
        /// Bloom filter of the block's logs.
        logs_bloom: BloomData = logs_bloom,
        /// Recipient of the fees.
        miner: AddressData = beneficiary,
        /// Proof-of-work mix hash as a number; PREVRANDAO since the merge (EIP-4399).
        mix_hash: Quantity256 = mix_hash,
        /// Proof-of-work nonce.
        nonce: NonceData = nonce,
        /// Number of the block.
        number: Quantity64 = number,
        /// Root of the parent beacon block (EIP-4788).
        parent_beacon_block_root: Option<HashData> = parent_beacon_block_root,
        /// Hash of the parent.
        parent_hash: HashData = parent_hash,
        /// Root of the receipts trie.
        receipts_root: HashData = receipts_root,
        /// Hash of the execution requests (EIP-7685).
        requests_hash: Option<HashData> = requests_hash,
        /// Keccak of the RLP list of ommer headers.
        sha3_uncles: HashData = ommers_hash,
        /// Root of the state trie after the block.
        state_root: HashData = state_root,
        /// Unix time in seconds.
        timestamp: Quantity64 = timestamp,
        /// Root of the trie of transactions.
        transactions_root: HashData = transactions_root,
        /// Root of the trie of withdrawals (EIP-4895).
        withdrawals_root: Option<HashData> = withdrawals_root,
    }
}

impl BlockHeader {
    /// Returns the header, after checking that its hash is [`hash`](Self::hash).
    ///
    /// A response alone proves nothing: compare the hash with one from another source.
    ///
    /// # Errors
    /// [`InvalidBlock`] if the block is pending, lacks a field of an earlier fork than one that it has, or has another
    /// hash.
    pub fn header(&self) -> Result<Header, InvalidBlock> {
        checked(self.unchecked_header(), self.hash)
    }
}

/// Returns `header` if it has the hash `claimed` and the fields of one fork.
fn checked(header: Option<Header>, claimed: Option<HashData>) -> Result<Header, InvalidBlock> {
    let (Some(header), Some(Data(claimed))) = (header, claimed) else { return Err(InvalidBlock::Pending) };
    if !HeaderField::ALL.is_sorted_by_key(|field| !field.is_present(&header)) {
        return Err(InvalidBlock::MissingField);
    }
    let computed = header.hash();
    if computed == claimed { Ok(header) } else { Err(InvalidBlock::OtherHash { computed, claimed }) }
}

/// Why the fields of a [`Block`] or a [`BlockHeader`] are not those of a header with its hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBlock {
    /// A pending block has no hash.
    #[error("a pending block has no header")]
    Pending,
    /// A field is present without one of an earlier fork. Such a header has no encoding.
    #[error("a field of a fork is missing, but one of a later fork is present")]
    MissingField,
    /// The fields have another hash: they are wrong, or a [`Block`] is from Cancun or later.
    #[error("the header has the hash {computed:#x}, expected {claimed:#x}")]
    OtherHash { computed: H256, claimed: H256 },
}

/// The transactions of a block: whole, or only their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockTransactions {
    /// Whole transactions.
    Full(Vec<Transaction>),
    /// Hashes of the transactions.
    Hashes(Vec<H256>),
}

wire_objects! {
    /// A withdrawal from the consensus layer (EIP-4895).
    response Withdrawal as Response_Withdrawal {
        /// Recipient.
        address: AddressData,
        /// Amount in gwei.
        amount: Quantity64,
        /// Index of the withdrawal, ascending over all blocks.
        index: u64,
        /// Index of the validator.
        validator_index: u64,
    }
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
