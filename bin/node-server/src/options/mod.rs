//! Options that several commands share.

mod chain;
pub(crate) mod data_dir;
mod publish;
mod server;
mod shared_store;

pub(crate) use chain::{
    CacheOptions, CreationOptions, ExistingChain, GenesisOptions, InspectOptions, OutputOptions, PruneBefore,
    ReadableChain, StorageOptions,
};
pub(crate) use publish::{PublishArguments, RestoreArguments, Target};
pub(crate) use server::{OperationOptions, ServerOptions};
pub(crate) use shared_store::{ServedStore, check_apart, open as open_objects};
