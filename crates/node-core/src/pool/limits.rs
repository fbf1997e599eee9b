//! Limits of the pool, and its size.

use std::time::Duration;

/// Limits of the pool. All are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Transactions in total.
    pub transactions: usize,
    /// Bytes in total, blobs included.
    pub bytes: usize,
    /// Queued transactions in total.
    pub queued: usize,
    /// Queued transactions of one account.
    pub queued_per_account: usize,
    /// Transactions per account that are evicted only after those of accounts with more.
    pub guaranteed_per_account: usize,
    /// How long an account's transactions may stay queued without one of them becoming pending.
    pub queued_lifetime: Duration,
    /// Lowest accepted tip cap in wei per gas.
    pub minimum_tip: u64,
    /// Percentage by which both fee caps must rise to replace a transaction.
    pub price_bump: u64,
    /// The same for blob transactions, including the blob fee cap.
    pub blob_price_bump: u64,
}

/// Limits of the pool, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSize {
    /// Pending transactions.
    pub pending: usize,
    /// Queued transactions.
    pub queued: usize,
    /// Bytes of both, blobs included.
    pub bytes: usize,
}

impl Default for PoolLimits {
    /// The defaults of geth, except for larger totals.
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
