//! A durable archive of a chain in one folder: every state it ever had, proofs of each, and an index of its logs.
//!
//! [`Store`] is a [`StateBackend`](node_core::backend::StateBackend). The newest blocks live in memory over a
//! [write-ahead log](wal) that is synced before anything is acknowledged; they go to the database in large commits.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block_bytes;
mod caches;
mod chain;
mod codec;
mod error;
pub mod files;
mod journal;
mod keys;
mod postings;
mod rows;
mod side_blocks;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod trie;
mod values;
pub mod wal;

pub use codec::Malformed;
pub use error::StoreError;
pub use keys::Table;
pub use store::{
    Backup, BackupError, BackupProgress, Difference, Fault, Options, Stats, Store, SyncPolicy, TableStats, Verified,
};
