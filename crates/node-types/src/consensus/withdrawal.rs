//! Withdrawals from the consensus layer (EIP-4895).

use super::codec::{DecodeError, Items, append_bytes};
use crate::Address;
use rlp::{Encodable, RlpStream};

/// A withdrawal from the beacon chain: the consensus layer has the execution layer credit an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// Number of the withdrawal, ascending over all blocks.
    pub index: u64,
    /// Index of the validator.
    pub validator_index: u64,
    /// Recipient.
    pub address: Address,
    /// Amount in gwei.
    pub amount: u64,
}

impl Withdrawal {
    /// Returns the RLP encoding, which is the value in the withdrawals trie.
    pub fn encode(&self) -> Vec<u8> {
        self.rlp_bytes().into()
    }

    /// Decodes the RLP encoding.
    ///
    /// # Errors
    ///
    /// Fails if `bytes` is not exactly one canonical encoding.
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
