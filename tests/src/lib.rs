//! The runners of Ethereum's block tests and of geth's tracer vectors, a chain generator, a model of the node, and helpers of the end-to-end tests.

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::missing_errors_doc)]

pub mod blocktest;
#[cfg(test)]
mod e2e;
pub mod events;
pub mod exchanges;
pub mod fuzz;
pub mod generator;
pub mod model;
pub mod oracle;
pub mod server;
pub mod tls;
pub mod tracertest;
pub mod wallet;
pub mod websocket;
