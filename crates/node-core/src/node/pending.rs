//! The pending block: the child of the head with the best transactions of the pool.

use super::{Node, NodeError};
use crate::backend::{BackendError, LayeredView, View};
use crate::block::ExecutedBlock;
use crate::context::Context;
use crate::packing::Packer;
use node_types::consensus::Header;
use std::sync::Arc;

/// The most recently assembled pending block.
#[derive(Clone)]
pub(super) struct CachedPending {
    /// Version of the pool's contents.
    pool_version: u64,
    /// The header before execution, with parent and timestamp.
    template: Header,
    block: ExecutedBlock,
}

impl Node {
    /// Returns a view whose head is the pending block, which is assembled again if the head, the pool or the timestamp
    /// has changed.
    pub(super) fn pending_view(&self, context: &Context) -> Result<Arc<dyn View>, NodeError> {
        let view = context.view_or(|| self.backend.view())?;
        let pool_version = self.pool.version();
        let head = view.head().number;
        let parent = view.header(head.into())?.ok_or(BackendError::UnknownBlock(head))?;
        let template = self.next_header.after(&parent);
        // Held while a block is assembled, so that concurrent requests assemble it only once.
        let mut cache = context.lock(&self.pending)?;
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

    /// Executes the transactions of the pool, best first, in a block on top of the head until the block is full.
    fn assemble_pending(&self, context: &Context, view: &dyn View, header: Header) -> Result<ExecutedBlock, NodeError> {
        let best = self.pool.best_for(&header);
        let known_obstacle = self.producer.as_ref().and_then(|producer| producer.known_obstacle());
        let packer = Packer { known_obstacle, ..self.packer(context, view, &header) };
        Ok(packer.pack(&[], best)?.assembled.block)
    }

    /// Returns what assembles a block of the pool's transactions.
    pub(super) fn packer<'a>(&'a self, context: &'a Context, view: &'a dyn View, header: &'a Header) -> Packer<'a> {
        Packer { context, executor: &*self.executor, view, header, pool: &self.pool, known_obstacle: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FoundBlock;
    use crate::node::logs::{BlockRange, LogBlocks, LogQuery};
    use crate::node::testing::{FakeExecutor, World};
    use crate::test_chain::{BASE_FEE, BLOCK_TIME, GAS, GAS_LIMIT, account, address, transaction};
    use node_types::consensus::EMPTY_ROOT;
    use node_types::{BlockId, BlockNumberOrTag, H256};

    const RICH: u64 = u64::MAX;

    fn pending_block(world: &World) -> FoundBlock {
        world.node.get_block(&Context::unbounded(), BlockId::pending()).unwrap().unwrap()
    }

    fn hashes(block: &FoundBlock) -> Vec<H256> {
        block.body.transactions.iter().map(|transaction| transaction.hash).collect()
    }

    #[test]
    fn an_empty_pool_makes_an_empty_block() {
        let world = World::new();
        let head = world.change(account(1, 0, RICH, &[(1, 7)]));
        let block = pending_block(&world);
        assert!(block.pending);
        let header = &block.header.header;
        assert_eq!(header.parent_hash, head.header.hash);
        assert_eq!(header.timestamp, BLOCK_TIME + 1);
        assert_eq!((header.gas_limit, header.gas_used), (GAS_LIMIT, 0));
        assert_eq!(header.base_fee_per_gas, Some(BASE_FEE - BASE_FEE / 8));
        assert_eq!(header.state_root, head.header.header.state_root);
        assert_eq!(block.body.withdrawals, Some(Vec::new()));
        assert_eq!(header.withdrawals_root, Some(EMPTY_ROOT));
        assert_eq!(hashes(&block), []);
    }

    #[test]
    fn holds_the_transactions_of_the_pool() {
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
        assert_eq!(block.header.header.gas_used, 3 * GAS);

        // The other operations read the same block.
        let context = Context::unbounded();
        let range = BlockRange { from: None, to: Some(BlockNumberOrTag::Pending) };
        let query = LogQuery { blocks: LogBlocks::Range(range), ..LogQuery::default() };
        let logs = world.node.get_logs(&context, &query).unwrap();
        assert_eq!(logs.iter().map(|log| log.log.address).collect::<Vec<_>>(), [2, 1, 1].map(address));
        assert!(logs.iter().all(|log| log.pending));
        let receipts = world.node.get_receipts(&context, BlockId::pending()).unwrap();
        assert_eq!(receipts.iter().map(|receipt| receipt.gas_used).collect::<Vec<_>>(), [GAS; 3]);
        assert_eq!(world.node.get_balance(&context, address(1), BlockId::pending()).unwrap(), 1.into());
        assert_eq!(world.node.get_transaction_count(&context, address(1), BlockId::pending()).unwrap(), 2);
        let slot = H256::from_low_u64_be(1);
        assert_eq!(world.node.get_storage_at(&context, address(1), slot, BlockId::pending()).unwrap(), 7.into());
        // The latest block does not have them.
        assert_eq!(world.node.get_balance(&context, address(1), BlockId::latest()).unwrap(), RICH.into());
    }

    #[test]
    fn is_assembled_again_only_after_a_change() {
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
    fn follows_the_view_that_the_request_holds() {
        let world = World::new();
        let head = world.change(account(1, 0, RICH, &[]));
        let context = Context::holding_view();
        assert_eq!(world.node.get_balance(&context, address(1), BlockId::latest()).unwrap(), RICH.into());
        world.change(account(1, 0, 5, &[]));
        let pending = world.node.get_block(&context, BlockId::pending()).unwrap().unwrap();
        assert_eq!(pending.header.header.parent_hash, head.header.hash);
        context.release_view();
        assert_eq!(world.node.get_balance(&context, address(1), BlockId::pending()).unwrap(), 5.into());
    }

    #[test]
    fn requests_that_wait_for_the_block_end_at_their_deadline() {
        let world = World::new();
        let assembling = world.node.pending.lock();
        let context = Context::unbounded().with_timeout(std::time::Duration::from_millis(1));
        let error = world.node.get_block(&context, BlockId::pending()).unwrap_err();
        assert!(matches!(error, NodeError::Interrupted(_)), "{error:?}");
        drop(assembling);
        pending_block(&world);
    }

    #[test]
    fn follows_the_clock() {
        let world = World::new();
        world.grow(1);
        // How far the clock moves in milliseconds, the timestamp of the pending block in seconds, and how many blocks
        // were begun until then.
        let steps =
            [(0, BLOCK_TIME + 1, 1), (1_000 * BLOCK_TIME, BLOCK_TIME + 1, 1), (38_999, 50, 2), (0, 50, 2), (1, 51, 3)];
        for (step, timestamp, begun) in steps {
            world.clock.advance(step);
            assert_eq!(pending_block(&world).header.header.timestamp, timestamp, "after {step} ms more");
            assert_eq!(*world.executor.begun.lock(), begun, "after {step} ms more");
        }
    }

    /// Sends transactions of different senders with these tips.
    fn send_tips(world: &World, tips: &[u64]) {
        for sender in 1..=tips.len() {
            world.change(account(sender as u8, 0, RICH, &[]));
        }
        for (sender, tip) in (1..).zip(tips) {
            world.send(&transaction(sender, 0, *tip));
        }
    }

    #[test]
    fn finds_transactions_that_invalidate_their_block_from_the_valid_beginning_on() {
        let world = World::new();
        send_tips(&world, &[[700; 8].as_slice(), &[FakeExecutor::INVALID_TIP; 3], &[50; 4]].concat());
        assert_eq!(hashes(&pending_block(&world)).len(), 12);
        // All 15; the empty block; 7, 11, 9 and 8. Then without the first culprit: all 14, 11 and 9. Then all 13, 10 and
        // 9. Then all 12.
        assert_eq!(*world.executor.begun.lock(), 13);
    }

    #[test]
    fn executes_a_block_a_limited_number_of_times() {
        let world = World::new();
        send_tips(&world, &[[700; 2].as_slice(), &[FakeExecutor::INVALID_TIP; 40], &[50; 4]].concat());
        let block = pending_block(&world);
        assert_eq!(hashes(&block).len(), 2, "what comes before the first one that was not found");
        let begun = *world.executor.begun.lock();
        assert!((32..=39).contains(&begun), "{begun}");
    }

    #[test]
    fn fails_without_a_system_contract() {
        let world = World::new();
        *world.executor.missing.lock() = Some(address(7));
        let error = world.node.get_balance(&Context::unbounded(), address(1), BlockId::pending()).unwrap_err();
        let NodeError::NoPendingBlock { address: missing, .. } = &error else { panic!("{error:?}") };
        assert_eq!(*missing, address(7));
        assert!(error.to_string().contains("0x0000000000000000000000000000000000000007"), "{error}");
        world.node.get_balance(&Context::unbounded(), address(1), BlockId::latest()).unwrap();
    }
}
