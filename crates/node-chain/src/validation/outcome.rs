//! Validation of the result of execution against the header, except for the state root.

use super::BlockError;
use node_core::executor::BlockOutcome;
use node_core::trie::ordered_root;
use node_types::H256;
use node_types::consensus::{Bloom, Header, Receipt, requests_hash};

/// Checks transactions root, gas used, blob gas used, bloom, receipts root and requests hash.
///
/// `transactions_root` is the root of the executed transactions.
///
/// # Errors
/// Returns a [`BlockError`] for the first field that does not match.
pub fn validate_outcome(header: &Header, transactions_root: H256, outcome: &BlockOutcome) -> Result<(), BlockError> {
    if header.transactions_root != transactions_root {
        return Err(BlockError::TransactionsRoot { got: header.transactions_root, expected: transactions_root });
    }
    if header.gas_used != outcome.gas_used {
        return Err(BlockError::GasUsed { got: header.gas_used, expected: outcome.gas_used });
    }
    if let Some(got) = header.blob_gas_used
        && got != outcome.blob_gas_used
    {
        return Err(BlockError::BlobGasUsed { got, expected: outcome.blob_gas_used });
    }
    if header.logs_bloom != outcome.receipts.iter().map(|receipt| &receipt.logs_bloom).collect::<Bloom>() {
        return Err(BlockError::LogsBloom);
    }
    let encoded: Vec<Vec<u8>> = outcome.receipts.iter().map(Receipt::encode).collect();
    let expected = ordered_root(&encoded);
    if header.receipts_root != expected {
        return Err(BlockError::ReceiptsRoot { got: header.receipts_root, expected });
    }
    if let Some(got) = header.requests_hash {
        let expected = requests_hash(outcome.requests.as_deref().unwrap_or_default());
        if got != expected {
            return Err(BlockError::RequestsHash { got, expected });
        }
    }
    Ok(())
}
