//! Withdrawals from the consensus layer (EIP-4895).

use super::codec::{DecodeError, Items, append_bytes};
use crate::Address;
use rlp::{Encodable, RlpStream};

/// A balance increase ordered by the consensus layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// Ascending number of the withdrawal, over all blocks.
    pub index: u64,
    /// Validator it comes from.
    pub validator_index: u64,
    /// Receiver.
    pub address: Address,
    /// Amount in gwei.
    pub amount: u64,
}

impl Withdrawal {
    /// The RLP encoding: what the withdrawals trie holds.
    pub fn encode(&self) -> Vec<u8> {
        self.rlp_bytes().into()
    }

    /// Decodes the RLP encoding; every byte must be used.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Items::exactly(bytes, "withdrawal", Self::decode_item)
    }

    pub(super) fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("withdrawal", |fields| {
            Ok(Self {
                index: fields.u64("withdrawal index")?,
                validator_index: fields.u64("withdrawal validator index")?,
                address: fields.address("withdrawal address")?,
                amount: fields.u64("withdrawal amount")?,
            })
        })
    }
}

impl Encodable for Withdrawal {
    fn rlp_append(&self, stream: &mut RlpStream) {
        stream.begin_list(4);
        stream.append(&self.index);
        stream.append(&self.validator_index);
        append_bytes(stream, self.address.as_bytes());
        stream.append(&self.amount);
    }
}
