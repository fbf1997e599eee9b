//! Receipts.

use super::block::FoundBlock;
use super::resolve::RequestView;
use super::transaction::position_of;
use super::{Field, Node, NodeError};
use crate::backend::BackendError;
use crate::block::{Body, RecoveredTransaction};
use crate::context::Context;
use node_types::consensus::Receipt;
use node_types::{BlockId, BlockNumber, H256};
use std::sync::Arc;

/// A block with a receipt for each of its transactions.
#[derive(Clone, Debug)]
pub struct FoundReceipts {
    pub block: FoundBlock,
    /// The receipts in the order of the transactions.
    pub receipts: Arc<Vec<Receipt>>,
}

/// A receipt with values that depend on the preceding receipts.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptInBlock<'a> {
    pub index: usize,
    pub transaction: &'a RecoveredTransaction,
    pub receipt: &'a Receipt,
    pub gas_used: u64,
    /// Position of the first log of the receipt among all logs of the block.
    pub first_log: u64,
}

/// The receipts of the block that contains a mined transaction.
#[derive(Clone, Debug)]
pub struct FoundReceipt {
    /// The receipts of the block.
    pub receipts: FoundReceipts,
    /// Position of the transaction in the block.
    pub index: usize,
}

impl FoundReceipt {
    /// Returns the receipt of the transaction, or `None` if the block has fewer.
    pub fn receipt(&self) -> Option<ReceiptInBlock<'_>> {
        self.receipts.iter().nth(self.index)
    }
}

impl FoundReceipts {
    /// Reads the receipts of a canonical block.
    fn read(context: &Context, snapshot: &RequestView, number: BlockNumber) -> Result<Self, NodeError> {
        let unknown = || BackendError::UnknownBlock(number);
        let block = FoundBlock::read(context, snapshot, number.into())?.ok_or_else(unknown)?;
        let receipts = snapshot.view.receipts(number.into())?.ok_or_else(unknown)?;
        Ok(Self { block, receipts })
    }

    /// Iterates over the receipts in the order of the transactions.
    pub fn iter(&self) -> impl Iterator<Item = ReceiptInBlock<'_>> {
        receipts_in_block(&self.block.body, &self.receipts)
    }
}

fn receipts_in_block<'a>(body: &'a Body, receipts: &'a [Receipt]) -> impl Iterator<Item = ReceiptInBlock<'a>> {
    let pairs = body.transactions.iter().zip(receipts).enumerate();
    pairs.scan((0, 0), |(gas_before, first_log), (index, (transaction, receipt))| {
        let gas_used = receipt.cumulative_gas_used.saturating_sub(*gas_before);
        let placed = ReceiptInBlock { index, transaction, receipt, gas_used, first_log: *first_log };
        *gas_before = receipt.cumulative_gas_used;
        *first_log += receipt.logs.len() as u64;
        Some(placed)
    })
}

pub(super) fn get_receipt(node: &Node, context: &Context, hash: H256) -> Result<Option<FoundReceipt>, NodeError> {
    // Clients poll for receipts of transactions in the pool, which need not be looked for elsewhere.
    let in_pool = node.pool.status(hash);
    let snapshot = node.snapshot(context)?;
    let Some(position) = position_of(&*snapshot.view, hash, &in_pool)? else { return Ok(None) };
    let receipts = FoundReceipts::read(context, &snapshot, position.block)?;
    Ok(Some(FoundReceipt { receipts, index: position.index }))
}

pub(super) fn get_receipts(node: &Node, context: &Context, block: BlockId) -> Result<FoundReceipts, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let number = snapshot.canonical(block, Field::BlockNumber)?;
    FoundReceipts::read(context, &snapshot, number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_chain::{GAS, log, receipt, transaction};

    #[test]
    fn counts_gas_and_logs_over_the_block() {
        let transactions = vec![transaction(1, 0, 1), transaction(3, 0, 1), transaction(2, 0, 3)];
        let body = Body { transactions, ..Body::default() };
        let receipts = [
            receipt(vec![log(1, &[1]), log(1, &[2])], GAS),
            receipt(Vec::new(), GAS + 60_000),
            receipt(vec![log(2, &[3])], 3 * GAS + 60_000),
        ];
        let found = receipts_in_block(&body, &receipts).map(|found| (found.index, found.gas_used, found.first_log));
        assert_eq!(found.collect::<Vec<_>>(), [(0, GAS, 0), (1, 60_000, 2), (2, 2 * GAS, 2)]);
    }
}
