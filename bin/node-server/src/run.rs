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
    let node = match build(config, shutdown.context()) {
        Err(stopped @ RunError::Stopped { .. }) => {
            tracing::info!("{stopped}");
            return Ok(());
        }
        node => Arc::new(node?),
    };
    serve(node, config.http(), shutdown, |address| {
        // Nobody may be there to read it.
        let _ = writeln!(io::stdout(), "listening on http://{address}");
    })?;
    Ok(())
}

fn build(config: &Config, context: &Context) -> Result<Node, RunError> {
    let options = &config.chain;
    let genesis = match &options.genesis {
        None => dev_genesis(),
        Some(path) => {
            let json = std::fs::read(path).map_err(|source| RunError::Read { path: path.clone(), source })?;
            Genesis::parse(&json).map_err(|source| RunError::Genesis { path: path.clone(), source })?
        }
    };
    let backend: Arc<dyn StateBackend> = Arc::new(MemoryBackend::new(genesis.block())?);
    let spec = Arc::new(genesis.spec);
    let executor = Arc::new(EvmExecutor::new(spec.clone()));
    let recovery = Arc::new(Secp256k1Recovery);
    let chain = Chain::new(backend.clone(), executor.clone(), recovery.clone(), spec.clone());
    import(&chain, options, context)?;
    // Nobody says which blocks of an imported chain are final, and nobody could take them back.
    let development = options.genesis.is_none() && options.import.is_empty();
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
