//! The HTTP interface of an Ethereum execution node.
//!
//! This is the only library of the workspace that knows about HTTP. A route decodes a request into an input of
//! node-types, `scheduling` runs an operation of [`Node`](node_core::node::Node) on a thread that suits its cost, and the
//! output is serialized on the same thread. Every error becomes a problem (RFC 9457) in one place, `problem`.
//!
//! There are three ways to serve a node: [`serve`] and [`Server`] listen themselves, [`configure`] adds the routes to
//! an actix-web application, and `NodeService` is a `tower::Service` for servers such as axum.
//!
//! * [`HttpConfig`] defines the options; [`values`] parses them from text.
//! * [`Routes::run`] and `NodeService::run` call the node in your own routes without blocking them, and return
//!   [`ProblemResponse`], the response to an error.
//! * [`openapi`] returns the document that describes the interface.
//!
//! # Examples
//! ```
//! use node_core::node::Node;
//! use node_http::{HttpConfig, Shutdown, serve};
//! use std::error::Error;
//! use std::sync::Arc;
//!
//! fn run(node: Arc<Node>) -> Result<(), Box<dyn Error>> {
//!     serve(node, HttpConfig::default(), Shutdown::on_signals()?, |address| {
//!         println!("listening on {address}");
//!         Ok(())
//!     })?;
//!     Ok(())
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
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admission;
mod completeness;
mod config;
mod convert;
mod events;
mod exchange;
mod metrics;
mod openapi;
mod problem;
mod routes;
mod rpc;
mod scheduling;
mod service;
mod transport;
mod url;
#[cfg(feature = "clap")]
pub mod values;
mod websocket;
mod writer;

pub use admission::api::{ApiName, InvalidApiName};
pub use admission::cors::AllowedOrigin;
pub use admission::forwarded::{InvalidNetwork, ProxyHeaders, ProxyNetwork};
pub use admission::hosts::{AllowedHost, InvalidHost};
pub use admission::rate::{InvalidRate, RateLimit};
pub use admission::tokens::{InvalidTokens, Tokens};
pub use completeness::Incomplete;
pub use config::{
    AccessOptions, ClientLimits, HttpConfig, LifecycleOptions, ListenOptions, PerformanceOptions, RequestLimits,
};
pub use metrics::Metrics;
pub use metrics::server::{MetricsError, MetricsServer};
pub use openapi::openapi;
pub use problem::report::ProblemResponse;
pub use scheduling::priority::lower as lower_priority;
pub use transport::embedded::RequestHead;
pub use transport::mount::{Routes, check, configure};
pub use transport::phase::Starting;
pub use transport::server::{Handle, ServeError, Server, serve};
pub use transport::signals::{Shutdown, UnixSignal};
pub use transport::tls::{InvalidTls, Tls};
#[cfg(feature = "tower")]
pub use transport::tower::{NodeService, ResponseBody};
pub use url::{BasePath, InvalidUrl, Origin, PublicUrl};
pub use writer::{Writer, WriterRequest, WriterResponse};
