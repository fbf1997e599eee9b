//! Transactions of the chain and of the pool.

use super::block::FoundBlock;
use super::{Node, NodeError};
use crate::backend::{BackendError, View};
use crate::block::{RecoveredTransaction, TransactionPosition};
use crate::context::Context;
use crate::pool::{PoolStatus, PoolTransaction};
use node_types::{Address, BlockId, H256};
use std::sync::Arc;

/// A transaction of a block or of the pool.
#[derive(Clone, Debug)]
pub enum FoundTransaction {
    Mined {
        block: FoundBlock,
        /// Position among the transactions of the block.
        index: usize,
    },
    Pooled(Arc<PoolTransaction>),
}

impl FoundTransaction {
    /// Returns the transaction with its sender.
    pub fn recovered(&self) -> &RecoveredTransaction {
        match self {
            Self::Mined { block, index } => &block.body.transactions[*index],
            Self::Pooled(pooled) => &pooled.recovered,
        }
    }

    fn of_block(block: FoundBlock, index: usize) -> Option<Self> {
        (index < block.body.transactions.len()).then_some(Self::Mined { block, index })
    }
}

/// Where a transaction is: in a block, in the pool, or neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// The transaction is in a canonical block.
    Mined,
    /// The transaction is not mined; its status in the pool.
    Pool(PoolStatus),
}

/// Returns the position of a transaction on the canonical chain, or `None` if no block contains it. `in_pool` is its status
/// in the pool before the view was opened: the chain that this one continues does not have what the pool knows.
pub(super) fn position_of(
    view: &dyn View,
    hash: H256,
    in_pool: &PoolStatus,
) -> Result<Option<TransactionPosition>, BackendError> {
    match in_pool {
        PoolStatus::Unknown => view.transaction_position(hash),
        PoolStatus::Pending | PoolStatus::Queued | PoolStatus::Dropped(_) => view.own_transaction_position(hash),
    }
}

pub(super) fn get_transaction(
    node: &Node,
    context: &Context,
    hash: H256,
) -> Result<Option<FoundTransaction>, NodeError> {
    // The pool is read before the view is opened: a transaction that leaves it in between is in the view.
    let (pooled, in_pool) = node.pool.find(hash);
    let snapshot = node.snapshot(context)?;
    match position_of(&*snapshot.view, hash, &in_pool)? {
        Some(position) => {
            let block = FoundBlock::read(context, &snapshot, position.block.into())?;
            Ok(block.and_then(|block| FoundTransaction::of_block(block, position.index)))
        }
        None => Ok(pooled.map(FoundTransaction::Pooled)),
    }
}

pub(super) fn get_transaction_of(
    node: &Node,
    context: &Context,
    sender: Address,
    nonce: u64,
) -> Result<Option<FoundTransaction>, NodeError> {
    // The pool is read before the view is opened: a transaction that leaves it in between is in the view.
    if let Some(pooled) = node.pool.at(sender, nonce) {
        return Ok(Some(FoundTransaction::Pooled(pooled)));
    }
    let snapshot = node.snapshot(context)?;
    let view = &*snapshot.view;
    let is_used = |block| Ok::<_, NodeError>(view.state(block)?.account(sender)?.unwrap_or_default().nonce > nonce);
    let (mut before, mut after) = (view.earliest_state().max(view.first()), view.head().number);
    if !is_used(after)? {
        return Ok(None);
    }
    if is_used(before)? {
        // If the state before it is not kept, the earliest block is the only one that may have the transaction.
        after = before;
        // Each state before the first block of a fork has to be fetched, and the newest ones are available the longest.
        let mut step = 1;
        while view.is_partial() && before > 0 {
            context.check()?;
            before = before.saturating_sub(step);
            if !is_used(before)? {
                break;
            }
            after = before;
            step *= 2;
        }
    }
    // Otherwise the nonce is used by a block above `before` and at most `after`.
    while after - before > 1 {
        context.check()?;
        let middle = before + (after - before) / 2;
        if is_used(middle)? { after = middle } else { before = middle }
    }
    let Some(block) = FoundBlock::read(context, &snapshot, after.into())? else { return Ok(None) };
    let mut transactions = block.body.transactions.iter();
    let index = transactions.position(|sent| sent.sender == sender && sent.transaction.nonce() == nonce);
    Ok(index.and_then(|index| FoundTransaction::of_block(block, index)))
}

pub(super) fn get_transaction_at(
    node: &Node,
    context: &Context,
    block: BlockId,
    index: u64,
) -> Result<Option<FoundTransaction>, NodeError> {
    context.check()?;
    let Ok(index) = usize::try_from(index) else { return Ok(None) };
    Ok(node.get_block(context, block)?.and_then(|block| FoundTransaction::of_block(block, index)))
}

pub(super) fn get_transaction_status(
    node: &Node,
    context: &Context,
    hash: H256,
) -> Result<TransactionStatus, NodeError> {
    let in_pool = node.pool.status(hash);
    let mined = position_of(&*node.snapshot(context)?.view, hash, &in_pool)?.is_some();
    Ok(if mined { TransactionStatus::Mined } else { TransactionStatus::Pool(in_pool) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::World;
    use crate::state::StateChanges;
    use crate::test_chain::{account, child, transaction, word};

    #[test]
    fn finds_mined_and_pooled_transactions() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let [mined, pending, queued] = [transaction(2, 0, 5), transaction(1, 0, 6), transaction(1, 2, 7)];
        let block = world.push(vec![(transaction(3, 0, 1), Vec::new()), (mined.clone(), Vec::new())]);
        world.send(&pending);
        world.send(&queued);
        let node = &world.node;
        let context = Context::unbounded();
        // Hash; block number and index of a mined one, if it is known at all; status.
        let cases = [
            (mined.hash, Some(Some((2, 1))), TransactionStatus::Mined),
            (pending.hash, Some(None), TransactionStatus::Pool(PoolStatus::Pending)),
            (queued.hash, Some(None), TransactionStatus::Pool(PoolStatus::Queued)),
            (word(1), None, TransactionStatus::Pool(PoolStatus::Unknown)),
        ];
        for (hash, expected, status) in cases {
            let found = node.get_transaction(&context, hash).unwrap();
            let place = found.as_ref().map(|found| match found {
                FoundTransaction::Mined { block, index } => Some((block.header.header.number, *index)),
                FoundTransaction::Pooled(_) => None,
            });
            assert_eq!(place, expected, "{status:?}");
            assert_eq!(found.map(|found| found.recovered().hash), expected.map(|_| hash), "{status:?}");
            let receipt = node.get_receipt(&context, hash).unwrap();
            assert_eq!(receipt.map(|found| found.index), expected.flatten().map(|(_, index)| index), "{status:?}");
            assert_eq!(node.get_transaction_status(&context, hash).unwrap(), status);
        }
        for (index, expected) in [(1, Some(mined.hash)), (2, None), (u64::MAX, None)] {
            for id in [BlockId::Hash(block.header.hash), BlockId::number(2)] {
                let found = node.get_transaction_at(&context, id, index).unwrap();
                assert_eq!(found.map(|found| found.recovered().hash), expected, "{index} of {id}");
            }
        }
        assert!(node.get_transaction_at(&context, BlockId::number(3), 0).unwrap().is_none());
    }

    #[test]
    fn a_transaction_of_another_branch_is_not_mined() {
        let world = World::new();
        let reorganized = transaction(1, 0, 5);
        world.push(vec![(reorganized.clone(), Vec::new())]);
        let view = world.backend.view().unwrap();
        world.backend.switch(0, vec![child(&*view, 0, 1, Vec::new(), StateChanges::default())]).unwrap();
        assert!(world.node.get_receipt(&Context::unbounded(), reorganized.hash).unwrap().is_none());
    }
}
