//! `node-server dev`: a chain to develop against, with accounts whose keys are known.

mod banner;
mod options;
mod summary;

#[cfg(test)]
mod tests;

pub(crate) use options::DevOptions;

use crate::data_dir::DataDir;
use crate::error::CommandError;
use crate::open;
use crate::wiring::Wiring;
use node_core::context::Context;
use node_core::node::Finality;
use node_dev::Accounts;
use node_http::{Shutdown, serve};
use std::io::{self, Write};
use std::sync::Arc;
use summary::Summary;

/// Begins the chain, or goes on with that of the folder, and serves it until SIGINT or SIGTERM.
pub(crate) fn run(options: &DevOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let accounts = Accounts::derive(&options.accounts())?;
    let genesis = match &options.chain.genesis {
        Some(path) => open::read_genesis(Some(path))?,
        None => options.genesis().build(accounts.addresses())?,
    };
    let folder = match &options.storage.data_dir {
        Some(DataDir::Folder(path)) => Some(path.as_path()),
        Some(DataDir::Memory) | None => None,
    };
    let wiring = Wiring::open(genesis.clone(), folder, &options.storage.caches)?;
    let node = Arc::new(wiring.node(&options.server, Finality::DEVELOPMENT)?);
    let gas_price = node.gas_price(&Context::unbounded())?.gas_price.0;
    let http = options.server.http();
    let base_path = http.base_path.clone();
    serve(node, http, shutdown, |address| {
        let summary = Summary::new(&accounts, &genesis, gas_price, folder, address, base_path.as_str());
        if let Some(path) = &options.output.config_out {
            summary.write(path)?;
        }
        if !options.output.silent {
            // Nobody may be there to read it.
            let _ = writeln!(io::stdout(), "{}listening on http://{address}", banner::Banner(&summary));
        }
        Ok::<_, CommandError>(())
    })?;
    wiring.flush()
}
