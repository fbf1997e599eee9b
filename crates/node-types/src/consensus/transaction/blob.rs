//! Type 3: transactions that carry blobs (EIP-4844).

use super::fields::{Fields, decode_recipient};
use super::{AccessListItem, TransactionType};
use crate::consensus::codec::{DecodeError, Items, append_bytes, append_hashes};
use crate::{Address, Bytes, H256, U256};
use rlp::RlpStream;

/// Type 3 (EIP-4844).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobTransaction {
    /// Chain id.
    pub chain_id: u64,
    /// Nonce of the sender.
    pub nonce: u64,
    /// Maximum priority fee in wei per gas.
    pub max_priority_fee_per_gas: U256,
    /// Maximum of base fee and priority fee together, in wei per gas.
    pub max_fee_per_gas: U256,
    /// Gas limit.
    pub gas_limit: u64,
    /// Recipient. A blob transaction cannot create a contract.
    pub to: Address,
    /// Transferred amount in wei.
    pub value: U256,
    /// Call data.
    pub input: Bytes,
    /// Accounts and slots to warm.
    pub access_list: Vec<AccessListItem>,
    /// Maximum blob base fee in wei per blob gas.
    pub max_fee_per_blob_gas: U256,
    /// A versioned hash for each blob.
    pub blob_versioned_hashes: Vec<H256>,
}

impl BlobTransaction {
    /// Reads the fields that the sender signs.
    pub(super) fn decode_fields(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            chain_id: items.u64("transaction chain id")?,
            nonce: items.u64("transaction nonce")?,
            max_priority_fee_per_gas: items.u256("transaction max priority fee per gas")?,
            max_fee_per_gas: items.u256("transaction max fee per gas")?,
            gas_limit: items.u64("transaction gas limit")?,
            to: decode_recipient(items, TransactionType::Blob)?,
            value: items.u256("transaction value")?,
            input: items.bytes("transaction input")?.into(),
            access_list: items.vec("transaction access list", AccessListItem::decode_item)?,
            max_fee_per_blob_gas: items.u256("transaction max fee per blob gas")?,
            blob_versioned_hashes: items
                .vec("transaction blob versioned hashes", |items| items.h256("blob versioned hash"))?,
        })
    }
}

impl Fields for BlobTransaction {
    fn count(&self) -> usize {
        11
    }

    fn append(&self, stream: &mut RlpStream) {
        stream.append(&self.chain_id);
        stream.append(&self.nonce);
        stream.append(&self.max_priority_fee_per_gas);
        stream.append(&self.max_fee_per_gas);
        stream.append(&self.gas_limit);
        append_bytes(stream, self.to.as_bytes());
        stream.append(&self.value);
        append_bytes(stream, &self.input);
        stream.append_list(&self.access_list);
        stream.append(&self.max_fee_per_blob_gas);
        append_hashes(stream, &self.blob_versioned_hashes);
    }
}
