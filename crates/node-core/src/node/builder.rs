//! Opening a node.

use super::trace::TraceTurns;
use super::{Finality, Limits, Node};
use crate::assembly::{NextHeader, ProtocolHeader};
use crate::backend::{BackendError, HeadListener, Record, RecordKind, RecordWrite, StateBackend};
use crate::clock::{Clock, SystemClock};
use crate::crypto::Wallet;
use crate::edits::EditableBackend;
use crate::executor::Execution;
use crate::filters::{FilterLimits, Filters};
use crate::listeners::Listeners;
use crate::pool::{Pool, PoolLimits, PoolParts};
use crate::producer::{BlockSettings, ForkControl, Producer, ProducerParts, Production};
use crate::protocol::ChainSpec;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Builds a [`Node`]. Everything but the backend, the execution and the chain specification has a default.
#[derive(Clone)]
pub struct NodeBuilder {
    backend: Arc<dyn StateBackend>,
    execution: Arc<dyn Execution>,
    spec: Arc<ChainSpec>,
    wallet: Option<Arc<dyn Wallet>>,
    clock: Arc<dyn Clock>,
    production: Option<Production>,
    finality: Finality,
    limits: Limits,
    pool_limits: PoolLimits,
    filter_limits: FilterLimits,
    is_read_only: bool,
    client_version: String,
    fork: Option<Arc<dyn ForkControl>>,
}

impl Node {
    /// Starts building a node on the chain that `backend` stores. `execution` executes its code under the rules of
    /// `spec`. Only one node may change a backend, because it keeps the pool, the filters and the snapshots of the chain.
    ///
    /// # Examples
    /// ```
    /// use node_core::backend::{BackendError, StateBackend};
    /// use node_core::executor::Execution;
    /// use node_core::protocol::ChainSpec;
    /// use node_core::node::Node;
    /// use node_core::producer::Production;
    /// use std::sync::Arc;
    ///
    /// fn open(
    ///     backend: Arc<dyn StateBackend>,
    ///     execution: Arc<dyn Execution>,
    ///     spec: Arc<ChainSpec>,
    /// ) -> Result<Node, BackendError> {
    ///     Node::builder(backend, execution, spec)
    ///         .production(Production::default())
    ///         .client_version("my-node/1.0")
    ///         .open()
    /// }
    /// ```
    pub fn builder(backend: Arc<dyn StateBackend>, execution: Arc<dyn Execution>, spec: Arc<ChainSpec>) -> NodeBuilder {
        NodeBuilder {
            backend,
            execution,
            spec,
            wallet: None,
            clock: Arc::new(SystemClock),
            production: None,
            finality: Finality::Head,
            limits: Limits::default(),
            pool_limits: PoolLimits::default(),
            filter_limits: FilterLimits::default(),
            is_read_only: false,
            client_version: concat!("node-core/", env!("CARGO_PKG_VERSION")).to_owned(),
            fork: None,
        }
    }
}

impl NodeBuilder {
    /// Sets the accounts whose keys the node has and for which it signs. Default: none.
    #[must_use]
    pub fn wallet(self, wallet: Arc<dyn Wallet>) -> Self {
        Self { wallet: Some(wallet), ..self }
    }

    /// Sets the clock. Default: the system clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Enables block production. By default, the chain grows only by imports.
    #[must_use]
    pub fn production(self, production: Production) -> Self {
        Self { production: Some(production), ..self }
    }

    /// Sets which blocks count as safe and finalized. Default: [`Finality::Head`].
    #[must_use]
    pub fn finality(self, finality: Finality) -> Self {
        Self { finality, ..self }
    }

    /// Sets the limits of single requests. Default: [`Limits::default`].
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the limits of the transaction pool. Default: [`PoolLimits::default`].
    #[must_use]
    pub fn pool_limits(self, pool_limits: PoolLimits) -> Self {
        Self { pool_limits, ..self }
    }

    /// Sets the number and lifetime of filters. Default: [`FilterLimits::default`].
    #[must_use]
    pub fn filter_limits(self, filter_limits: FilterLimits) -> Self {
        Self { filter_limits, ..self }
    }

    /// Refuses transactions, with [`NodeError::ReadOnly`](super::NodeError::ReadOnly), because another process writes
    /// the chain and would not see them.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    /// Sets the name and version that clientVersion returns. Default: those of node-core.
    #[must_use]
    pub fn client_version(self, client_version: impl Into<String>) -> Self {
        Self { client_version: client_version.into(), ..self }
    }

    /// Declares that the chain continues another one, of which `fork` reads what the chain does not have.
    #[must_use]
    pub fn fork(self, fork: Arc<dyn ForkControl>) -> Self {
        Self { fork: Some(fork), ..self }
    }

    /// Opens the node: restores the pool, the filters, the edits and the snapshots from the backend's records, and
    /// starts block production if it is enabled.
    ///
    /// # Errors
    /// [`BackendError::OtherChainId`] if the stored chain has a different id than the specification, and failures of
    /// the backend.
    pub fn open(self) -> Result<Node, BackendError> {
        let Self { execution, clock, spec, .. } = self;
        claim_chain_id(&*self.backend, spec.chain_id)?;
        let backend = Arc::new(EditableBackend::open(self.backend)?);
        let production = self.production.unwrap_or_default();
        let settings = match self.production {
            Some(Production { coinbase, .. }) => {
                let view = backend.view()?;
                let first = view.header(view.first().into())?.ok_or(BackendError::UnknownBlock(view.first()))?;
                let coinbase = coinbase.unwrap_or(first.header.beneficiary);
                Some(Arc::new(BlockSettings::new(spec.clone(), clock.clone(), coinbase)))
            }
            None => None,
        };
        let next_header: Arc<dyn NextHeader> = match &settings {
            Some(settings) => settings.clone(),
            None => Arc::new(ProtocolHeader { spec: spec.clone(), clock: clock.clone() }),
        };
        let pool_parts = PoolParts {
            spec: spec.clone(),
            order: production.order,
            next_header: next_header.clone(),
            backend: backend.clone(),
            recovery: execution.clone(),
            blobs: execution.clone(),
            clock: clock.clone(),
        };
        let pool = Arc::new(Pool::open(pool_parts, self.pool_limits)?);
        if !self.is_read_only {
            // Otherwise transactions of removed blocks return to the pool of the process that writes the chain.
            backend.subscribe(Arc::new(Arc::downgrade(&pool)));
        }
        // Subscribed after the pool, so that listeners see the pool as of the new head.
        let head_listeners = Arc::new(Listeners::<dyn HeadListener>::default());
        backend.subscribe(head_listeners.clone());
        let filters = Filters::open(backend.clone(), pool.clone(), clock, self.filter_limits)?;
        let producer_parts = || ProducerParts {
            backend: backend.clone(),
            executor: execution.clone(),
            pool: pool.clone(),
            spec: spec.clone(),
        };
        let open_producer = |settings| Producer::open(producer_parts(), settings, production.mining);
        let producer = settings.map(open_producer).transpose()?;
        Ok(Node {
            backend,
            executor: execution.clone(),
            recovery: execution,
            wallet: self.wallet,
            next_header,
            spec,
            finality: self.finality,
            limits: self.limits,
            client_version: self.client_version,
            fork: self.fork,
            pool,
            head_listeners,
            producer,
            filters,
            minimum_tip: self.pool_limits.minimum_tip,
            pending: Mutex::new(None),
            importing: Mutex::new(None),
            is_read_only: self.is_read_only,
            call_observer: OnceLock::new(),
            traces: TraceTurns::default(),
        })
    }
}

/// Records the chain identifier on the first start, and compares it with the recorded one on later starts.
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
