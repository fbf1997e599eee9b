//! Type 2: transactions with a fee cap and a tip cap (EIP-1559).

use super::AccessListItem;
use super::fields::Fields;
use crate::consensus::codec::{DecodeError, Items, append_bytes, append_recipient};
use crate::{Address, Bytes, U256};
use rlp::RlpStream;

/// Type 2 (EIP-1559).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicFeeTransaction {
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
    /// Recipient. `None` for a contract creation.
    pub to: Option<Address>,
    /// Transferred amount in wei.
    pub value: U256,
    /// Call data, or the init code of a contract creation.
    pub input: Bytes,
    /// Accounts and slots to warm.
    pub access_list: Vec<AccessListItem>,
}

impl DynamicFeeTransaction {
    /// Reads the fields that the sender signs.
    pub(super) fn decode_fields(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            chain_id: items.u64("transaction chain id")?,
            nonce: items.u64("transaction nonce")?,
            max_priority_fee_per_gas: items.u256("transaction max priority fee per gas")?,
            max_fee_per_gas: items.u256("transaction max fee per gas")?,
            gas_limit: items.u64("transaction gas limit")?,
            to: items.optional_address("transaction to")?,
            value: items.u256("transaction value")?,
            input: items.bytes("transaction input")?.into(),
            access_list: items.vec("transaction access list", AccessListItem::decode_item)?,
        })
    }
}

impl Fields for DynamicFeeTransaction {
    fn count(&self) -> usize {
        9
    }

    fn append(&self, stream: &mut RlpStream) {
        stream.append(&self.chain_id);
        stream.append(&self.nonce);
        stream.append(&self.max_priority_fee_per_gas);
        stream.append(&self.max_fee_per_gas);
        stream.append(&self.gas_limit);
        append_recipient(stream, self.to);
        stream.append(&self.value);
        append_bytes(stream, &self.input);
        stream.append_list(&self.access_list);
    }
}
