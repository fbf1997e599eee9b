//! The [`Executor`](node_core::executor::Executor) of an Ethereum execution node on revm: blocks of every fork, calls,
//! gas estimates, traces and simulations. Also signatures on libsecp256k1 and blob proofs on c-kzg.
//!
//! This is the only crate that depends on revm. [`builder`] builds a node with this executor;
//! [`EvmExecutor::with_precompile`], [`with_configuration`](EvmExecutor::with_configuration),
//! [`with_tracer`](EvmExecutor::with_tracer) and [`inspect_call`](EvmExecutor::inspect_call) extend it.
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
//! let invalid = Secp256k1Recovery.recover(H256::zero(), &Signature::default(), true);
//! assert_eq!(invalid, Err(SignatureError::OutOfRange));
//! # Ok::<(), node_evm::InvalidKey>(())
//! ```
//!
//! # Features
//! * `tracers`, on by default: geth's tracers for the `debug_trace` methods.
//! * `fast-crypto`: the precompile for P-256 (EIP-7951) on AWS-LC, four times as fast, and KECCAK256 in assembler. They
//!   take a minute to build.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block;
mod call;
mod convert;
mod executor;
mod extension;
mod key;
mod kzg;
mod machine;
mod precompile;
mod recovery;
mod state;
#[cfg(test)]
mod tests;
mod trace;

pub use block::system::{
    BEACON_ROOTS_ADDRESS, CONSOLIDATION_REQUESTS_ADDRESS, HISTORY_STORAGE_ADDRESS, WITHDRAWAL_REQUESTS_ADDRESS,
};
pub use call::revert::reason as revert_reason;
pub use executor::{EvmExecutor, builder};
pub use extension::{EvmInspector, Precompile, PrecompileCall, PrecompileOutcome};
pub use key::{InvalidKey, SecretKey};
pub use kzg::KzgVerifier;
pub use machine::context::{EvmContext, RunState};
pub use recovery::Secp256k1Recovery;
/// The interpreter. [`EvmInspector`] and [`with_configuration`](EvmExecutor::with_configuration) use its types.
pub use revm;
pub use state::{DatabaseError, StateDb};
pub use trace::tracer::{Finished, Place, Tracer, TracerOptions};
