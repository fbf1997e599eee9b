//! getTransactionReceipt and getBlockReceipts.

use super::block::StoredBlock;
use super::resolve::Snapshot;
use super::{Node, NodeError, assemble};
use crate::backend::BackendError;
use crate::context::Context;
use node_types::wire::{BlockArgument, GetBlockReceiptsOutput, GetTransactionReceiptOutput, TransactionReceipt};
use node_types::{BlockNumber, H256};

impl Node {
    /// The receipt of a mined transaction; none where no such transaction was mined.
    pub fn get_transaction_receipt(
        &self,
        context: &Context,
        hash: H256,
    ) -> Result<GetTransactionReceiptOutput, NodeError> {
        let snapshot = self.snapshot(context)?;
        let receipt = match snapshot.view.transaction_position(hash)? {
            Some(position) => receipts(&snapshot, position.block, |index| index == position.index)?.pop(),
            None => None,
        };
        Ok(GetTransactionReceiptOutput { transaction_receipt: receipt })
    }

    /// The receipts of all transactions of a canonical block.
    pub fn get_block_receipts(
        &self,
        context: &Context,
        block: BlockArgument,
    ) -> Result<GetBlockReceiptsOutput, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let number = snapshot.canonical(block, "path.BlockNumber")?;
        Ok(GetBlockReceiptsOutput { transaction_receipts: receipts(&snapshot, number, |_| true)? })
    }
}

/// The receipts at the positions that `wanted` accepts.
fn receipts(
    snapshot: &Snapshot,
    number: BlockNumber,
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<TransactionReceipt>, NodeError> {
    let unknown = || BackendError::UnknownBlock(number);
    let StoredBlock { header, body } = StoredBlock::read(snapshot, number.into())?.ok_or_else(unknown)?;
    let receipts = snapshot.view.receipts(number.into())?.ok_or_else(unknown)?;
    let place = assemble::Place::of(&header, snapshot.is_pending(number));
    Ok(assemble::receipts(&place, &body, &receipts, wanted))
}
