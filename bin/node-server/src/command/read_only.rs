//! Serving a chain that another process writes: `ethnode run --read-only`, and a part of `serve`.

use crate::chain::open;
use crate::chain::wiring::node_builder;
use crate::command::run::{RunOptions, announce};
use crate::error::CommandError;
use crate::options::{CacheOptions, ServerOptions};
use crate::server::{metrics, write_failure};
use node_chain::Genesis;
use node_core::node::Finality;
use node_http::{HttpConfig, Shutdown, serve};
use node_store::StoreReader;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks for newer blocks. A look takes a few system calls.
const INTERVAL: Duration = Duration::from_millis(50);

/// Serves the chain in a folder until SIGINT or SIGTERM. Writes nothing.
pub(crate) fn run(options: &RunOptions, http: HttpConfig, shutdown: Shutdown) -> Result<(), CommandError> {
    let genesis_file = options.chain.genesis.genesis.as_deref();
    let (reader, genesis) = open::reader(genesis_file, &options.storage, shutdown.context())?;
    metrics::include_folder(&http, reader.path());
    open::log_chain(reader.path(), &genesis, &*reader)?;
    serve_reader(reader, genesis, &options.storage.caches, &options.server, INTERVAL, http, shutdown)
}

/// Serves the chain of `reader`, which looks for newer blocks at this interval.
pub(crate) fn serve_reader(
    reader: Arc<StoreReader>,
    genesis: Genesis,
    caches: &CacheOptions,
    server: &ServerOptions,
    interval: Duration,
    http: HttpConfig,
    shutdown: Shutdown,
) -> Result<(), CommandError> {
    let changes = match http.writer {
        Some(_) => "changes are passed on to it",
        None => "transactions are refused",
    };
    tracing::info!("reading a chain that another process may write; {changes}");
    let spec = Arc::new(genesis.spec);
    let evm = open::evm(&spec, caches);
    write_failure::watch(&server.operation, reader.clone())?;
    let builder = node_builder(reader.clone(), &evm, &spec, server);
    let node = builder.finality(Finality::Head).read_only().open()?;
    let refreshing = reader.refresh_every(interval).map_err(CommandError::Thread)?;
    serve(Arc::new(node), http.clone(), shutdown, |address| {
        announce(&http, address);
        Ok(())
    })?;
    // A look for newer blocks may be waiting for the shared store.
    reader.end_reads();
    drop(refreshing);
    Ok(())
}
