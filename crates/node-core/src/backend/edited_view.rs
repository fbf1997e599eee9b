//! A state that was edited.

use super::edits::state_edits;
use super::{AccountProof, BackendError, FeeRow, LogFilter, StateBackend, View};
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// `view`, in which the state as of the parent of `block` is what the block began with: edited, if it was by hand before
/// the block was made.
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

/// A view in which changes that no transaction made lie over the state as of one block. The blocks and all other states
/// are those of the base.
pub(super) struct EditedView {
    base: Arc<dyn View>,
    edited: BlockNumber,
    changes: Arc<StateChanges>,
}

impl EditedView {
    /// Lays `changes` over the state as of the head of `base`.
    pub(super) fn new(base: Arc<dyn View>, changes: Arc<StateChanges>) -> Self {
        Self { edited: base.head().number, base, changes }
    }

    /// The changes that the state as of block `at` has.
    fn changes_at(&self, at: BlockNumber) -> Option<&StateChanges> {
        (at == self.edited).then_some(&*self.changes)
    }
}

impl View for EditedView {
    fn head(&self) -> BlockRef {
        self.base.head()
    }

    fn earliest_state(&self) -> BlockNumber {
        self.base.earliest_state()
    }

    fn pending(&self) -> Option<BlockNumber> {
        self.base.pending()
    }

    /// What follows the edited state would have to know of the edits.
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

    fn account(&self, address: Address, at: BlockNumber) -> Result<Option<AccountState>, BackendError> {
        match self.changes_at(at).and_then(|changes| changes.accounts.get(&address)) {
            Some(change) => Ok(change.account),
            None => self.base.account(address, at),
        }
    }

    fn storage(&self, address: Address, slot: H256, at: BlockNumber) -> Result<U256, BackendError> {
        let change = self.changes_at(at).and_then(|changes| changes.accounts.get(&address));
        match change.and_then(|change| change.slot(slot)) {
            Some(value) => Ok(value),
            None => self.base.storage(address, slot, at),
        }
    }

    fn has_storage(&self, address: Address, at: BlockNumber) -> Result<bool, BackendError> {
        match self.changes_at(at).and_then(|changes| changes.accounts.get(&address)) {
            Some(change) => self.base.has_storage_after(address, at, change),
            None => self.base.has_storage(address, at),
        }
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        match self.changes.code.get(&hash) {
            Some(code) => Ok(Some(code.clone())),
            None => self.base.code(hash),
        }
    }

    /// For an account that was edited, [`BackendError::Edited`]: no header commits to it as it is.
    fn proof(&self, address: Address, slots: &[H256], at: BlockNumber) -> Result<AccountProof, BackendError> {
        if self.changes_at(at).is_some_and(|changes| changes.accounts.contains_key(&address)) {
            return Err(BackendError::Edited(at));
        }
        self.base.proof(address, slots, at)
    }

    fn state_root(&self, at: BlockNumber, changes: &StateChanges) -> Result<H256, BackendError> {
        match self.changes_at(at) {
            Some(edits) => {
                let mut merged = edits.clone();
                merged.merge(changes);
                self.base.state_root(at, &merged)
            }
            None => self.base.state_root(at, changes),
        }
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
