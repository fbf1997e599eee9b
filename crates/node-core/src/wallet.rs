//! The port to accounts whose private keys the node has.

use node_types::consensus::Signature;
use node_types::{Address, H256, keccak256};

/// Signs for accounts without asking for confirmation. Meant for development.
pub trait Wallet: Send + Sync {
    /// Returns the accounts in the order in which their keys are derived.
    fn addresses(&self) -> Vec<Address>;

    /// Signs a hash with the key of an account. Returns `None` if there is no key for it.
    fn sign(&self, address: Address, hash: H256) -> Option<Signature>;
}

/// Returns the hash to sign for a message (EIP-191, version 0x45). Its prefix ensures that it is never the hash of a
/// transaction.
pub fn personal_message_hash(message: &[u8]) -> H256 {
    let prefix = format!("\x19Ethereum Signed Message:\n{}", message.len());
    keccak256([prefix.as_bytes(), message].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the documentation of ethers and web3.py.
    #[test]
    fn personal_message_hash_matches_other_wallets() {
        let cases = [
            ("Hello World", "0xa1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2"),
            ("", "0x5f35dce98ba4fba25530a026ed80b2cecdaa31091ba4958b99b52ea1d068adad"),
        ];
        for (message, expected) in cases {
            assert_eq!(format!("{:#x}", personal_message_hash(message.as_bytes())), expected, "{message:?}");
        }
    }
}
