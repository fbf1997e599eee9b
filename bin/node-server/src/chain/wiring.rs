//! Assembles the parts of an imported chain: backend, executor, importer and node.

use super::open::{self, Start};
use crate::error::CommandError;
use crate::options::{CacheOptions, ServerOptions, Target};
use node_chain::BlockImporter;
use node_core::backend::StateBackend;
use node_core::context::Context;
use node_core::node::{Finality, Node, NodeBuilder};
use node_core::protocol::ChainSpec;
use node_evm::EvmExecutor;
use node_store::{Store, SyncPolicy};
use std::path::Path;
use std::sync::Arc;

/// The value of clientVersion.
const CLIENT_VERSION: &str = concat!("ethnode/", env!("CARGO_PKG_VERSION"));

/// The parts that are needed to import and serve a chain.
pub(crate) struct Wiring {
    pub(crate) store: Arc<Store>,
    evm: Arc<EvmExecutor>,
    spec: Arc<ChainSpec>,
}

/// Returns the builder of a node that does not produce blocks.
pub(crate) fn node_builder(
    backend: Arc<dyn StateBackend>,
    evm: &Arc<EvmExecutor>,
    spec: &Arc<ChainSpec>,
    options: &ServerOptions,
) -> NodeBuilder {
    Node::builder(backend, evm.clone(), spec.clone())
        .limits(options.limits())
        .pool_limits(options.pool)
        .filter_limits(options.filter_limits())
        .client_version(CLIENT_VERSION)
}

impl Wiring {
    /// Opens or creates the store in `folder`, or creates a chain in memory. Logs which of the two. Publishes it to
    /// `target`, if that is given.
    pub(crate) fn open(
        start: Start,
        folder: Option<&Path>,
        caches: &CacheOptions,
        target: Option<&Target>,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let created = folder.filter(|folder| !Store::exists(folder));
        let store = open::store(folder, &start, caches, SyncPolicy::OnDemand, target, context)?;
        if let Some(folder) = created {
            tracing::warn!("{} had no chain, so one was created there; --existing refuses that", folder.display());
        }
        open::log_chain(folder, &start.genesis, &*store)?;
        let spec = Arc::new(start.genesis.spec);
        let evm = open::evm(&spec, caches);
        Ok(Self { store, evm, spec })
    }

    pub(crate) fn importer(&self) -> BlockImporter {
        BlockImporter::new(self.store.clone(), self.evm.clone(), self.evm.clone(), self.spec.clone())
    }

    /// Opens the node.
    pub(crate) fn node(&self, options: &ServerOptions, finality: Finality) -> Result<Node, CommandError> {
        Ok(node_builder(self.store.clone(), &self.evm, &self.spec, options).finality(finality).open()?)
    }

    /// Makes the store sync every further change.
    pub(crate) fn sync_changes(&self) -> Result<(), CommandError> {
        Ok(self.store.set_sync_policy(SyncPolicy::Always)?)
    }

    /// Ends publishing, and makes everything in the folder durable. Dropping the backend may not do this, because requests that exceeded
    /// their deadline may still hold it.
    pub(crate) fn close(&self) -> Result<(), CommandError> {
        // First, because a change may be waiting for the shared store.
        self.store.stop_publishing();
        Ok(self.store.flush()?)
    }
}
