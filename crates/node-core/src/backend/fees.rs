//! Data of a block for the fee history.

use super::FeeRow;
use crate::block::ExecutedBlock;
use std::sync::Arc;

/// Returns the fee row of `block`.
pub fn fee_row(block: &ExecutedBlock) -> FeeRow {
    let base_fee = block.header.header.base_fee_per_gas;
    let mut used_before = 0;
    let mut tips: Vec<_> = block
        .body
        .transactions
        .iter()
        .zip(block.receipts.iter())
        .map(|(transaction, receipt)| {
            let gas_used = receipt.cumulative_gas_used.saturating_sub(used_before);
            used_before = receipt.cumulative_gas_used;
            (transaction.transaction.body.effective_tip(base_fee).unwrap_or_default(), gas_used)
        })
        .collect();
    tips.sort_by_key(|(tip, _)| *tip);
    FeeRow { header: Arc::clone(&block.header), tips: Arc::new(tips) }
}
