//! Blocks that are built on request and not stored.

use super::fault::{Fault, Field};
use super::{Node, NodeError};
use crate::assembly::{Assembled, MAX_EXTRA_DATA, assemble, next_header};
use crate::backend::{GrowingBranch, View};
use crate::block::{ExecutedBlock, RecoveredTransaction};
use crate::context::Context;
use crate::executor::{BlockExecution, ExecutionError, TransactionError};
use crate::protocol::gas::gas_limit_towards;
use node_types::consensus::{BlobSidecar, Header, PooledTransaction, Request, Withdrawal};
use node_types::{Address, Bytes, H256, U256};

/// The gas limit towards which built blocks move on chains that the node does not produce: the one that most block
/// producers on mainnet use.
const GAS_LIMIT: u64 = 60_000_000;

/// The content of a block to build, as far as execution does not determine it.
#[derive(Clone, Debug, Default)]
pub struct BlockRequest {
    /// Hash of the parent, which must be canonical.
    pub parent: H256,
    /// Timestamp in Unix seconds.
    pub timestamp: u64,
    pub prev_randao: H256,
    /// Recipient of the tips.
    pub fee_recipient: Address,
    /// Withdrawals; ignored before Shanghai.
    pub withdrawals: Vec<Withdrawal>,
    /// Root of the parent beacon block; ignored before Cancun.
    pub parent_beacon_block_root: Option<H256>,
    /// All transactions, in the encoding in which they are sent; `None` to take those of the pool.
    pub transactions: Option<Vec<Bytes>>,
    pub extra_data: Bytes,
}

/// A block that was built on request.
#[derive(Clone, Debug)]
pub struct BuiltBlock {
    pub block: ExecutedBlock,
    /// Sidecars of its blob transactions, in order, as far as they are known.
    pub sidecars: Vec<BlobSidecar>,
    /// Its execution requests; `None` before Prague.
    pub requests: Option<Vec<Request>>,
    /// Sum of the tips in wei.
    pub value: U256,
}

pub(super) fn build_block(node: &Node, context: &Context, request: BlockRequest) -> Result<BuiltBlock, NodeError> {
    let snapshot = node.snapshot(context)?;
    let number = snapshot.state(request.parent.into(), Field::ParentHash)?;
    let parent = snapshot.header(number)?;
    let mut faults = Vec::new();
    let least = parent.header.timestamp.saturating_add(1);
    if request.timestamp < least {
        let message = format!("expected at least {least}, got {}", request.timestamp);
        faults.push(Fault::new(Field::Timestamp, message));
    }
    if request.extra_data.len() > MAX_EXTRA_DATA {
        let message = format!("expected at most {MAX_EXTRA_DATA} bytes, got {}", request.extra_data.len());
        faults.push(Fault::new(Field::ExtraData, message));
    }
    if !faults.is_empty() {
        return Err(NodeError::Invalid(faults));
    }
    let next = next_header(&node.spec, &parent, request.timestamp);
    let wanted = if node.producer.is_some() { next.gas_limit } else { gas_limit_towards(next.gas_limit, GAS_LIMIT) };
    let header = Header {
        beneficiary: request.fee_recipient,
        mix_hash: request.prev_randao,
        gas_limit: wanted,
        extra_data: request.extra_data,
        parent_beacon_block_root: next
            .parent_beacon_block_root
            .map(|none| request.parent_beacon_block_root.unwrap_or(none)),
        ..next
    };
    let view = GrowingBranch::new(snapshot.view.clone(), number)?.view()?;
    let context = context.clone().with_timeout(node.limits.call_timeout);
    match request.transactions {
        Some(transactions) => node.build_of(&context, &*view, header, request.withdrawals, &transactions),
        None => node.build_of_pool(&context, &*view, header, request.withdrawals),
    }
}

impl Node {
    /// Builds a block with exactly these transactions.
    fn build_of(
        &self,
        context: &Context,
        view: &dyn View,
        header: Header,
        withdrawals: Vec<Withdrawal>,
        transactions: &[Bytes],
    ) -> Result<BuiltBlock, NodeError> {
        let mut recovered = Vec::with_capacity(transactions.len());
        let mut sidecars = Vec::new();
        for (index, bytes) in transactions.iter().enumerate() {
            let PooledTransaction { transaction, sidecar } = PooledTransaction::decode(bytes)
                .map_err(|error| NodeError::invalid(Field::TransactionAt(index), error.to_string()))?;
            let sender = self.recovery.sender(&transaction);
            let sender = sender.map_err(|error| NodeError::NotBuilt(TransactionError::Signature(error).into()))?;
            sidecars.extend(sidecar);
            recovered.push(RecoveredTransaction { hash: transaction.hash(), transaction, sender });
        }
        let fill = |execution: &mut dyn BlockExecution| {
            recovered.iter().try_for_each(|transaction| execution.transact(transaction).map(drop))?;
            Ok(recovered.clone())
        };
        let assembled = assemble(context, &*self.executor, view, header, withdrawals, fill);
        Ok(built(assembled.map_err(|error| not_built(error, context))?, sidecars))
    }

    /// Builds a block with the best transactions of the pool.
    fn build_of_pool(
        &self,
        context: &Context,
        view: &dyn View,
        header: Header,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<BuiltBlock, NodeError> {
        let best = self.pool.best_for(&header);
        let packed = self.packer(context, view, &header).pack(&withdrawals, best);
        let assembled = packed.map_err(|error| not_built(error, context))?.assembled;
        let transactions = assembled.block.body.transactions.iter();
        let sidecars =
            transactions.filter_map(|transaction| self.pool.get(transaction.hash)?.sidecar.clone()).collect();
        Ok(built(assembled, sidecars))
    }
}

fn not_built(error: ExecutionError, context: &Context) -> NodeError {
    match error {
        error @ (ExecutionError::Refused(_) | ExecutionError::SystemContract { .. }) => NodeError::NotBuilt(error),
        error => NodeError::of_call(error, context),
    }
}

fn built(assembled: Assembled, sidecars: Vec<BlobSidecar>) -> BuiltBlock {
    let Assembled { block, requests } = assembled;
    let value = tips(&block);
    BuiltBlock { block, sidecars, requests, value }
}

/// Returns the sum of the tips of a block in wei.
fn tips(block: &ExecutedBlock) -> U256 {
    let base_fee = block.header.header.base_fee_per_gas;
    let mut before = 0;
    let mut value = U256::zero();
    for (transaction, receipt) in block.body.transactions.iter().zip(block.receipts.iter()) {
        let gas = receipt.cumulative_gas_used.saturating_sub(before);
        before = receipt.cumulative_gas_used;
        let tip = transaction.transaction.body.effective_tip(base_fee).unwrap_or_default();
        value = value.saturating_add(tip.saturating_mul(gas.into()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::node::testing::{FakeExecutor, World};
    use crate::test_chain::{
        BASE_FEE, BLOCK_TIME, GAS, GAS_LIMIT as CHAIN_GAS_LIMIT, account, address, transaction, word,
    };

    fn request(world: &World) -> BlockRequest {
        let parent = world.backend.view().unwrap().head().hash;
        BlockRequest { parent, timestamp: 1_000, prev_randao: word(7), fee_recipient: address(9), ..Default::default() }
    }

    fn build(world: &World, request: BlockRequest) -> Result<BuiltBlock, NodeError> {
        world.node.build_block(&Context::unbounded(), request)
    }

    #[test]
    fn a_block_is_as_it_was_asked_for_and_not_kept() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let head = world.backend.view().unwrap().head();
        let given = transaction(1, 0, 5);
        let transactions = Some(vec![given.transaction.encode().into()]);
        let extra_data = Bytes::from_static(b"extra");
        let built = build(&world, BlockRequest { transactions, extra_data, ..request(&world) }).unwrap();
        let header = &built.block.header.header;
        assert_eq!((header.parent_hash, header.number, header.timestamp), (head.hash, head.number + 1, 1_000));
        assert_eq!((header.mix_hash, header.beneficiary), (word(7), address(9)));
        assert_eq!(&header.extra_data[..], b"extra");
        assert_eq!(header.gas_limit, gas_limit_towards(CHAIN_GAS_LIMIT, GAS_LIMIT));
        assert_eq!(built.block.body.transactions, [given]);
        assert_eq!(built.value, U256::from(5 * GAS));
        assert_eq!(world.backend.view().unwrap().head(), head);
        assert_eq!(header.base_fee_per_gas, Some(BASE_FEE - BASE_FEE / 8));
    }

    #[test]
    fn without_transactions_it_holds_those_of_the_pool() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let pooled = transaction(1, 0, 5);
        world.send(&pooled);
        assert_eq!(build(&world, request(&world)).unwrap().block.body.transactions, [pooled]);
        let none = BlockRequest { transactions: Some(Vec::new()), ..request(&world) };
        assert_eq!(build(&world, none).unwrap().block.body.transactions, []);
        assert_eq!(world.node.pool().hashes().len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let of = |bytes: Vec<u8>| Some(vec![Bytes::from(bytes)]);
        let refused = transaction(1, 0, FakeExecutor::REFUSED_TIP).transaction.encode();
        let cases = [
            (BlockRequest { timestamp: BLOCK_TIME, ..request(&world) }, "Invalid"),
            (BlockRequest { extra_data: vec![0; 33].into(), ..request(&world) }, "Invalid"),
            (BlockRequest { transactions: of(vec![1, 2, 3]), ..request(&world) }, "Invalid"),
            (BlockRequest { transactions: of(refused), ..request(&world) }, "NotBuilt"),
            (BlockRequest { parent: word(1), ..request(&world) }, "BlockNotFound"),
        ];
        for (request, expected) in cases {
            let error = build(&world, request).unwrap_err();
            assert!(format!("{error:?}").starts_with(expected), "{error:?}, expected {expected}");
        }
    }

    #[test]
    fn gas_limits_go_a_step_at_a_time() {
        let cases = [(60_000_000, 60_000_000), (60_000_010, 60_000_000), (200_000_000, 199_804_689), (1_024, 1_024)];
        for (parent, expected) in cases {
            assert_eq!(gas_limit_towards(parent, GAS_LIMIT), expected, "after {parent}");
        }
        assert_eq!(gas_limit_towards(30_000_000, GAS_LIMIT), 30_000_000 + 29_295);
    }
}
