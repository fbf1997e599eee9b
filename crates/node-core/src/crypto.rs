//! Ports to cryptography and to accounts whose private keys the node has. The implementations are in other crates,
//! because they depend on C code.

use node_types::consensus::{Authorization, BlobSidecar, Signature, Transaction};
use node_types::{Address, H256, keccak256};

/// Recovers the signers of messages and transactions.
pub trait SenderRecovery: Send + Sync {
    /// Returns the address whose key signed the hash `message`.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature is invalid, or if `low_s` is set and s is high (EIP-2).
    fn recover(&self, message: H256, signature: &Signature, low_s: bool) -> Result<Address, SignatureError>;

    /// Returns the sender of `transaction`.
    ///
    /// A legacy transaction without replay protection may have a high s, because blocks before Homestead contain such
    /// transactions. The pool and the executor refuse them when EIP-2 is in force.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature is invalid.
    fn sender(&self, transaction: &Transaction) -> Result<Address, SignatureError> {
        let low_s = transaction.body.chain_id().is_some();
        self.recover(transaction.signing_hash(), &transaction.signature, low_s)
    }

    /// Returns the account that signed `authorization` (EIP-7702).
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature is invalid.
    fn authority(&self, authorization: &Authorization) -> Result<Address, SignatureError> {
        let signature = authorization.signature().ok_or(SignatureError::Parity(authorization.y_parity))?;
        self.recover(authorization.signing_hash(), &signature, true)
    }
}

/// Why a signature is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    #[error("r and s must be above zero and below the order of the curve")]
    OutOfRange,
    #[error("s is above half the order of the curve (EIP-2)")]
    HighS,
    #[error("y parity is {0}, expected 0 or 1")]
    Parity(u8),
    #[error("no public key fits the signature")]
    NoPoint,
}

/// Verifies blobs against their KZG commitments and proofs (EIP-4844, EIP-7594).
pub trait BlobVerifier: Send + Sync {
    /// Verifies that `sidecar` has the blobs with exactly these versioned hashes, and valid proofs of them.
    ///
    /// # Errors
    /// Returns a [`BlobError`] if a count, length, hash or proof is wrong.
    fn verify(&self, versioned_hashes: &[H256], sidecar: &BlobSidecar) -> Result<(), BlobError>;

    /// Converts a sidecar to version 1: computes cell proofs for version 0, and returns version 1 unchanged.
    ///
    /// # Errors
    /// Returns a [`BlobError`] if a blob is invalid.
    fn with_cell_proofs(&self, sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError>;
}

/// Why a sidecar is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    #[error("{what}: {got}, expected {expected}")]
    Count { what: &'static str, got: usize, expected: usize },
    #[error("{what} {index} has {got} bytes, expected {expected}")]
    Length { what: &'static str, index: usize, got: usize, expected: usize },
    #[error("commitment {index} has the versioned hash {got:#x}, the transaction has {expected:#x}")]
    VersionedHash { index: usize, got: H256, expected: H256 },
    #[error("the blob proofs do not verify")]
    Proof,
}

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

/// Returns random bytes from the operating system.
///
/// # Panics
/// If the operating system cannot provide any, which never happens on supported systems.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
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
