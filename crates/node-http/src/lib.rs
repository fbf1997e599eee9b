//! The HTTP interface of an Ethereum execution node.
//!
//! This is the only library of the workspace that knows about HTTP. A route decodes a request into an input of
//! node-types, `dispatch` runs an operation of [`Node`](node_core::node::Node) on a thread that suits its cost, and the
//! output is serialized on the same thread. Every error becomes a problem (RFC 9457) in one place, `problem`.
//!
//! There are three ways to serve a node: [`serve`] and [`Server`] listen themselves, [`configure`] adds the routes to
//! an actix-web application, and `NodeService` is a `tower::Service` for servers such as axum.
//!
//! * [`HttpConfig`] defines the options; [`values`] parses them from text.
//! * [`ProblemResponse`] is the response to an error, for use in your own routes.
//! * [`openapi`] returns the document that describes the interface.
//!
//! # Examples
//! ```
//! use node_core::node::Node;
//! use node_http::{HttpConfig, ServeError, Shutdown, serve};
//! use std::sync::Arc;
//!
//! fn run(node: Arc<Node>) -> Result<(), ServeError> {
//!     serve(node, HttpConfig::default(), Shutdown::on_signals()?, |address| {
//!         println!("listening on {address}");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Features
//! No feature is enabled by default.
//!
//! * `tower`: `NodeService`.
//! * `axum`: `tower`, and [`ProblemResponse`] as a response of axum 0.8.
//! * `clap`: [`HttpConfig`] as a group of command-line options.
//! * `tls`: TLS connections.
//! * `compression`: `br` and `zstd` in addition to `gzip` and `deflate`.
//! * `regex`: matches routes with path parameters 20 us faster.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admission;
mod api;
mod bare;
mod body;
mod caching;
mod clients;
mod compress;
mod config;
mod connection;
mod connection_handle;
mod convert;
mod cors;
mod dispatch;
mod encode;
mod events;
mod exchange;
mod fallback;
mod forwarded;
mod framing;
mod gauge_readings;
mod hosts;
mod listen;
mod metrics;
mod mount;
mod notices;
mod openapi;
mod parameters;
mod phase;
mod pool;
mod priority;
mod problem;
mod problem_page;
mod rate;
mod report;
mod request_id;
mod request_log;
mod routes;
mod rpc;
mod sender;
mod sent;
mod serve;
mod server;
mod service;
mod shutdown;
mod signal;
mod starting;
mod streaming;
mod tls;
mod tokens;
#[cfg(feature = "tower")]
mod tower;
mod transfer;
mod unix_signals;
mod unpack;
mod url;
#[cfg(feature = "clap")]
pub mod values;
mod websocket;

pub use api::{ApiName, InvalidApiName};
pub use config::HttpConfig;
pub use forwarded::{InvalidNetwork, ProxyHeaders, ProxyNetwork};
pub use hosts::{AllowedHost, InvalidHost};
pub use metrics::Metrics;
pub use metrics::server::{MetricsError, MetricsServer};
pub use mount::{Routes, check, configure};
pub use openapi::openapi;
pub use priority::lower as lower_priority;
pub use rate::{InvalidRate, RateLimit};
pub use report::ProblemResponse;
pub use serve::serve;
pub use server::{Handle, ServeError, Server};
pub use shutdown::Shutdown;
pub use starting::Starting;
pub use tls::{InvalidTls, Tls};
pub use tokens::{InvalidTokens, Tokens};
#[cfg(feature = "tower")]
pub use tower::{NodeService, ResponseBody};
pub use unix_signals::UnixSignal;
pub use url::{BasePath, InvalidUrl, Origin, PublicUrl};
