//! Limits on the cost of requests.

use crate::values;
use clap::Args;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use std::time::Duration;

/// Limits on the cost of requests, and on filters and the transaction pool.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// Time limit of a request
    #[arg(long, env = "NODE_CALL_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = values::time)]
    pub(crate) call_timeout: Duration,
    /// Maximum gas of a call or an estimate
    #[arg(long, env = "NODE_GAS_CAP", value_name = "GAS", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().gas_cap)]
    gas_cap: u64,
    /// Maximum memory for recording a trace, in bytes; serializing it takes about 2.5 times as much
    #[arg(long, env = "NODE_MAX_TRACE_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().trace_bytes)]
    max_trace_bytes: u64,
    /// How long a filter exists after its last use
    #[arg(long, env = "NODE_FILTER_TTL", value_name = "TIME", default_value = "5m", value_parser = values::time)]
    filter_ttl: Duration,
    /// Maximum number of logs in a response
    #[arg(long, env = "NODE_MAX_LOGS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().logs)]
    max_logs: usize,
    /// Maximum number of blocks that a log query may span
    #[arg(long, env = "NODE_MAX_BLOCK_RANGE", value_name = "BLOCKS", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().block_range)]
    max_block_range: u64,
    /// Maximum number of addresses in a log filter
    #[arg(long, env = "NODE_MAX_ADDRESSES", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().addresses)]
    max_addresses: usize,
    /// Maximum number of topics at each position of a log filter
    #[arg(long, env = "NODE_MAX_TOPICS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().topics)]
    max_topics: usize,
    /// Maximum number of storage keys in a proof request
    #[arg(long, env = "NODE_MAX_STORAGE_KEYS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().storage_keys)]
    max_storage_keys: usize,
    /// Maximum number of percentiles in a fee history request
    #[arg(long, env = "NODE_MAX_PERCENTILES", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().percentiles)]
    max_percentiles: usize,
    /// Maximum number of installed filters
    #[arg(long, env = "NODE_MAX_FILTERS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = FilterLimits::default().count)]
    max_filters: usize,
    /// Maximum number of transactions in the pool
    #[arg(long, env = "NODE_POOL_TRANSACTIONS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = PoolLimits::default().transactions)]
    pool_transactions: usize,
    /// Maximum size of all transactions in the pool in bytes
    #[arg(long, env = "NODE_POOL_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = PoolLimits::default().bytes)]
    pool_bytes: usize,
    /// Maximum number of queued transactions in the pool: those that wait for an earlier nonce or for balance
    #[arg(long, env = "NODE_POOL_QUEUED", value_name = "COUNT", default_value_t = PoolLimits::default().queued)]
    pool_queued: usize,
    /// Maximum number of queued transactions of an account
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
