//! The state and the history of another chain, for a chain that continues it from one of its blocks: a fork.
//!
//! [`Base`] is the state as of the block B that the fork begins with, as the port
//! [`BaseState`](node_core::backend::BaseState): the parts that were needed so far, which are kept in [`Contents`], and an
//! [`Upstream`](node_upstream::Upstream) that has the rest. [`ForkBackend`] wraps the backend of the fork, so that all
//! operations also see the blocks and states before B.
//!
//! # What is verified
//!
//! The hash of block B is trusted. Nothing that contradicts it is returned or kept.
//!
//! | | Verified by |
//! |---|---|
//! | accounts, slots and trie nodes, as of B and before | Merkle proofs from the state root of the block |
//! | code | its hash in the account |
//! | headers | their hashes |
//! | transactions, ommers and withdrawals; receipts and logs | their roots in the header |
//! | which block has a number below B | up to 8,191 blocks below B by the history contract of EIP-2935 in the state of B, if the chain has it and the upstream still has that state; otherwise up to 256 blocks below B by the hashes of parents |
//! | which block has a number, if it is further below | **nothing**: the word of an endpoint, also for the state as of a block by its number |
//! | total difficulties before the merge | **nothing**: the word of an endpoint |
//! | which blocks have logs that match a search, and which block contains a transaction | what was found is read from verified blocks, and an endpoint that listed anything else is wrong; **nothing** shows that it left out no block or transaction |
//!
//! # What is kept
//!
//! Everything that was verified, by its hash; so forks of any blocks of any chains can share one [`Contents`]. The word of an
//! endpoint is also kept, apart from the rest, and used only while there is no upstream.
//!
//! # Examples
//! ```no_run
//! use node_core::backend::StateBackend;
//! use node_core::context::Context;
//! use node_core::crypto::SenderRecovery;
//! use node_fork::{Base, ForkBackend, ForkOptions};
//! use node_store::files::DiskFolder;
//! use node_types::BlockId;
//! use node_upstream::{Upstream, UpstreamOptions};
//! use std::sync::Arc;
//!
//! /// Opens the state that a fork begins with, and the fork over `store`, a backend whose chain begins with this state.
//! fn open(
//!     store: impl FnOnce(Base) -> Arc<dyn StateBackend>,
//!     recovery: Arc<dyn SenderRecovery>,
//! ) -> Result<ForkBackend, Box<dyn std::error::Error>> {
//!     let upstream = Upstream::new(&["https://rpc.example.org"], UpstreamOptions::default())?;
//!     let block = upstream.header(&Context::unbounded(), BlockId::finalized())?;
//!     let folder = Arc::new(DiskFolder::open("fork/fetched")?);
//!     let base = Base::open(folder, Some(upstream), block, ForkOptions::default())?;
//!     Ok(ForkBackend::open(store(base.clone()), base, recovery)?)
//! }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backend;
mod base;
mod contents;
mod error;
mod history;
mod options;
mod state;
#[cfg(test)]
mod tests;
mod view;

pub use backend::ForkBackend;
pub use base::Base;
pub use contents::{Checked, Contents, ContentsStats};
pub use error::{ForkError, MissingNode, Needed};
pub use history::first_block;
pub use options::ForkOptions;
