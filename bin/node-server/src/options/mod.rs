//! Options that several commands share.

mod chain;
mod server;

pub(crate) use chain::{
    CacheOptions, CopyOptions, ExistingChain, GenesisOptions, InspectOptions, OutputOptions, PruneBefore,
    StorageOptions,
};
pub(crate) use server::{OperationOptions, ServerOptions};
