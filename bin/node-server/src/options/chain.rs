//! Which chain a command works on.

use super::output::OutputOptions;
use super::storage::StorageOptions;
use clap::Args;
use std::path::PathBuf;

/// The genesis of the chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct GenesisOptions {
    /// Genesis file in geth's JSON format [default: a development chain with id 31337 and ten funded accounts]
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
}

/// A chain that is already stored in a folder.
#[derive(Args, Debug)]
pub(crate) struct ExistingChain {
    /// Genesis file of the chain; not needed with --data-dir
    #[arg(long, env = "NODE_GENESIS", value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
}

/// Options of `verify` and `stats`.
#[derive(Args, Debug)]
pub(crate) struct InspectOptions {
    #[command(flatten)]
    pub(crate) chain: ExistingChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}
