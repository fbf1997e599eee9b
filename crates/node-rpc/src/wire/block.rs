//! Blocks and headers.

use super::{Hex, Transaction};
use node_core::block::SealedHeader;
use node_core::node::FoundBlock;
use node_types::consensus::{self, BlockNonce, Bloom};
use node_types::wire::{AddressData, BytesData, Data, HashData, HeaderMember};
use node_types::{H256, U256};
use serde::{Deserialize, Serialize};

/// Declares a header, in which each member is followed by the field of the header.
macro_rules! header {
    ($($(#[$about:meta])* $member:ident: $type:ty = $field:ident,)+) => {
        /// A header, in the format of newHeads.
        #[derive(Clone, Debug, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct Header {
            hash: Option<HashData>,
            $($(#[$about])* $member: $type,)+
        }

        impl Header {
            fn new(hash: H256, header: &consensus::Header) -> Self {
                Self { hash: Some(Data(hash)), $($member: HeaderMember::of(&header.$field)),+ }
            }
        }
    };
}

header! {
    #[serde(skip_serializing_if = "Option::is_none")]
    base_fee_per_gas: Option<Hex<u64>> = base_fee_per_gas,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<Hex<u64>> = blob_gas_used,
    difficulty: Hex<U256> = difficulty,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_blob_gas: Option<Hex<u64>> = excess_blob_gas,
    extra_data: BytesData = extra_data,
    gas_limit: Hex<u64> = gas_limit,
    gas_used: Hex<u64> = gas_used,
    logs_bloom: Data<Bloom> = logs_bloom,
    miner: Option<AddressData> = beneficiary,
    mix_hash: HashData = mix_hash,
    nonce: Option<Data<BlockNonce>> = nonce,
    number: Hex<u64> = number,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_beacon_block_root: Option<HashData> = parent_beacon_block_root,
    parent_hash: HashData = parent_hash,
    receipts_root: HashData = receipts_root,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_hash: Option<HashData> = requests_hash,
    sha3_uncles: HashData = ommers_hash,
    state_root: HashData = state_root,
    timestamp: Hex<u64> = timestamp,
    transactions_root: HashData = transactions_root,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawals_root: Option<HashData> = withdrawals_root,
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
pub(crate) struct Withdrawal {
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

    /// Converts the header of an ommer.
    pub(crate) fn of_ommer(header: &consensus::Header) -> Self {
        Self::new(header.hash(), header)
    }

    /// Converts the header of a block. A pending block has no hash, nonce and miner, because it is not sealed.
    pub(crate) fn of_found(found: &FoundBlock) -> Self {
        let header = Self::of(&found.header);
        if found.pending { Self { hash: None, nonce: None, miner: None, ..header } } else { header }
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
        Self { header: Header::of_ommer(header), size: Hex(alone.encoded_len() as u64), uncles: [] }
    }
}

impl Withdrawal {
    /// Converts the withdrawals of a block to build or to simulate.
    pub(crate) fn read_all(all: Vec<Self>) -> Vec<consensus::Withdrawal> {
        let read = |withdrawal: Self| consensus::Withdrawal {
            index: withdrawal.index.0,
            validator_index: withdrawal.validator_index.0,
            address: withdrawal.address.0,
            amount: withdrawal.amount.0,
        };
        all.into_iter().map(read).collect()
    }

    pub(crate) fn of(withdrawal: &consensus::Withdrawal) -> Self {
        Self {
            index: Hex(withdrawal.index),
            validator_index: Hex(withdrawal.validator_index),
            address: Data(withdrawal.address),
            amount: Hex(withdrawal.amount),
        }
    }
}
