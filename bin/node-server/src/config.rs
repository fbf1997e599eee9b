//! Settings of servers.

use crate::cli::{GenesisOptions, PruneBefore, StorageOptions};
use crate::logs::LogFormat;
use crate::values;
use clap::Args;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use node_http::{BasePath, HttpConfig, PublicUrl};
use node_types::H256;
use std::net::IpAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

/// Settings of `run`.
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(flatten)]
    pub(crate) chain: ChainOptions,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
    #[command(flatten)]
    pub(crate) prune: PruneBefore,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// Settings of every server.
#[derive(Args, Debug)]
pub(crate) struct ServerOptions {
    #[command(flatten)]
    http: HttpOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
}

/// What to log, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogOptions {
    /// What to log, and how much: `debug` for everything, `info,request=warn` for no line a request
    #[arg(
        long, env = "NODE_LOG", value_name = "FILTER", default_value = "info,actix_server=warn,actix_http=off",
        value_parser = values::log_filter
    )]
    pub(crate) log: String,
    /// How to write the lines of the log
    #[arg(long, env = "NODE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// Which chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct ChainOptions {
    #[command(flatten)]
    pub(crate) genesis: GenesisOptions,
    /// Chain file of RLP blocks to import; may be given several times
    #[arg(long, env = "NODE_IMPORT", value_name = "FILE", value_delimiter = ',')]
    pub(crate) import: Vec<PathBuf>,
    /// Block that is to be the head after the import, where the files hold several branches
    #[arg(long, env = "NODE_HEAD", value_name = "HASH")]
    pub(crate) head: Option<H256>,
    /// End with an error when a chain file breaks off or holds an invalid block; without it the blocks before are served
    #[arg(long, env = "NODE_STRICT")]
    pub(crate) strict: bool,
}

/// How to listen.
#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
struct HttpOptions {
    /// Address to listen on
    #[arg(long, env = "NODE_HOST", default_value = "127.0.0.1", value_parser = values::host)]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, env = "NODE_PORT", default_value_t = 8545)]
    port: u16,
    /// Path in front of every route
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    base_path: BasePath,
    /// Where clients reach the server, for addresses in answers; without it the host that each client names
    #[arg(long, env = "NODE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<PublicUrl>,
    /// Longest request body in bytes
    #[arg(long, env = "NODE_MAX_BODY", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_body)]
    max_body: usize,
    /// Time for the headers of a request to arrive
    #[arg(long, env = "NODE_HEADER_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    header_timeout: Duration,
    /// Time for the body of a request to arrive
    #[arg(long, env = "NODE_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    body_timeout: Duration,
    /// Time that running requests get to finish when the server stops
    #[arg(long, env = "NODE_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// Most clients that are told of events at a time
    #[arg(long, env = "NODE_MAX_STREAMS", value_name = "COUNT", default_value_t = HttpConfig::default().max_streams)]
    max_streams: usize,
    /// Threads that serve connections [default: one a core]
    #[arg(long, env = "NODE_WORKERS", value_name = "COUNT")]
    workers: Option<NonZero<usize>>,
    /// Threads for work that can be long: transactions, filters, proofs, whole blocks [default: four a core]
    #[arg(long, env = "NODE_POOL_THREADS", value_name = "COUNT")]
    pool_threads: Option<NonZero<usize>>,
    /// Threads for calls, estimates and the pending block, of low priority [default: four a core]
    #[arg(long, env = "NODE_CALL_THREADS", value_name = "COUNT")]
    call_threads: Option<NonZero<usize>>,
    /// Requests that may wait for a thread of each kind before more are refused with 503
    #[arg(long, env = "NODE_POOL_QUEUE", value_name = "COUNT", default_value_t = HttpConfig::default().pool_queue)]
    pool_queue: usize,
}

/// What one request may cost.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitOptions {
    /// Time that one request may take
    #[arg(long, env = "NODE_CALL_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = values::time)]
    call_timeout: Duration,
    /// Most gas that a call or an estimate may use
    #[arg(long, env = "NODE_GAS_CAP", value_name = "GAS", value_parser = values::at_least_one::<u64>, default_value_t = Limits::default().gas_cap)]
    gas_cap: u64,
    /// Time that a filter lives after its last use
    #[arg(long, env = "NODE_FILTER_TTL", value_name = "TIME", default_value = "5m", value_parser = values::time)]
    filter_ttl: Duration,
    /// Most logs in one answer
    #[arg(long, env = "NODE_MAX_LOGS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Limits::default().logs)]
    max_logs: usize,
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
}

impl ServerOptions {
    /// Settings of the HTTP interface.
    pub(crate) fn http(&self) -> HttpConfig {
        let HttpOptions { host, port, max_body, header_timeout, body_timeout, shutdown_timeout, pool_queue, .. } =
            self.http;
        let default = HttpConfig::default();
        HttpConfig {
            host,
            port,
            base_path: self.http.base_path.clone(),
            public_url: self.http.public_url.clone(),
            max_body,
            header_timeout,
            body_timeout,
            shutdown_timeout,
            max_streams: self.http.max_streams,
            call_timeout: self.limits.call_timeout,
            workers: self.http.workers.unwrap_or(default.workers),
            pool_threads: self.http.pool_threads.unwrap_or(default.pool_threads),
            call_threads: self.http.call_threads.unwrap_or(default.call_threads),
            pool_queue,
            ..default
        }
    }

    /// Bounds of the node's operations.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            logs: self.limits.max_logs,
            addresses: self.limits.max_addresses,
            topics: self.limits.max_topics,
            storage_keys: self.limits.max_storage_keys,
            percentiles: self.limits.max_percentiles,
            gas_cap: self.limits.gas_cap,
            call_timeout: self.limits.call_timeout,
        }
    }

    /// Bounds of the filters. A poll holds as many entries as any answer may hold logs.
    pub(crate) fn filter_limits(&self) -> FilterLimits {
        FilterLimits { ttl: self.limits.filter_ttl, count: self.limits.max_filters, page: self.limits.max_logs }
    }

    /// Bounds of the pool.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        let LimitOptions { pool_transactions: transactions, pool_bytes: bytes, .. } = self.limits;
        PoolLimits { transactions, bytes, ..PoolLimits::default() }
    }
}
