//! `ethnode run --read-only`: serves a chain that another process writes.

use crate::chain::open;
use crate::chain::wiring::node_builder;
use crate::command::run::{RunOptions, announce};
use crate::error::CommandError;
use crate::server::{metrics, write_failure};
use node_core::node::Finality;
use node_http::{HttpConfig, Shutdown, serve};
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks for newer blocks. A look takes a few system calls.
const INTERVAL: Duration = Duration::from_millis(50);

/// Serves the chain until SIGINT or SIGTERM. Writes nothing.
pub(crate) fn run(options: &RunOptions, http: HttpConfig, shutdown: Shutdown) -> Result<(), CommandError> {
    let genesis_file = options.chain.genesis.genesis.as_deref();
    let (reader, genesis) = open::reader(genesis_file, &options.storage, shutdown.context())?;
    let reader = Arc::new(reader);
    metrics::include_folder(&http, reader.path());
    open::log_chain(reader.path(), &genesis, &*reader)?;
    let changes = match options.writer {
        Some(_) => "changes are passed on to it",
        None => "transactions are refused",
    };
    tracing::info!("reading a chain that another process may write; {changes}");
    let spec = Arc::new(genesis.spec);
    let evm = open::evm(&spec, &options.storage.caches);
    write_failure::watch(&options.server.operation, reader.clone())?;
    let builder = node_builder(reader.clone(), &evm, &spec, &options.server);
    let node = builder.finality(Finality::Head).read_only().open()?;
    let _refreshing = reader.refresh_every(INTERVAL).map_err(CommandError::Thread)?;
    Ok(serve(Arc::new(node), http.clone(), shutdown, |address| {
        announce(&http, address);
        Ok(())
    })?)
}
