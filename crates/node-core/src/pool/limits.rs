//! Limits of the pool, and its size.

#[cfg(feature = "clap")]
use crate::node::Limit;
#[cfg(feature = "clap")]
use crate::values::at_least_one;
use std::time::Duration;

/// Limits of the pool. All are inclusive.
///
/// With the feature `clap`, this is a group of command-line options with the same defaults. Fields that are not options
/// can only be set in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Transaction pool"))]
pub struct PoolLimits {
    /// Maximum number of transactions in the pool
    #[cfg_attr(feature = "clap", arg(long = Limit::PoolTransactions.name(), value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Self::default().transactions))]
    pub transactions: usize,
    /// Maximum size of all transactions in the pool in bytes
    #[cfg_attr(feature = "clap", arg(long = Limit::PoolBytes.name(), value_name = "BYTES", value_parser = at_least_one::<usize>, default_value_t = Self::default().bytes))]
    pub bytes: usize,
    /// Maximum number of queued transactions in the pool: those that wait for an earlier nonce or for balance
    #[cfg_attr(feature = "clap", arg(long = Limit::PoolQueued.name(), value_name = "COUNT", default_value_t = Self::default().queued))]
    pub queued: usize,
    /// Number of queued transactions of one account.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().queued_per_account))]
    pub queued_per_account: usize,
    /// Number of transactions per account that are evicted only after those of accounts with more transactions.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().guaranteed_per_account))]
    pub guaranteed_per_account: usize,
    /// How long an account's transactions may stay queued without one of them becoming pending.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().queued_lifetime))]
    pub queued_lifetime: Duration,
    /// Minimum tip cap in wei per gas.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().minimum_tip))]
    pub minimum_tip: u64,
    /// Percentage by which both fee caps must rise to replace a transaction.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().price_bump))]
    pub price_bump: u64,
    /// The same for blob transactions, which must also raise the blob fee cap.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().blob_price_bump))]
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
