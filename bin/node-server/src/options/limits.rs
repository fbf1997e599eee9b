//! Limits on the cost of requests.

use crate::values;
use clap::Args;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use std::time::Duration;

/// What one request may cost.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// Time that one request may take
    #[arg(long, env = "NODE_CALL_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) call_timeout: Duration,
    /// Most gas that a call or an estimate may use
    #[arg(long, env = "NODE_GAS_CAP", value_name = "GAS", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().gas_cap)]
    gas_cap: u64,
    /// Most bytes of memory that the recording of a trace may take; at its end about two and a half times as many are used
    #[arg(long, env = "NODE_MAX_TRACE_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().trace_bytes)]
    max_trace_bytes: u64,
    /// Time that a filter lives after its last use
    #[arg(long, env = "NODE_FILTER_TTL", value_name = "TIME", default_value = "5m", value_parser = values::time)]
    filter_ttl: Duration,
    /// Most logs in one answer
    #[arg(long, env = "NODE_MAX_LOGS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().logs)]
    max_logs: usize,
    /// Most blocks that one query for logs may span
    #[arg(long, env = "NODE_MAX_BLOCK_RANGE", value_name = "BLOCKS", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().block_range)]
    max_block_range: u64,
    /// Most addresses in one log filter
    #[arg(long, env = "NODE_MAX_ADDRESSES", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().addresses)]
    max_addresses: usize,
    /// Most topics at one position of a log filter
    #[arg(long, env = "NODE_MAX_TOPICS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().topics)]
    max_topics: usize,
    /// Most storage keys in one request for a proof
    #[arg(long, env = "NODE_MAX_STORAGE_KEYS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().storage_keys)]
    max_storage_keys: usize,
    /// Most percentiles in one request for the fee history
    #[arg(long, env = "NODE_MAX_PERCENTILES", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().percentiles)]
    max_percentiles: usize,
    /// Most filters at a time
    #[arg(long, env = "NODE_MAX_FILTERS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = FilterLimits::default().count)]
    max_filters: usize,
    /// Most transactions in the pool
    #[arg(long, env = "NODE_POOL_TRANSACTIONS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = PoolLimits::default().transactions)]
    pool_transactions: usize,
    /// Most bytes of transactions in the pool
    #[arg(long, env = "NODE_POOL_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = PoolLimits::default().bytes)]
    pool_bytes: usize,
    /// Most transactions in the pool that wait for an earlier nonce, or for balance
    #[arg(long, env = "NODE_POOL_QUEUED", value_name = "COUNT", default_value_t = PoolLimits::default().queued)]
    pool_queued: usize,
    /// Most transactions of one account that wait for an earlier nonce, or for balance
    #[arg(long, env = "NODE_POOL_QUEUED_PER_ACCOUNT", value_name = "COUNT", default_value_t = PoolLimits::default().queued_per_account)]
    pool_queued_per_account: usize,
}

impl LimitOptions {
    /// Limits of the node's operations.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            logs: self.max_logs,
            block_range: self.max_block_range,
            addresses: self.max_addresses,
            topics: self.max_topics,
            storage_keys: self.max_storage_keys,
            percentiles: self.max_percentiles,
            gas_cap: self.gas_cap,
            call_timeout: self.call_timeout,
            trace_bytes: self.max_trace_bytes,
        }
    }

    /// Limits of the filters. One poll returns at most as many entries as any response may contain logs.
    pub(crate) fn filter_limits(&self) -> FilterLimits {
        FilterLimits { ttl: self.filter_ttl, count: self.max_filters, page: self.max_logs }
    }

    /// Limits of the transaction pool.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        PoolLimits {
            transactions: self.pool_transactions,
            bytes: self.pool_bytes,
            queued: self.pool_queued,
            queued_per_account: self.pool_queued_per_account,
            ..PoolLimits::default()
        }
    }
}
