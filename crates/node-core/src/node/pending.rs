//! The pending block: what the head's child would be if it were made of the pool now.

use super::{Node, NodeError};
use crate::assembly::assemble;
use crate::backend::{BackendError, LayeredView, View};
use crate::block::ExecutedBlock;
use crate::context::Context;
use crate::executor::BlockExecution;
use node_types::consensus::Header;
use std::sync::Arc;

/// The pending block as it was last assembled.
#[derive(Clone)]
pub(super) struct CachedPending {
    /// Version of the pool's contents that it was made of.
    pool_version: u64,
    /// What it was made from: names the parent and the second.
    template: Header,
    /// The block.
    block: ExecutedBlock,
}

impl Node {
    /// A view whose head is the pending block. The block is assembled when the head, the pool or the second has changed.
    pub(super) fn pending_view(&self, context: &Context) -> Result<Arc<dyn View>, NodeError> {
        let view = self.backend.view()?;
        let pool_version = self.pool.version();
        let head = view.head().number;
        let parent = view.header(head.into())?.ok_or(BackendError::UnknownBlock(head))?;
        let template = self.next_header.after(&parent);
        // Held while a block is assembled, so that requests that come together do it once.
        let mut cache = self.pending.lock();
        let cached = cache.as_ref().filter(|cached| cached.pool_version == pool_version && cached.template == template);
        let block = match cached {
            Some(cached) => cached.block.clone(),
            None => {
                let block = self.assemble_pending(context, &*view, template.clone())?;
                *cache = Some(CachedPending { pool_version, template, block: block.clone() });
                block
            }
        };
        drop(cache);
        Ok(Arc::new(LayeredView::new(view, head, vec![block])?))
    }

    /// Executes the pool's transactions in a block of `header` on top of the head, best first, as far as they go.
    fn assemble_pending(&self, context: &Context, view: &dyn View, header: Header) -> Result<ExecutedBlock, NodeError> {
        let best = self.pool.best_for(&header);
        let gas_limit = header.gas_limit;
        let fill = |execution: &mut dyn BlockExecution| best.fill(execution, gas_limit);
        Ok(assemble(context, &*self.executor, view, header, Vec::new(), fill)?.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::{FakeExecutor, World};
    use crate::test_chain::{BASE_FEE, BLOCK_TIME, GAS, GAS_LIMIT, account, address, transaction};
    use node_types::consensus::EMPTY_ROOT;
    use node_types::wire::{
        Block, BlockTransactions, GetBlockByNumberInput, GetLogsInput, GetStorageAtInput, Quantity,
    };
    use node_types::{BlockId, BlockNumberOrTag, H256};

    const RICH: u64 = u64::MAX;

    fn pending_block(world: &World) -> Block {
        let input = GetBlockByNumberInput { block_number: BlockNumberOrTag::Pending, transaction_detail: true };
        world.node.get_block_by_number(&Context::unbounded(), input).unwrap().block.unwrap()
    }

    fn hashes(block: &Block) -> Vec<H256> {
        match &block.transactions {
            BlockTransactions::Full(transactions) => {
                transactions.iter().map(|transaction| transaction.hash.0).collect()
            }
            BlockTransactions::Hashes(hashes) => hashes.clone(),
        }
    }

    #[test]
    fn an_empty_pool_gives_an_empty_block() {
        let world = World::new();
        let head = world.change(account(1, 0, RICH, &[(1, 7)]));
        let block = pending_block(&world);
        assert_eq!((block.number, block.hash, block.nonce, block.logs_bloom), (None, None, None, None));
        assert_eq!(block.parent_hash.0, head.header.hash);
        assert_eq!(block.timestamp, Quantity(BLOCK_TIME + 1));
        assert_eq!(block.gas_limit, Quantity(GAS_LIMIT));
        assert_eq!(block.gas_used, Quantity(0));
        assert_eq!(block.base_fee_per_gas, Some(Quantity(BASE_FEE - BASE_FEE / 8)));
        assert_eq!(block.state_root.0, head.header.header.state_root);
        assert_eq!(block.withdrawals, Some(Vec::new()));
        assert_eq!(block.withdrawals_root.map(|root| root.0), Some(EMPTY_ROOT));
        assert_eq!(hashes(&block), []);
    }

    #[test]
    fn the_block_holds_the_pool() {
        let world = World::new();
        world.change(account(1, 0, RICH, &[(1, 7)]));
        world.change(account(2, 0, RICH, &[]));
        world.change(account(3, 0, RICH, &[]));
        let refused = transaction(3, 0, FakeExecutor::REFUSED_TIP);
        let [first, second, third] = [transaction(2, 0, 50), transaction(1, 0, 40), transaction(1, 1, 60)];
        for transaction in [&third, &second, &first, &refused, &transaction(3, 1, 70)] {
            world.send(transaction);
        }
        let block = pending_block(&world);
        assert_eq!(hashes(&block), [first.hash, second.hash, third.hash]);
        assert_eq!(block.gas_used, Quantity(3 * GAS));
        let BlockTransactions::Full(transactions) = &block.transactions else { panic!("{:?}", block.transactions) };
        assert_eq!((transactions[0].block_hash, transactions[0].transaction_index), (None, None));

        // The other operations read through the same block.
        let context = Context::unbounded();
        let logs = GetLogsInput { to_block: Some(BlockNumberOrTag::Pending), ..GetLogsInput::default() };
        let logs = world.node.get_logs(&context, logs).unwrap().logs;
        assert_eq!(logs.iter().map(|log| log.address.0).collect::<Vec<_>>(), [2, 1, 1].map(address));
        for log in &logs {
            assert_eq!((log.block_hash, log.block_number, log.log_index), (None, None, None));
            assert_eq!((log.transaction_hash, log.transaction_index), (None, None));
        }
        let receipts = world.node.get_block_receipts(&context, BlockId::pending()).unwrap().transaction_receipts;
        assert_eq!(receipts.iter().map(|receipt| receipt.gas_used.0).collect::<Vec<_>>(), [GAS; 3]);
        let balance = world.node.get_balance(&context, address(1), BlockId::pending()).unwrap();
        assert_eq!(balance.balance, Quantity(1.into()));
        let nonce = world.node.get_transaction_count(&context, address(1), BlockId::pending()).unwrap();
        assert_eq!(nonce.transaction_count, Quantity(2));
        let slot = GetStorageAtInput {
            address: address(1).into(),
            block_number: BlockId::pending(),
            position: "1".parse().unwrap(),
        };
        assert_eq!(world.node.get_storage_at(&context, slot).unwrap().value.0, 7.into());
        // What is mined does not show it.
        let balance = world.node.get_balance(&context, address(1), BlockId::latest()).unwrap();
        assert_eq!(balance.balance, Quantity(RICH.into()));
    }

    #[test]
    fn it_is_assembled_again_only_when_something_changed() {
        let world = World::new();
        let begun = |expected: usize, after: &str| {
            pending_block(&world);
            assert_eq!(*world.executor.begun.lock(), expected, "after {after}");
        };
        begun(1, "the first request");
        begun(1, "nothing");
        world.change(account(1, 0, RICH, &[]));
        begun(2, "a new head");
        begun(2, "nothing");
        world.send(&transaction(1, 0, 40));
        begun(3, "a new transaction");
        begun(3, "nothing");
    }

    #[test]
    fn time_goes_on() {
        let world = World::new();
        world.grow(1);
        // How far the clock moves in milliseconds, the timestamp of the pending block in seconds, and how many blocks
        // were begun until then.
        let steps =
            [(0, BLOCK_TIME + 1, 1), (1_000 * BLOCK_TIME, BLOCK_TIME + 1, 1), (38_999, 50, 2), (0, 50, 2), (1, 51, 3)];
        for (step, timestamp, begun) in steps {
            world.clock.advance(step);
            assert_eq!(pending_block(&world).timestamp, Quantity(timestamp), "after {step} ms more");
            assert_eq!(*world.executor.begun.lock(), begun, "after {step} ms more");
        }
    }

    #[test]
    fn without_a_system_contract_there_is_no_pending_block() {
        let world = World::new();
        *world.executor.missing.lock() = Some(address(7));
        let error = world.node.get_balance(&Context::unbounded(), address(1), BlockId::pending()).unwrap_err();
        let NodeError::NoPendingBlock { address: missing, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*missing, address(7));
        assert!(error.to_string().contains("0x0000000000000000000000000000000000000007"), "{error}");
        world.node.get_balance(&Context::unbounded(), address(1), BlockId::latest()).unwrap();
    }
}
