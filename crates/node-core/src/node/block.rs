//! getBlockByNumber, getBlockByHash, and what counts a block's parts.

use super::found::FoundBlock;
use super::{Node, NodeError, assemble};
use crate::block::Body;
use crate::context::Context;
use node_types::wire::{
    Block, GetBlockByHashInput, GetBlockByHashOutput, GetBlockByNumberInput, GetBlockByNumberOutput, Quantity,
    TransactionCountOutput, UncleCountOutput,
};
use node_types::{BlockId, BlockNumberOrTag, H256};
use std::sync::Arc;

impl Node {
    /// The canonical block of a height; none beyond the head.
    pub fn get_block_by_number(
        &self,
        context: &Context,
        input: GetBlockByNumberInput,
    ) -> Result<GetBlockByNumberOutput, NodeError> {
        let block = self.find_block(context, input.block_number.into())?;
        Ok(GetBlockByNumberOutput { block: block.map(|block| wire_block(&block, input.transaction_detail)) })
    }

    /// The hash of the canonical block of a height; none beyond the head, and of the pending block.
    pub fn block_hash(&self, context: &Context, block: BlockNumberOrTag) -> Result<Option<H256>, NodeError> {
        if block == BlockNumberOrTag::Pending {
            return Ok(None);
        }
        let snapshot = self.snapshot(context)?;
        let hash = snapshot.known_height(block).map(|number| snapshot.view.canonical_hash(number));
        Ok(hash.transpose()?.flatten())
    }

    /// Whether a block has this hash, on any branch.
    pub fn knows_block(&self, context: &Context, hash: H256) -> Result<bool, NodeError> {
        Ok(self.snapshot(context)?.view.header(hash.into())?.is_some())
    }

    /// The block with a hash, on any branch; none where it is not known.
    pub fn get_block_by_hash(
        &self,
        context: &Context,
        input: GetBlockByHashInput,
    ) -> Result<GetBlockByHashOutput, NodeError> {
        let block = self.find_block(context, BlockId::Hash(input.hash.0))?;
        Ok(GetBlockByHashOutput { block: block.map(|block| wire_block(&block, input.transaction_detail)) })
    }

    /// How many transactions the canonical block of a height holds.
    pub fn get_block_transaction_count_by_number(
        &self,
        context: &Context,
        block: BlockId,
    ) -> Result<TransactionCountOutput, NodeError> {
        Ok(transaction_count(&*self.body_by_number(context, block)?))
    }

    /// How many transactions the block with a hash holds.
    pub fn get_block_transaction_count_by_hash(
        &self,
        context: &Context,
        hash: H256,
    ) -> Result<TransactionCountOutput, NodeError> {
        Ok(transaction_count(&*self.body_by_hash(context, hash)?))
    }

    /// How many ommers the canonical block of a height names.
    pub fn get_uncle_count_by_block_number(
        &self,
        context: &Context,
        block: BlockId,
    ) -> Result<UncleCountOutput, NodeError> {
        Ok(uncle_count(&*self.body_by_number(context, block)?))
    }

    /// How many ommers the block with a hash names.
    pub fn get_uncle_count_by_block_hash(&self, context: &Context, hash: H256) -> Result<UncleCountOutput, NodeError> {
        Ok(uncle_count(&*self.body_by_hash(context, hash)?))
    }

    fn body_by_number(&self, context: &Context, block: BlockId) -> Result<Arc<Body>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        snapshot.body(snapshot.canonical(block, "path.BlockNumber")?)
    }

    fn body_by_hash(&self, context: &Context, hash: H256) -> Result<Arc<Body>, NodeError> {
        let unknown = || NodeError::BlockNotFound { block: BlockId::Hash(hash), location: "path.Hash" };
        self.snapshot(context)?.view.body(hash.into())?.ok_or_else(unknown)
    }
}

fn transaction_count(body: &Body) -> TransactionCountOutput {
    TransactionCountOutput { transaction_count: Quantity(body.transactions.len() as u64) }
}

fn uncle_count(body: &Body) -> UncleCountOutput {
    UncleCountOutput { uncle_count: Quantity(body.ommers.len() as u64) }
}

fn wire_block(block: &FoundBlock, full: bool) -> Block {
    assemble::block(&block.header, &block.body, full, block.pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::{child, transaction, word};
    use node_types::BlockNumberOrTag;
    use node_types::wire::{BlockTransactions, Data};

    #[test]
    fn blocks_by_number_and_by_hash() {
        let world = World::new();
        let mined = transaction(1, 0, 1);
        let block = world.push(vec![(mined.clone(), Vec::new())]);
        let view = world.backend.view().unwrap();
        let side = child(&*view, 0, 1, Vec::new(), StateChanges::default());
        world.backend.keep_side_block(side.clone()).unwrap();

        let by_number = |block_number, transaction_detail| {
            let input = GetBlockByNumberInput { block_number, transaction_detail };
            world.node.get_block_by_number(&Context::unbounded(), input).unwrap().block
        };
        let by_hash = |hash: H256, transaction_detail| {
            let input = GetBlockByHashInput { hash: Data(hash), transaction_detail };
            world.node.get_block_by_hash(&Context::unbounded(), input).unwrap().block
        };
        let found = |block: Option<Block>| block.map(|block| block.hash.unwrap().0);
        let genesis = view.canonical_hash(0).unwrap();
        assert_eq!(found(by_number(BlockNumberOrTag::Earliest, false)), genesis);
        assert_eq!(found(by_number(BlockNumberOrTag::Latest, false)), Some(block.header.hash));
        assert_eq!(found(by_number(BlockNumberOrTag::Number(1), true)), Some(block.header.hash));
        assert_eq!(found(by_number(BlockNumberOrTag::Number(2), false)), None);
        assert_eq!(found(by_hash(block.header.hash, false)), Some(block.header.hash));
        assert_eq!(found(by_hash(side.header.hash, false)), Some(side.header.hash));
        assert_eq!(found(by_hash(word(1), false)), None);

        let hashes = by_hash(block.header.hash, false).unwrap().transactions;
        assert_eq!(hashes, BlockTransactions::Hashes(vec![mined.hash]));
        match by_hash(block.header.hash, true).unwrap().transactions {
            BlockTransactions::Full(full) => assert_eq!(full[0].hash.0, mined.hash),
            BlockTransactions::Hashes(hashes) => panic!("{hashes:?}"),
        }
    }

    #[test]
    fn counts() {
        let world = World::new();
        let block = world.push(vec![(transaction(1, 0, 1), Vec::new()), (transaction(2, 0, 1), Vec::new())]);
        let (node, context) = (&world.node, Context::unbounded());
        let hash = block.header.hash;
        for argument in [BlockId::latest(), BlockId::number(1), BlockId::Hash(hash)] {
            let count = node.get_block_transaction_count_by_number(&context, argument).unwrap();
            assert_eq!(count.transaction_count, Quantity(2), "{argument}");
            let count = node.get_uncle_count_by_block_number(&context, argument).unwrap();
            assert_eq!(count.uncle_count, Quantity(0), "{argument}");
        }
        assert_eq!(node.get_block_transaction_count_by_hash(&context, hash).unwrap().transaction_count, Quantity(2));
        assert_eq!(node.get_uncle_count_by_block_hash(&context, hash).unwrap().uncle_count, Quantity(0));
        let unknown = [
            node.get_block_transaction_count_by_number(&context, BlockId::number(2)).map(drop),
            node.get_block_transaction_count_by_hash(&context, word(1)).map(drop),
            node.get_uncle_count_by_block_number(&context, BlockId::number(2)).map(drop),
            node.get_uncle_count_by_block_hash(&context, word(1)).map(drop),
        ];
        for result in unknown {
            assert!(matches!(result, Err(NodeError::BlockNotFound { .. })), "{result:?}");
        }
    }
}
