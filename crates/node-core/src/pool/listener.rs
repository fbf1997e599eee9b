//! Who wants to know of new transactions.

use node_types::H256;

/// Is told of transactions that came into the pool, pending or queued: newly sent ones, and those that came back from blocks
/// that left the chain.
pub trait PoolListener: Send + Sync {
    /// A transaction came. No lock of the pool is held; it may have left again meanwhile, and it need not be durable yet. Must
    /// not send transactions nor change the chain.
    ///
    /// Called on the thread that sent it, or that changed the head: then inside the backend's call to its own listeners.
    fn transaction_added(&self, hash: H256);
}
