//! Stores a chain as an archive, in a folder or in memory: every state of the chain with Merkle proofs, and an index
//! of its logs.
//!
//! [`Store`] is a [`StateBackend`](node_core::backend::StateBackend). The newest blocks are in memory, and in a
//! [write-ahead log](wal) that is synced before a change is acknowledged. Later they are moved to runs: immutable
//! sorted files that are merged in the background. `docs/storage.md` describes the format of the files. [`StoreReader`]
//! reads a folder that another process writes, and switches to newer views of it. [`Store::publish`] copies the chain to a
//! [shared store](shared), from which [`Store::restore`] makes a folder again.
//!
//! | Module | Contents |
//! |---|---|
//! | [`files`] | the folder that a store uses, which need not be on disk |
//! | [`shared`] | a store that many servers share, on object storage |
//! | [`wal`] | the write-ahead log |
//!
//! # Features
//! * `test-faults`, off by default: a simulated disk with power failures, torn writes, lack of space and corruption;
//!   decoders of stored bytes; a shared store that fails.
//! * `object-store`, off by default: shared stores in buckets of S3, Google Cloud Storage and Azure.
//!
//! # Examples
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use node_core::backend::StateBackend;
//! use node_core::block::{ExecutedBlock, SealedHeader};
//! use node_store::{Options, Store};
//! use node_types::U256;
//! use node_types::consensus::{EMPTY_ROOT, Header};
//!
//! let header = Header { state_root: EMPTY_ROOT, ..Header::default() };
//! let sealed = SealedHeader { hash: header.hash(), header, total_difficulty: U256::zero(), size: 0 };
//! let genesis = ExecutedBlock {
//!     header: sealed.into(),
//!     body: Default::default(),
//!     receipts: Default::default(),
//!     changes: Default::default(),
//! };
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! let store = Store::open(path, genesis, Options::default())?;
//! assert_eq!(store.view()?.head().number, 0);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod base;
mod block_bytes;
mod caches;
mod chain;
mod codec;
#[cfg(any(test, feature = "test-faults"))]
pub mod decoders;
mod error;
pub mod files;
mod journal;
mod keys;
mod postings;
mod rows;
mod runs;
pub mod shared;
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
    BASE_FOLDER, Backup, BackupError, BackupProgress, Difference, Options, PublishOptions, Refreshing, RestoreProgress,
    RowFault, SharedOptions, Stats, Store, StoreReader, SyncPolicy, TableStats, Verified, VerifyOptions,
    VerifyProgress, check_outside,
};
