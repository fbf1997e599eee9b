//! Blocks.

use super::decode::wire_objects;
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

wire_objects! {
    /// A block.
    response Block as Response_Block {
        /// Base fee in wei per gas; null before London (EIP-1559).
        base_fee_per_gas: Option<Quantity64>,
        /// Proof-of-work difficulty; zero since the merge.
        difficulty: Quantity256,
        /// Up to 32 bytes that the producer chose.
        extra_data: BytesData,
        /// Maximum gas of all transactions together.
        gas_limit: Quantity64,
        /// Gas used by all transactions.
        gas_used: Quantity64,
        /// Hash of the block; null while it is pending.
        hash: Option<HashData>,
        /// Bloom filter of the block's logs; null while it is pending.
        logs_bloom: Option<BloomData>,
        /// Recipient of the fees.
        miner: AddressData,
        /// Proof-of-work mix hash as a number; PREVRANDAO since the merge (EIP-4399).
        mix_hash: Quantity256,
        /// Proof-of-work nonce; null while the block is pending.
        nonce: Option<NonceData>,
        /// Number of the block; null while it is pending.
        number: Option<Quantity64>,
        /// Hash of the parent.
        parent_hash: HashData,
        /// Root of the receipts trie.
        receipts_root: HashData,
        /// Keccak of the RLP list of ommer headers.
        sha3_uncles: HashData,
        /// Length of the encoded block in bytes.
        size: Quantity64,
        /// Root of the state trie after the block.
        state_root: HashData,
        /// Unix time in seconds.
        timestamp: Quantity64,
        /// Sum of the difficulties of all blocks up to and including this one.
        total_difficulty: Quantity256,
        /// Transactions in the order of execution.
        transactions: BlockTransactions,
        /// Root of the trie of transactions.
        transactions_root: HashData,
        /// Hashes of the ommers.
        uncles: Vec<HashData>,
        /// Withdrawals; null before Shanghai (EIP-4895).
        withdrawals: Option<Vec<Withdrawal>>,
        /// Root of the trie of withdrawals; null before Shanghai (EIP-4895).
        withdrawals_root: Option<HashData>,
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
        let (Some(number), Some(logs_bloom), Some(nonce)) = (self.number, self.logs_bloom, self.nonce) else {
            return Err(InvalidBlock::Pending);
        };
        let header = BlockHeader {
            base_fee_per_gas: self.base_fee_per_gas,
            difficulty: self.difficulty,
            extra_data: self.extra_data.clone(),
            gas_limit: self.gas_limit,
            gas_used: self.gas_used,
            hash: self.hash,
            logs_bloom,
            miner: self.miner,
            mix_hash: self.mix_hash,
            nonce,
            number,
            parent_hash: self.parent_hash,
            receipts_root: self.receipts_root,
            sha3_uncles: self.sha3_uncles,
            state_root: self.state_root,
            timestamp: self.timestamp,
            transactions_root: self.transactions_root,
            withdrawals_root: self.withdrawals_root,
            ..BlockHeader::default()
        };
        header.header()
    }
}

wire_objects! {
    /// The response of getHeader.
    response GetHeaderOutput {
        /// The header; null if the block does not exist.
        header: Option<BlockHeader>,
    }

    /// A header with all fields. Those of later forks than the block's are null.
    response BlockHeader as Response_Header {
        /// Base fee in wei per gas (EIP-1559).
        base_fee_per_gas: Option<Quantity64>,
        /// Blob gas used by all transactions (EIP-4844).
        blob_gas_used: Option<Quantity64>,
        /// Proof-of-work difficulty; zero since the merge.
        difficulty: Quantity256,
        /// Blob gas above the target, summed over the blocks (EIP-4844).
        excess_blob_gas: Option<Quantity64>,
        /// Up to 32 bytes that the producer chose.
        extra_data: BytesData,
        /// Maximum gas of all transactions together.
        gas_limit: Quantity64,
        /// Gas used by all transactions.
        gas_used: Quantity64,
        /// Hash of the block; null while it is pending.
        hash: Option<HashData>,
        /// Bloom filter of the block's logs.
        logs_bloom: BloomData,
        /// Recipient of the fees.
        miner: AddressData,
        /// Proof-of-work mix hash as a number; PREVRANDAO since the merge (EIP-4399).
        mix_hash: Quantity256,
        /// Proof-of-work nonce.
        nonce: NonceData,
        /// Number of the block.
        number: Quantity64,
        /// Root of the parent beacon block (EIP-4788).
        parent_beacon_block_root: Option<HashData>,
        /// Hash of the parent.
        parent_hash: HashData,
        /// Root of the receipts trie.
        receipts_root: HashData,
        /// Hash of the execution requests (EIP-7685).
        requests_hash: Option<HashData>,
        /// Keccak of the RLP list of ommer headers.
        sha3_uncles: HashData,
        /// Root of the state trie after the block.
        state_root: HashData,
        /// Unix time in seconds.
        timestamp: Quantity64,
        /// Root of the trie of transactions.
        transactions_root: HashData,
        /// Root of the trie of withdrawals (EIP-4895).
        withdrawals_root: Option<HashData>,
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
        let header = Header {
            parent_hash: *self.parent_hash,
            ommers_hash: *self.sha3_uncles,
            beneficiary: *self.miner,
            state_root: *self.state_root,
            transactions_root: *self.transactions_root,
            receipts_root: *self.receipts_root,
            logs_bloom: *self.logs_bloom,
            difficulty: *self.difficulty,
            number: *self.number,
            gas_limit: *self.gas_limit,
            gas_used: *self.gas_used,
            timestamp: *self.timestamp,
            extra_data: self.extra_data.0.clone(),
            mix_hash: H256(self.mix_hash.to_big_endian()),
            nonce: *self.nonce,
            base_fee_per_gas: self.base_fee_per_gas.map(|fee| *fee),
            withdrawals_root: self.withdrawals_root.map(|root| *root),
            blob_gas_used: self.blob_gas_used.map(|gas| *gas),
            excess_blob_gas: self.excess_blob_gas.map(|gas| *gas),
            parent_beacon_block_root: self.parent_beacon_block_root.map(|root| *root),
            requests_hash: self.requests_hash.map(|hash| *hash),
        };
        let claimed = *self.hash.ok_or(InvalidBlock::Pending)?;
        if !HeaderField::ALL.is_sorted_by_key(|field| !field.is_present(&header)) {
            return Err(InvalidBlock::MissingField);
        }
        let computed = header.hash();
        if computed == claimed { Ok(header) } else { Err(InvalidBlock::OtherHash { computed, claimed }) }
    }
}

/// Why the fields of a [`Block`] or a [`BlockHeader`] are not those of a header with its hash.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
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
    response Withdrawal as Response_Withdrawals {
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
