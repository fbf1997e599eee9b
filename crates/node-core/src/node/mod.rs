//! Every operation of the interface, over a backend and an executor.
//!
//! Each read opens exactly one view and answers from it, so that a block that lands meanwhile changes nothing in
//! the answer. Nothing here knows of HTTP.

mod assemble;
mod block;
mod build;
mod call;
mod chain;
mod config;
mod control;
mod error;
mod events;
mod fee_history;
mod filters;
mod finality;
mod found;
mod limits;
mod logs;
mod pending;
mod proof;
mod receipt;
mod request;
mod resolve;
mod send;
mod simulate;
mod state;
#[cfg(test)]
mod testing;
mod tokens;
mod trace;
mod transaction;

pub use build::{BlockRequest, BuiltBlock};
pub use config::{Capabilities, ForkConfig, ForkConfigs};
pub use error::NodeError;
pub use events::EventStream;
pub use fee_history::FeeHistory;
pub use finality::Finality;
pub use found::{FoundBlock, FoundReceipts, FoundTransaction, ReceiptInBlock};
pub use limits::Limits;
pub use logs::{InvalidCursor, LogCursor, LogPage};
pub use proof::InvalidProof;
pub use request::{NewTransaction, TransactionRequest};
pub use simulate::{SimulateError, SimulatedBlock, Simulation, SimulationBlock};
pub use trace::{TraceOptions, TransactionTrace};

use crate::accounts::Accounts;
use crate::assembly::{ByRules, NextHeader};
use crate::backend::{BackendError, EditableBackend, Record, RecordKind, RecordWrite, StateBackend, View};
use crate::caches::CacheUse;
use crate::clock::Clock;
use crate::context::{Context, ViewOf};
use crate::crypto::{BlobVerifier, SenderRecovery};
use crate::executor::Executor;
use crate::filters::{FilterLimits, Filters};
use crate::forks::ChainSpec;
use crate::pool::{Pool, PoolLimits, PoolParts};
use crate::producer::{Draft, Producer, ProducerParts, Production};
use node_types::{BlockId, BlockNumberOrTag};
use parking_lot::Mutex;
use pending::CachedPending;
use resolve::Snapshot;
use std::sync::Arc;

/// What a node is made of.
#[derive(Clone)]
pub struct NodeParts {
    /// Keeps the chain.
    pub backend: Arc<dyn StateBackend>,
    /// Runs code.
    pub executor: Arc<dyn Executor>,
    /// Finds senders.
    pub recovery: Arc<dyn SenderRecovery>,
    /// Checks blobs.
    pub blobs: Arc<dyn BlobVerifier>,
    /// Signs for accounts that requests name; none where nobody does.
    pub accounts: Option<Arc<dyn Accounts>>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Rules of the chain.
    pub spec: Arc<ChainSpec>,
    /// How blocks are produced; none on a chain that grows by imports alone.
    pub production: Option<Production>,
    /// Which blocks count as safe and final.
    pub finality: Finality,
    /// What one request may ask for.
    pub limits: Limits,
    /// How much the pool holds.
    pub pool_limits: PoolLimits,
    /// How many filters there may be, and for how long.
    pub filter_limits: FilterLimits,
    /// Name and version of the server, for clientVersion.
    pub client_version: String,
}

/// An Ethereum execution node. All methods may be called from any thread.
pub struct Node {
    backend: Arc<dyn StateBackend>,
    executor: Arc<dyn Executor>,
    recovery: Arc<dyn SenderRecovery>,
    accounts: Option<Arc<dyn Accounts>>,
    next_header: Arc<dyn NextHeader>,
    spec: Arc<ChainSpec>,
    finality: Finality,
    limits: Limits,
    client_version: String,
    pool: Arc<Pool>,
    producer: Option<Arc<Producer>>,
    filters: Filters,
    /// The least tip that the pool accepts, in wei per gas.
    minimum_tip: u64,
    pending: Mutex<Option<CachedPending>>,
}

impl Node {
    /// Opens the pool, the filters, the edits and the snapshots that the backend's records hold, lets the pool follow the
    /// chain, and begins to produce blocks.
    ///
    /// # Errors
    /// [`BackendError::OtherChainId`] for a chain that was begun under another identifier, and failures of the backend.
    pub fn open(parts: NodeParts) -> Result<Self, BackendError> {
        let NodeParts { executor, recovery, blobs, clock, spec, production, .. } = parts;
        claim_chain_id(&*parts.backend, spec.chain_id)?;
        let backend = Arc::new(EditableBackend::open(parts.backend)?);
        let draft = production.map(|production| Draft::new(production, spec.clone(), clock.clone()));
        let next_header = match &draft {
            Some(draft) => draft.next_header(),
            None => Arc::new(ByRules { spec: spec.clone(), clock: clock.clone() }),
        };
        let pool_parts = PoolParts {
            spec: spec.clone(),
            order: production.unwrap_or_default().order,
            next_header: next_header.clone(),
            backend: backend.clone(),
            recovery: recovery.clone(),
            blobs,
            clock: clock.clone(),
        };
        let pool = Arc::new(Pool::open(pool_parts, parts.pool_limits)?);
        backend.subscribe(Arc::new(Arc::downgrade(&pool)));
        let filters = Filters::open(backend.clone(), pool.clone(), clock, parts.filter_limits)?;
        let producer_parts = || ProducerParts {
            backend: backend.clone(),
            executor: executor.clone(),
            pool: pool.clone(),
            spec: spec.clone(),
        };
        let producer = draft.map(|draft| draft.finish(producer_parts())).transpose()?;
        Ok(Self {
            backend,
            executor,
            recovery,
            accounts: parts.accounts,
            next_header,
            spec,
            finality: parts.finality,
            limits: parts.limits,
            client_version: parts.client_version,
            pool,
            producer,
            filters,
            minimum_tip: parts.pool_limits.minimum_tip,
            pending: Mutex::new(None),
        })
    }

    /// What keeps the chain.
    pub fn backend(&self) -> &Arc<dyn StateBackend> {
        &self.backend
    }

    /// Whether a proof takes microseconds at any height.
    pub fn proves_quickly(&self) -> bool {
        self.backend.proves_quickly()
    }

    /// Makes blocks, where the node does.
    pub fn producer(&self) -> Option<&Arc<Producer>> {
        self.producer.as_ref()
    }

    /// Transactions that wait to be mined.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// How many filters there are.
    pub fn filter_count(&self) -> usize {
        self.filters.count()
    }

    /// Rules of the chain.
    pub fn spec(&self) -> &Arc<ChainSpec> {
        &self.spec
    }

    /// What one request may ask for.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The caches of the backend and of the executor.
    pub fn caches(&self) -> Vec<CacheUse> {
        let mut caches = self.backend.caches();
        caches.extend(self.executor.caches());
        caches
    }

    /// A snapshot of the mined chain, which the request of `context` is answered from.
    fn snapshot(&self, context: &Context) -> Result<Snapshot, NodeError> {
        self.snapshot_of(context, context.view_or(|| self.backend.view())?)
    }

    fn snapshot_of(&self, context: &Context, view: Arc<dyn View>) -> Result<Snapshot, NodeError> {
        let snapshot = Snapshot::new(view, self.finality);
        // Whoever controls a chain can take it back to any block.
        let finalized = self.producer.is_none().then(|| snapshot.height(BlockNumberOrTag::Finalized));
        context.answered_from(ViewOf { head: snapshot.mined_head()?, finalized });
        Ok(snapshot)
    }

    /// A snapshot in which `argument` can be resolved: with the pending block if it names that one.
    fn snapshot_for(&self, context: &Context, argument: BlockId) -> Result<Snapshot, NodeError> {
        if argument.is_pending() {
            self.snapshot_of(context, self.pending_view(context)?)
        } else {
            self.snapshot(context)
        }
    }
}

/// Binds the chain to an identifier, once and for all.
fn claim_chain_id(backend: &dyn StateBackend, expected: u64) -> Result<(), BackendError> {
    let Some(record) = backend.records(RecordKind::ChainId)?.pop() else {
        let value = expected.to_be_bytes().to_vec();
        return backend.write_records(&[RecordWrite::Put(RecordKind::ChainId, Record { key: Vec::new(), value })]);
    };
    let found = <[u8; 8]>::try_from(record.value).map_err(|value| {
        BackendError::Storage(format!("the record of the chain id has {} bytes", value.len()).into())
    })?;
    let found = u64::from_be_bytes(found);
    if found == expected { Ok(()) } else { Err(BackendError::OtherChainId { found, expected }) }
}

#[cfg(test)]
mod tests {
    use super::testing::World;
    use crate::backend::{Record, RecordKind, StateBackend};
    use crate::test_chain::account;
    use std::sync::Arc;

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding_of_the_chain_id() {
        let backend = World::new().backend;
        let record = Record { key: Vec::new(), value: vec![0, 0, 0, 0, 0, 0, 0, 1] };
        assert_eq!(backend.records(RecordKind::ChainId).unwrap(), [record]);
    }

    #[test]
    fn a_node_that_is_dropped_frees_its_backend() {
        let World { node, backend, .. } = World::new();
        let chain = Arc::downgrade(&backend);
        drop((node, backend));
        assert!(chain.upgrade().is_none());
        // The pool that it leaves behind follows nothing any more.
        let world = World::new();
        let pool = Arc::downgrade(world.node.pool());
        drop(world.node);
        assert!(pool.upgrade().is_none());
        crate::test_chain::push(&*world.backend, Vec::new(), account(1, 0, 1, &[]));
    }
}
