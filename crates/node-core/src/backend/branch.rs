//! Branches: how a block hangs on the canonical chain.

use super::{BackendError, LayeredView, View};
use crate::block::{BlockHashOrNumber, ExecutedBlock};
use node_types::{BlockNumber, H256};
use std::sync::Arc;

/// The way from the canonical chain to a block.
pub struct Branch {
    /// Where the branch leaves the canonical chain.
    pub ancestor: BlockNumber,
    /// Side blocks from there up to the block, ascending; none if the block is canonical itself.
    pub blocks: Vec<ExecutedBlock>,
}

impl Branch {
    /// Finds the way to the block `hash`; none if nothing is known of it, or of one of its ancestors.
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

    /// A view in which the branch is canonical.
    pub fn view(self, base: Arc<dyn View>) -> Result<Arc<dyn View>, BackendError> {
        if let Some(fork) = base.fork(self.ancestor, &self.blocks)? {
            return Ok(fork);
        }
        if self.blocks.is_empty() {
            return Ok(base);
        }
        Ok(Arc::new(LayeredView::new(base, self.ancestor, self.blocks, false)?))
    }
}

/// A branch that grows from block to block.
pub struct GrowingBranch {
    base: Arc<dyn View>,
    ancestor: BlockNumber,
    blocks: Vec<ExecutedBlock>,
    /// Where the backend forks it goes on from block to block; over another one all blocks are looked through each time.
    fork: Option<Arc<dyn View>>,
}

impl GrowingBranch {
    /// A branch without blocks, which leaves the chain of `base` behind its block `ancestor`.
    pub fn new(base: Arc<dyn View>, ancestor: BlockNumber) -> Result<Self, BackendError> {
        let fork = base.fork(ancestor, &[])?;
        Ok(Self { base, ancestor, blocks: Vec::new(), fork })
    }

    /// A view whose head is the last block.
    pub fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        match &self.fork {
            Some(view) => Ok(view.clone()),
            None => Ok(Arc::new(LayeredView::new(self.base.clone(), self.ancestor, self.blocks.clone(), false)?)),
        }
    }

    /// Puts a block on top of the last one.
    pub fn push(&mut self, block: ExecutedBlock) -> Result<(), BackendError> {
        if let Some(view) = &self.fork {
            self.fork = view.fork(view.head().number, std::slice::from_ref(&block))?;
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Its blocks, ascending.
    pub fn into_blocks(self) -> Vec<ExecutedBlock> {
        self.blocks
    }
}

/// The number of the block `hash`, if it is canonical.
fn canonical_number(view: &dyn View, hash: H256) -> Result<Option<BlockNumber>, BackendError> {
    let Some(header) = view.header(BlockHashOrNumber::Hash(hash))? else { return Ok(None) };
    let number = header.header.number;
    Ok((view.canonical_hash(number)? == Some(hash)).then_some(number))
}
