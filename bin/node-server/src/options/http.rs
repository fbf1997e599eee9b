//! Options of the HTTP interface.

use crate::error::CommandError;
use crate::files;
use crate::values;
use clap::Args;
use node_http::{
    AllowedHost, AllowedHosts, BasePath, HttpConfig, Origin, PublicUrl, RateLimit, RpcLimits, SessionLimits, Tls,
    Tokens,
};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the HTTP interface.
#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpOptions {
    /// Address to listen on
    #[arg(long, env = "NODE_HOST", default_value = "127.0.0.1", value_parser = values::host)]
    host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, env = "NODE_PORT", default_value_t = 8545)]
    port: u16,
    /// Path prefix of every route
    #[arg(long, env = "NODE_BASE_PATH", value_name = "PATH", default_value = "/")]
    base_path: BasePath,
    /// Host names that requests may use, besides IP addresses, localhost and the host of --public-url, or * for any. Others are
    /// refused as a defence against DNS rebinding
    #[arg(long, env = "NODE_ALLOWED_HOSTS", value_name = "NAME", value_delimiter = ',')]
    allowed_hosts: Vec<AllowedHost>,
    /// Origins of web pages whose scripts may read responses (CORS), or * for any [default: none]
    #[arg(long, env = "NODE_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: Vec<Origin>,
    /// File of bearer tokens, one per line; clients must send one of them [default: no token required]
    #[arg(long, env = "NODE_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file of the TLS certificate chain; enables TLS
    #[arg(long, env = "NODE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, env = "NODE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Number of trusted proxies that append to X-Forwarded-For, from which the client address is then taken
    #[arg(long, env = "NODE_TRUSTED_PROXIES", value_name = "COUNT", default_value_t = HttpConfig::default().trusted_proxies)]
    trusted_proxies: usize,
    /// URL at which clients reach the server, for links in responses [default: the host of each request]
    #[arg(long, env = "NODE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<PublicUrl>,
    /// Requests per second for each client, or off; auto is 1000, or off when listening on a loopback address
    #[arg(long, env = "NODE_RATE_LIMIT", value_name = "REQUESTS", default_value_t)]
    rate_limit: RateLimit,
    /// Maximum number of open connections
    #[arg(long, env = "NODE_MAX_CONNECTIONS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_connections)]
    max_connections: usize,
    /// Maximum number of requests in progress, over all connections
    #[arg(long, env = "NODE_MAX_REQUESTS", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_requests)]
    max_requests: usize,
    /// Maximum length of path, query and headers together, in bytes
    #[arg(long, env = "NODE_MAX_HEADERS", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_headers)]
    max_headers: usize,
    /// Maximum nesting depth of arrays and objects in a request body
    #[arg(long, env = "NODE_MAX_DEPTH", value_name = "LEVELS", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_depth)]
    max_depth: usize,
    /// Maximum length of a request body in bytes
    #[arg(long, env = "NODE_MAX_BODY", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = HttpConfig::default().max_body)]
    max_body: usize,
    /// Maximum number of requests in a JSON-RPC batch
    #[arg(long, env = "NODE_MAX_BATCH", value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = RpcLimits::default().batch)]
    max_batch: usize,
    /// Maximum size of the responses to a JSON-RPC batch in bytes; requests after that fail
    #[arg(long, env = "NODE_MAX_BATCH_BYTES", value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = RpcLimits::default().batch_bytes)]
    max_batch_bytes: usize,
    /// Maximum number of subscriptions of a WebSocket connection
    #[arg(long, env = "NODE_MAX_SUBSCRIPTIONS", value_name = "COUNT", default_value_t = SessionLimits::default().subscriptions)]
    max_subscriptions: usize,
    /// Time limit for the headers of a request to arrive
    #[arg(long, env = "NODE_HEADER_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    header_timeout: Duration,
    /// Time limit for the body of a request to arrive
    #[arg(long, env = "NODE_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    body_timeout: Duration,
    /// How long an idle connection stays open
    #[arg(long, env = "NODE_KEEP_ALIVE", value_name = "TIME", default_value = "75s", value_parser = values::duration)]
    keep_alive: Duration,
    /// How long a client may leave sent data unacknowledged before its connection is closed (Linux)
    #[arg(long, env = "NODE_WRITE_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = values::time)]
    write_timeout: Duration,
    /// Interval of keep-alive messages on idle event streams and WebSockets
    #[arg(long, env = "NODE_STREAM_KEEP_ALIVE", value_name = "TIME", default_value = "15s", value_parser = values::time)]
    stream_keep_alive: Duration,
    /// Maximum age of the head; /ready returns 503 if the head is older [default: no limit]
    #[arg(long, env = "NODE_MAX_HEAD_AGE", value_name = "TIME", value_parser = values::time)]
    max_head_age: Option<Duration>,
    /// Size of the cache of serialized blocks in bytes
    #[arg(long, env = "NODE_BODY_CACHE", value_name = "BYTES", default_value_t = HttpConfig::default().body_cache)]
    body_cache: usize,
    /// Do not compress responses, even for clients that accept gzip, br or zstd
    #[arg(long, env = "NODE_NO_COMPRESSION")]
    no_compression: bool,
    /// Address and port on which to serve Prometheus metrics at /metrics [default: none]
    #[arg(long, env = "NODE_METRICS_ADDR", value_name = "ADDRESS")]
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// Time limit for requests in progress to finish during shutdown
    #[arg(long, env = "NODE_SHUTDOWN_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    shutdown_timeout: Duration,
    /// Maximum number of open event streams and WebSockets
    #[arg(long, env = "NODE_MAX_STREAMS", value_name = "COUNT", default_value_t = HttpConfig::default().max_streams)]
    max_streams: usize,
    /// Threads that serve connections [default: one per core]
    #[arg(long, env = "NODE_WORKERS", value_name = "COUNT", value_parser = values::threads)]
    workers: Option<NonZero<usize>>,
    /// Threads for work that can take long: transactions, filters, proofs, full blocks [default: four per core]
    #[arg(long, env = "NODE_POOL_THREADS", value_name = "COUNT", value_parser = values::threads)]
    pool_threads: Option<NonZero<usize>>,
    /// Low-priority threads for calls, estimates and the pending block [default: four per core]
    #[arg(long, env = "NODE_CALL_THREADS", value_name = "COUNT", value_parser = values::threads)]
    call_threads: Option<NonZero<usize>>,
    /// Requests that may wait for a thread of each pool; further ones are refused with 503
    #[arg(long, env = "NODE_POOL_QUEUE", value_name = "COUNT", default_value_t = HttpConfig::default().pool_queue)]
    pool_queue: usize,
}

impl HttpOptions {
    /// The configuration of the HTTP interface. Reads the files of tokens, certificate and key.
    pub(crate) fn config(&self, call_timeout: Duration) -> Result<HttpConfig, CommandError> {
        let default = HttpConfig::default();
        Ok(HttpConfig {
            host: self.host,
            port: self.port,
            base_path: self.base_path.clone(),
            public_url: self.public_url.clone(),
            allowed_hosts: AllowedHosts::new(self.allowed_hosts.iter().cloned()),
            cors_origins: self.cors_origins.clone(),
            tokens: self.tokens()?,
            tls: self.tls()?,
            trusted_proxies: self.trusted_proxies,
            rate_limit: self.rate_limit,
            max_connections: self.max_connections,
            max_requests: self.max_requests,
            max_headers: self.max_headers,
            max_body: self.max_body,
            max_depth: self.max_depth,
            rpc: RpcLimits { batch: self.max_batch, batch_bytes: self.max_batch_bytes },
            sessions: SessionLimits { subscriptions: self.max_subscriptions },
            header_timeout: self.header_timeout,
            body_timeout: self.body_timeout,
            call_timeout,
            keep_alive: self.keep_alive,
            write_timeout: self.write_timeout,
            max_streams: self.max_streams,
            stream_keep_alive: self.stream_keep_alive,
            shutdown_timeout: self.shutdown_timeout,
            max_head_age: self.max_head_age,
            body_cache: self.body_cache,
            compression: !self.no_compression,
            workers: self.workers.unwrap_or(default.workers),
            pool_threads: self.pool_threads.unwrap_or(default.pool_threads),
            call_threads: self.call_threads.unwrap_or(default.call_threads),
            pool_queue: self.pool_queue,
            ..default
        })
    }

    fn tokens(&self) -> Result<Option<Tokens>, CommandError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = files::read_small_text(path)?;
        let tokens = Tokens::parse(&text).map_err(|source| CommandError::Tokens { path: path.clone(), source })?;
        Ok(Some(tokens))
    }

    fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let tls =
            Tls::from_pem(files::read_small_text(certificate)?.as_bytes(), files::read_small_text(key)?.as_bytes());
        Ok(Some(tls.map_err(|source| CommandError::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            source,
        })?))
    }
}
