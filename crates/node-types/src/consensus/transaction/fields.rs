//! What the codec needs to know of each type's payload.

use super::TransactionType;
use crate::Address;
use crate::consensus::codec::{DecodeError, Items};
use rlp::RlpStream;

/// The fields of a payload that the sender signs.
pub(super) trait Fields {
    /// How many fields there are.
    fn count(&self) -> usize;

    /// Appends each field to the list that is open, in the order of the encoding.
    fn append(&self, stream: &mut RlpStream);
}

/// Reads the receiver of a transaction whose type creates no contracts.
pub(super) fn decode_receiver(
    items: &mut Items<'_>,
    transaction_type: TransactionType,
) -> Result<Address, DecodeError> {
    items.optional_address("transaction to")?.ok_or(DecodeError::ContractCreation { transaction_type })
}
