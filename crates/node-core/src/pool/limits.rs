//! How much the pool holds.

use std::time::Duration;

/// Bounds of the pool. Each count is inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Transactions in total.
    pub transactions: usize,
    /// Bytes in total, blobs included.
    pub bytes: usize,
    /// Transactions in total that wait for an earlier nonce, or for balance.
    pub queued: usize,
    /// Transactions of one account that wait for an earlier nonce, or for balance.
    pub queued_per_account: usize,
    /// Transactions that an account keeps while accounts with more than these have to give way.
    pub guaranteed_per_account: usize,
    /// How long transactions of an account wait without any of them becoming executable.
    pub queued_lifetime: Duration,
    /// Least tip cap in wei per gas.
    pub minimum_tip: u64,
    /// By how many percent both fee caps must rise to replace a transaction.
    pub price_bump: u64,
    /// The same where blobs are involved, the blob fee cap included.
    pub blob_price_bump: u64,
}

/// How much the pool holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSize {
    /// Transactions that the next block may take.
    pub pending: usize,
    /// Transactions that wait for an earlier nonce, or for balance.
    pub queued: usize,
    /// Bytes of both, blobs included.
    pub bytes: usize,
}

impl Default for PoolLimits {
    /// The numbers of geth, with more room in total.
    fn default() -> Self {
        Self {
            transactions: 20_480,
            bytes: 256 << 20,
            queued: 1_024,
            queued_per_account: 64,
            guaranteed_per_account: 16,
            queued_lifetime: Duration::from_secs(3 * 3_600),
            minimum_tip: 1,
            price_bump: 10,
            blob_price_bump: 100,
        }
    }
}
