//! Limits of requests and results.

use std::time::Duration;

/// Limits of one request and its result. All are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of logs in one result.
    pub logs: usize,
    /// Maximum number of blocks that a log query may span, counting both ends.
    pub block_range: u64,
    /// Maximum number of addresses in a log filter.
    pub addresses: usize,
    /// Maximum number of words at each topic position of a log filter.
    pub topics: usize,
    /// Maximum number of storage keys in a proof request.
    pub storage_keys: usize,
    /// Maximum number of percentiles in a fee history request.
    pub percentiles: usize,
    /// Maximum gas of a call or an estimate.
    pub gas_cap: u64,
    /// Maximum duration of a call or an estimate.
    pub call_timeout: Duration,
    /// Maximum memory for recording the traces of one request, in bytes.
    pub trace_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            logs: 20_000,
            block_range: 10_000_000,
            addresses: 1_000,
            topics: 1_000,
            storage_keys: 1_024,
            // Wallets request about five; a hundred is one for each percent.
            percentiles: 100,
            gas_cap: 50_000_000,
            call_timeout: Duration::from_secs(5),
            trace_bytes: 128 << 20,
        }
    }
}

/// A limit that a request exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::addresses`].
    Addresses,
    /// [`Limits::block_range`].
    BlockRange,
    /// [`Limits::call_timeout`].
    CallTimeout,
    /// [`FilterLimits::count`](crate::filters::FilterLimits::count).
    Filters,
    /// [`Limits::gas_cap`].
    GasCap,
    /// [`Limits::logs`].
    Logs,
    /// [`Limits::percentiles`].
    Percentiles,
    /// [`Limits::storage_keys`].
    StorageKeys,
    /// [`Limits::topics`].
    Topics,
    /// [`Limits::trace_bytes`].
    TraceBytes,
}
