//! The view that a request reads from, and the resolution of block ids in it, including `safe` and `finalized`, which
//! are derived from the head because there is no consensus client.

use super::{Field, NodeError};
use crate::backend::{BackendError, View};
use crate::block::{BlockHashOrNumber, BlockRef, Body, SealedHeader};
use node_types::{BlockId, BlockNumber, BlockNumberOrTag, H256};
use std::sync::Arc;

/// The view that a request reads from.
pub(super) struct RequestView {
    pub(super) view: Arc<dyn View>,
    finality: Finality,
    /// Whether the view's head is the pending block.
    pending: bool,
}

impl RequestView {
    pub(super) fn new(view: Arc<dyn View>, finality: Finality) -> Self {
        Self { view, finality, pending: false }
    }

    /// Returns a snapshot of a view whose head is the pending block.
    pub(super) fn with_pending(view: Arc<dyn View>, finality: Finality) -> Self {
        Self { view, finality, pending: true }
    }

    /// Returns the number of the newest mined block.
    pub(super) fn latest(&self) -> BlockNumber {
        let head = self.view.head().number;
        if self.pending { head.saturating_sub(1) } else { head }
    }

    /// Returns the newest mined block with its hash.
    pub(super) fn mined_head(&self) -> Result<BlockRef, NodeError> {
        if !self.pending {
            return Ok(self.view.head());
        }
        let number = self.latest();
        let hash = self.view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
        Ok(BlockRef { number, hash })
    }

    /// Returns the height of `tag`, which may be above the head. `pending` is `latest` if the view has no pending
    /// block.
    pub(super) fn height(&self, tag: BlockNumberOrTag) -> BlockNumber {
        let latest = self.latest();
        match tag {
            BlockNumberOrTag::Number(number) => number,
            BlockNumberOrTag::Earliest => 0,
            BlockNumberOrTag::Latest => latest,
            BlockNumberOrTag::Pending => self.view.head().number,
            BlockNumberOrTag::Safe => latest.saturating_sub(self.finality.safe_depth()),
            BlockNumberOrTag::Finalized => latest.saturating_sub(self.finality.finalized_depth()),
        }
    }

    /// Returns the height of `tag`, or `None` if it is above the head.
    pub(super) fn known_height(&self, tag: BlockNumberOrTag) -> Option<BlockNumber> {
        let height = self.height(tag);
        (height <= self.latest() || tag == BlockNumberOrTag::Pending).then_some(height)
    }

    /// Resolves a tag to a number, or `None` if that is above the head. A hash is returned without looking it up.
    pub(super) fn known(&self, id: BlockId) -> Option<BlockHashOrNumber> {
        match id {
            BlockId::Number(tag) => self.known_height(tag).map(BlockHashOrNumber::Number),
            BlockId::Hash(hash) => Some(BlockHashOrNumber::Hash(hash)),
        }
    }

    /// Returns the height of a canonical block.
    ///
    /// # Errors
    /// [`NodeError::BlockNotFound`] with `field` if no canonical block has this id.
    pub(super) fn canonical(&self, id: BlockId, field: Field) -> Result<BlockNumber, NodeError> {
        let height = match id {
            BlockId::Number(tag) => self.known_height(tag),
            BlockId::Hash(hash) => self.canonical_height(hash)?,
        };
        height.ok_or(NodeError::BlockNotFound { block: id, field })
    }

    /// Returns the height of a canonical block whose state is kept.
    ///
    /// # Errors
    /// Those of [`canonical`](Self::canonical), and [`NodeError::StatePruned`] if the state is not kept.
    pub(super) fn state(&self, id: BlockId, field: Field) -> Result<BlockNumber, NodeError> {
        let block = self.canonical(id, field)?;
        let earliest = self.view.earliest_state();
        if block < earliest { Err(NodeError::StatePruned { block, earliest, field }) } else { Ok(block) }
    }

    /// Returns the height of the block with this hash, or `None` if it is not canonical.
    pub(super) fn canonical_height(&self, hash: H256) -> Result<Option<BlockNumber>, NodeError> {
        let Some(header) = self.view.header(BlockHashOrNumber::Hash(hash))? else { return Ok(None) };
        let number = header.header.number;
        Ok((self.view.canonical_hash(number)? == Some(hash)).then_some(number))
    }

    /// Returns whether the block with this number is the pending one.
    pub(super) fn is_pending(&self, number: BlockNumber) -> bool {
        self.pending && number == self.view.head().number
    }

    /// Returns the body of a canonical block.
    pub(super) fn body(&self, number: BlockNumber) -> Result<Arc<Body>, NodeError> {
        Ok(self.view.body(number.into())?.ok_or(BackendError::UnknownBlock(number))?)
    }

    /// Returns the header of a canonical block.
    pub(super) fn header(&self, number: BlockNumber) -> Result<Arc<SealedHeader>, NodeError> {
        Ok(self.view.header(number.into())?.ok_or(BackendError::UnknownBlock(number))?)
    }
}

/// Which blocks count as safe and finalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// Both are the head, as on an imported chain.
    Head,
    /// They are a fixed number of blocks below the head, as on a chain that the node produces itself.
    Fixed {
        /// Number of blocks that the safe block is below the head.
        safe: u64,
        /// Number of blocks that the finalized block is below the head.
        finalized: u64,
    },
}

impl Finality {
    /// The setting for development chains: one epoch of 32 slots until a block is safe, two until it is final.
    pub const DEVELOPMENT: Self = Self::Fixed { safe: 32, finalized: 64 };

    /// Returns the number of blocks that the safe block is below the head. On a shorter chain it is the genesis
    /// block.
    fn safe_depth(self) -> u64 {
        match self {
            Self::Head => 0,
            Self::Fixed { safe, .. } => safe,
        }
    }

    /// Returns the number of blocks that the finalized block is below the head. On a shorter chain it is the genesis
    /// block.
    fn finalized_depth(self) -> u64 {
        match self {
            Self::Head => 0,
            Self::Fixed { finalized, .. } => finalized,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{LayeredView, StateBackend};
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::child;
    use node_types::BlockNumberOrTag::{Earliest, Finalized, Latest, Number, Pending, Safe};

    #[test]
    fn resolves_ids_to_canonical_blocks() {
        let world = World::new();
        world.grow(70);
        let view = world.backend.view().unwrap();
        let side = child(&*view, 68, 1, Vec::new(), StateChanges::default());
        let side_hash = side.header.hash;
        world.backend.keep_side_block(side).unwrap();
        let view = world.backend.view().unwrap();
        let hash = |number: u64| BlockId::Hash(view.canonical_hash(number).unwrap().unwrap());
        let pending_block = child(&*view, 70, 0, Vec::new(), StateChanges::default());
        let pending_view: Arc<dyn View> = Arc::new(LayeredView::new(view.clone(), 70, vec![pending_block]).unwrap());

        let development = Finality::DEVELOPMENT;
        let far = Finality::Fixed { safe: 71, finalized: 1_000 };
        let cases = [
            (&view, Finality::Head, Earliest.into(), Some(0)),
            (&view, Finality::Head, Latest.into(), Some(70)),
            (&view, Finality::Head, Safe.into(), Some(70)),
            (&view, Finality::Head, Finalized.into(), Some(70)),
            (&view, Finality::Head, Pending.into(), Some(70)),
            (&view, development, Latest.into(), Some(70)),
            (&view, development, Safe.into(), Some(38)),
            (&view, development, Finalized.into(), Some(6)),
            (&view, far, Safe.into(), Some(0)),
            (&view, far, Finalized.into(), Some(0)),
            (&view, development, Number(0).into(), Some(0)),
            (&view, development, Number(70).into(), Some(70)),
            (&view, development, Number(71).into(), None),
            (&view, development, Number(u64::MAX).into(), None),
            (&view, development, hash(0), Some(0)),
            (&view, development, hash(69), Some(69)),
            (&view, development, BlockId::Hash(side_hash), None),
            (&view, development, BlockId::Hash(H256::zero()), None),
            (&pending_view, development, Latest.into(), Some(70)),
            (&pending_view, development, Pending.into(), Some(71)),
            (&pending_view, development, Safe.into(), Some(38)),
            (&pending_view, development, Number(70).into(), Some(70)),
            (&pending_view, development, Number(71).into(), None),
        ];
        for (view, finality, argument, expected) in cases {
            let mut snapshot = RequestView::new(Arc::clone(view), finality);
            snapshot.pending = view.head().number == 71;
            let got = snapshot.canonical(argument, Field::BlockNumber);
            match (&got, expected) {
                (Ok(number), Some(expected)) if *number == expected => {}
                (Err(NodeError::BlockNotFound { block, field: Field::BlockNumber }), None) if *block == argument => {}
                _ => panic!("{argument} with {finality:?}: {got:?}, expected {expected:?}"),
            }
        }
    }
}
