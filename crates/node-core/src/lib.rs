//! The core of an Ethereum execution node, without a database, an interpreter or a network.
//!
//! It has two ports: a [`StateBackend`](backend::StateBackend) stores a chain with all its states, and an
//! [`Execution`](executor::Execution) executes code over a view of it. [`Node`](node::Node) implements every operation
//! of the interface on top of them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod accounts;
pub mod assembly;
pub mod backend;
pub mod blobs;
pub mod block;
pub mod caches;
pub mod call;
pub mod clock;
pub mod context;
pub mod cost;
pub mod crypto;
pub mod difficulty;
pub mod edits;
pub mod executor;
pub mod fees;
pub mod filters;
pub mod fork_id;
pub mod forks;
pub mod gas;
mod listeners;
pub mod logs;
pub mod node;
pub mod overrides;
pub mod pool;
pub mod producer;
mod random;
pub mod simulation;
pub mod state;
#[cfg(test)]
mod test_world;
pub mod trace;
pub mod trie;

#[cfg(test)]
mod test_chain;
