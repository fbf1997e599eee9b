//! Configuration of the HTTP interface.

use crate::admission::api::ApiName;
use crate::admission::cors::AllowedOrigin;
use crate::admission::forwarded::{ProxyHeaders, ProxyNetwork};
use crate::admission::hosts::AllowedHost;
use crate::admission::rate::RateLimit;
use crate::admission::tokens::Tokens;
use crate::completeness::Incomplete;
use crate::metrics::Metrics;
use crate::transport::phase::Starting;
use crate::transport::tls::Tls;
use crate::url::{BasePath, PublicUrl};
#[cfg(feature = "clap")]
use crate::values;
use crate::writer::Writer;
use node_rpc::{RpcLimits, SessionLimits};
use node_types::{BlockNumber, H256};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

/// Pool threads per core. There are several, so that a few long requests do not block short ones.
const THREADS_PER_CORE: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(3);

/// Default maximum length of path, query and headers, in bytes. Clients send less than 4 KiB; common servers accept 8
/// to 32 KiB.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Clients send headers and body without a pause, and 10 s are enough for the longest body at 4 Mbit/s.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Long enough for short interruptions of a mobile connection. Data for a client that is gone is not held for longer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// 128 kbit/s, which is less than any current mobile network provides.
const LEAST_READ_RATE: NonZero<u32> = NonZero::new(16 * 1024).expect("16 KiB is not zero");

/// Proxies close connections that are idle for 30 s or more.
const STREAM_KEEP_ALIVE: Duration = Duration::from_secs(15);
const STREAM_WAIT: Duration = Duration::from_secs(30);

/// Requests that wait in a longer queue would exceed their time limit. A refused client can retry or use another
/// server.
const POOL_QUEUE: usize = 64;

/// Configuration of the HTTP interface.
///
/// With the feature `clap`, this is a group of command-line options with the same defaults, whose headings are those of
/// the groups. Fields that are not options can only be set in code.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct HttpConfig {
    #[cfg_attr(feature = "clap", command(flatten))]
    pub listen: ListenOptions,
    #[cfg_attr(feature = "clap", command(flatten))]
    pub access: AccessOptions,
    #[cfg_attr(feature = "clap", command(flatten))]
    pub requests: RequestLimits,
    #[cfg_attr(feature = "clap", command(flatten))]
    pub clients: ClientLimits,
    #[cfg_attr(feature = "clap", command(flatten))]
    pub performance: PerformanceOptions,
    #[cfg_attr(feature = "clap", command(flatten))]
    pub lifecycle: LifecycleOptions,
    /// The progress of a startup task that runs before requests are served.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub starting: Starting,
    /// Why the chain lacks blocks, if it does.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub incomplete: Incomplete,
    /// Whether requests are served even while the server is starting. The node must then refuse operations that it
    /// cannot perform yet; see [`Node::begin_import`](node_core::node::Node::begin_import).
    #[cfg_attr(feature = "clap", arg(skip))]
    pub serve_while_starting: bool,
    /// Whether `evm_setIntervalMining` takes seconds only, as in anvil; see
    /// [`RpcLimits::intervals_in_seconds`](node_rpc::RpcLimits::intervals_in_seconds).
    #[cfg_attr(feature = "clap", arg(skip))]
    pub intervals_in_seconds: bool,
    /// The server that writes the chain, if this one only reads it: it gets the requests that change something.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub writer: Option<Arc<dyn Writer>>,
    /// The metrics of the server, which a [`MetricsServer`](crate::MetricsServer) can serve.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub metrics: Metrics,
}

/// Where the server listens, and how clients reach it.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Listening"))]
pub struct ListenOptions {
    /// Address to listen on
    #[cfg_attr(feature = "clap", arg(long, default_value_t = Self::default().host, value_parser = values::host))]
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[cfg_attr(feature = "clap", arg(short, long, default_value_t = Self::default().port))]
    pub port: u16,
    /// A socket that is already listening, for instance one opened by systemd, which is used instead of `host` and
    /// `port`.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub listener: Option<Arc<TcpListener>>,
    /// Path prefix of every route
    #[cfg_attr(feature = "clap", arg(long, value_name = "PATH", default_value = "/"))]
    pub base_path: BasePath,
    /// URL at which clients reach the server, for links in responses [default: the host of each request]
    #[cfg_attr(feature = "clap", arg(long, value_name = "URL"))]
    pub public_url: Option<PublicUrl>,
    /// Addresses or networks of proxies, such as 10.0.0.0/8, that are trusted to describe clients in the headers of
    /// --proxy-headers [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NETWORK", value_delimiter = ','))]
    pub trusted_proxies: Vec<ProxyNetwork>,
    /// Headers in which trusted proxies describe the client; the others are ignored, because clients could forge them
    #[cfg_attr(feature = "clap", arg(long, value_name = "HEADERS", default_value = "x-forwarded"))]
    pub proxy_headers: ProxyHeaders,
    /// Certificate and key for TLS; `None` for plain HTTP.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub tls: Option<Tls>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 8545,
            listener: None,
            base_path: BasePath::default(),
            public_url: None,
            trusted_proxies: Vec::new(),
            proxy_headers: ProxyHeaders::default(),
            tls: None,
        }
    }
}

/// Who may use what.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Access"))]
pub struct AccessOptions {
    /// Host names that requests may use, besides IP addresses, localhost and the host of --public-url, or * for any.
    /// Others are refused as a defense against DNS rebinding
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub allowed_hosts: Vec<AllowedHost>,
    /// Origins of web pages whose scripts may use the server (CORS): origins, loopback, extensions, or * for any, each
    /// with =read or =control for what its pages may do; without either, extensions and * may only read [default: none;
    /// for dev: loopback=control,extensions=read]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ORIGIN", value_delimiter = ','))]
    pub cors_origins: Vec<AllowedOrigin>,
    /// Requests per second for each client, or off; auto is 1000 for clients on other machines
    #[cfg_attr(feature = "clap", arg(long, value_name = "REQUESTS", default_value_t))]
    pub rate_limit: RateLimit,
    /// Namespaces to serve, such as eth, debug or txpool, or single JSON-RPC methods and REST operations; eth
    /// includes the REST operations, dev those that control the chain [default: every namespace for dev; eth, net and
    /// web3 for run]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME", value_delimiter = ','))]
    pub api: Vec<ApiName>,
    /// Refuse control of the chain for everyone
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_control: bool,
    /// Separate address and port for control of the chain, which is then refused on the main address and allowed for
    /// everyone who can reach this one [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "ADDRESS", conflicts_with = "no_control"))]
    pub control_listen: Option<SocketAddr>,
    /// Bearer tokens, one of which each client must send; `None` to require no token.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub tokens: Option<Tokens>,
    /// Whether clients on other machines may use the operations that control the chain.
    #[cfg_attr(feature = "clap", arg(skip))]
    pub remote_control: bool,
}

/// Limits of one request, or of one connection.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits of one request"))]
pub struct RequestLimits {
    /// Maximum length of a request body in bytes
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().max_body))]
    pub max_body: usize,
    /// Maximum length of a response in bytes, before compression
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().max_response))]
    pub max_response: usize,
    /// Maximum number of requests in a JSON-RPC batch
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().max_batch))]
    pub max_batch: usize,
    /// Time limit for the work of a request, including the wait for a thread; mining blocks may take 120 times as long
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::time, default_value = values::text(Self::default().call_timeout)))]
    pub call_timeout: Duration,
    /// How long a request with the header X-Min-Head waits for a block that this server does not have yet
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::time, default_value = values::text(Self::default().head_wait)))]
    pub head_wait: Duration,
    /// Maximum size of the responses to a JSON-RPC batch in bytes; requests after that fail.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().max_batch_bytes))]
    pub max_batch_bytes: usize,
    /// Maximum number of subscriptions of a WebSocket connection.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().max_subscriptions))]
    pub max_subscriptions: usize,
    /// Maximum length of path, query and headers together, in bytes.
    #[cfg_attr(feature = "clap", arg(skip = MAX_HEAD_BYTES))]
    pub max_headers: usize,
    /// Time limit for the headers of a request to arrive.
    #[cfg_attr(feature = "clap", arg(skip = ARRIVAL_TIMEOUT))]
    pub header_timeout: Duration,
    /// Time limit for the body of a request to arrive.
    #[cfg_attr(feature = "clap", arg(skip = ARRIVAL_TIMEOUT))]
    pub body_timeout: Duration,
    /// How long a client may acknowledge no data before its connection is closed. Linux only.
    #[cfg_attr(feature = "clap", arg(skip = WRITE_TIMEOUT))]
    pub write_timeout: Duration,
    /// Interval of keep-alive messages on idle event streams and WebSockets.
    #[cfg_attr(feature = "clap", arg(skip = STREAM_KEEP_ALIVE))]
    pub stream_keep_alive: Duration,
    /// How long an event stream waits for the block of its last event id. Another server of the same chain may have
    /// sent the id, and may be ahead.
    #[cfg_attr(feature = "clap", arg(skip = STREAM_WAIT))]
    pub stream_wait: Duration,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let RpcLimits { batch, batch_bytes, .. } = RpcLimits::default();
        Self {
            max_body: 5 * 1024 * 1024,
            max_response: 96 * 1024 * 1024,
            max_batch: batch,
            call_timeout: Duration::from_secs(5),
            head_wait: Duration::from_secs(5),
            max_batch_bytes: batch_bytes,
            max_subscriptions: SessionLimits::default().subscriptions,
            max_headers: MAX_HEAD_BYTES,
            header_timeout: ARRIVAL_TIMEOUT,
            body_timeout: ARRIVAL_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            stream_keep_alive: STREAM_KEEP_ALIVE,
            stream_wait: STREAM_WAIT,
        }
    }
}

/// Limits of all clients together.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits of all clients"))]
pub struct ClientLimits {
    /// Maximum number of open connections
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().max_connections))]
    pub max_connections: usize,
    /// Maximum number of requests in progress, over all connections
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().max_requests))]
    pub max_requests: usize,
    /// Maximum number of open event streams and WebSockets
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", default_value_t = Self::default().max_streams))]
    pub max_streams: usize,
    /// Maximum total size of large requests being received and large responses being written or not yet read by
    /// clients, in bytes
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().transfer_memory))]
    pub transfer_memory: usize,
    /// Minimum rate in bytes per second at which a client must read a long response, once `write_timeout` has passed.
    #[cfg_attr(feature = "clap", arg(skip = LEAST_READ_RATE))]
    pub least_read_rate: NonZero<u32>,
    /// How long an idle connection stays open
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::duration, default_value = values::text(Self::default().keep_alive)))]
    pub keep_alive: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_connections: 4_096,
            max_requests: 16_384,
            max_streams: 256,
            transfer_memory: 160 * 1024 * 1024,
            least_read_rate: LEAST_READ_RATE,
            keep_alive: Duration::from_secs(75),
        }
    }
}

/// Threads, caches and compression.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Performance"))]
pub struct PerformanceOptions {
    /// Threads that serve connections [default: one per core]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::threads))]
    pub workers: Option<NonZero<usize>>,
    /// Threads for work that can take long: transactions, filters, proofs, full blocks [default: four per core]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::threads))]
    pub pool_threads: Option<NonZero<usize>>,
    /// Low-priority threads for longer calls and estimates, and the pending block [default: four per core]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", value_parser = values::threads))]
    pub call_threads: Option<NonZero<usize>>,
    /// Number of requests that may wait for a thread of each pool; further ones are refused.
    #[cfg_attr(feature = "clap", arg(skip = POOL_QUEUE))]
    pub pool_queue: usize,
    /// Capacity of the cache of serialized blocks, in bytes.
    #[cfg_attr(feature = "clap", arg(skip = RpcLimits::default().block_cache))]
    pub block_cache: usize,
    /// Do not compress responses, even for clients that accept gzip, br or zstd
    #[cfg_attr(feature = "clap", arg(long))]
    pub no_compression: bool,
}

impl Default for PerformanceOptions {
    fn default() -> Self {
        Self {
            workers: None,
            pool_threads: None,
            call_threads: None,
            pool_queue: POOL_QUEUE,
            block_cache: RpcLimits::default().block_cache,
            no_compression: false,
        }
    }
}

/// Health checks and shutdown.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Operation"))]
pub struct LifecycleOptions {
    /// Maximum age of the head; /ready returns 503 if the head is older [default: no limit]
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::time))]
    pub max_head_age: Option<Duration>,
    /// Least number of the head; /ready returns 503 as long as the head is below it [default: no limit]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BLOCK"))]
    pub min_head: Option<BlockNumber>,
    /// Hash of a block that the chain must have, as the head or below it; /ready returns 503 as long as it does not
    /// [default: none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "HASH"))]
    pub expect_head: Option<H256>,
    /// How long requests are still served after the signal to shut down, while /ready returns 503; load balancers
    /// need this time to notice
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::duration, default_value = values::text(Self::default().shutdown_delay)))]
    pub shutdown_delay: Duration,
    /// Time limit for requests in progress to finish during shutdown
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", value_parser = values::duration, default_value = values::text(Self::default().shutdown_timeout)))]
    pub shutdown_timeout: Duration,
}

impl Default for LifecycleOptions {
    fn default() -> Self {
        Self {
            max_head_age: None,
            min_head: None,
            expect_head: None,
            shutdown_delay: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

impl HttpConfig {
    /// Returns the scheme of the server's own URLs: `https` with TLS, otherwise `http`.
    pub fn scheme(&self) -> &'static str {
        if self.listen.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the address to listen on.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.listen.host, self.listen.port)
    }

    /// Limits of one JSON-RPC message.
    pub(crate) fn rpc_limits(&self) -> RpcLimits {
        RpcLimits {
            batch: self.requests.max_batch,
            batch_bytes: self.requests.max_batch_bytes,
            block_cache: self.performance.block_cache,
            intervals_in_seconds: self.intervals_in_seconds,
        }
    }

    /// Returns the name of a limit that is zero but must not be, or `None` if there is none.
    pub(crate) fn zero_limit(&self) -> Option<&'static str> {
        let limits = [
            ("max_body", self.requests.max_body),
            ("max_response", self.requests.max_response),
            ("max_batch", self.requests.max_batch),
            ("max_batch_bytes", self.requests.max_batch_bytes),
            ("max_headers", self.requests.max_headers),
            ("max_connections", self.clients.max_connections),
            ("max_requests", self.clients.max_requests),
            ("transfer_memory", self.clients.transfer_memory),
        ];
        limits.into_iter().find(|(_, limit)| *limit == 0).map(|(name, _)| name)
    }

    /// Number of threads that serve connections.
    pub(crate) fn workers(&self) -> usize {
        self.performance.workers.unwrap_or_else(cores).get()
    }

    pub(crate) fn threads(configured: Option<NonZero<usize>>) -> usize {
        configured.unwrap_or_else(|| cores().saturating_mul(THREADS_PER_CORE)).get()
    }
}

fn cores() -> NonZero<usize> {
    available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}
