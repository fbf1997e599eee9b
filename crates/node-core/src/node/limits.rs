//! Upper bounds of requests and results.

use std::time::Duration;

/// Upper bounds of one request and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most logs in one result.
    pub logs: usize,
    /// Most blocks that one query for logs may span, both ends included.
    pub block_range: u64,
    /// Most addresses in one log filter.
    pub addresses: usize,
    /// Most words at one topic position of a log filter.
    pub topics: usize,
    /// Most storage keys in one request for a proof.
    pub storage_keys: usize,
    /// Most percentiles in one request for the fee history.
    pub percentiles: usize,
    /// Most gas that a call or an estimate may use.
    pub gas_cap: u64,
    /// Longest time that a call or an estimate may take.
    pub call_timeout: Duration,
    /// Most bytes of memory for the traces of one request.
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
            percentiles: 100,
            gas_cap: 50_000_000,
            call_timeout: Duration::from_secs(5),
            trace_bytes: 128 << 20,
        }
    }
}

/// An upper bound that a request exceeded.
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
