//! Cached parts of the head's state that the next block needs.

use crate::error::StoreError;
use crate::rows::Rows;
use crate::state::{self, Before, ChangedParts, NewState, StateParts};
use node_core::backend::CacheUse;
use node_core::block::BlockRef;
use node_core::state::StateChanges;
use node_types::H256;

/// Parts of the head's state, and the next state if its root has already been requested.
///
/// When this node produces a block, the block is appended right after its state root was requested for its header.
/// This way, its tries are computed only once.
pub(crate) struct NextState {
    /// The block to whose state the content belongs. The content is useless if that block is no longer the head.
    /// `None` before the first block.
    head: Option<H256>,
    parts: StateParts,
    prepared: Option<(StateChanges, NewState)>,
}

impl NextState {
    /// Returns an empty cache of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { head: None, parts: StateParts::new(bytes), prepared: None }
    }

    pub(crate) fn usage(&self) -> [CacheUse; 2] {
        self.parts.usage()
    }

    /// Returns the root of the state after applying `changes` to that of `head`, or `None` if the content is not that
    /// of `head`.
    pub(super) fn prepare(
        &mut self,
        rows: &Rows,
        head: BlockRef,
        changes: &StateChanges,
    ) -> Result<Option<H256>, StoreError> {
        if self.head != Some(head.hash) {
            return Ok(None);
        }
        let new = state::apply(rows, Some(&mut self.parts), Before::Block(head.number), head.number + 1, changes)?;
        let root = new.root;
        self.prepared = Some((changes.clone(), new));
        Ok(Some(root))
    }

    /// Returns the state after applying `changes` to that of `head`, whose rows are `rows`.
    pub(super) fn after(
        &mut self,
        rows: &Rows,
        head: BlockRef,
        changes: &StateChanges,
    ) -> Result<NewState, StoreError> {
        if self.head != Some(head.hash) {
            self.parts.clear();
            (self.head, self.prepared) = (Some(head.hash), None);
        }
        match self.prepared.take() {
            Some((prepared, new)) if prepared == *changes => Ok(new),
            _ => state::apply(rows, Some(&mut self.parts), Before::Block(head.number), head.number + 1, changes),
        }
    }

    /// Records that `head` was appended and what it changed.
    pub(super) fn appended(&mut self, head: H256, changed: ChangedParts) {
        self.head = Some(head);
        self.parts.advance(changed);
    }
}
