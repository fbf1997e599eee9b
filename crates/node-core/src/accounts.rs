//! The port to accounts whose keys are at hand.

use node_types::consensus::Signature;
use node_types::{Address, H256, keccak256};

/// Signs for accounts that requests only name. Meant for development: nobody is asked.
pub trait Accounts: Send + Sync {
    /// The accounts, in the order in which people count them.
    fn addresses(&self) -> Vec<Address>;

    /// Signs a hash with the key of an account; none where the key is not at hand.
    fn sign(&self, address: Address, hash: H256) -> Option<Signature>;
}

/// What is signed of a text (EIP-191, version 0x45): such a hash is that of no transaction.
pub fn personal_message_hash(message: &[u8]) -> H256 {
    let prefix = format!("\x19Ethereum Signed Message:\n{}", message.len());
    keccak256([prefix.as_bytes(), message].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ethers and web3.py have it in their documentation.
    #[test]
    fn the_hash_of_a_text_is_that_of_wallets() {
        let cases = [
            ("Hello World", "0xa1de988600a42c4b4ab089b619297c17d53cffae5d5120d82d8a92d0bb3b78f2"),
            ("", "0x5f35dce98ba4fba25530a026ed80b2cecdaa31091ba4958b99b52ea1d068adad"),
        ];
        for (message, expected) in cases {
            assert_eq!(format!("{:#x}", personal_message_hash(message.as_bytes())), expected, "{message:?}");
        }
    }
}
