//! Genesis files, and validation and import of blocks.
//!
//! * [`genesis`] reads geth's genesis files and contains the built-in development genesis.
//! * [`validation`] checks all rules for a valid block under each fork, except proof-of-work seals.
//! * [`BlockImporter`] imports single blocks on any branch.
//! * [`import_file`] and [`export_blocks`] read and write chain files, in the RLP format of other clients.
//! * [`BlockSplitter`] finds the blocks in bytes that arrive in pieces.
//!
//! ```
//! use node_chain::{BlockImporter, dev_genesis, import_file};
//! use node_core::{backend::{MemoryBackend, StateBackend}, context::Context};
//! use node_evm::{EvmExecutor, Secp256k1Recovery};
//! use std::sync::Arc;
//!
//! let genesis = dev_genesis();
//! let spec = Arc::new(genesis.spec.clone());
//! let backend = Arc::new(MemoryBackend::new(genesis.block())?);
//! let executor = Arc::new(EvmExecutor::new(Arc::clone(&spec)));
//! let importer = BlockImporter::new(backend.clone(), executor, Arc::new(Secp256k1Recovery), spec);
//!
//! let file = std::io::empty();
//! let summary = import_file(&importer, &Context::unbounded(), file, |progress| println!("{progress:?}"))?;
//! assert_eq!(summary.imported, 0);
//! assert_eq!(backend.view()?.head().number, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has no features.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ahead;
mod branch;
mod export;
pub mod genesis;
mod import_error;
mod importer;
mod pipeline;
mod prepared;
mod splitter;
mod stream;
#[cfg(test)]
mod test_support;
pub mod validation;

pub use export::{ExportError, export_blocks};
pub use genesis::{Genesis, GenesisError, dev_genesis};
pub use import_error::ImportError;
pub use importer::{BlockImporter, Imported};
pub use pipeline::{FileError, ImportSummary, Progress, import_file, import_rest};
pub use prepared::{PreparedBlock, SignedTransaction};
pub use splitter::BlockSplitter;
pub use stream::{BlockStream, MAX_BLOCK_LENGTH, RawBlock, StreamError, highest_block};
pub use validation::BlockError;
