//! The rules of the protocol that do not need execution: forks, fees, gas, blobs, difficulty and
//! rewards.
//!
//! [`UPGRADES`] is the only table of forks: it has the names of each fork, how it is activated and what it adds. A
//! chain's [`ChainSpec`] specifies when each one activates.

pub mod blobs;
pub mod difficulty;
pub mod fees;
mod fork;
pub mod fork_id;
pub mod gas;
mod relaxations;
pub mod rewards;
mod spec;

pub use fork::{Activation, BlobParams, Fork, UPGRADES, Upgrade};
pub use relaxations::Relaxations;
pub use spec::{BlobEntry, ChainSpec, DaoFork};
