//! Which chain a command works on.

use super::output::OutputOptions;
use super::storage::StorageOptions;
use clap::Args;
use std::path::PathBuf;

/// Which chain it is.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct GenesisOptions {
    /// Genesis file in geth's JSON format; without it a built-in development chain, id 31337, with ten rich accounts
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
}

/// A chain that is there.
#[derive(Args, Debug)]
pub(crate) struct ExistingChain {
    /// Genesis file of the chain; with --data-dir it is not needed
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
}

/// Settings of `verify` and `stats`.
#[derive(Args, Debug)]
pub(crate) struct InspectOptions {
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
