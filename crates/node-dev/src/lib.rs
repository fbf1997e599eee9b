//! In-process development chains: [`DevNode`] runs one, with [`Accounts`] derived from a mnemonic and a
//! [`DevGenesis`] that funds them.
//!
//! # Examples
//! ```
//! use node_dev::{AccountOptions, Accounts, DevGenesis};
//! use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
//!
//! let accounts = Accounts::derive(&AccountOptions::default())?;
//! let genesis = DevGenesis::default().build(accounts.addresses())?;
//! assert_eq!(genesis.alloc[&accounts[0].address()].balance, node_types::U256::exp10(22));
//!
//! let body = DynamicFeeTransaction {
//!     chain_id: genesis.spec.chain_id,
//!     to: Some(accounts[1].address()),
//!     ..Default::default()
//! };
//! let transaction = accounts[0].sign(TransactionBody::DynamicFee(body));
//! assert_eq!(transaction.nonce(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! * `store`, on by default: chains in data folders, and chains that [continue other ones](fork).
//! * `tracers`, on by default: geth's tracers for the `debug_trace` methods.
//! * `alloy`: `DevNode::provider`, an in-process alloy provider, and alloy signers for the accounts.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod account;
mod accounts;
mod contracts;
mod derivation;
#[cfg(feature = "store")]
pub mod fork;
mod genesis;
mod hardfork;
mod node;
#[cfg(feature = "alloy")]
mod provider;

pub use account::DevAccount;
pub use accounts::{AccountOptions, Accounts, AccountsError, DEFAULT_DERIVATION_PATH, DEFAULT_MNEMONIC, MAX_ACCOUNTS};
pub use derivation::InvalidPath;
pub use genesis::{DevGenesis, DevGenesisError, check_chain_id};
pub use hardfork::{Hardfork, UnknownHardfork};
pub use node::{DevNode, DevNodeBuilder, DevNodeError};
pub use node_types::Checksummed;
