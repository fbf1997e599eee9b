//! Options that several commands share.

mod chain;
pub(crate) mod data_dir;
mod publish;
mod server;

pub(crate) use chain::{
    CacheOptions, CreationOptions, ExistingChain, GenesisOptions, InspectOptions, OutputOptions, PruneBefore,
    StorageOptions,
};
pub(crate) use publish::{PublishArguments, RestoreArguments, Target};
pub(crate) use server::{OperationOptions, ServerOptions};
