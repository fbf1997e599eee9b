//! Execution of blocks before the backend has stored their ancestors.

use crate::import_error::ImportError;
use crate::importer::BlockImporter;
use crate::prepared::PreparedBlock;
use node_core::backend::{BackendError, LayeredView, StateCache, View};
use node_core::block::{BlockHashOrNumber, ExecutedBlock};
use node_core::context::Context;
use std::sync::Arc;

/// Executes consecutive blocks while another thread appends them to the backend, in the same order.
pub(crate) struct Ahead<'a> {
    importer: &'a BlockImporter,
    /// The executed blocks that the backend may not have yet, oldest first.
    blocks: Vec<ExecutedBlock>,
    cache: Arc<StateCache>,
}

/// The result of [`Ahead::execute`].
pub(crate) enum Next {
    /// The block was executed and has to be appended. Its state root has not been checked.
    Executed(ExecutedBlock),
    /// The block is not the next one of the chain. It has to be imported after all earlier blocks have been stored.
    Apart(Box<PreparedBlock>),
}

impl<'a> Ahead<'a> {
    pub(crate) fn new(importer: &'a BlockImporter) -> Self {
        Self { importer, blocks: Vec::new(), cache: Arc::default() }
    }

    /// Validates and executes `block` if it is the next one: a child of the last executed block, or of the head if
    /// the backend has stored all executed blocks.
    pub(crate) fn execute(&mut self, context: &Context, block: PreparedBlock) -> Result<Next, ImportError> {
        context.check()?;
        let base = self.importer.backend().view()?;
        let head = base.head().number;
        self.blocks.retain(|executed| executed.header.header.number > head);
        let view = match LayeredView::new(base, head, self.blocks.clone()) {
            Ok(view) => view.with_cache(Arc::clone(&self.cache)),
            // Something else has changed the head.
            Err(BackendError::NotAChild { .. }) => return Ok(self.set_apart(block)),
            Err(error) => return Err(error.into()),
        };
        let parent_hash = block.header.parent_hash;
        // A child of the head is not canonical, but it may be a side block.
        if view.head().hash != parent_hash || view.side_block(block.hash)?.is_some() {
            return Ok(self.set_apart(block));
        }
        let Some(parent) = view.header(BlockHashOrNumber::Hash(parent_hash))? else {
            return Ok(self.set_apart(block));
        };
        let executed = self.importer.execute(context, &view, &parent, block)?;
        self.cache.advance(executed.header.hash, &executed.changes);
        self.blocks.push(executed.clone());
        Ok(Next::Executed(executed))
    }

    fn set_apart(&mut self, block: PreparedBlock) -> Next {
        self.blocks.clear();
        Next::Apart(Box::new(block))
    }
}
