//! The forks of Ethereum and the schedule by which a chain activates them.
//!
//! [`UPGRADES`] is the only table of forks: it has the names of each fork, how it is activated and what it adds. A
//! chain's [`ChainSpec`] specifies when each one activates.

mod spec;
mod table;

pub use spec::{BlobEntry, ChainSpec, DaoFork};
pub use table::{Activation, BlobParams, Fork, UPGRADES, Upgrade};
