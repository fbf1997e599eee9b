//! Options for reading the store that many servers share.

use crate::error::CommandError;
use clap::Args;
use node_core::values;
use node_store::shared::{self, Objects};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A shared store, for commands that serve it.
#[derive(Args, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct ServedStore {
    /// Shared store from which to serve the chain that another server publishes there: s3://BUCKET/PREFIX, gs://…, az://…
    /// or file:///FOLDER
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// Folder for copies of what was read, which the next start uses [default: none, but only memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Size of this folder, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 10_240)]
    cache_disk_mb: u32,
    /// Age of the newest change in the store above which /ready returns 503; without changes, the writer shows every few
    /// seconds that it runs [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) max_lag: Option<Duration>,
    /// Time between two looks for newer changes; each is one request
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "100ms")]
    pub(crate) poll_interval: Duration,
}

impl ServedStore {
    pub(crate) fn cache_disk_bytes(&self) -> u64 {
        u64::from(self.cache_disk_mb) << 20
    }
}

/// A shared store, for commands that otherwise read a folder.
#[derive(Args, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct StoreInstead {
    /// Shared store to read instead of a folder
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Opens the store at a URL. Makes no request.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Objects>, CommandError> {
    shared::open(url).map_err(|source| CommandError::SharedStore { url: url.to_owned(), source: Box::new(source) })
}
