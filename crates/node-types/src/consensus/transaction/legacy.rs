//! Type 0: transactions in the format before EIP-2718.

use super::fields::Fields;
use crate::consensus::codec::{DecodeError, Items, append_bytes, append_recipient};
use crate::{Address, Bytes, U256};
use rlp::RlpStream;

/// Type 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegacyTransaction {
    /// Chain id. `None` without replay protection (EIP-155).
    pub chain_id: Option<u64>,
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
}

impl LegacyTransaction {
    /// Reads the fields before the signature. The chain id is not among them; it is part of `v`.
    pub(super) fn decode_fields(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            chain_id: None,
            nonce: items.u64("transaction nonce")?,
            gas_price: items.u256("transaction gas price")?,
            gas_limit: items.u64("transaction gas limit")?,
            to: items.optional_address("transaction to")?,
            value: items.u256("transaction value")?,
            input: items.bytes("transaction input")?.into(),
        })
    }
}

impl Fields for LegacyTransaction {
    fn count(&self) -> usize {
        6
    }

    fn append(&self, stream: &mut RlpStream) {
        stream.append(&self.nonce);
        stream.append(&self.gas_price);
        stream.append(&self.gas_limit);
        append_recipient(stream, self.to);
        stream.append(&self.value);
        append_bytes(stream, &self.input);
    }
}

/// Splits `v` into chain id and y parity. 27 and 28 have no chain id; from 35 on it is `(v - 35) / 2` (EIP-155).
pub(super) fn split_v(v: U256) -> Result<(Option<u64>, bool), DecodeError> {
    let bare = U256::from(27);
    let protected = U256::from(35);
    if v < bare || v > U256::from(u64::MAX) * 2 + protected + 1 {
        return Err(DecodeError::InvalidV { v });
    }
    if v < protected {
        let parity = v - bare;
        return if parity <= U256::one() { Ok((None, !parity.is_zero())) } else { Err(DecodeError::InvalidV { v }) };
    }
    // By the bound above, at most 2^65 - 1.
    let offset = (v - protected).as_u128();
    Ok((Some((offset / 2) as u64), offset % 2 == 1))
}
