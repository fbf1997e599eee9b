//! Blocks that are made on request, and not kept.

use super::{Node, NodeError};
use crate::assembly::{Assembled, MAX_EXTRA_DATA, assemble, next_header};
use crate::backend::{GrowingBranch, View};
use crate::block::{ExecutedBlock, RecoveredTransaction};
use crate::context::Context;
use crate::executor::{BlockExecution, ExecutionError, TransactionError};
use crate::gas::gas_limit_towards;
use node_types::consensus::{BlobSidecar, Header, PooledTransaction, Request, Withdrawal};
use node_types::wire::{BlockArgument, ErrorDetail};
use node_types::{Address, Bytes, H256, U256};

/// The gas limit towards which blocks go where nobody else decides: that of most producers of Ethereum.
const GAS_LIMIT: u64 = 60_000_000;

/// What a block on request is to be like.
#[derive(Clone, Debug, Default)]
pub struct BlockRequest {
    /// The canonical block below it.
    pub parent: H256,
    /// Unix seconds.
    pub timestamp: u64,
    /// PREVRANDAO.
    pub prev_randao: H256,
    /// Who gets the tips.
    pub fee_recipient: Address,
    /// Withdrawals; count from Shanghai on.
    pub withdrawals: Vec<Withdrawal>,
    /// Root of the parent beacon block; counts from Cancun on.
    pub parent_beacon_block_root: Option<H256>,
    /// Its transactions as they are sent, all of them; none for what the pool has.
    pub transactions: Option<Vec<Bytes>>,
    /// Extra data of the header.
    pub extra_data: Bytes,
}

/// A block that was made on request.
#[derive(Clone, Debug)]
pub struct BuiltBlock {
    /// The block.
    pub block: ExecutedBlock,
    /// The blobs of its transactions in their order, as far as they are known.
    pub sidecars: Vec<BlobSidecar>,
    /// Its execution requests, since Prague.
    pub requests: Option<Vec<Request>>,
    /// What its transactions tip, in wei.
    pub value: U256,
}

impl Node {
    /// Makes a block on top of a canonical one. The chain stays as it is.
    pub fn build_block(&self, context: &Context, request: BlockRequest) -> Result<BuiltBlock, NodeError> {
        let snapshot = self.snapshot(context)?;
        let number = snapshot.state(BlockArgument::Hash(request.parent), "body.ParentHash")?;
        let parent = snapshot.header(number)?;
        let mut faults = Vec::new();
        let least = parent.header.timestamp.saturating_add(1);
        if request.timestamp < least {
            faults.push(ErrorDetail::new(
                "body.Timestamp",
                format!("expected at least {least}, got {}", request.timestamp),
            ));
        }
        if request.extra_data.len() > MAX_EXTRA_DATA {
            let message = format!("expected at most {MAX_EXTRA_DATA} bytes, got {}", request.extra_data.len());
            faults.push(ErrorDetail::new("body.ExtraData", message));
        }
        if !faults.is_empty() {
            return Err(NodeError::Invalid(faults));
        }
        let next = next_header(&self.spec, &parent, request.timestamp);
        let wanted =
            if self.producer.is_some() { next.gas_limit } else { gas_limit_towards(next.gas_limit, GAS_LIMIT) };
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
        let context = context.clone().with_timeout(self.limits.call_timeout);
        match request.transactions {
            Some(transactions) => self.build_of(&context, &*view, header, request.withdrawals, &transactions),
            None => self.build_of_pool(&context, &*view, header, request.withdrawals),
        }
    }

    /// Makes a block of exactly these transactions.
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
            let PooledTransaction { transaction, sidecar } = PooledTransaction::decode(bytes).map_err(|error| {
                let location = format!("body.Transactions[{index}]");
                NodeError::Invalid(vec![ErrorDetail::new(location, error.to_string())])
            })?;
            let sender = self.recovery.sender(&transaction);
            let sender = sender.map_err(|error| NodeError::NotBuilt(TransactionError::Signature(error).into()))?;
            sidecars.extend(sidecar);
            recovered.push(RecoveredTransaction { hash: transaction.hash(), transaction, sender });
        }
        let fill = |execution: &mut dyn BlockExecution| {
            recovered.iter().try_for_each(|transaction| execution.transact(transaction).map(drop))?;
            Ok(recovered)
        };
        let assembled = assemble(context, &*self.executor, view, header, withdrawals, fill);
        Ok(built(assembled.map_err(|error| self.not_built(error))?, sidecars))
    }

    /// Makes a block of what the pool has.
    fn build_of_pool(
        &self,
        context: &Context,
        view: &dyn View,
        header: Header,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<BuiltBlock, NodeError> {
        let (best, gas_limit) = (self.pool.best_for(&header), header.gas_limit);
        let fill = |execution: &mut dyn BlockExecution| best.fill(execution, gas_limit);
        let assembled = assemble(context, &*self.executor, view, header, withdrawals, fill);
        let assembled = assembled.map_err(|error| self.not_built(error))?;
        let transactions = assembled.block.body.transactions.iter();
        let sidecars =
            transactions.filter_map(|transaction| self.pool.get(transaction.hash)?.sidecar.clone()).collect();
        Ok(built(assembled, sidecars))
    }

    fn not_built(&self, error: ExecutionError) -> NodeError {
        match error {
            error @ (ExecutionError::Refused(_) | ExecutionError::SystemContract { .. }) => NodeError::NotBuilt(error),
            error => NodeError::of_call(error, self.limits.call_timeout),
        }
    }
}

fn built(assembled: Assembled, sidecars: Vec<BlobSidecar>) -> BuiltBlock {
    let Assembled { block, requests } = assembled;
    let value = tips(&block);
    BuiltBlock { block, sidecars, requests, value }
}

/// What the producer of a block gets from its transactions, in wei.
fn tips(block: &ExecutedBlock) -> U256 {
    let base_fee = block.header.header.base_fee_per_gas.unwrap_or(0);
    let mut before = 0;
    let mut value = U256::zero();
    for (transaction, receipt) in block.body.transactions.iter().zip(block.receipts.iter()) {
        let gas = receipt.cumulative_gas_used - before;
        before = receipt.cumulative_gas_used;
        let tip = transaction.transaction.body.effective_tip(base_fee).unwrap_or_default();
        value = value.saturating_add(tip.saturating_mul(gas.into()));
    }
    value
}
