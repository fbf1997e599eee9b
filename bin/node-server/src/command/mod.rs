//! The commands other than `dev`, one file each, and how they report progress and results.

pub(crate) mod backup;
pub(crate) mod export;
mod follow;
pub(crate) mod health;
pub(crate) mod import;
#[cfg(feature = "tls")]
mod pinned_tls;
mod progress;
pub(crate) mod prune;
mod read_only;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod verify;
