//! Blocks and their parts.

use super::resolve::RequestView;
use super::{Field, Node, NodeError};
use crate::backend::BackendError;
use crate::block::{BlockHashOrNumber, Body, SealedHeader};
use crate::context::Context;
use node_types::{BlockId, BlockNumberOrTag, H256};
use std::sync::Arc;
use std::time::Duration;

/// Roughly, the gas used by a block divided by this is the time in nanoseconds to read and serialize the block.
const GAS_PER_NANOSECOND: u64 = 20;

/// Upper bound of that estimate.
const LONGEST_READ: Duration = Duration::from_millis(1);

/// A block of any branch, or the pending block.
#[derive(Clone, Debug)]
pub struct FoundBlock {
    pub header: Arc<SealedHeader>,
    /// Transactions, ommers, withdrawals.
    pub body: Arc<Body>,
    /// Whether this is the pending block, which is assembled from the pool and not sealed.
    pub pending: bool,
}

impl FoundBlock {
    /// Returns the RLP of the block: header, transactions, ommers and withdrawals.
    pub fn encode(&self) -> Vec<u8> {
        self.body.with_header(&self.header.header).encode()
    }

    /// Reads a block, canonical or not.
    pub(super) fn read(
        context: &Context,
        snapshot: &RequestView,
        id: BlockHashOrNumber,
    ) -> Result<Option<Self>, NodeError> {
        let Some(header) = snapshot.view.header(id)? else { return Ok(None) };
        let time = Duration::from_nanos(header.header.gas_used / GAS_PER_NANOSECOND);
        context.check_for(time.min(LONGEST_READ))?;
        let number = header.header.number;
        let body = snapshot.view.body(id)?.ok_or(BackendError::UnknownBlock(number))?;
        Ok(Some(Self { header, body, pending: snapshot.is_pending(number) }))
    }
}

pub(super) fn get_header(
    node: &Node,
    context: &Context,
    block: BlockId,
) -> Result<Option<Arc<SealedHeader>>, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    match snapshot.known(block) {
        Some(id) => Ok(snapshot.view.header(id)?),
        None => Ok(None),
    }
}

pub(super) fn get_block(node: &Node, context: &Context, block: BlockId) -> Result<Option<FoundBlock>, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    match snapshot.known(block) {
        Some(id) => FoundBlock::read(context, &snapshot, id),
        None => Ok(None),
    }
}

pub(super) fn get_block_hash(node: &Node, context: &Context, block: BlockId) -> Result<Option<H256>, NodeError> {
    let snapshot = node.snapshot(context)?;
    match block {
        BlockId::Number(BlockNumberOrTag::Pending) => Ok(None),
        BlockId::Number(block) => {
            let hash = snapshot.known_height(block).map(|number| snapshot.view.canonical_hash(number));
            Ok(hash.transpose()?.flatten())
        }
        BlockId::Hash(hash) => Ok(snapshot.view.header(hash.into())?.map(|_| hash)),
    }
}

pub(super) fn get_body(node: &Node, context: &Context, hash: H256) -> Result<Arc<Body>, NodeError> {
    let unknown = || NodeError::BlockNotFound { block: hash.into(), field: Field::Hash };
    node.snapshot(context)?.view.body(hash.into())?.ok_or_else(unknown)
}

pub(super) fn get_canonical_body(node: &Node, context: &Context, block: BlockId) -> Result<Arc<Body>, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    snapshot.body(snapshot.canonical(block, Field::BlockNumber)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::{child, transaction, word};

    #[test]
    fn finds_blocks_by_number_and_by_hash() {
        let world = World::new();
        let mined = transaction(1, 0, 1);
        let block = world.push(vec![(mined.clone(), Vec::new())]);
        let view = world.backend.view().unwrap();
        let side = child(&*view, 0, 1, Vec::new(), StateChanges::default());
        world.backend.keep_side_block(side.clone()).unwrap();

        let genesis = view.canonical_hash(0).unwrap();
        let cases = [
            (BlockId::earliest(), genesis),
            (BlockId::latest(), Some(block.header.hash)),
            (BlockId::number(1), Some(block.header.hash)),
            (BlockId::number(2), None),
            (BlockId::Hash(block.header.hash), Some(block.header.hash)),
            (BlockId::Hash(side.header.hash), Some(side.header.hash)),
            (BlockId::Hash(word(1)), None),
        ];
        let context = Context::unbounded();
        for (id, expected) in cases {
            let found = world.node.get_block(&context, id).unwrap();
            assert_eq!(found.map(|found| found.header.hash), expected, "{id}");
            let header = world.node.get_header(&context, id).unwrap();
            assert_eq!(header.map(|header| header.hash), expected, "{id}");
        }
        let found = world.node.get_block(&context, BlockId::latest()).unwrap().unwrap();
        assert_eq!(found.body.transactions, [mined]);
        assert!(!found.pending);
    }

    #[test]
    fn finds_bodies_of_known_blocks() {
        let world = World::new();
        let block = world.push(vec![(transaction(1, 0, 1), Vec::new()), (transaction(2, 0, 1), Vec::new())]);
        let (node, context) = (&world.node, Context::unbounded());
        let hash = block.header.hash;
        for id in [BlockId::latest(), BlockId::number(1), BlockId::Hash(hash)] {
            assert_eq!(node.get_canonical_body(&context, id).unwrap(), block.body, "{id}");
        }
        assert_eq!(node.get_body(&context, hash).unwrap(), block.body);
        let unknown = [
            node.get_canonical_body(&context, BlockId::number(2)),
            node.get_canonical_body(&context, BlockId::Hash(word(1))),
            node.get_body(&context, word(1)),
        ];
        for result in unknown {
            assert!(matches!(result, Err(NodeError::BlockNotFound { .. })), "{result:?}");
        }
    }
}
