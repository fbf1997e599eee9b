//! Options that several commands share.

mod chain;
pub(crate) mod data_dir;
mod server;

pub(crate) use chain::{
    CacheOptions, CreationOptions, ExistingChain, GenesisOptions, InspectOptions, OutputOptions, PruneBefore,
    StorageOptions,
};
pub(crate) use server::{OperationOptions, ServerOptions};
