//! What one request may ask for.

use std::time::Duration;

/// Upper bounds of requests and answers. Each is an option of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most logs in one answer.
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
    /// Most bytes of memory that what is recorded for one request may take.
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

/// The fault of a list that is longer than `limit`, which `option` of the server sets.
pub(super) fn too_many(got: usize, limit: usize, what: &str, option: &str) -> String {
    format!("expected at most {limit} {what}, got {got} (`{option}`)")
}
