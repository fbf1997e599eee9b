//! JSON-RPC 2.0 of an Ethereum execution node, without a transport.
//!
//! A second thin face over the same [`Node`](node_core::node::Node) as the REST interface: a table leads from the name of a
//! method to its typed parameters and to an operation of the node; what comes back is written as geth writes it. A server
//! hands in the bytes of a message and sends the bytes of the answer.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod error;
mod message;
mod method;
mod methods;
mod parameters;
mod rpc;
mod session;
mod typed_data;
mod wire;

pub use error::RpcError;
pub use message::{Message, Request};
pub use method::{Client, Method, Scope};
pub use methods::{elsewhere, table};
pub use parameters::Parameters;
pub use rpc::{Rpc, RpcLimits};
pub use session::{Session, SessionLimits};
