//! `node-server run`: builds the chain, then serves it until a signal ends it.

use crate::config::{ChainOptions, Config};
use crate::error::{CommandError, Sources};
use crate::open;
use crate::progress::{ImportProgress, Rates};
use crate::prune::{check_floor, prune};
use node_chain::{Chain, FileError, Genesis, ImportSummary, import_file};
use node_core::backend::{MemoryBackend, StateBackend};
use node_core::clock::SystemClock;
use node_core::context::Context;
use node_core::node::{Finality, Node, NodeParts};
use node_evm::{EvmExecutor, KzgVerifier, Secp256k1Recovery};
use node_http::{Shutdown, serve};
use node_store::{Store, SyncPolicy};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Builds the chain and serves it until SIGINT or SIGTERM, which end the import, too.
pub(crate) fn run(config: &Config) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let genesis = open::read_genesis(config.chain.genesis.genesis.as_deref())?;
    let store = open_store(config, &genesis)?;
    let backend: Arc<dyn StateBackend> = match &store {
        Some(store) => store.clone(),
        None => Arc::new(MemoryBackend::new(genesis.block())?),
    };
    let node = match build(config, genesis, backend, store.as_deref(), shutdown.context()) {
        Err(stopped @ CommandError::Stopped { .. }) => {
            tracing::info!("{stopped}");
            return Ok(store.map_or(Ok(()), |store| store.flush())?);
        }
        node => Arc::new(node?),
    };
    if let Some(store) = &store {
        store.set_sync_policy(SyncPolicy::Always)?;
    }
    serve(node, config.http(), shutdown, |address| {
        // Nobody may be there to read it.
        let _ = writeln!(io::stdout(), "listening on http://{address}");
    })?;
    // Requests that outlived their time may hold the node still, so that dropping it here need not close the store.
    Ok(store.map_or(Ok(()), |store| store.flush())?)
}

/// Opens the folder; none if the chain is to be in memory. Says where it is.
fn open_store(config: &Config, genesis: &Genesis) -> Result<Option<Arc<Store>>, CommandError> {
    let Some(path) = open::folder(&config.storage, genesis)? else {
        if config.prune.prune_before.is_some() {
            return Err(CommandError::InMemory { needed_by: "--prune-before" });
        }
        tracing::info!("the chain is kept in memory, and gone when the server stops");
        return Ok(None);
    };
    let store = open::open_or_begin(&path, genesis, &config.storage)?;
    tracing::info!("data folder {}: head {}", path.display(), store.view()?.head());
    Ok(Some(Arc::new(store)))
}

fn build(
    config: &Config,
    genesis: Genesis,
    backend: Arc<dyn StateBackend>,
    store: Option<&Store>,
    context: &Context,
) -> Result<Node, CommandError> {
    let options = &config.chain;
    let spec = Arc::new(genesis.spec);
    let executor = Arc::new(EvmExecutor::with_code_cache(spec.clone(), config.storage.code_cache_bytes()));
    let recovery = Arc::new(Secp256k1Recovery);
    let chain = Chain::new(backend.clone(), executor.clone(), recovery.clone(), spec.clone());
    import(&chain, options, context)?;
    if let (Some(store), Some(floor)) = (store, config.prune.prune_before) {
        check_floor(store, "--prune-before", floor)?;
        tracing::info!("{}", prune(store, floor)?);
    }
    // Nobody says which blocks of an imported chain are final, and nobody could take them back.
    let development = options.genesis.genesis.is_none() && backend.view()?.head().number == 0;
    Ok(Node::open(NodeParts {
        backend,
        executor,
        recovery,
        blobs: Arc::new(KzgVerifier),
        clock: Arc::new(SystemClock),
        spec,
        production: None,
        finality: if development { Finality::DEVELOPMENT } else { Finality::Head },
        limits: config.limits(),
        pool_limits: config.pool_limits(),
        filter_limits: config.filter_limits(),
        client_version: concat!("node-server/", env!("CARGO_PKG_VERSION")).to_owned(),
    })?)
}

fn import(chain: &Chain, options: &ChainOptions, context: &Context) -> Result<(), CommandError> {
    for path in &options.import {
        tracing::info!("importing {}", path.display());
        match import_path(chain, path, context)? {
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
    context: &Context,
) -> Result<Result<ImportSummary, FileError>, CommandError> {
    let (file, length) = open::chain_file(path)?;
    let mut progress = ImportProgress::start(path, length);
    let reader = progress.count(file);
    let imported = import_file(chain, context, reader, |state| progress.update(state));
    progress.finish();
    Ok(imported)
}
