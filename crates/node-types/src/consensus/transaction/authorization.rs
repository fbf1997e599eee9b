//! Authorizations to run another account's code (EIP-7702).

use crate::consensus::Signature;
use crate::consensus::codec::{DecodeError, Items, append_bytes};
use crate::{Address, H256, U256, keccak256};
use rlp::{Encodable, RlpStream};

/// Precedes the list that an authority signs, so that the signature is not valid for a transaction.
const MAGIC: u8 = 0x05;

/// The signed delegation of an account to the code of another (EIP-7702).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorization {
    /// Chain on which it is valid. Zero: on all chains.
    pub chain_id: U256,
    /// Account whose code runs. Zero ends the delegation.
    pub address: Address,
    /// Nonce that the authority must have.
    pub nonce: u64,
    /// The byte that was sent as `y_parity`, which is not necessarily 0 or 1.
    pub y_parity: u8,
    /// The signature's r.
    pub r: U256,
    /// The signature's s.
    pub s: U256,
}

impl Authorization {
    /// Returns the signature, or `None` if `y_parity` is neither 0 nor 1.
    pub fn signature(&self) -> Option<Signature> {
        let y_parity = match self.y_parity {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Signature { r: self.r, s: self.s, y_parity })
    }

    /// Returns the hash that the authority signed: keccak of 0x05 and the list of chain id, address, nonce.
    pub fn signing_hash(&self) -> H256 {
        let mut stream = RlpStream::new_with_buffer([MAGIC].as_slice().into());
        stream.begin_list(3);
        self.append_signed_fields(&mut stream);
        keccak256(stream.as_raw())
    }

    fn append_signed_fields(&self, stream: &mut RlpStream) {
        stream.append(&self.chain_id);
        append_bytes(stream, self.address.as_bytes());
        stream.append(&self.nonce);
    }

    pub(super) fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("authorization", |fields| {
            Ok(Self {
                chain_id: fields.u256("authorization chain id")?,
                address: fields.address("authorization address")?,
                nonce: fields.u64("authorization nonce")?,
                y_parity: fields.u8("authorization y parity")?,
                r: fields.u256("authorization r")?,
                s: fields.u256("authorization s")?,
            })
        })
    }
}

impl Encodable for Authorization {
    fn rlp_append(&self, stream: &mut RlpStream) {
        stream.begin_list(6);
        self.append_signed_fields(stream);
        stream.append(&self.y_parity);
        stream.append(&self.r);
        stream.append(&self.s);
    }
}
