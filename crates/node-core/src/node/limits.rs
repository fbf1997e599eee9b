//! Limits of requests and results.

#[cfg(feature = "clap")]
use crate::values::at_least_one;
use std::time::Duration;

/// Limits of one request and its result. All are inclusive.
///
/// With the feature `clap`, this is a group of command-line options with the same defaults. Fields that are not options
/// can only be set in code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits of one request"))]
pub struct Limits {
    /// Maximum gas of a call or an estimate
    #[cfg_attr(feature = "clap", arg(long = Limit::GasCap.name(), value_name = "GAS", value_parser = at_least_one::<u64>, default_value_t = Self::default().gas_cap))]
    pub gas_cap: u64,
    /// Maximum memory for recording a trace, in bytes; its JSON counts as part of the response. At most one trace per
    /// core runs at a time
    #[cfg_attr(feature = "clap", arg(long = Limit::TraceBytes.name(), value_name = "BYTES", value_parser = at_least_one::<u64>, default_value_t = Self::default().trace_bytes))]
    pub trace_bytes: u64,
    /// Maximum number of logs in a response
    #[cfg_attr(feature = "clap", arg(long = Limit::Logs.name(), value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Self::default().logs))]
    pub logs: usize,
    /// Maximum number of blocks that a log query may span
    #[cfg_attr(feature = "clap", arg(long = Limit::BlockRange.name(), value_name = "BLOCKS", value_parser = at_least_one::<u64>, default_value_t = Self::default().block_range))]
    pub block_range: u64,
    /// Maximum number of addresses in a log filter
    #[cfg_attr(feature = "clap", arg(long = Limit::Addresses.name(), value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Self::default().addresses))]
    pub addresses: usize,
    /// Maximum number of topics at each position of a log filter
    #[cfg_attr(feature = "clap", arg(long = Limit::Topics.name(), value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Self::default().topics))]
    pub topics: usize,
    /// Maximum number of storage keys in a proof request
    #[cfg_attr(feature = "clap", arg(long = Limit::StorageKeys.name(), value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Self::default().storage_keys))]
    pub storage_keys: usize,
    /// Maximum number of percentiles in a fee history request.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().percentiles))]
    pub percentiles: usize,
    /// Maximum duration of a call or an estimate.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().call_timeout))]
    pub call_timeout: Duration,
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
    Addresses,
    BlockRange,
    CallTimeout,
    /// [`FilterLimits::bytes`](crate::filters::FilterLimits::bytes).
    FilterBytes,
    /// [`FilterLimits::count`](crate::filters::FilterLimits::count).
    Filters,
    GasCap,
    Logs,
    Percentiles,
    /// [`PoolLimits::bytes`](crate::pool::PoolLimits::bytes).
    PoolBytes,
    /// [`PoolLimits::queued`](crate::pool::PoolLimits::queued).
    PoolQueued,
    /// [`PoolLimits::transactions`](crate::pool::PoolLimits::transactions).
    PoolTransactions,
    /// The maximum length of a response, which the transport sets.
    Response,
    StorageKeys,
    Topics,
    TraceBytes,
    /// The maximum size of all responses that are not read yet, which the transport sets.
    TransferMemory,
}

impl Limit {
    /// Returns the name of the limit, which is that of its command-line option if it [has one](Self::has_option).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Addresses => "max-addresses",
            Self::BlockRange => "max-block-range",
            Self::CallTimeout => "call-timeout",
            Self::FilterBytes => "max-filter-bytes",
            Self::Filters => "max-filters",
            Self::GasCap => "gas-cap",
            Self::Logs => "max-logs",
            Self::Percentiles => "max-percentiles",
            Self::PoolBytes => "pool-bytes",
            Self::PoolQueued => "pool-queued",
            Self::PoolTransactions => "pool-transactions",
            Self::Response => "max-response",
            Self::StorageKeys => "max-storage-keys",
            Self::Topics => "max-topics",
            Self::TraceBytes => "max-trace-bytes",
            Self::TransferMemory => "transfer-memory",
        }
    }

    /// Returns whether a command-line option sets the limit.
    pub const fn has_option(self) -> bool {
        !matches!(self, Self::Percentiles)
    }
}
