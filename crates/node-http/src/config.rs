//! Configuration of the HTTP interface.

use crate::hosts::AllowedHosts;
use crate::metrics::Metrics;
use crate::rate::RateLimit;
use crate::tls::Tls;
use crate::tokens::Tokens;
use crate::url::{BasePath, Origin, PublicUrl};
use node_rpc::{RpcLimits, SessionLimits};
use std::net::IpAddr;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

/// Pool threads per core. More than one, so that a few long requests do not block the short ones.
const THREADS_PER_CORE: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(3);

/// Configuration of the HTTP interface. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Whether clients on other machines may use the operations that control the chain.
    pub remote_control: bool,
    /// Prefix of every path.
    pub base_path: BasePath,
    /// URL at which clients reach the server; `None` to use the host of each request.
    pub public_url: Option<PublicUrl>,
    /// Host names that requests may use, besides IP addresses and `localhost`.
    pub allowed_hosts: AllowedHosts,
    /// Origins of web pages whose scripts may read responses.
    pub cors_origins: Vec<Origin>,
    /// Bearer tokens, one of which each client must send; `None` to require no token.
    pub tokens: Option<Tokens>,
    /// Certificate and key for TLS; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Number of proxies in front of the server that append to `X-Forwarded-For`.
    pub trusted_proxies: usize,
    /// Requests per second that each client may send.
    pub rate_limit: RateLimit,
    /// Most open connections.
    pub max_connections: usize,
    /// Most requests in progress, over all connections.
    pub max_requests: usize,
    /// Longest path, query and headers together, in bytes.
    pub max_headers: usize,
    /// Longest request body, in bytes.
    pub max_body: usize,
    /// Deepest nesting of arrays and objects in a request body.
    pub max_depth: usize,
    /// Limits of one JSON-RPC message.
    pub rpc: RpcLimits,
    /// Limits of one WebSocket connection.
    pub sessions: SessionLimits,
    /// Time limit for the headers of a request to arrive.
    pub header_timeout: Duration,
    /// Time limit for the body of a request to arrive.
    pub body_timeout: Duration,
    /// Time limit for the work of one request, including the wait for a thread.
    pub call_timeout: Duration,
    /// How long an idle connection stays open.
    pub keep_alive: Duration,
    /// How long a client may acknowledge none of the data sent to it before its connection is closed. Linux only.
    pub write_timeout: Duration,
    /// Most open event streams and WebSockets.
    pub max_streams: usize,
    /// Interval of keep-alive messages on idle event streams and WebSockets.
    pub stream_keep_alive: Duration,
    /// How long requests in progress may take to finish during shutdown.
    pub shutdown_timeout: Duration,
    /// The server is not ready if the timestamp of the head is older than this; `None` for no limit.
    pub max_head_age: Option<Duration>,
    /// Capacity of the cache of serialized blocks, in bytes.
    pub body_cache: usize,
    /// Whether responses are compressed for clients that accept it.
    pub compression: bool,
    /// The metrics of the server, which a [`MetricsServer`](crate::MetricsServer) can serve.
    pub metrics: Metrics,
    /// Threads that serve connections.
    pub workers: NonZero<usize>,
    /// Threads for work that can take long.
    pub pool_threads: NonZero<usize>,
    /// Low-priority threads for calls, estimates and building the pending block.
    pub call_threads: NonZero<usize>,
    /// Requests that may wait for a thread of each pool; further ones are refused.
    pub pool_queue: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let cores = available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 8545,
            remote_control: false,
            base_path: BasePath::default(),
            public_url: None,
            allowed_hosts: AllowedHosts::default(),
            cors_origins: Vec::new(),
            tokens: None,
            tls: None,
            trusted_proxies: 0,
            rate_limit: RateLimit::Auto,
            max_connections: 4_096,
            max_requests: 16_384,
            max_headers: 16 * 1024,
            max_body: 5 * 1024 * 1024,
            max_depth: 128,
            rpc: RpcLimits::default(),
            sessions: SessionLimits::default(),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(60),
            max_streams: 256,
            stream_keep_alive: Duration::from_secs(15),
            shutdown_timeout: Duration::from_secs(10),
            max_head_age: None,
            body_cache: 32 * 1024 * 1024,
            compression: true,
            metrics: Metrics::default(),
            workers: cores,
            pool_threads: cores.saturating_mul(THREADS_PER_CORE),
            call_threads: cores.saturating_mul(THREADS_PER_CORE),
            pool_queue: 64,
        }
    }
}

impl HttpConfig {
    /// The scheme of the server's own URLs: `https` with TLS, otherwise `http`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
