//! `node-server run`: builds the chain, then serves it until a signal ends it.

use crate::Chain as ErrorChain;
use crate::config::{ChainOptions, Config};
use crate::progress::{ImportProgress, Rates};
use node_chain::{Chain, FileError, Genesis, GenesisError, ImportError, ImportSummary, dev_genesis, import_file};
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::clock::SystemClock;
use node_core::context::Context;
use node_core::node::{Finality, Node, NodeParts};
use node_evm::{EvmExecutor, KzgVerifier, Secp256k1Recovery};
use node_http::{ServeError, Shutdown, serve};
use node_store::{Options, Store, SyncPolicy};
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the server does not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The genesis file is none.
    #[error("genesis file {}", .path.display())]
    Genesis {
        path: PathBuf,
        #[source]
        source: GenesisError,
    },
    /// The folder of `--data-dir` cannot be used.
    #[error("data folder {}", .path.display())]
    Store {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A chain file was not imported to its end.
    #[error("chain file {} was imported up to block {head} only", .path.display())]
    Import {
        path: PathBuf,
        head: u64,
        #[source]
        source: FileError,
    },
    /// A signal came before the server ran.
    #[error("a signal ended the import at block {head}")]
    Stopped { head: u64 },
    /// The block of `--head` cannot be the head.
    #[error("--head")]
    Head(#[source] ImportError),
    /// The backend does not work.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The server does not run.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Builds the chain and serves it until SIGINT or SIGTERM, which end the import, too.
pub(crate) fn run(config: &Config) -> Result<(), RunError> {
    let shutdown = Shutdown::on_signals()?;
    let genesis = read_genesis(&config.chain)?;
    let store = config.storage.data_dir.as_deref().map(|path| open_store(path, &genesis, config)).transpose()?;
    let backend: Arc<dyn StateBackend> = match &store {
        Some(store) => store.clone(),
        None => Arc::new(MemoryBackend::new(genesis.block())?),
    };
    let node = match build(config, genesis, backend, shutdown.context()) {
        Err(stopped @ RunError::Stopped { .. }) => {
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

fn read_genesis(options: &ChainOptions) -> Result<Genesis, RunError> {
    let Some(path) = &options.genesis else { return Ok(dev_genesis()) };
    let json = std::fs::read(path).map_err(|source| RunError::Read { path: path.clone(), source })?;
    Genesis::parse(&json).map_err(|source| RunError::Genesis { path: path.clone(), source })
}

/// Opens the folder for an import: until the policy is changed, changes are not synced one by one.
fn open_store(path: &Path, genesis: &Genesis, config: &Config) -> Result<Arc<Store>, RunError> {
    let options =
        Options { cache_bytes: config.storage.cache_bytes(), sync: SyncPolicy::OnDemand, ..Options::default() };
    let failed = |error| {
        let source = match error {
            BackendError::Storage(source) => source,
            other => Box::new(other),
        };
        RunError::Store { path: path.to_owned(), source }
    };
    let store = Store::open(path, genesis.block(), options).map_err(failed)?;
    tracing::info!("data folder {}: head {}", path.display(), store.view()?.head());
    Ok(Arc::new(store))
}

fn build(
    config: &Config,
    genesis: Genesis,
    backend: Arc<dyn StateBackend>,
    context: &Context,
) -> Result<Node, RunError> {
    let options = &config.chain;
    let spec = Arc::new(genesis.spec);
    let executor = Arc::new(EvmExecutor::with_code_cache(spec.clone(), config.storage.code_cache_bytes()));
    let recovery = Arc::new(Secp256k1Recovery);
    let chain = Chain::new(backend.clone(), executor.clone(), recovery.clone(), spec.clone());
    import(&chain, options, context)?;
    // Nobody says which blocks of an imported chain are final, and nobody could take them back.
    let development = options.genesis.is_none() && backend.view()?.head().number == 0;
    Ok(Node::open(NodeParts {
        backend,
        executor,
        recovery,
        blobs: Arc::new(KzgVerifier),
        clock: Arc::new(SystemClock),
        spec,
        finality: if development { Finality::DEVELOPMENT } else { Finality::Head },
        limits: config.limits(),
        pool_limits: config.pool_limits(),
        filter_limits: config.filter_limits(),
        client_version: concat!("node-server/", env!("CARGO_PKG_VERSION")).to_owned(),
    })?)
}

fn import(chain: &Chain, options: &ChainOptions, context: &Context) -> Result<(), RunError> {
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
                    return Err(RunError::Stopped { head });
                }
                let error = RunError::Import { path: path.clone(), head, source };
                if options.strict {
                    return Err(error);
                }
                tracing::error!("{}", ErrorChain(&error));
            }
        }
    }
    if let Some(hash) = options.head {
        chain.set_head(hash).map_err(RunError::Head)?;
    }
    Ok(())
}

/// The outer error is of the file system, the inner one of the chain file.
fn import_path(chain: &Chain, path: &Path, context: &Context) -> Result<Result<ImportSummary, FileError>, RunError> {
    let unreadable = |source| RunError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut progress = ImportProgress::start(path, length);
    let reader = progress.count(file);
    let imported = import_file(chain, context, reader, |state| progress.update(state));
    progress.finish();
    Ok(imported)
}
