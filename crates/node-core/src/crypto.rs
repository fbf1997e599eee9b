//! Ports to cryptography that is written in C and therefore lives outside this crate.

use node_types::consensus::{Authorization, BlobSidecar, Signature, Transaction};
use node_types::{Address, H256};

/// Finds out who signed.
pub trait SenderRecovery: Send + Sync {
    /// The address whose key signed `message`. High values of s are refused when `low_s` is set (EIP-2).
    fn recover(&self, message: H256, signature: &Signature, low_s: bool) -> Result<Address, SignatureError>;

    /// The sender of `transaction`. Only a legacy transaction without replay protection may have a high s, for
    /// blocks from before Homestead hold such; the pool and validation refuse it where EIP-2 is in force.
    fn sender(&self, transaction: &Transaction) -> Result<Address, SignatureError> {
        let low_s = transaction.body.chain_id().is_some();
        self.recover(transaction.signing_hash(), &transaction.signature, low_s)
    }

    /// The account that signed `authorization` (EIP-7702).
    fn authority(&self, authorization: &Authorization) -> Result<Address, SignatureError> {
        let signature = authorization.signature().ok_or(SignatureError::Parity(authorization.y_parity))?;
        self.recover(authorization.signing_hash(), &signature, true)
    }
}

/// Why a signature names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// r or s is zero, or not below the order of the curve.
    #[error("r and s must be above zero and below the order of the curve")]
    OutOfRange,
    /// s is in the upper half.
    #[error("s is above half the order of the curve (EIP-2)")]
    HighS,
    /// y_parity is neither 0 nor 1.
    #[error("y parity is {0}, expected 0 or 1")]
    Parity(u8),
    /// No point of the curve has this r.
    #[error("no public key fits the signature")]
    NoPoint,
}

/// Checks blobs against their commitments (EIP-4844, EIP-7594).
pub trait BlobVerifier: Send + Sync {
    /// Checks that `sidecar` proves blobs with exactly these versioned hashes.
    fn verify(&self, versioned_hashes: &[H256], sidecar: &BlobSidecar) -> Result<(), BlobError>;

    /// Computes the cell proofs of a version 0 sidecar; one of version 1 comes back as it is.
    fn with_cell_proofs(&self, sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError>;
}

/// What is wrong with a sidecar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// A list has the wrong number of elements.
    #[error("{what}: {got}, expected {expected}")]
    Count {
        /// Which list.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The length it must have.
        expected: usize,
    },
    /// An element has the wrong length.
    #[error("{what} {index} has {got} bytes, expected {expected}")]
    Length {
        /// Which list.
        what: &'static str,
        /// Position in the list.
        index: usize,
        /// Length in bytes.
        got: usize,
        /// The length it must have.
        expected: usize,
    },
    /// A commitment is not the one that the transaction names.
    #[error("commitment {index} has the versioned hash {got:#x}, the transaction names {expected:#x}")]
    VersionedHash {
        /// Position in the list.
        index: usize,
        /// Hash of the commitment.
        got: H256,
        /// Hash in the transaction.
        expected: H256,
    },
    /// The proofs do not hold.
    #[error("the blob proofs do not verify")]
    Proof,
}
