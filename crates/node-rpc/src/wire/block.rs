//! Blocks and headers.

use super::{Hex, Transaction};
use node_core::block::SealedHeader;
use node_core::node::FoundBlock;
use node_types::consensus::{self, BlockNonce, Bloom};
use node_types::wire::{AddressData, BytesData, Data, HashData};
use node_types::{H256, U256};
use serde::{Deserialize, Serialize};

/// A header, in the format of newHeads.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    #[serde(skip_serializing_if = "Option::is_none")]
    base_fee_per_gas: Option<Hex<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<Hex<u64>>,
    difficulty: Hex<U256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_blob_gas: Option<Hex<u64>>,
    extra_data: BytesData,
    gas_limit: Hex<u64>,
    gas_used: Hex<u64>,
    hash: Option<HashData>,
    logs_bloom: Data<Bloom>,
    miner: Option<AddressData>,
    mix_hash: HashData,
    nonce: Option<Data<BlockNonce>>,
    number: Hex<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_beacon_block_root: Option<HashData>,
    parent_hash: HashData,
    receipts_root: HashData,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_hash: Option<HashData>,
    sha3_uncles: HashData,
    state_root: HashData,
    timestamp: Hex<u64>,
    transactions_root: HashData,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawals_root: Option<HashData>,
}

/// A block, with full transactions or with their hashes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    #[serde(flatten)]
    header: Header,
    size: Hex<u64>,
    transactions: Transactions,
    uncles: Vec<HashData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawals: Option<Vec<Withdrawal>>,
}

/// An ommer, of which only the header is known.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ommer {
    #[serde(flatten)]
    header: Header,
    size: Hex<u64>,
    uncles: [HashData; 0],
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Transactions {
    Whole(Vec<Transaction>),
    Hashes(Vec<HashData>),
}

/// A balance increase ordered by the consensus layer (EIP-4895).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Withdrawal {
    index: Hex<u64>,
    validator_index: Hex<u64>,
    address: AddressData,
    amount: Hex<u64>,
}

impl Header {
    /// Converts the header of a sealed block.
    pub(crate) fn of(sealed: &SealedHeader) -> Self {
        Self::new(sealed.hash, &sealed.header)
    }

    /// Converts the header of a block. A pending block has no hash, nonce and miner, because it is not sealed.
    pub(crate) fn of_found(found: &FoundBlock) -> Self {
        let header = Self::of(&found.header);
        if found.pending { Self { hash: None, nonce: None, miner: None, ..header } } else { header }
    }

    fn new(hash: H256, header: &consensus::Header) -> Self {
        Self {
            base_fee_per_gas: header.base_fee_per_gas.map(Hex),
            blob_gas_used: header.blob_gas_used.map(Hex),
            difficulty: Hex(header.difficulty),
            excess_blob_gas: header.excess_blob_gas.map(Hex),
            extra_data: Data(header.extra_data.clone()),
            gas_limit: Hex(header.gas_limit),
            gas_used: Hex(header.gas_used),
            hash: Some(Data(hash)),
            logs_bloom: Data(header.logs_bloom),
            miner: Some(Data(header.beneficiary)),
            mix_hash: Data(header.mix_hash),
            nonce: Some(Data(header.nonce)),
            number: Hex(header.number),
            parent_beacon_block_root: header.parent_beacon_block_root.map(Data),
            parent_hash: Data(header.parent_hash),
            receipts_root: Data(header.receipts_root),
            requests_hash: header.requests_hash.map(Data),
            sha3_uncles: Data(header.ommers_hash),
            state_root: Data(header.state_root),
            timestamp: Hex(header.timestamp),
            transactions_root: Data(header.transactions_root),
            withdrawals_root: header.withdrawals_root.map(Data),
        }
    }
}

impl Block {
    /// Converts a block; with full transactions if `whole`.
    pub(crate) fn of(found: &FoundBlock, whole: bool) -> Self {
        let FoundBlock { header: sealed, body, pending } = found;
        let transactions = if whole {
            let all = body.transactions.iter().enumerate();
            Transactions::Whole(
                all.map(|(index, transaction)| match pending {
                    true => Transaction::waiting(transaction),
                    false => Transaction::mined(sealed, index, transaction),
                })
                .collect(),
            )
        } else {
            Transactions::Hashes(body.transactions.iter().map(|transaction| Data(transaction.hash)).collect())
        };
        Self {
            header: Header::of_found(found),
            size: Hex(sealed.size),
            transactions,
            uncles: body.ommers.iter().map(|ommer| Data(ommer.hash())).collect(),
            withdrawals: body.withdrawals.as_ref().map(|all| all.iter().map(Withdrawal::of).collect()),
        }
    }
}

impl Ommer {
    /// Converts an ommer.
    pub(crate) fn of(header: &consensus::Header) -> Self {
        let alone = consensus::Block { header: header.clone(), ..consensus::Block::default() };
        Self { header: Header::new(header.hash(), header), size: Hex(alone.encoded_len() as u64), uncles: [] }
    }
}

impl Withdrawal {
    /// Converts the withdrawals of a block to build or to simulate.
    pub(super) fn read_all(all: Vec<Self>) -> Vec<consensus::Withdrawal> {
        let read = |withdrawal: Self| consensus::Withdrawal {
            index: withdrawal.index.0,
            validator_index: withdrawal.validator_index.0,
            address: withdrawal.address.0,
            amount: withdrawal.amount.0,
        };
        all.into_iter().map(read).collect()
    }

    pub(super) fn of(withdrawal: &consensus::Withdrawal) -> Self {
        Self {
            index: Hex(withdrawal.index),
            validator_index: Hex(withdrawal.validator_index),
            address: Data(withdrawal.address),
            amount: Hex(withdrawal.amount),
        }
    }
}
