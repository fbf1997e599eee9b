//! The state that the next block changes.

use crate::backend::{BackendError, LayeredView, StateBackend, StateCache, View};
use crate::block::BlockRef;
use crate::edits::EditableBackend;
use crate::state::StateChanges;
use node_types::H256;
use std::sync::Arc;

/// Maximum number of accounts and slots in the cache, each of about 100 bytes.
const MAX_CACHED: usize = 50_000;

/// Remembers what blocks read from the state, so that what consecutive blocks share is read from the backend once.
#[derive(Default)]
pub(super) struct HeadState {
    cache: Arc<StateCache>,
    /// The block whose state it is; `None` if the state has edits.
    block: Option<H256>,
}

impl HeadState {
    /// Returns the current view. The state of its head is read through the cache, unless it has edits.
    pub(super) fn view(&mut self, backend: &EditableBackend) -> Result<Arc<dyn View>, BackendError> {
        let view = backend.view()?;
        let BlockRef { number, hash } = view.head();
        if backend.has_edits(hash) {
            self.block = None;
            return Ok(view);
        }
        if self.block != Some(hash) || self.cache.count() > MAX_CACHED {
            self.cache.clear();
            self.block = Some(hash);
        }
        Ok(Arc::new(LayeredView::new(view, number, Vec::new())?.with_cache(Arc::clone(&self.cache))))
    }

    /// Notes that `block`, which makes `changes` to the state of the last view, was appended.
    pub(super) fn appended(&mut self, block: H256, changes: &StateChanges) {
        if self.block.is_some() {
            self.cache.advance(changes);
            self.block = Some(block);
        }
    }
}
