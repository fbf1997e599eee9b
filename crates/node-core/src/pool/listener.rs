//! Notification of new transactions.

use node_types::H256;

/// Is notified of transactions that enter the pool, pending or queued: newly sent ones, and those from blocks that
/// left the chain.
pub trait PoolListener: Send + Sync {
    /// Called for each transaction, without holding a lock of the pool. The transaction may already have left the
    /// pool, and may not be durable yet. Must not send transactions or change the chain.
    ///
    /// Called on the thread that sent the transaction, or that changed the head; in the latter case from within the
    /// backend's call to its own listeners.
    fn transaction_added(&self, hash: H256);
}
