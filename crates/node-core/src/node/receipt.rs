//! getTransactionReceipt and getBlockReceipts.

use super::found::FoundReceipts;
use super::{Node, NodeError, assemble};
use crate::context::Context;
use node_types::wire::{GetBlockReceiptsOutput, GetTransactionReceiptOutput, TransactionReceipt};
use node_types::{BlockId, H256};

impl Node {
    /// The receipt of a mined transaction; none where no such transaction was mined.
    pub fn get_transaction_receipt(
        &self,
        context: &Context,
        hash: H256,
    ) -> Result<GetTransactionReceiptOutput, NodeError> {
        let found = self.find_receipt(context, hash)?;
        let receipt = found.and_then(|(receipts, index)| wire_receipts(&receipts, |other| other == index).pop());
        Ok(GetTransactionReceiptOutput { transaction_receipt: receipt })
    }

    /// The receipts of all transactions of a canonical block.
    pub fn get_block_receipts(&self, context: &Context, block: BlockId) -> Result<GetBlockReceiptsOutput, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let number = snapshot.canonical(block, "path.BlockNumber")?;
        let receipts = FoundReceipts::read(&snapshot, number)?;
        Ok(GetBlockReceiptsOutput { transaction_receipts: wire_receipts(&receipts, |_| true) })
    }
}

/// The receipts at the positions that `wanted` accepts.
fn wire_receipts(found: &FoundReceipts, wanted: impl Fn(usize) -> bool) -> Vec<TransactionReceipt> {
    let place = assemble::Place::of(&found.block.header, found.block.pending);
    let wanted = found.iter().filter(|receipt| wanted(receipt.index));
    wanted.map(|receipt| assemble::transaction_receipt(&place, receipt)).collect()
}
