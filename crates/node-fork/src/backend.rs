//! A backend of a chain that continues another one.

use crate::base::Base;
use crate::error::storage;
use crate::history::History;
use crate::view::ForkView;
use node_core::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend,
    View,
};
use node_core::block::ExecutedBlock;
use node_core::crypto::SenderRecovery;
use node_types::BlockNumber;
use std::sync::Arc;

/// Wraps the backend of a fork, whose chain begins with the block of its [`Base`], so that its views also show the chain
/// before that block.
///
/// Blocks, transactions, receipts, fees and logs from before the fork are read from the upstream, and verified as far as
/// the [crate] documentation says; states from before are read like the base. Everything else is passed on.
///
/// Before the inner backend stores a block, what was fetched for it is made durable.
pub struct ForkBackend {
    inner: Arc<dyn StateBackend>,
    history: Arc<History>,
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
        let number = base.block().header().number;
        let first = inner.view()?.header(number.into())?.filter(|header| header.hash == base.block().hash());
        let first = first.ok_or(BackendError::UnknownBlock(number))?;
        Ok(Self { inner, history: Arc::new(History::new(base, first, recovery)) })
    }

    /// Returns the state that the chain begins with.
    pub fn base(&self) -> &Base {
        self.history.base()
    }

    /// Makes what was fetched durable, because a block that depends on it is about to be.
    fn sync(&self) -> Result<(), BackendError> {
        self.base().contents().sync().map_err(storage)
    }
}

impl StateBackend for ForkBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        Ok(Arc::new(ForkView { inner: self.inner.view()?, history: Arc::clone(&self.history) }))
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.sync()?;
        self.inner.append_recording(block, writes)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.sync()?;
        self.inner.switch_recording(ancestor, branch, writes)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.sync()?;
        self.inner.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.inner.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.inner.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.inner.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.inner.sync_records()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.inner.write_records(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.inner.records(kind)
    }

    fn caches(&self) -> Vec<CacheUse> {
        let mut caches = self.inner.caches();
        caches.push(self.base().contents().cache_use());
        caches.extend(self.history.caches());
        caches
    }

    fn health(&self) -> BackendHealth {
        self.inner.health()
    }
}
