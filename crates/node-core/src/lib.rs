//! The core of an Ethereum execution node, without a database, an interpreter or a network.
//!
//! It has two ports (traits that other crates implement): a [`StateBackend`](backend::StateBackend) stores a chain
//! with all its states, and an [`Execution`](executor::Execution) executes code on a view of it. [`Node`](node::Node)
//! implements every operation of the interface on top of them.
//!
//! * [`node`] has the node, its builder and its errors; [`context`] has deadlines and cancellation; [`cost`] and
//!   [`waiting`] help a server to choose threads.
//! * [`backend`] is the port to the database, with a backend in memory and a test suite for other backends.
//! * [`executor`] is the port to the interpreter, with calls, overrides, simulations and traces; [`crypto`] has the
//!   ports to signatures, blob proofs and keys. node-evm implements them.
//! * [`logs`], [`filters`] and [`edits`] have the inputs and outputs of operations.
//! * [`pool`], [`assembly`] and [`producer`] hold transactions and build blocks from them.
//! * [`protocol`] has the rules of the protocol: forks, fees, gas, blobs and difficulty.
//!
//! # Examples
//! ```
//! use node_core::backend::StateBackend;
//! use node_core::context::Context;
//! use node_core::executor::Execution;
//! use node_core::protocol::ChainSpec;
//! use node_core::node::Node;
//! use node_types::{Address, BlockId, U256};
//! use std::error::Error;
//! use std::sync::Arc;
//!
//! fn balance(
//!     backend: Arc<dyn StateBackend>,
//!     execution: Arc<dyn Execution>,
//!     spec: Arc<ChainSpec>,
//!     address: Address,
//! ) -> Result<U256, Box<dyn Error>> {
//!     let node = Node::builder(backend, execution, spec).open()?;
//!     Ok(node.get_balance(&Context::unbounded(), address, BlockId::latest())?)
//! }
//! ```
//!
//! # Features
//! * backend-tests, off by default: the test suite for backends, in the module `backend::suite`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod assembly;
pub mod backend;
pub mod block;
pub mod clock;
pub mod collecting;
pub mod context;
pub mod cost;
pub mod crypto;
pub mod edits;
pub mod executor;
pub mod filters;
mod listeners;
pub mod logs;
pub mod node;
mod packing;
pub mod pool;
pub mod producer;
pub mod protocol;
pub mod remote;
pub mod sources;
pub mod state;
#[cfg(test)]
mod test_chain;
#[cfg(test)]
mod test_world;
pub mod trie;
#[cfg(feature = "clap")]
#[cfg_attr(docsrs, doc(cfg(feature = "clap")))]
pub mod values;
pub mod waiting;
