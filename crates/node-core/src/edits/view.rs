//! Views with an edited state.

use super::record::state_edits;
use crate::backend::{AccountProof, BackendError, FeeRow, LogFilter, StateBackend, StateView, View, has_storage_after};
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Returns `view` with the state on which `block` was executed: the state of its parent with the edits that the block
/// includes.
pub fn as_edited(
    backend: &dyn StateBackend,
    view: Arc<dyn View>,
    block: BlockRef,
) -> Result<Arc<dyn View>, BackendError> {
    let (Some(parent), Some(changes)) = (block.number.checked_sub(1), state_edits(backend, block)?) else {
        return Ok(view);
    };
    Ok(Arc::new(EditedView { base: view, edited: parent, changes: Arc::new(changes) }))
}

/// A view with edits of the state of one block. All else is that of the base.
pub(super) struct EditedView {
    base: Arc<dyn View>,
    edited: BlockNumber,
    changes: Arc<StateChanges>,
}

impl EditedView {
    /// Applies `changes` to the state of the head of `base`.
    pub(super) fn new(base: Arc<dyn View>, changes: Arc<StateChanges>) -> Self {
        Self { edited: base.head().number, base, changes }
    }
}

impl View for EditedView {
    fn head(&self) -> BlockRef {
        self.base.head()
    }

    fn earliest_state(&self) -> BlockNumber {
        self.base.earliest_state()
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        let base = self.base.state(at)?;
        Ok(if at == self.edited { Box::new(EditedState { base, changes: &self.changes, at }) } else { base })
    }

    /// `None` above the edited block: the base's fork would not contain the edits.
    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        if ancestor >= self.edited { Ok(None) } else { self.base.fork(ancestor, branch) }
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        self.base.header(id)
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        self.base.body(id)
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        self.base.receipts(id)
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        self.base.canonical_hash(number)
    }

    fn logs(&self, number: BlockNumber) -> Result<Option<Arc<BlockLogs>>, BackendError> {
        self.base.logs(number)
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        self.base.side_block(hash)
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        self.base.changes(number)
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.base.transaction_position(hash)
    }

    fn log_candidates(
        &self,
        context: &Context,
        filter: &LogFilter,
        from: LogPosition,
        to: BlockNumber,
        limit: usize,
    ) -> Result<Vec<LogPosition>, BackendError> {
        self.base.log_candidates(context, filter, from, to, limit)
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        self.base.fee_rows(range)
    }
}

/// The state as of block `at` with edits.
struct EditedState<'a> {
    base: Box<dyn StateView + 'a>,
    changes: &'a StateChanges,
    at: BlockNumber,
}

impl StateView for EditedState<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        match self.changes.accounts.get(&address) {
            Some(change) => Ok(change.account),
            None => self.base.account(address),
        }
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        match self.changes.accounts.get(&address).and_then(|change| change.slot(slot)) {
            Some(value) => Ok(value),
            None => self.base.storage(address, slot),
        }
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        match self.changes.accounts.get(&address) {
            Some(change) => has_storage_after(&*self.base, address, change),
            None => self.base.has_storage(address),
        }
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        match self.changes.code.get(&hash) {
            Some(code) => Ok(Some(code.clone())),
            None => self.base.code(hash),
        }
    }

    /// [`BackendError::Uncommitted`] for an account that was edited: the header commits to it as it was before.
    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        if self.changes.accounts.contains_key(&address) {
            return Err(BackendError::Uncommitted(self.at));
        }
        self.base.proof(address, slots)
    }

    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        let mut merged = self.changes.clone();
        merged.merge(changes);
        self.base.root_after(&merged)
    }
}
