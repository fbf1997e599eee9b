//! The [`Executor`](node_core::executor::Executor) of an Ethereum execution node on revm: whole blocks of every
//! fork, calls and gas estimates; and the cryptography that nodes need beside it.
//!
//! This is the only crate that knows revm and its types; the module `convert` is where they are turned into those of
//! node-types and back.
//!
//! ```
//! use node_core::crypto::{SenderRecovery, SignatureError};
//! use node_evm::{Secp256k1Recovery, SecretKey};
//! use node_types::H256;
//! use node_types::consensus::Signature;
//!
//! let key = SecretKey::from_bytes(&[1; 32])?;
//! let signature = key.sign(H256::repeat_byte(7));
//! assert_eq!(Secp256k1Recovery.recover(H256::repeat_byte(7), &signature, true), Ok(key.address()));
//!
//! let nobody = Secp256k1Recovery.recover(H256::zero(), &Signature::default(), true);
//! assert_eq!(nobody, Err(SignatureError::OutOfRange));
//! # Ok::<(), node_evm::InvalidKey>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access_list;
mod block;
mod call;
mod code_cache;
mod collision;
mod convert;
mod dao;
mod database;
mod eip1283;
mod estimate;
mod executor;
mod inspection;
mod interrupt;
mod key;
mod kzg;
mod log_book;
mod machine;
mod overrides;
mod precompiles;
mod recovery;
mod refusal;
mod requests;
mod revert;
mod rewards;
mod simulation;
mod spec;
mod system;
mod trace;
mod transaction;

pub use executor::EvmExecutor;
pub use key::{InvalidKey, SecretKey};
pub use kzg::KzgVerifier;
pub use recovery::Secp256k1Recovery;
pub use system::{
    BEACON_ROOTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS, HISTORY_STORAGE_ADDRESS, WITHDRAWAL_REQUESTS_ADDRESS,
};
