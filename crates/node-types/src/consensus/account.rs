//! Accounts as the state trie stores them.

use super::codec::record;
use crate::{H256, KECCAK_EMPTY, U256};

/// The root of the empty trie: keccak of the RLP empty string.
pub const EMPTY_ROOT: H256 = H256([
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e, 0x5b, 0x48, 0xe0,
    0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
]);

record! {
    /// The value of a leaf of the state trie (Yellow Paper, section 4.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Account {
        /// Number of transactions sent from the address; for a contract, the number of contracts it created, plus one
        /// since EIP-161.
        pub nonce: u64 = "account nonce";
        /// Balance in wei.
        pub balance: U256 = "account balance";
        /// Root of the account's storage trie.
        pub storage_root: H256 = "account storage root";
        /// Keccak of the account's code.
        pub code_hash: H256 = "account code hash";
    }
}

impl Default for Account {
    /// Returns the account of an address that was never used.
    fn default() -> Self {
        Self { nonce: 0, balance: U256::zero(), storage_root: EMPTY_ROOT, code_hash: KECCAK_EMPTY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keccak256;

    #[test]
    fn empty_root_is_the_hash_of_the_empty_string() {
        assert_eq!(EMPTY_ROOT, keccak256(rlp::encode(&"")));
    }
}
