//! Type 1: transactions with an access list (EIP-2930).

use super::fields::Fields;
use crate::consensus::codec::{DecodeError, Items, append_bytes, append_hashes, append_recipient};
use crate::{Address, Bytes, H256, U256};
use rlp::{Encodable, RlpStream};

/// An entry of an access list: an account and some of its storage slots (EIP-2930).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessListItem {
    /// The account.
    pub address: Address,
    /// Its slots.
    pub storage_keys: Vec<H256>,
}

impl AccessListItem {
    pub(super) fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("access list item", |fields| {
            Ok(Self {
                address: fields.address("access list address")?,
                storage_keys: fields.vec("access list storage keys", |keys| keys.h256("access list storage key"))?,
            })
        })
    }
}

impl Encodable for AccessListItem {
    fn rlp_append(&self, stream: &mut RlpStream) {
        stream.begin_list(2);
        append_bytes(stream, self.address.as_bytes());
        append_hashes(stream, &self.storage_keys);
    }
}

/// Type 1 (EIP-2930).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessListTransaction {
    /// Chain id.
    pub chain_id: u64,
    /// Nonce of the sender.
    pub nonce: u64,
    /// Price in wei per gas.
    pub gas_price: U256,
    /// Gas limit.
    pub gas_limit: u64,
    /// Recipient. `None` for a contract creation.
    pub to: Option<Address>,
    /// Transferred amount in wei.
    pub value: U256,
    /// Call data, or the init code of a contract creation.
    pub input: Bytes,
    /// Accounts and slots to warm.
    pub access_list: Vec<AccessListItem>,
}

impl AccessListTransaction {
    /// Reads the fields that the sender signs.
    pub(super) fn decode_fields(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            chain_id: items.u64("transaction chain id")?,
            nonce: items.u64("transaction nonce")?,
            gas_price: items.u256("transaction gas price")?,
            gas_limit: items.u64("transaction gas limit")?,
            to: items.optional_address("transaction to")?,
            value: items.u256("transaction value")?,
            input: items.bytes("transaction input")?.into(),
            access_list: items.vec("transaction access list", AccessListItem::decode_item)?,
        })
    }
}

impl Fields for AccessListTransaction {
    fn count(&self) -> usize {
        8
    }

    fn append(&self, stream: &mut RlpStream) {
        stream.append(&self.chain_id);
        stream.append(&self.nonce);
        stream.append(&self.gas_price);
        stream.append(&self.gas_limit);
        append_recipient(stream, self.to);
        stream.append(&self.value);
        append_bytes(stream, &self.input);
        stream.append_list(&self.access_list);
    }
}
