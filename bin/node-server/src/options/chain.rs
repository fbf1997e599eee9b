//! Options for the chain on which a command operates, its storage, and the format of the result.

use super::data_dir::DataDir;
use super::shared_store::StoreInstead;
use crate::error::CommandError;
use clap::Args;
use node_store::{Options, Store};
use node_types::BlockNumber;
use std::path::{Path, PathBuf};

/// The genesis of the chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chain")]
pub(crate) struct GenesisOptions {
    /// Genesis file in geth's JSON format [default: a development chain with id 31337 and ten funded accounts]
    #[arg(long, value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
}

/// A chain that is already stored in a folder.
#[derive(Args, Debug)]
pub(crate) struct ExistingChain {
    /// Genesis file of the chain; not needed with --data-dir
    #[arg(long, value_name = "FILE")]
    pub(crate) genesis: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageOptions,
}

/// A chain that is already stored, in a folder or in a shared store.
#[derive(Args, Debug)]
pub(crate) struct ReadableChain {
    #[command(flatten)]
    pub(crate) existing: ExistingChain,
    #[command(flatten)]
    pub(crate) shared: StoreInstead,
}

/// Options of commands that read a chain.
#[derive(Args, Debug)]
pub(crate) struct InspectOptions {
    #[command(flatten)]
    pub(crate) chain: ReadableChain,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Where the chain is stored.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct StorageOptions {
    /// Folder that stores chain, pool and filters; `run` also accepts :memory: [default: a folder for each genesis in
    /// the user's data folder]
    #[arg(long, value_name = "DIR", value_parser = DataDir::parser())]
    pub(crate) data_dir: Option<DataDir>,
    #[command(flatten)]
    pub(crate) caches: CacheOptions,
}

/// Whether a command may create a chain.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct CreationOptions {
    /// Fail if the folder has no chain, instead of creating one: because a volume is not mounted, or the path is wrong
    #[arg(long)]
    existing: bool,
}

impl CreationOptions {
    /// Checks that `folder` has a chain, or that one may be created there. `None` means memory.
    pub(crate) fn check(&self, folder: Option<&Path>) -> Result<(), CommandError> {
        match folder {
            None if self.existing => Err(CommandError::InMemory { needed_by: "--existing" }),
            None => Ok(()),
            Some(path) if self.existing => Store::check_exists(path).map_err(|error| CommandError::absent(path, error)),
            Some(path) => Store::check_usable(path).map_err(|error| CommandError::store(path, error)),
        }
    }
}

/// The memory for caches.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct CacheOptions {
    /// Total memory for all caches, in MiB
    #[arg(long, value_name = "MIB", default_value_t = (Options::default().cache_bytes >> 20) as u32)]
    cache_mb: u32,
}

impl CacheOptions {
    /// Returns the size of the store's caches in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.all_cache_bytes() - self.code_cache_bytes() as usize
    }

    /// Returns the size of the cache of analyzed contract code in bytes.
    pub(crate) fn code_cache_bytes(&self) -> u64 {
        self.all_cache_bytes() as u64 / 16
    }

    fn all_cache_bytes(&self) -> usize {
        (self.cache_mb as usize).saturating_mul(1 << 20)
    }
}

/// The states to drop after an import.
#[derive(Args, Debug)]
#[command(next_help_heading = "Storage")]
pub(crate) struct PruneBefore {
    /// Drop the states of blocks before this one after the import; requests for them then return 404
    #[arg(long, value_name = "BLOCK")]
    pub(crate) prune_before: Option<BlockNumber>,
}

/// The format of a command's output.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Write JSON to standard output, one object per line: progress, then the result or the error
    #[arg(long)]
    pub(crate) json: bool,
}
