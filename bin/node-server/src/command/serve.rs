//! `ethnode serve`: serves a chain that another server publishes in a shared store.

use crate::chain::open;
use crate::command::health::http_url;
use crate::command::read_only::serve_reader;
use crate::command::run;
use crate::error::CommandError;
use crate::options::{CacheOptions, ServedStore, ServerOptions};
use crate::server::{metrics, notify, reload};
use clap::Args;
use node_http::Shutdown;
use std::path::PathBuf;
use ureq::http::Uri;

/// Options of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    pub(crate) store: ServedStore,
    /// Genesis file of the chain; needed only if it has 1 MiB or more, because the store has smaller ones
    #[arg(long, value_name = "FILE", help_heading = "Chain")]
    genesis: Option<PathBuf>,
    /// URL of the server that writes the chain, to which transactions, requests about filters and the pool, and control of a
    /// development chain are passed on
    #[arg(long, value_name = "URL", value_parser = http_url, help_heading = "Shared store")]
    writer: Option<Uri>,
    #[command(flatten)]
    caches: CacheOptions,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

/// Serves the chain until SIGINT or SIGTERM.
pub(crate) fn run(options: &ServeOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals_then(notify::stopping)?;
    let mut http = run::http_config(&options.server)?;
    reload::register(&http);
    let _metrics = metrics::serve(&options.server, &http)?;
    run::pass_on(&mut http, options.writer.as_ref())?;
    let (store, caches) = (&options.store, &options.caches);
    let (reader, genesis) = open::shared_reader(store, options.genesis.as_deref(), caches, shutdown.context())?;
    open::log_chain_at(&format!("serving the shared store {}", store.store), &genesis, &*reader)?;
    serve_reader(reader, genesis, caches, &options.server, store.poll_interval, http, shutdown)
}
