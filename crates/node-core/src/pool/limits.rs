//! Limits of the pool, and its size.

use std::time::Duration;

/// Limits of the pool. All are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Total number of transactions.
    pub transactions: usize,
    /// Total size in bytes, including blobs.
    pub bytes: usize,
    /// Total number of queued transactions.
    pub queued: usize,
    /// Number of queued transactions of one account.
    pub queued_per_account: usize,
    /// Number of transactions per account that are evicted only after those of accounts with more transactions.
    pub guaranteed_per_account: usize,
    /// How long an account's transactions may stay queued without one of them becoming pending.
    pub queued_lifetime: Duration,
    /// Minimum tip cap in wei per gas.
    pub minimum_tip: u64,
    /// Percentage by which both fee caps must rise to replace a transaction.
    pub price_bump: u64,
    /// The same for blob transactions, which must also raise the blob fee cap.
    pub blob_price_bump: u64,
}

/// Limits of the pool, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSize {
    /// Number of pending transactions.
    pub pending: usize,
    /// Number of queued transactions.
    pub queued: usize,
    /// Size of both in bytes, including blobs.
    pub bytes: usize,
}

impl Default for PoolLimits {
    /// geth's defaults, except for larger totals.
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
