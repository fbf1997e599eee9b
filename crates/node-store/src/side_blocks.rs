//! Blocks that are not canonical.

use node_core::block::{BlockRef, ExecutedBlock};
use node_types::{BlockNumber, H256};
use rpds::{HashTrieMapSync, RedBlackTreeSetSync};

/// All side blocks, in memory. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SideBlocks {
    blocks: HashTrieMapSync<H256, ExecutedBlock>,
    /// The keys of `blocks` from the lowest block to the highest.
    order: RedBlackTreeSetSync<(BlockNumber, H256)>,
}

impl SideBlocks {
    pub(crate) fn new() -> Self {
        Self { blocks: HashTrieMapSync::new_sync(), order: RedBlackTreeSetSync::new_sync() }
    }

    pub(crate) fn get(&self, hash: H256) -> Option<&ExecutedBlock> {
        self.blocks.get(&hash)
    }

    pub(crate) fn insert(&mut self, block: ExecutedBlock) {
        let BlockRef { number, hash } = block.header.block_ref();
        self.blocks.insert_mut(hash, block);
        self.order.insert_mut((number, hash));
    }

    pub(crate) fn remove(&mut self, block: BlockRef) {
        if self.blocks.remove_mut(&block.hash) {
            self.order.remove_mut(&(block.number, block.hash));
        }
    }

    /// Returns all side blocks, the lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (BlockRef, &ExecutedBlock)> {
        self.order
            .iter()
            .filter_map(|(number, hash)| Some((BlockRef { number: *number, hash: *hash }, self.blocks.get(hash)?)))
    }
}
