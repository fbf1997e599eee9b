//! A backend of a chain that continues another one.

use crate::base::Base;
use crate::error::storage;
use crate::history::History;
use crate::view::ForkView;
use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend,
    View,
};
use node_core::block::{BlockRef, ExecutedBlock};
use node_core::crypto::SenderRecovery;
use node_types::BlockNumber;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;

/// Wraps the backend of a fork, whose chain begins with the block of its [`Base`], so that its views also show the chain
/// before that block.
///
/// Blocks, transactions, receipts, fees and logs from before the fork are read from the upstream, and verified as far as
/// the [crate] documentation says; states from before are read like the base. Everything else is passed on.
///
/// Before the inner backend stores a block, what was fetched for it is made durable.
pub struct ForkBackend {
    forked: RwLock<Arc<Forked>>,
    recovery: Arc<dyn SenderRecovery>,
    listeners: Mutex<Vec<Arc<dyn HeadListener>>>,
}

/// The chain of a fork, and the chain that it continues.
struct Forked {
    inner: Arc<dyn StateBackend>,
    history: Arc<History>,
}

impl Forked {
    fn open(inner: Arc<dyn StateBackend>, base: Base, recovery: Arc<dyn SenderRecovery>) -> Result<Self, BackendError> {
        let number = base.block().header().number;
        let first = inner.view()?.header(number.into())?.filter(|header| header.hash == base.block().hash());
        let first = first.ok_or(BackendError::UnknownBlock(number))?;
        Ok(Self { inner, history: Arc::new(History::new(base, first, recovery)) })
    }

    /// Makes what was fetched durable, because a block that depends on it is about to be.
    fn sync(&self) -> Result<(), BackendError> {
        self.history.base().contents().sync().map_err(storage)
    }
}

impl ForkBackend {
    /// Wraps `inner`, whose first block must be that of `base`. `recovery` recovers the senders of transactions from
    /// before the fork.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if `inner` does not have the block, and failures of the backend.
    pub fn open(
        inner: Arc<dyn StateBackend>,
        base: Base,
        recovery: Arc<dyn SenderRecovery>,
    ) -> Result<Self, BackendError> {
        let forked = RwLock::new(Arc::new(Forked::open(inner, base, Arc::clone(&recovery))?));
        Ok(Self { forked, recovery, listeners: Mutex::default() })
    }

    /// Returns the state that the chain begins with.
    pub fn base(&self) -> Base {
        self.forked().history.base().clone()
    }

    /// Replaces the chain by that of `inner`, whose first block is that of `base`. Listeners are told that all blocks left
    /// the chain and the others joined it; records are those of `inner`. Nothing else may change the chain meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::open`]; nothing has changed then.
    pub fn replace(&self, inner: Arc<dyn StateBackend>, base: Base) -> Result<(), BackendError> {
        let new = Forked::open(inner, base, Arc::clone(&self.recovery))?;
        let listeners = self.listeners.lock();
        let change = HeadChange { removed: blocks(&self.forked())?.rev().collect(), added: blocks(&new)?.collect() };
        listeners.iter().for_each(|listener| new.inner.subscribe(Arc::clone(listener)));
        *self.forked.write() = Arc::new(new);
        listeners.iter().for_each(|listener| listener.head_changed(&change));
        Ok(())
    }

    fn forked(&self) -> Arc<Forked> {
        Arc::clone(&self.forked.read())
    }
}

/// Returns the blocks of a fork, ascending.
fn blocks(forked: &Forked) -> Result<impl DoubleEndedIterator<Item = BlockRef> + use<>, BackendError> {
    let view = forked.inner.view()?;
    let block = |number| {
        let hash = view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
        Ok(BlockRef { number, hash })
    };
    let blocks = (forked.history.end()..=view.head().number).map(block).collect::<Result<Vec<_>, BackendError>>()?;
    Ok(blocks.into_iter())
}

impl StateBackend for ForkBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        let forked = self.forked();
        Ok(Arc::new(ForkView { inner: forked.inner.view()?, history: Arc::clone(&forked.history) }))
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        let forked = self.forked();
        forked.sync()?;
        forked.inner.append_recording(block, writes)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        let forked = self.forked();
        forked.sync()?;
        forked.inner.switch_recording(ancestor, branch, writes)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        let forked = self.forked();
        forked.sync()?;
        forked.inner.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        let mut listeners = self.listeners.lock();
        self.forked().inner.subscribe(Arc::clone(&listener));
        listeners.push(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.forked().inner.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.forked().inner.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.forked().inner.sync_records()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.forked().inner.write_records(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.forked().inner.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.forked().inner.records(kind)
    }

    fn caches(&self) -> Vec<CacheUse> {
        let forked = self.forked();
        let mut caches = forked.inner.caches();
        caches.push(forked.history.base().contents().cache_use());
        caches.extend(forked.history.caches());
        caches
    }

    fn health(&self) -> BackendHealth {
        self.forked().inner.health()
    }
}
