//! The forks of Ethereum and the schedule by which a chain activates them.
//!
//! [`UPGRADES`] is the one table of forks: what each one is called, how it is activated and what it adds. A chain's
//! [`ChainSpec`] holds when each one activates.

mod spec;
mod table;

pub use spec::{ChainSpec, DaoFork};
pub use table::{Activation, BlobParams, Fork, UPGRADES, Upgrade};
