//! An account that can sign.

use node_evm::SecretKey;
use node_types::consensus::{Authorization, Signature, Transaction, TransactionBody};
use node_types::{Address, H256, U256};

/// An account with its secret key. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct DevAccount {
    address: Address,
    secret: SecretKey,
}

impl DevAccount {
    /// Creates the account of a key.
    pub fn new(secret: SecretKey) -> Self {
        Self { address: secret.address(), secret }
    }

    /// Returns the address of the account.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the secret key of the account.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// Signs a transaction of any type, for the chain id in `body`.
    pub fn sign(&self, body: TransactionBody) -> Transaction {
        let mut transaction = Transaction { body, signature: Signature::default() };
        transaction.signature = self.sign_hash(transaction.signing_hash());
        transaction
    }

    /// Signs an authorization to delegate this account to the code of `address` (EIP-7702). It is valid on the chain
    /// `chain_id`, or on all chains if that is zero, as long as the account's nonce is `nonce`.
    pub fn sign_authorization(&self, chain_id: u64, address: Address, nonce: u64) -> Authorization {
        let unsigned = Authorization { chain_id: U256::from(chain_id), address, nonce, ..Authorization::default() };
        let Signature { r, s, y_parity } = self.sign_hash(unsigned.signing_hash());
        Authorization { y_parity: u8::from(y_parity), r, s, ..unsigned }
    }

    /// Signs `hash` as it is, without a prefix or further hashing.
    pub fn sign_hash(&self, hash: H256) -> Signature {
        self.secret.sign(hash)
    }
}

#[cfg(test)]
mod tests;
