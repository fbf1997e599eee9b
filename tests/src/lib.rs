//! The runner of Ethereum's block tests, and helpers of the end-to-end tests.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod blocktest;
pub mod server;
pub mod wallet;
