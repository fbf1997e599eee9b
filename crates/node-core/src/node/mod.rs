//! The node: all operations, implemented on a backend and an executor. `operations.rs` lists them.
//!
//! Operations take and return domain values; nothing here depends on an interface. Each read opens one view of
//! the backend, so blocks that are added in the meantime do not affect the result.

mod block;
mod build;
mod builder;
mod call;
mod chain;
mod config;
mod development;
mod error;
mod events;
mod fault;
mod fee_history;
mod filters;
mod importing;
mod kind;
mod limits;
mod logs;
mod operations;
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
mod trace;
mod transaction;

pub use block::FoundBlock;
pub use build::{BlockRequest, BuiltBlock};
pub use builder::NodeBuilder;
pub use config::{Capabilities, ForkConfig, ForkConfigs};
pub use error::NodeError;
pub use events::{Event, EventData, EventQuery, EventStart, EventStream};
pub use fault::{Fault, Field, Property};
pub use fee_history::FeeHistory;
pub use importing::ImportProgress;
use importing::Importing;
pub use kind::ErrorKind;
pub use limits::{Limit, Limits};
pub use logs::{AboveHead, BlockRange, ForeignCursor, InvalidCursor, LogBlocks, LogCursor, LogPage, LogQuery};
pub use receipt::{FoundReceipt, FoundReceipts, ReceiptInBlock};
pub use request::{ReplacementTransaction, TransactionRequest};
pub use resolve::Finality;
pub use send::NewTransaction;
pub use simulate::{BlockStateCalls, SimulateError, SimulatedBlock, Simulation};
use trace::TraceTurns;
pub use trace::{BlockRewards, TraceOptions};
pub use transaction::{FoundTransaction, TransactionStatus};

use crate::assembly::NextHeader;
use crate::backend::{CacheUse, HeadListener, StateBackend};
use crate::context::Context;
use crate::crypto::{SenderRecovery, Wallet};
use crate::executor::{Call, Executor};
use crate::filters::Filters;
use crate::listeners::Listeners;
use crate::pool::Pool;
use crate::producer::{ForkControl, Producer};
use crate::protocol::ChainSpec;
use node_types::BlockId;
use parking_lot::Mutex;
use pending::CachedPending;
use resolve::RequestView;
use std::sync::{Arc, OnceLock};

/// An Ethereum execution node. All methods may be called from any thread.
///
/// **Methods block**: for microseconds if they read a header or an account, and up to the deadline of their [`Context`] if
/// they execute code, search logs or make proofs. In asynchronous programs, call them on a thread that may block.
///
/// | To | Methods |
/// |---|---|
/// | read the head and fees | [`head`](Self::head), [`block_number`](Self::block_number), [`gas_price`](Self::gas_price), [`max_priority_fee_per_gas`](Self::max_priority_fee_per_gas), [`next_base_fee`](Self::next_base_fee), [`blob_base_fee`](Self::blob_base_fee), [`fee_history`](Self::fee_history), [`fork_configs`](Self::fork_configs) |
/// | read blocks | [`get_header`](Self::get_header), [`get_block`](Self::get_block), [`get_block_hash`](Self::get_block_hash), [`get_body`](Self::get_body), [`get_receipts`](Self::get_receipts) |
/// | read transactions | [`get_transaction`](Self::get_transaction), [`get_transaction_at`](Self::get_transaction_at), [`get_transaction_status`](Self::get_transaction_status), [`get_receipt`](Self::get_receipt), [`pool_content`](Self::pool_content) |
/// | read the state as of a block | [`get_balance`](Self::get_balance), [`get_storage_at`](Self::get_storage_at), [`get_code`](Self::get_code), [`get_transaction_count`](Self::get_transaction_count), [`get_account`](Self::get_account), [`get_proof`](Self::get_proof) |
/// | search logs | [`get_logs`](Self::get_logs), [`get_logs_page`](Self::get_logs_page), [`visit_logs`](Self::visit_logs) |
/// | follow the chain | [`subscribe`](Self::subscribe), [`events`](Self::events), [`next_events`](Self::next_events), [`new_filter`](Self::new_filter), [`get_filter_changes`](Self::get_filter_changes) |
/// | execute | [`call`](Self::call), [`estimate_gas`](Self::estimate_gas), [`simulate`](Self::simulate), [`create_access_list`](Self::create_access_list), [`trace_call`](Self::trace_call), [`trace_transaction`](Self::trace_transaction), [`trace_block`](Self::trace_block) |
/// | send | [`send_transaction`](Self::send_transaction), [`fill_transaction`](Self::fill_transaction), [`sign_transaction`](Self::sign_transaction), [`build_block`](Self::build_block) |
/// | control a development chain | [`mine`](Self::mine), [`revert`](Self::revert), [`control`](Self::control) for time, snapshots and edits, [`set_token_balance`](Self::set_token_balance) |
/// | tell clients about an import | [`begin_import`](Self::begin_import), [`end_import`](Self::end_import), [`import_progress`](Self::import_progress) |
///
/// [`Node::builder`] opens one. A node ends when it is dropped; the backend then holds everything that was acknowledged.
pub struct Node {
    backend: Arc<dyn StateBackend>,
    executor: Arc<dyn Executor>,
    recovery: Arc<dyn SenderRecovery>,
    wallet: Option<Arc<dyn Wallet>>,
    next_header: Arc<dyn NextHeader>,
    spec: Arc<ChainSpec>,
    finality: Finality,
    limits: Limits,
    client_version: String,
    /// If the chain continues another one.
    fork: Option<Arc<dyn ForkControl>>,
    pool: Arc<Pool>,
    head_listeners: Arc<Listeners<dyn HeadListener>>,
    producer: Option<Arc<Producer>>,
    filters: Filters,
    /// Minimum tip that the pool accepts, in wei per gas.
    minimum_tip: u64,
    pending: Mutex<Option<CachedPending>>,
    /// The current import; `None` if none is running.
    importing: Mutex<Option<Importing>>,
    is_read_only: bool,
    call_observer: OnceLock<Box<CallObserver>>,
    traces: TraceTurns,
}

/// A function that is called with each executed call, and the block on whose state it ran.
type CallObserver = dyn Fn(&Call, BlockId) + Send + Sync;

impl Node {
    /// Returns the backend of the chain.
    pub fn backend(&self) -> &Arc<dyn StateBackend> {
        &self.backend
    }

    /// Calls `listener` after each future change of the head, until `listener` is dropped. By contrast, listeners
    /// passed to the backend's own [`subscribe`](StateBackend::subscribe) are called as long as the backend exists. If
    /// `listener` panics, this is logged, and the change is not affected.
    pub fn subscribe<L: HeadListener + 'static>(&self, listener: &Arc<L>) {
        self.head_listeners.add(Arc::<L>::downgrade(listener));
    }

    /// Calls `observer` with each executed call and estimate, before its result is returned. Only one observer can be
    /// set; later ones are ignored.
    pub fn observe_calls(&self, observer: impl Fn(&Call, BlockId) + Send + Sync + 'static) {
        let _ = self.call_observer.set(Box::new(observer));
    }

    /// Returns whether a proof takes microseconds at any block.
    pub fn proves_quickly(&self) -> bool {
        self.backend.proves_quickly()
    }

    /// Returns the block producer, or `None` if the node does not produce blocks.
    pub fn producer(&self) -> Option<&Arc<Producer>> {
        self.producer.as_ref()
    }

    /// Returns the transaction pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the number of filters.
    pub fn filter_count(&self) -> usize {
        self.filters.count()
    }

    /// Returns the rules of the chain.
    pub fn spec(&self) -> &Arc<ChainSpec> {
        &self.spec
    }

    /// Returns the limits of requests.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the statistics of the caches of the backend and the executor.
    pub fn caches(&self) -> Vec<CacheUse> {
        let mut caches = self.backend.caches();
        caches.extend(self.executor.caches());
        caches
    }

    /// Returns a snapshot of the mined chain, and records its head in `context`.
    fn snapshot(&self, context: &Context) -> Result<RequestView, NodeError> {
        self.snapshot_of(context, RequestView::new(context.view_or(|| self.backend.view())?, self.finality))
    }

    fn snapshot_of(&self, context: &Context, snapshot: RequestView) -> Result<RequestView, NodeError> {
        context.record_head(snapshot.mined_head()?);
        Ok(snapshot)
    }

    /// Returns a snapshot in which `block` can be resolved: one that includes the pending block if `block` is
    /// `pending`.
    fn snapshot_for(&self, context: &Context, block: BlockId) -> Result<RequestView, NodeError> {
        if block.is_pending() {
            self.snapshot_of(context, RequestView::with_pending(self.pending_view(context)?, self.finality))
        } else {
            self.snapshot(context)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::World;
    use crate::backend::{HeadChange, HeadListener, Record, RecordKind, StateBackend};
    use crate::test_chain::account;
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// Records the changes of the head.
    #[derive(Default)]
    struct Changes(Mutex<Vec<HeadChange>>);

    impl HeadListener for Changes {
        fn head_changed(&self, change: &HeadChange) {
            self.0.lock().push(change.clone());
        }
    }

    #[test]
    fn a_listener_is_called_until_it_is_dropped() {
        let world = World::new();
        let (kept, dropped) = (Arc::new(Changes::default()), Arc::new(Changes::default()));
        world.node.subscribe(&kept);
        world.node.subscribe(&dropped);
        let mut added = vec![world.push(Vec::new()).header.block_ref()];
        assert_eq!(dropped.0.lock().len(), 1);
        let place = Arc::downgrade(&dropped);
        drop(dropped);
        assert!(place.upgrade().is_none(), "the node does not hold it");
        added.push(world.push(Vec::new()).header.block_ref());
        let change = |block| HeadChange { removed: Vec::new(), added: vec![block] };
        assert_eq!(*kept.0.lock(), added.into_iter().map(change).collect::<Vec<_>>());
    }

    // Part of the layout on the disk: see docs/storage.md.
    #[test]
    fn keeps_the_encoding_of_the_chain_id() {
        let backend = World::new().backend;
        let record = Record { key: Vec::new(), value: vec![0, 0, 0, 0, 0, 0, 0, 1] };
        assert_eq!(backend.records(RecordKind::ChainId).unwrap(), [record]);
    }

    #[test]
    fn dropping_a_node_drops_its_backend() {
        let World { node, backend, .. } = World::new();
        let chain = Arc::downgrade(&backend);
        drop((node, backend));
        assert!(chain.upgrade().is_none());
        // The pool no longer follows the chain.
        let world = World::new();
        let pool = Arc::downgrade(world.node.pool());
        drop(world.node);
        assert!(pool.upgrade().is_none());
        crate::test_chain::push(&*world.backend, Vec::new(), account(1, 0, 1, &[]));
    }
}
