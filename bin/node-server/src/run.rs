//! `node-server run`: builds the chain, then serves it until a signal ends it.

use crate::config::{ChainOptions, Config};
use crate::control::Control;
use crate::error::{CommandError, Sources};
use crate::metrics;
use crate::notify;
use crate::open;
use crate::progress::{ImportProgress, Rates};
use crate::prune::{check_floor, prune};
use crate::wiring::Wiring;
use node_chain::{Chain, FileError, ImportSummary, import_file};
use node_core::context::Context;
use node_core::node::Finality;
use node_http::{Metrics, Shutdown, serve};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Builds the chain and serves it until SIGINT or SIGTERM, which end the import, too.
pub(crate) fn run(config: &Config) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals_then(notify::stopping)?;
    let http = config.server.http()?;
    let _metrics = metrics::serve(&config.server, &http)?;
    let options = &config.chain;
    let genesis = open::read_genesis(options.genesis.genesis.as_deref())?;
    let folder = open::folder(&config.storage, &genesis)?;
    if folder.is_none() && config.prune.prune_before.is_some() {
        return Err(CommandError::InMemory { needed_by: "--prune-before" });
    }
    let wiring = Wiring::open(genesis, folder.as_deref(), &config.storage.caches)?;
    let control = folder.zip(wiring.store.as_ref()).and_then(|(folder, store)| Control::open(&folder, store));
    match build(config, &wiring, &http.metrics, shutdown.context()) {
        Err(stopped @ CommandError::Stopped { .. }) => {
            tracing::info!("{stopped}");
            return wiring.flush();
        }
        built => built?,
    }
    // Nobody says which blocks of an imported chain are final, and nobody could take them back.
    let development = options.genesis.genesis.is_none() && wiring.backend.view()?.head().number == 0;
    let node = wiring.node(&config.server, if development { Finality::DEVELOPMENT } else { Finality::Head })?;
    let scheme = http.scheme();
    serve(Arc::new(node), http, shutdown, |address| {
        // Nobody may be there to read it.
        let _ = writeln!(io::stdout(), "listening on {scheme}://{address}");
        notify::ready(address);
        Ok::<_, CommandError>(())
    })?;
    drop(control);
    wiring.flush()
}

/// Imports the chain files, and drops the states that nobody wants.
fn build(config: &Config, wiring: &Wiring, metrics: &Metrics, context: &Context) -> Result<(), CommandError> {
    import(&wiring.chain(), &config.chain, metrics, context)?;
    if let (Some(store), Some(floor)) = (&wiring.store, config.prune.prune_before) {
        check_floor(store, "--prune-before", floor)?;
        tracing::info!("{}", prune(store, floor)?);
    }
    Ok(())
}

fn import(chain: &Chain, options: &ChainOptions, metrics: &Metrics, context: &Context) -> Result<(), CommandError> {
    for path in &options.import {
        tracing::info!("importing {}", path.display());
        match import_path(chain, path, metrics, context)? {
            Ok(summary) => {
                let ImportSummary { imported, gas, elapsed, .. } = summary;
                tracing::info!("imported {}: {imported} blocks, {}", path.display(), Rates(imported, gas, elapsed));
            }
            Err(source) => {
                let head = chain.backend().view()?.head().number;
                if context.check().is_err() {
                    return Err(CommandError::Stopped { head });
                }
                let error = CommandError::Import { path: path.clone(), head, source };
                if options.strict {
                    return Err(error);
                }
                tracing::error!("{}", Sources(&error));
            }
        }
    }
    if let Some(hash) = options.head {
        chain.set_head(hash).map_err(CommandError::Head)?;
    }
    Ok(())
}

/// The outer error is of the file system, the inner one of the chain file.
fn import_path(
    chain: &Chain,
    path: &Path,
    metrics: &Metrics,
    context: &Context,
) -> Result<Result<ImportSummary, FileError>, CommandError> {
    let (file, length) = open::chain_file(path)?;
    let mut progress = ImportProgress::start(path, length);
    let reader = progress.count(file);
    let (mut blocks, mut gas) = (0, 0);
    let imported = import_file(chain, context, reader, |state| {
        metrics.imported(state.blocks - blocks, state.gas - gas);
        (blocks, gas) = (state.blocks, state.gas);
        progress.update(state);
    });
    progress.finish();
    Ok(imported)
}
