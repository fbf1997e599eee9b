//! The fields of each transaction type.

use super::TransactionType;
use crate::Address;
use crate::consensus::codec::{DecodeError, Items};
use rlp::RlpStream;

/// The fields that the sender signs.
pub(super) trait Fields {
    /// Returns the number of fields.
    fn count(&self) -> usize;

    /// Appends the fields to an open list, in the order of the encoding.
    fn append(&self, stream: &mut RlpStream);
}

/// Reads the recipient of a transaction whose type cannot create contracts.
pub(super) fn decode_recipient(
    items: &mut Items<'_>,
    transaction_type: TransactionType,
) -> Result<Address, DecodeError> {
    items.optional_address("transaction to")?.ok_or(DecodeError::ContractCreation { transaction_type })
}
