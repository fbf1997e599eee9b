//! Options of every server.

use crate::error::CommandError;
use crate::files;
use crate::logging::{DEFAULT_LOG, LineFilter, LogFormat};
use clap::Args;
use listenfd::ListenFd;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use node_http::values::{at_least_one, text, time};
use node_http::{HttpConfig, Tls, Tokens};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of every server.
#[derive(Args, Debug)]
pub(crate) struct ServerOptions {
    #[command(flatten)]
    pub(crate) http: HttpConfig,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    pool: PoolOptions,
    #[command(flatten)]
    pub(crate) operation: OperationOptions,
}

/// Options of the HTTP interface whose values are in files.
#[derive(Args, Debug)]
struct FileOptions {
    /// PEM file of the TLS certificate chain; enables TLS
    #[arg(long, value_name = "FILE", help_heading = "Listening", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", help_heading = "Listening", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File of bearer tokens, one per line; clients must send one of them [default: no token required]
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    token_file: Option<PathBuf>,
}

/// Limits on the cost of requests and on filters.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits of one request")]
struct LimitOptions {
    /// Maximum gas of a call or an estimate
    #[arg(long, value_name = "GAS", value_parser = at_least_one::<u64>, default_value_t = Limits::default().gas_cap)]
    gas_cap: u64,
    /// Maximum memory for recording a trace, in bytes; serializing it takes about 2.5 times as much. At most one trace
    /// per core runs at a time
    #[arg(long, value_name = "BYTES", value_parser = at_least_one::<u64>, default_value_t = Limits::default().trace_bytes)]
    max_trace_bytes: u64,
    /// Maximum number of logs in a response
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Limits::default().logs)]
    max_logs: usize,
    /// Maximum number of blocks that a log query may span
    #[arg(long, value_name = "BLOCKS", value_parser = at_least_one::<u64>, default_value_t = Limits::default().block_range)]
    max_block_range: u64,
    /// Maximum number of addresses in a log filter
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Limits::default().addresses)]
    max_addresses: usize,
    /// Maximum number of topics at each position of a log filter
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Limits::default().topics)]
    max_topics: usize,
    /// Maximum number of storage keys in a proof request
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = Limits::default().storage_keys)]
    max_storage_keys: usize,
    /// How long a filter exists after its last use
    #[arg(long, value_name = "TIME", help_heading = "Limits of all clients", value_parser = time, default_value = text(FilterLimits::default().ttl))]
    filter_ttl: Duration,
    /// Maximum number of installed filters
    #[arg(long, value_name = "COUNT", help_heading = "Limits of all clients", value_parser = at_least_one::<usize>, default_value_t = FilterLimits::default().count)]
    max_filters: usize,
}

/// Limits of the transaction pool.
#[derive(Args, Debug)]
#[command(next_help_heading = "Transaction pool")]
struct PoolOptions {
    /// Maximum number of transactions in the pool
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<usize>, default_value_t = PoolLimits::default().transactions)]
    pool_transactions: usize,
    /// Maximum size of all transactions in the pool in bytes
    #[arg(long, value_name = "BYTES", value_parser = at_least_one::<usize>, default_value_t = PoolLimits::default().bytes)]
    pool_bytes: usize,
    /// Maximum number of queued transactions in the pool: those that wait for an earlier nonce or for balance
    #[arg(long, value_name = "COUNT", default_value_t = PoolLimits::default().queued)]
    pool_queued: usize,
}

/// Options for monitoring and operating a server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Operation")]
pub(crate) struct OperationOptions {
    /// Address and port on which to serve Prometheus metrics at /metrics [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// Log filter: `debug` logs everything, `info,request=warn` leaves out the line for each request
    #[arg(long, value_name = "FILTER", default_value = DEFAULT_LOG)]
    pub(crate) log: LineFilter,
    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Exit with status 3 if changes cannot be stored, instead of refusing changes until they can be
    #[arg(long)]
    pub(crate) exit_on_write_failure: bool,
}

impl ServerOptions {
    /// Returns the configuration of the HTTP interface. Reads the files of tokens, certificate and key, and takes the
    /// socket that systemd opened, if there is one.
    pub(crate) fn http_config(&self) -> Result<HttpConfig, CommandError> {
        let listener = ListenFd::from_env().take_tcp_listener(0).map_err(CommandError::Socket)?.map(Arc::new);
        Ok(HttpConfig { tokens: self.tokens()?, tls: self.tls()?, listener, ..self.http.clone() })
    }

    /// Reads the file of tokens.
    pub(crate) fn tokens(&self) -> Result<Option<Tokens>, CommandError> {
        let Some(path) = &self.files.token_file else { return Ok(None) };
        let text = files::read_small_text(path)?;
        let tokens = Tokens::parse(&text).map_err(|source| CommandError::Tokens { path: path.clone(), source })?;
        Ok(Some(tokens))
    }

    /// Reads the files of certificate and key.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.files.tls_cert, &self.files.tls_key) else { return Ok(None) };
        let tls =
            Tls::from_pem(files::read_small_text(certificate)?.as_bytes(), files::read_small_text(key)?.as_bytes());
        Ok(Some(tls.map_err(|source| CommandError::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            source,
        })?))
    }

    /// Returns the limits of the node's operations.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            logs: self.limits.max_logs,
            block_range: self.limits.max_block_range,
            addresses: self.limits.max_addresses,
            topics: self.limits.max_topics,
            storage_keys: self.limits.max_storage_keys,
            gas_cap: self.limits.gas_cap,
            call_timeout: self.http.call_timeout,
            trace_bytes: self.limits.max_trace_bytes,
            ..Limits::default()
        }
    }

    /// Limits of the filters. One poll returns at most as many entries as any response may contain logs.
    pub(crate) fn filter_limits(&self) -> FilterLimits {
        FilterLimits { ttl: self.limits.filter_ttl, count: self.limits.max_filters, page: self.limits.max_logs }
    }

    /// Limits of the transaction pool.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        let PoolOptions { pool_transactions, pool_bytes, pool_queued } = self.pool;
        PoolLimits { transactions: pool_transactions, bytes: pool_bytes, queued: pool_queued, ..PoolLimits::default() }
    }
}
