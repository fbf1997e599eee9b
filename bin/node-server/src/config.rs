//! Settings of servers.

use crate::cli::{GenesisOptions, PruneBefore, StorageOptions};
use crate::error::CommandError;
use crate::logs::LogFormat;
use crate::open;
use crate::values;
use clap::Args;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use node_http::{
    AllowedHost, AllowedHosts, BasePath, HttpConfig, Origin, PublicUrl, RateLimit, RpcLimits, SessionLimits, Tls,
    Tokens,
};
use node_types::H256;
use std::net::{IpAddr, SocketAddr};
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
    /// Names under which the server may be asked, besides its addresses, localhost and the host of --public-url; * for any.
    /// Other names are refused, so that no web site can pass itself off as this server
    #[arg(long, env = "NODE_ALLOWED_HOSTS", value_name = "NAME", value_delimiter = ',')]
    allowed_hosts: Vec<AllowedHost>,
    /// Origins of web pages whose scripts may read answers (CORS), or * for any [default: none]
    #[arg(long, env = "NODE_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: Vec<Origin>,
    /// File with bearer tokens, one a line, of which clients have to show one
    #[arg(long, env = "NODE_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate chain to speak TLS with, PEM
    #[arg(long, env = "NODE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, env = "NODE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Proxies in front of the server that each add to X-Forwarded-For, by which clients are then told apart
    #[arg(long, env = "NODE_TRUSTED_PROXIES", value_name = "COUNT", default_value_t = HttpConfig::default().trusted_proxies)]
    trusted_proxies: usize,
    /// Where clients reach the server, for addresses in answers; without it the host that each client names
    #[arg(long, env = "NODE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<PublicUrl>,
    /// Requests a second that one client may send, off for any number; auto: off where only this machine reaches the server,
    /// else 1000
    #[arg(long, env = "NODE_RATE_LIMIT", value_name = "REQUESTS", default_value_t)]
    rate_limit: RateLimit,
    /// Most connections at a time
    #[arg(long, env = "NODE_MAX_CONNECTIONS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_connections)]
    max_connections: usize,
    /// Most requests at a time, over all connections
    #[arg(long, env = "NODE_MAX_REQUESTS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_requests)]
    max_requests: usize,
    /// Longest path, query and headers together, in bytes
    #[arg(long, env = "NODE_MAX_HEADERS", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_headers)]
    max_headers: usize,
    /// Deepest nesting of arrays and objects in a request body
    #[arg(long, env = "NODE_MAX_DEPTH", value_name = "LEVELS", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_depth)]
    max_depth: usize,
    /// Longest request body in bytes
    #[arg(long, env = "NODE_MAX_BODY", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_body)]
    max_body: usize,
    /// Most requests in one batch of JSON-RPC
    #[arg(long, env = "NODE_MAX_BATCH", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = RpcLimits::default().batch)]
    max_batch: usize,
    /// Most bytes of the answers to one batch of JSON-RPC; what is asked for behind them is refused
    #[arg(long, env = "NODE_MAX_BATCH_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = RpcLimits::default().batch_bytes)]
    max_batch_bytes: usize,
    /// Most subscriptions of one WebSocket
    #[arg(long, env = "NODE_MAX_SUBSCRIPTIONS", value_name = "COUNT", default_value_t = SessionLimits::default().subscriptions)]
    max_subscriptions: usize,
    /// Time for the headers of a request to arrive
    #[arg(long, env = "NODE_HEADER_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    header_timeout: Duration,
    /// Time for the body of a request to arrive
    #[arg(long, env = "NODE_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    body_timeout: Duration,
    /// Time that an idle connection is kept open
    #[arg(long, env = "NODE_KEEP_ALIVE", value_name = "TIME", default_value = "75s", value_parser = values::duration)]
    keep_alive: Duration,
    /// Time that a client may take nothing of what it is sent before its connection is closed
    #[arg(long, env = "NODE_WRITE_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = values::time)]
    write_timeout: Duration,
    /// Time after which a client that is told of events is sent a sign of life
    #[arg(long, env = "NODE_STREAM_KEEP_ALIVE", value_name = "TIME", default_value = "15s", value_parser = values::time)]
    stream_keep_alive: Duration,
    /// Age of the head from which on /ready answers 503 [default: any age is good]
    #[arg(long, env = "NODE_MAX_HEAD_AGE", value_name = "TIME", value_parser = values::time)]
    max_head_age: Option<Duration>,
    /// Most bytes of blocks that are kept as they were sent
    #[arg(long, env = "NODE_BODY_CACHE", value_name = "BYTES", default_value_t = HttpConfig::default().body_cache)]
    body_cache: usize,
    /// Send every answer as it is, also to clients who accept gzip, br or zstd
    #[arg(long, env = "NODE_NO_COMPRESSION")]
    no_compression: bool,
    /// Address and port to tell metrics on, for Prometheus, at /metrics [default: nowhere]
    #[arg(long, env = "NODE_METRICS_ADDR", value_name = "ADDRESS")]
    metrics_addr: Option<SocketAddr>,
    /// Time that running requests get to finish when the server stops
    #[arg(long, env = "NODE_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// Most clients that are told of events at a time
    #[arg(long, env = "NODE_MAX_STREAMS", value_name = "COUNT", default_value_t = HttpConfig::default().max_streams)]
    max_streams: usize,
    /// Threads that serve connections [default: one a core]
    #[arg(long, env = "NODE_WORKERS", value_name = "COUNT", value_parser = values::threads)]
    workers: Option<NonZero<usize>>,
    /// Threads for work that can be long: transactions, filters, proofs, whole blocks [default: four a core]
    #[arg(long, env = "NODE_POOL_THREADS", value_name = "COUNT", value_parser = values::threads)]
    pool_threads: Option<NonZero<usize>>,
    /// Threads for calls, estimates and the pending block, of low priority [default: four a core]
    #[arg(long, env = "NODE_CALL_THREADS", value_name = "COUNT", value_parser = values::threads)]
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

impl ServerOptions {
    /// Settings of the HTTP interface, with the files that they name.
    pub(crate) fn http(&self) -> Result<HttpConfig, CommandError> {
        let options = &self.http;
        let default = HttpConfig::default();
        Ok(HttpConfig {
            host: options.host,
            port: options.port,
            remote_control: default.remote_control,
            base_path: options.base_path.clone(),
            public_url: options.public_url.clone(),
            allowed_hosts: AllowedHosts::new(options.allowed_hosts.iter().cloned()),
            cors_origins: options.cors_origins.clone(),
            tokens: options.tokens()?,
            tls: options.tls()?,
            trusted_proxies: options.trusted_proxies,
            rate_limit: options.rate_limit,
            max_connections: options.max_connections,
            max_requests: options.max_requests,
            max_headers: options.max_headers,
            max_body: options.max_body,
            max_depth: options.max_depth,
            rpc: RpcLimits { batch: options.max_batch, batch_bytes: options.max_batch_bytes },
            sessions: SessionLimits { subscriptions: options.max_subscriptions },
            header_timeout: options.header_timeout,
            body_timeout: options.body_timeout,
            call_timeout: self.limits.call_timeout,
            keep_alive: options.keep_alive,
            write_timeout: options.write_timeout,
            max_streams: options.max_streams,
            stream_keep_alive: options.stream_keep_alive,
            shutdown_timeout: options.shutdown_timeout,
            max_head_age: options.max_head_age,
            body_cache: options.body_cache,
            compression: !options.no_compression,
            metrics: default.metrics,
            workers: options.workers.unwrap_or(default.workers),
            pool_threads: options.pool_threads.unwrap_or(default.pool_threads),
            call_threads: options.call_threads.unwrap_or(default.call_threads),
            pool_queue: options.pool_queue,
        })
    }

    /// Where metrics are to be told.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.http.metrics_addr
    }

    /// Bounds of the node's operations.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            logs: self.limits.max_logs,
            block_range: self.limits.max_block_range,
            addresses: self.limits.max_addresses,
            topics: self.limits.max_topics,
            storage_keys: self.limits.max_storage_keys,
            percentiles: self.limits.max_percentiles,
            gas_cap: self.limits.gas_cap,
            call_timeout: self.limits.call_timeout,
            trace_bytes: self.limits.max_trace_bytes,
        }
    }

    /// Bounds of the filters. A poll holds as many entries as any answer may hold logs.
    pub(crate) fn filter_limits(&self) -> FilterLimits {
        FilterLimits { ttl: self.limits.filter_ttl, count: self.limits.max_filters, page: self.limits.max_logs }
    }

    /// Bounds of the pool.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        let LimitOptions { pool_transactions: transactions, pool_bytes: bytes, .. } = self.limits;
        let (queued, queued_per_account) = (self.limits.pool_queued, self.limits.pool_queued_per_account);
        PoolLimits { transactions, bytes, queued, queued_per_account, ..PoolLimits::default() }
    }
}

impl HttpOptions {
    fn tokens(&self) -> Result<Option<Tokens>, CommandError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = open::read_small_text(path)?;
        let tokens = Tokens::parse(&text).map_err(|source| CommandError::Tokens { path: path.clone(), source })?;
        Ok(Some(tokens))
    }

    fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let tls = Tls::from_pem(open::read_small_text(certificate)?.as_bytes(), open::read_small_text(key)?.as_bytes());
        Ok(Some(tls.map_err(|source| CommandError::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            source,
        })?))
    }
}
