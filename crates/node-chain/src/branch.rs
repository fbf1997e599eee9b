//! Branches: how a block hangs on the canonical chain, and which head counts.

use node_core::backend::{BackendError, LayeredView, View};
use node_core::block::{BlockId, ExecutedBlock, SealedHeader};
use node_types::{BlockNumber, H256};
use std::sync::Arc;

/// The way from the canonical chain to a block.
pub(crate) struct Branch {
    /// Where the branch leaves the canonical chain.
    pub(crate) ancestor: BlockNumber,
    /// Side blocks from there up to the block, ascending; none if the block is canonical itself.
    pub(crate) blocks: Vec<ExecutedBlock>,
}

impl Branch {
    /// Finds the way to the block `hash`; none if nothing is known of it, or of one of its ancestors.
    pub(crate) fn to(view: &dyn View, hash: H256) -> Result<Option<Self>, BackendError> {
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
    pub(crate) fn view(self, base: Arc<dyn View>) -> Result<Arc<dyn View>, BackendError> {
        if let Some(fork) = base.fork(self.ancestor, &self.blocks)? {
            return Ok(fork);
        }
        if self.blocks.is_empty() {
            return Ok(base);
        }
        Ok(Arc::new(LayeredView::new(base, self.ancestor, self.blocks, false)?))
    }
}

/// The number of the block `hash`, if it is canonical.
fn canonical_number(view: &dyn View, hash: H256) -> Result<Option<BlockNumber>, BackendError> {
    let Some(header) = view.header(BlockId::Hash(hash))? else { return Ok(None) };
    let number = header.header.number;
    Ok((view.canonical_hash(number)? == Some(hash)).then_some(number))
}

/// Whether the branch that ends in `block` takes the place of the one that ends in `head`.
///
/// Before the merge the heavier one counts (Yellow Paper, section 10). After it a consensus client decides; where none
/// speaks, the longer one counts, and a merged branch before one that is not. On ties the one that was there first.
pub(crate) fn is_preferred(block: &SealedHeader, head: &SealedHeader) -> bool {
    let merged = |header: &SealedHeader| header.header.difficulty.is_zero();
    match (merged(block), merged(head)) {
        (true, true) => block.header.number > head.header.number,
        (false, false) => block.total_difficulty > head.total_difficulty,
        (block_merged, _) => block_merged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::Header;

    #[test]
    fn the_heavier_then_the_longer_branch_counts() {
        // Number, difficulty and total difficulty of the block, then of the head; whether the block is preferred.
        let cases = [
            ((5, 10, 100), (4, 10, 99), true),
            ((5, 10, 100), (4, 10, 100), false),
            ((5, 10, 99), (9, 10, 98), true),
            ((9, 10, 98), (5, 10, 99), false),
            ((6, 0, 100), (5, 0, 100), true),
            ((5, 0, 100), (5, 0, 100), false),
            ((6, 0, 100), (5, 0, 200), true),
            ((6, 0, 100), (9, 10, 200), true),
            ((9, 10, 200), (6, 0, 100), false),
        ];
        let header = |(number, difficulty, total_difficulty): (u64, u64, u64)| SealedHeader {
            hash: H256::zero(),
            header: Header { number, difficulty: difficulty.into(), ..Header::default() },
            total_difficulty: total_difficulty.into(),
            size: 0,
        };
        for (block, head, expected) in cases {
            assert_eq!(is_preferred(&header(block), &header(head)), expected, "{block:?} against {head:?}");
        }
    }
}
