//! The core of an Ethereum execution node, without a database, an interpreter or a network.
//!
//! Two ports stand at its border: a [`StateBackend`](backend::StateBackend) keeps a chain with every state it
//! ever had, and an [`Executor`](executor::Executor) runs code over a view of it. Between them, `Node` answers
//! every operation of the interface.

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
pub mod crypto;
pub mod difficulty;
pub mod executor;
pub mod fees;
pub mod filters;
pub mod fork_id;
pub mod forks;
pub mod gas;
pub mod logs;
pub mod node;
pub mod overrides;
pub mod pool;
pub mod producer;
pub mod simulation;
pub mod state;
#[cfg(test)]
mod test_world;
pub mod trace;
pub mod trie;

#[cfg(test)]
mod test_chain;
