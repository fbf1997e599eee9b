//! A transaction of the pool.

use crate::block::RecoveredTransaction;
use crate::protocol::fees::highest_cost;
use node_types::consensus::{BlobSidecar, TransactionBody};
use node_types::{Address, H256, U256};

/// A transaction in the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolTransaction {
    /// The transaction with its hash and sender.
    pub recovered: RecoveredTransaction,
    /// Its blobs, if it carries any.
    pub sidecar: Option<BlobSidecar>,
    /// The accounts that validly signed its authorizations (EIP-7702).
    pub authorities: Vec<Address>,
    /// Length of its encoding in bytes, including blobs.
    pub size: usize,
    /// Number of its arrival; later arrivals have higher numbers.
    pub arrival: u64,
    /// Time of arrival in milliseconds since the Unix epoch.
    pub received: u64,
}

impl PoolTransaction {
    /// Returns the hash of the transaction.
    pub fn hash(&self) -> H256 {
        self.recovered.hash
    }

    /// Returns the sender of the transaction.
    pub fn sender(&self) -> Address {
        self.recovered.sender
    }

    /// Returns the transaction without its signature.
    pub fn body(&self) -> &TransactionBody {
        &self.recovered.transaction.body
    }

    /// Returns the nonce of the transaction.
    pub fn nonce(&self) -> u64 {
        self.body().nonce()
    }

    /// Returns its maximum cost to its sender, in wei. Saturates at 2^256 - 1, which no balance covers.
    pub fn cost(&self) -> U256 {
        highest_cost(self.body()).unwrap_or(U256::MAX)
    }

    /// Returns its cap on the blob base fee in wei per blob gas, or `None` if it carries no blobs.
    pub fn blob_fee_cap(&self) -> Option<U256> {
        match self.body() {
            TransactionBody::Blob(tx) => Some(tx.max_fee_per_blob_gas),
            _ => None,
        }
    }
}
