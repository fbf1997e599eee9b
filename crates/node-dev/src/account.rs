//! One account and what it can sign.

use node_evm::SecretKey;
use node_types::consensus::{Authorization, Signature, Transaction, TransactionBody};
use node_types::{Address, H256, U256};

/// An account whose key is at hand. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct DevAccount {
    address: Address,
    secret: SecretKey,
}

impl DevAccount {
    /// The account of a key.
    pub fn new(secret: SecretKey) -> Self {
        Self { address: secret.address(), secret }
    }

    /// Its address.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its key.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// Signs a transaction of any type. The chain id is the one that `body` holds.
    pub fn sign(&self, body: TransactionBody) -> Transaction {
        let mut transaction = Transaction { body, signature: Signature::default() };
        transaction.signature = self.sign_hash(transaction.signing_hash());
        transaction
    }

    /// Signs that this account is to run the code of `address` (EIP-7702): on the chain with `chain_id`, or on all if it
    /// is zero, as long as the account's nonce is `nonce`.
    pub fn sign_authorization(&self, chain_id: u64, address: Address, nonce: u64) -> Authorization {
        let unsigned = Authorization { chain_id: U256::from(chain_id), address, nonce, ..Authorization::default() };
        let Signature { r, s, y_parity } = self.sign_hash(unsigned.signing_hash());
        Authorization { y_parity: u8::from(y_parity), r, s, ..unsigned }
    }

    /// Signs any hash.
    pub fn sign_hash(&self, hash: H256) -> Signature {
        self.secret.sign(hash)
    }
}

#[cfg(test)]
mod tests;
