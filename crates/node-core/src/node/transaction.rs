//! Transactions of the chain and of the pool.

use super::found::FoundTransaction;
use super::{Node, NodeError, assemble};
use crate::context::Context;
use crate::pool::PoolStatus;
use node_types::wire::{
    Data, GetRawTransactionOutput, GetTransactionStatusOutput, Transaction, TransactionOutput, TransactionStatus,
};
use node_types::{BlockId, BlockNumberOrTag, H256};

impl Node {
    /// A transaction by its hash, mined or in the pool; none where it is not known.
    pub fn get_transaction_by_hash(&self, context: &Context, hash: H256) -> Result<TransactionOutput, NodeError> {
        let found = self.find_transaction(context, hash)?;
        Ok(TransactionOutput { transaction: found.as_ref().map(wire_transaction) })
    }

    /// The transaction at a position of the block with a hash; none where there is none.
    pub fn get_transaction_by_block_hash_and_index(
        &self,
        context: &Context,
        hash: H256,
        index: u64,
    ) -> Result<TransactionOutput, NodeError> {
        context.check()?;
        let found = self.find_transaction_at(context, BlockId::Hash(hash), index)?;
        Ok(TransactionOutput { transaction: found.as_ref().map(wire_transaction) })
    }

    /// The transaction at a position of the canonical block of a height; none where there is none.
    pub fn get_transaction_by_block_number_and_index(
        &self,
        context: &Context,
        block: BlockNumberOrTag,
        index: u64,
    ) -> Result<TransactionOutput, NodeError> {
        let found = self.find_transaction_at(context, block.into(), index)?;
        Ok(TransactionOutput { transaction: found.as_ref().map(wire_transaction) })
    }

    /// The encoded, signed transaction, mined or in the pool; none where it is not known.
    pub fn get_raw_transaction(&self, context: &Context, hash: H256) -> Result<GetRawTransactionOutput, NodeError> {
        let found = self.find_transaction(context, hash)?;
        let data = found.map(|found| Data(found.recovered().transaction.encode().into()));
        Ok(GetRawTransactionOutput { data })
    }

    /// Where a transaction is, and why it is nowhere any more.
    pub fn get_transaction_status(
        &self,
        context: &Context,
        hash: H256,
    ) -> Result<GetTransactionStatusOutput, NodeError> {
        let in_pool = self.pool.status(hash);
        let mined = self.snapshot(context)?.view.transaction_position(hash)?.is_some();
        let (status, reason) = match in_pool {
            _ if mined => (TransactionStatus::Mined, None),
            PoolStatus::Pending => (TransactionStatus::Pending, None),
            PoolStatus::Queued => (TransactionStatus::Queued, None),
            PoolStatus::Dropped(reason) => (TransactionStatus::Dropped, Some(reason.to_string())),
            PoolStatus::Unknown => (TransactionStatus::Unknown, None),
        };
        Ok(GetTransactionStatusOutput { status, reason })
    }
}

fn wire_transaction(found: &FoundTransaction) -> Transaction {
    match found {
        FoundTransaction::Mined { block, index } => {
            let place = assemble::Place::of(&block.header, block.pending);
            assemble::mined_transaction(&place, *index, found.recovered())
        }
        FoundTransaction::Pooled(pooled) => assemble::pooled_transaction(&pooled.recovered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::{account, child, transaction, word};

    #[test]
    fn mined_pooled_and_unknown() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let [mined, pending, queued] = [transaction(2, 0, 5), transaction(1, 0, 6), transaction(1, 2, 7)];
        let block = world.push(vec![(transaction(3, 0, 1), Vec::new()), (mined.clone(), Vec::new())]);
        world.send(&pending);
        world.send(&queued);
        let node = &world.node;
        let context = Context::unbounded();
        // Hash; block number and index where it is found, status.
        let cases = [
            (mined.hash, Some(Some((2, 1))), TransactionStatus::Mined),
            (pending.hash, Some(None), TransactionStatus::Pending),
            (queued.hash, Some(None), TransactionStatus::Queued),
            (word(1), None, TransactionStatus::Unknown),
        ];
        for (hash, expected, status) in cases {
            let found = node.get_transaction_by_hash(&context, hash).unwrap().transaction;
            let place = found.as_ref().map(|found| {
                found.block_number.map(|number| number.0).zip(found.transaction_index.map(|index| index.0))
            });
            assert_eq!(place, expected, "{status:?}");
            assert_eq!(found.map(|found| found.hash.0), expected.map(|_| hash), "{status:?}");
            let output = node.get_transaction_status(&context, hash).unwrap();
            assert_eq!((output.status, output.reason), (status, None));
            let raw = node.get_raw_transaction(&context, hash).unwrap().data;
            assert_eq!(raw.map(|raw| node_types::keccak256(raw.0)), expected.map(|_| hash), "{status:?}");
            let receipt = node.get_transaction_receipt(&context, hash).unwrap().transaction_receipt;
            let mined = status == TransactionStatus::Mined;
            assert_eq!(receipt.map(|receipt| receipt.transaction_hash.0), mined.then_some(hash), "{status:?}");
        }
        for (index, expected) in [(1, Some(mined.hash)), (2, None), (u64::MAX, None)] {
            let hash = block.header.hash;
            let by_hash = node.get_transaction_by_block_hash_and_index(&context, hash, index).unwrap();
            let by_number = node.get_transaction_by_block_number_and_index(&context, 2.into(), index).unwrap();
            assert_eq!(by_hash.transaction.as_ref().map(|transaction| transaction.hash.0), expected, "{index}");
            assert_eq!(by_hash, by_number, "{index}");
        }
        let beyond = node.get_transaction_by_block_number_and_index(&context, 3.into(), 0).unwrap();
        assert_eq!(beyond.transaction, None);
    }

    #[test]
    fn a_transaction_of_another_branch_is_not_mined() {
        let world = World::new();
        let reorganized = transaction(1, 0, 5);
        world.push(vec![(reorganized.clone(), Vec::new())]);
        let view = world.backend.view().unwrap();
        world.backend.switch(0, vec![child(&*view, 0, 1, Vec::new(), StateChanges::default())]).unwrap();
        let receipt = world.node.get_transaction_receipt(&Context::unbounded(), reorganized.hash).unwrap();
        assert_eq!(receipt.transaction_receipt, None);
    }
}
