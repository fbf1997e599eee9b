//! Authorizations to run another account's code (EIP-7702).

use crate::consensus::Signature;
use crate::consensus::codec::{Item, items, record};
use crate::{Address, H256, U256, keccak256};
use rlp::RlpStream;

/// Precedes the list that an authority signs, so that the signature is not valid for a transaction.
const MAGIC: u8 = 0x05;

record! {
    /// The signed delegation of an account to the code of another (EIP-7702).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Authorization {
        /// Id of the chain on which it is valid; zero for all chains.
        pub chain_id: U256 = "authorization chain id";
        /// Account whose code is executed; the zero address ends the delegation.
        pub address: Address = "authorization address";
        /// Nonce that the authority must have.
        pub nonce: u64 = "authorization nonce";
        /// The byte that was sent as `y_parity`, which is not necessarily 0 or 1.
        pub y_parity: u8 = "authorization y parity";
        /// The signature's r.
        pub r: U256 = "authorization r";
        pub s: U256 = "authorization s";
    }
}

items!(Authorization: "authorization");

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
        self.chain_id.append(&mut stream);
        self.address.append(&mut stream);
        self.nonce.append(&mut stream);
        keccak256(stream.as_raw())
    }
}
