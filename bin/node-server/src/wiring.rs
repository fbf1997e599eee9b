//! Assembles the parts of an imported chain: backend, executor, importer and node.

use crate::error::CommandError;
use crate::open;
use crate::options::limits::LimitOptions;
use crate::options::storage::CacheOptions;
use node_chain::{Chain, Genesis};
use node_core::backend::{MemoryBackend, StateBackend};
use node_core::clock::SystemClock;
use node_core::forks::ChainSpec;
use node_core::node::{Finality, Node, NodeParts};
use node_evm::{EvmExecutor, KzgVerifier, Secp256k1Recovery};
use node_store::{Store, SyncPolicy};
use std::path::Path;
use std::sync::Arc;

/// The value of clientVersion.
pub(crate) const CLIENT_VERSION: &str = concat!("node-server/", env!("CARGO_PKG_VERSION"));

/// The parts that are needed to import and serve a chain.
pub(crate) struct Wiring {
    pub(crate) backend: Arc<dyn StateBackend>,
    /// The backend if it is a store; `None` for a chain in memory.
    pub(crate) store: Option<Arc<Store>>,
    executor: Arc<EvmExecutor>,
    spec: Arc<ChainSpec>,
}

impl Wiring {
    /// Opens or creates the store in `folder`, or creates a chain in memory. Logs which of the two.
    pub(crate) fn open(genesis: Genesis, folder: Option<&Path>, caches: &CacheOptions) -> Result<Self, CommandError> {
        let store = match folder {
            Some(path) => {
                let store = open::open_or_create(path, &genesis, caches)?;
                tracing::info!("data folder {}: head {}", path.display(), store.view()?.head());
                Some(Arc::new(store))
            }
            None => {
                tracing::info!("the chain is kept in memory and lost when the server stops");
                None
            }
        };
        let backend: Arc<dyn StateBackend> = match &store {
            Some(store) => store.clone(),
            None => Arc::new(MemoryBackend::new(genesis.block())?),
        };
        let spec = Arc::new(genesis.spec);
        let executor = Arc::new(EvmExecutor::with_code_cache(spec.clone(), caches.code_cache_bytes()));
        Ok(Self { backend, store, executor, spec })
    }

    /// Returns the importer.
    pub(crate) fn chain(&self) -> Chain {
        Chain::new(self.backend.clone(), self.executor.clone(), Arc::new(Secp256k1Recovery), self.spec.clone())
    }

    /// Opens the node. From now on the store syncs every change.
    pub(crate) fn node(&self, options: &LimitOptions, finality: Finality) -> Result<Node, CommandError> {
        let node = Node::open(NodeParts {
            backend: self.backend.clone(),
            executor: self.executor.clone(),
            recovery: Arc::new(Secp256k1Recovery),
            blobs: Arc::new(KzgVerifier),
            accounts: None,
            clock: Arc::new(SystemClock),
            spec: self.spec.clone(),
            production: None,
            finality,
            limits: options.limits(),
            pool_limits: options.pool_limits(),
            filter_limits: options.filter_limits(),
            client_version: CLIENT_VERSION.to_owned(),
        })?;
        if let Some(store) = &self.store {
            store.set_sync_policy(SyncPolicy::Always)?;
        }
        Ok(node)
    }

    /// Makes everything durable. Dropping the backend may not do this, because requests that exceeded their deadline may still hold
    /// it.
    pub(crate) fn flush(&self) -> Result<(), CommandError> {
        Ok(self.store.as_ref().map_or(Ok(()), |store| store.flush())?)
    }
}
