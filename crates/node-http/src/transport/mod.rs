//! Connections: accepting them, reading and writing within limits, and shutting down. [`mount`] and `tower` pass requests
//! from other servers to the routes.

mod bare;
mod connection;
pub(crate) mod embedded;
mod framing;
pub(crate) mod handle;
mod listen;
pub(crate) mod mount;
pub(crate) mod phase;
pub(crate) mod server;
pub(crate) mod signals;
pub(crate) mod tls;
#[cfg(feature = "tower")]
pub(crate) mod tower;
