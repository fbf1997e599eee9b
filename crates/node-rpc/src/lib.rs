//! The JSON-RPC 2.0 interface of an Ethereum execution node, without a transport.
//!
//! Like the REST interface, this is a thin layer on top of [`Node`](node_core::node::Node): a table maps the name of
//! a method to its typed parameters and to an operation of the node, and results are encoded as in geth. A server
//! passes in the bytes of a message and sends the bytes of the response.
//!
//! * [`Rpc`] decodes and runs messages; [`Client`] describes what a client may do.
//! * [`Session`] holds the subscriptions of one connection.
//! * [`table`] lists the methods, and [`Method`] adds others.
//! * [`RpcError`] defines the codes of all errors.
//!
//! # Examples
//! ```
//! use node_core::{context::Context, node::Node};
//! use node_rpc::{Client, Reply, Rpc, RpcLimits};
//! use std::sync::Arc;
//!
//! fn interface(node: Arc<Node>) -> Rpc {
//!     Rpc::new(node, RpcLimits::default())
//! }
//!
//! fn respond(rpc: &Rpc, body: &[u8]) -> Option<Vec<u8>> {
//!     let reply = match rpc.read(body) {
//!         Ok(message) => rpc.respond(&Context::unbounded(), &message, Client::default()),
//!         Err(error) => Reply::from(error),
//!     };
//!     reply.body
//! }
//! ```
//!
//! The crate has no features.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block_cache;
mod error;
mod forward;
mod message;
mod method;
mod methods;
pub mod options;
mod parameters;
mod response;
mod rpc;
mod scope;
mod session;
mod typed_data;
mod wire;

pub use block_cache::{BlockCache, BlockKey, Interface};
pub use error::RpcError;
pub use message::{Message, RpcRequest};
pub use method::Method;
pub use methods::{Dump, InvalidDump, WriteDumpError, read_dump, table, table_of, write_dump};
pub use parameters::Parameters;
pub use rpc::{CallReport, Reply, Rpc, RpcLimits};
pub use scope::{Client, PassOn, Scope};
pub use session::{Session, SessionLimits};
