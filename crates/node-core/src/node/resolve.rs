//! One view, and the block arguments of a request resolved against it.

use super::{Finality, NodeError};
use crate::backend::{BackendError, View};
use crate::block::{BlockId, BlockRef, Body, SealedHeader};
use node_types::wire::{BlockArgument, BlockTag};
use node_types::{BlockNumber, H256};
use std::sync::Arc;

/// The one view that a request reads through.
pub(super) struct Snapshot {
    pub(super) view: Arc<dyn View>,
    finality: Finality,
}

impl Snapshot {
    pub(super) fn new(view: Arc<dyn View>, finality: Finality) -> Self {
        Self { view, finality }
    }

    /// The newest mined block.
    pub(super) fn latest(&self) -> BlockNumber {
        match self.view.pending() {
            Some(pending) => pending.saturating_sub(1),
            None => self.view.head().number,
        }
    }

    /// The newest mined block, with its hash.
    pub(super) fn mined_head(&self) -> Result<BlockRef, NodeError> {
        let Some(pending) = self.view.pending() else { return Ok(self.view.head()) };
        let number = pending.saturating_sub(1);
        let hash = self.view.canonical_hash(number)?.ok_or(BackendError::UnknownBlock(number))?;
        Ok(BlockRef { number, hash })
    }

    /// The height that `tag` names, which may lie beyond the head. `pending` is `latest` where the view has no pending block.
    pub(super) fn height(&self, tag: BlockTag) -> BlockNumber {
        let latest = self.latest();
        match tag {
            BlockTag::Number(number) => number,
            BlockTag::Earliest => 0,
            BlockTag::Latest => latest,
            BlockTag::Pending => self.view.head().number,
            BlockTag::Safe => latest.saturating_sub(self.finality.safe_depth()),
            BlockTag::Finalized => latest.saturating_sub(self.finality.finalized_depth()),
        }
    }

    /// The height that `tag` names; none beyond the head.
    pub(super) fn known_height(&self, tag: BlockTag) -> Option<BlockNumber> {
        let height = self.height(tag);
        (height <= self.latest() || tag == BlockTag::Pending).then_some(height)
    }

    /// The block that `argument` names, if it is not a height beyond the head. Whether there is a block with a hash is not
    /// looked up.
    pub(super) fn known(&self, argument: BlockArgument) -> Option<BlockId> {
        match tag_or_hash(argument) {
            Ok(tag) => self.known_height(tag).map(BlockId::Number),
            Err(hash) => Some(BlockId::Hash(hash)),
        }
    }

    /// The height of the canonical block that `argument` names; `location` says where the request names it.
    pub(super) fn canonical(&self, argument: BlockArgument, location: &'static str) -> Result<BlockNumber, NodeError> {
        let height = match tag_or_hash(argument) {
            Ok(tag) => self.known_height(tag),
            Err(hash) => self.canonical_height(hash)?,
        };
        height.ok_or(NodeError::BlockNotFound { block: argument, location })
    }

    /// As [`canonical`](Self::canonical), of a block whose state is kept.
    pub(super) fn state(&self, argument: BlockArgument, location: &'static str) -> Result<BlockNumber, NodeError> {
        let block = self.canonical(argument, location)?;
        let earliest = self.view.earliest_state();
        if block < earliest { Err(NodeError::StatePruned { block, earliest, location }) } else { Ok(block) }
    }

    /// The height of the block `hash`; none where it is not canonical.
    pub(super) fn canonical_height(&self, hash: H256) -> Result<Option<BlockNumber>, NodeError> {
        let Some(header) = self.view.header(BlockId::Hash(hash))? else { return Ok(None) };
        let number = header.header.number;
        Ok((self.view.canonical_hash(number)? == Some(hash)).then_some(number))
    }

    /// Whether the block at a height is not mined yet.
    pub(super) fn is_pending(&self, number: BlockNumber) -> bool {
        self.view.pending() == Some(number)
    }

    /// The body of a canonical block.
    pub(super) fn body(&self, number: BlockNumber) -> Result<Arc<Body>, NodeError> {
        Ok(self.view.body(number.into())?.ok_or(BackendError::UnknownBlock(number))?)
    }

    /// The header of a canonical block.
    pub(super) fn header(&self, number: BlockNumber) -> Result<Arc<SealedHeader>, NodeError> {
        Ok(self.view.header(number.into())?.ok_or(BackendError::UnknownBlock(number))?)
    }
}

/// Splits what names a block on the canonical chain from what names it anywhere.
fn tag_or_hash(argument: BlockArgument) -> Result<BlockTag, H256> {
    match argument {
        BlockArgument::Number(number) => Ok(BlockTag::Number(number)),
        BlockArgument::Hash(hash) => Err(hash),
        BlockArgument::Earliest => Ok(BlockTag::Earliest),
        BlockArgument::Latest => Ok(BlockTag::Latest),
        BlockArgument::Pending => Ok(BlockTag::Pending),
        BlockArgument::Safe => Ok(BlockTag::Safe),
        BlockArgument::Finalized => Ok(BlockTag::Finalized),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{LayeredView, StateBackend};
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::child;
    use node_types::wire::BlockArgument::{Earliest, Finalized, Hash, Latest, Number, Pending, Safe};

    #[test]
    fn arguments_name_canonical_blocks() {
        let world = World::new();
        world.grow(70);
        let view = world.backend.view().unwrap();
        let side = child(&*view, 68, 1, Vec::new(), StateChanges::default());
        let side_hash = side.header.hash;
        world.backend.keep_side_block(side).unwrap();
        let view = world.backend.view().unwrap();
        let hash = |number: u64| Hash(view.canonical_hash(number).unwrap().unwrap());
        let pending_block = child(&*view, 70, 0, Vec::new(), StateChanges::default());
        let pending_view: Arc<dyn View> =
            Arc::new(LayeredView::new(view.clone(), 70, vec![pending_block], true).unwrap());

        let behind = Finality::DEVELOPMENT;
        let far_behind = Finality::Behind { safe: 71, finalized: 1_000 };
        let cases = [
            (&view, Finality::Head, Earliest, Some(0)),
            (&view, Finality::Head, Latest, Some(70)),
            (&view, Finality::Head, Safe, Some(70)),
            (&view, Finality::Head, Finalized, Some(70)),
            (&view, Finality::Head, Pending, Some(70)),
            (&view, behind, Latest, Some(70)),
            (&view, behind, Safe, Some(38)),
            (&view, behind, Finalized, Some(6)),
            (&view, far_behind, Safe, Some(0)),
            (&view, far_behind, Finalized, Some(0)),
            (&view, behind, Number(0), Some(0)),
            (&view, behind, Number(70), Some(70)),
            (&view, behind, Number(71), None),
            (&view, behind, Number(u64::MAX), None),
            (&view, behind, hash(0), Some(0)),
            (&view, behind, hash(69), Some(69)),
            (&view, behind, Hash(side_hash), None),
            (&view, behind, Hash(H256::zero()), None),
            (&pending_view, behind, Latest, Some(70)),
            (&pending_view, behind, Pending, Some(71)),
            (&pending_view, behind, Safe, Some(38)),
            (&pending_view, behind, Number(70), Some(70)),
            (&pending_view, behind, Number(71), None),
        ];
        for (view, finality, argument, expected) in cases {
            let snapshot = Snapshot::new(Arc::clone(view), finality);
            let got = snapshot.canonical(argument, "here");
            match (&got, expected) {
                (Ok(number), Some(expected)) if *number == expected => {}
                (Err(NodeError::BlockNotFound { block, location: "here" }), None) if *block == argument => {}
                _ => panic!("{argument} with {finality:?}: {got:?}, expected {expected:?}"),
            }
        }
    }
}
