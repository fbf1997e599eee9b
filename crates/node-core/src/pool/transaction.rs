//! A transaction of the pool.

use crate::block::RecoveredTransaction;
use node_types::consensus::{BlobSidecar, TransactionBody};
use node_types::{Address, H256, U256};

/// A transaction that the pool holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolTransaction {
    /// The transaction with hash and sender.
    pub recovered: RecoveredTransaction,
    /// Its blobs, if it carries some.
    pub sidecar: Option<BlobSidecar>,
    /// Who signed its authorizations (EIP-7702), where the signatures are valid.
    pub authorities: Vec<Address>,
    /// Bytes of its encoding, blobs included.
    pub size: usize,
    /// Ascending number of its arrival.
    pub arrival: u64,
    /// When it came, in milliseconds since the Unix epoch.
    pub received: u64,
}

impl PoolTransaction {
    /// Hash.
    pub fn hash(&self) -> H256 {
        self.recovered.hash
    }

    /// Who sent it.
    pub fn sender(&self) -> Address {
        self.recovered.sender
    }

    /// What was signed.
    pub fn body(&self) -> &TransactionBody {
        &self.recovered.transaction.body
    }

    /// Nonce.
    pub fn nonce(&self) -> u64 {
        self.body().nonce()
    }

    /// The most that it can cost its sender in wei.
    pub fn cost(&self) -> U256 {
        super::stateful::cost(self.body())
    }

    /// Upper bound of the blob base fee in wei per blob gas, if it carries blobs.
    pub fn blob_fee_cap(&self) -> Option<U256> {
        match self.body() {
            TransactionBody::Blob(tx) => Some(tx.max_fee_per_blob_gas),
            _ => None,
        }
    }
}
