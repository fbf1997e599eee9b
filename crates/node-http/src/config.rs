//! What can be set about the HTTP interface.

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

/// More than one, so that a few long requests do not stop the short ones.
const THREADS_A_CORE: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(3);

/// Settings of the HTTP interface. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Whether the chain of a node that produces blocks may be controlled though others can reach the server.
    pub remote_control: bool,
    /// In front of every path.
    pub base_path: BasePath,
    /// Where clients reach the server, when it is not the host they name: behind a proxy.
    pub public_url: Option<PublicUrl>,
    /// Names under which the server may be asked, besides its addresses and those of this machine.
    pub allowed_hosts: AllowedHosts,
    /// Pages of other origins whose scripts may read answers.
    pub cors_origins: Vec<Origin>,
    /// What clients have to show, if anything.
    pub tokens: Option<Tokens>,
    /// Certificate and key, to speak TLS.
    pub tls: Option<Tls>,
    /// How many proxies stand in front of the server, each of which adds to `X-Forwarded-For`.
    pub trusted_proxies: usize,
    /// Requests a second that one client may send.
    pub rate_limit: RateLimit,
    /// Most connections at a time.
    pub max_connections: usize,
    /// Most requests at a time, over all connections.
    pub max_requests: usize,
    /// Longest path, query and headers together, in bytes.
    pub max_headers: usize,
    /// Longest body taken, in bytes.
    pub max_body: usize,
    /// How deep arrays and objects of a body may stand in each other.
    pub max_depth: usize,
    /// What one message of JSON-RPC may ask for.
    pub rpc: RpcLimits,
    /// What one WebSocket may be told.
    pub sessions: SessionLimits,
    /// Time for the headers of a request to arrive.
    pub header_timeout: Duration,
    /// Time for the body of a request to arrive.
    pub body_timeout: Duration,
    /// Time that the work of one request may take, waiting for a thread included.
    pub call_timeout: Duration,
    /// Time that an idle connection is kept open.
    pub keep_alive: Duration,
    /// Time that a client may take nothing of what it is sent, where the system can tell; then its connection is closed.
    pub write_timeout: Duration,
    /// Most clients that are told of events at a time.
    pub max_streams: usize,
    /// Time after which a client that is told of events is sent a sign of life.
    pub stream_keep_alive: Duration,
    /// Time that running requests get to finish at the end.
    pub shutdown_timeout: Duration,
    /// Age of the head, in its own time, from which on the server is not ready; none if any age will do.
    pub max_head_age: Option<Duration>,
    /// Most bytes of blocks that are kept as they were sent.
    pub body_cache: usize,
    /// Whether answers are compressed for clients who accept that.
    pub compression: bool,
    /// What is counted and measured, for a [`MetricsServer`](crate::MetricsServer) to tell.
    pub metrics: Metrics,
    /// Threads that serve connections.
    pub workers: NonZero<usize>,
    /// Threads for work that can be long.
    pub pool_threads: NonZero<usize>,
    /// Threads, of low priority, for code that clients name: calls, estimates, the pending block.
    pub call_threads: NonZero<usize>,
    /// Requests that may wait for a thread of each kind; more are refused.
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
            pool_threads: cores.saturating_mul(THREADS_A_CORE),
            call_threads: cores.saturating_mul(THREADS_A_CORE),
            pool_queue: 64,
        }
    }
}

impl HttpConfig {
    /// The scheme of the server's own addresses.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
