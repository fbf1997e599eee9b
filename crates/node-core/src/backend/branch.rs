//! Branches off the canonical chain.

use super::{BackendError, LayeredView, View};
use crate::block::{BlockHashOrNumber, ExecutedBlock};
use node_types::{BlockNumber, H256};
use std::sync::Arc;

/// The path from the canonical chain to a block.
pub struct Branch {
    /// Number of the last canonical block on the path.
    pub ancestor: BlockNumber,
    /// The side blocks after it, up to and including the block, ascending; empty if the block is canonical.
    pub blocks: Vec<ExecutedBlock>,
}

impl Branch {
    /// Returns the branch of the block `hash`, or `None` if the block or one of its ancestors is unknown.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn to(view: &dyn View, hash: H256) -> Result<Option<Self>, BackendError> {
        let mut blocks = Vec::new();
        let mut next = hash;
        loop {
            if let Some(ancestor) = canonical_number(view, next)? {
                blocks.reverse();
                return Ok(Some(Self { ancestor, blocks }));
            }
            let Some(block) = view.side_block(next)? else { return Ok(None) };
            next = block.header.header.parent_hash;
            blocks.push(block);
        }
    }

    /// Returns a view in which the branch is canonical.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if the ancestor is unknown, and failures of the backend.
    pub fn view(self, base: Arc<dyn View>) -> Result<Arc<dyn View>, BackendError> {
        if let Some(fork) = base.fork(self.ancestor, &self.blocks)? {
            return Ok(fork);
        }
        if self.blocks.is_empty() {
            return Ok(base);
        }
        Ok(Arc::new(LayeredView::new(base, self.ancestor, self.blocks)?))
    }
}

/// A branch to which blocks are added one at a time.
pub struct GrowingBranch {
    base: Arc<dyn View>,
    ancestor: BlockNumber,
    blocks: Vec<ExecutedBlock>,
    /// The backend's fork with all blocks so far; `None` if the backend does not support forks, in which case layers
    /// are used.
    fork: Option<Arc<dyn View>>,
}

impl GrowingBranch {
    /// Creates an empty branch on top of the block `ancestor` of `base`.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn new(base: Arc<dyn View>, ancestor: BlockNumber) -> Result<Self, BackendError> {
        let fork = base.fork(ancestor, &[])?;
        Ok(Self { base, ancestor, blocks: Vec::new(), fork })
    }

    /// Returns a view whose head is the last block.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if the ancestor is unknown, and failures of the backend.
    pub fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        match &self.fork {
            Some(view) => Ok(view.clone()),
            None => Ok(Arc::new(LayeredView::new(self.base.clone(), self.ancestor, self.blocks.clone())?)),
        }
    }

    /// Adds a block on top of the last one.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn push(&mut self, block: ExecutedBlock) -> Result<(), BackendError> {
        if let Some(view) = &self.fork {
            self.fork = view.fork(view.head().number, std::slice::from_ref(&block))?;
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Returns the blocks of the branch, ascending.
    pub fn into_blocks(self) -> Vec<ExecutedBlock> {
        self.blocks
    }
}

/// Returns the number of the block `hash`, or `None` if it is not canonical.
fn canonical_number(view: &dyn View, hash: H256) -> Result<Option<BlockNumber>, BackendError> {
    let Some(header) = view.header(BlockHashOrNumber::Hash(hash))? else { return Ok(None) };
    let number = header.header.number;
    Ok((view.canonical_hash(number)? == Some(hash)).then_some(number))
}
