//! The HTTP interface of an Ethereum execution node.
//!
//! The only crate that knows HTTP. A request's way: a route decodes it into a request of node-types, a thread that
//! `dispatch` chooses runs an operation of [`Node`](node_core::node::Node), and the answer is encoded there. Whatever
//! goes wrong becomes a problem (RFC 9457) in one place, `problem`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod body;
mod config;
mod dispatch;
mod encode;
mod events;
mod exchange;
mod parameters;
mod priority;
mod problem;
mod report;
mod routes;
mod serve;
mod server;
mod shutdown;
mod signal;

pub use config::{BasePath, HttpConfig, InvalidUrl, PublicUrl};
pub use priority::lower as lower_priority;
pub use serve::serve;
pub use server::{Handle, ServeError, Server};
pub use shutdown::Shutdown;
