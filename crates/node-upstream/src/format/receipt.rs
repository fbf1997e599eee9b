//! Receipts.

use super::transaction::transaction_type;
use crate::bounded::up_to;
use crate::error::Wrong;
use crate::upstream::Rejection;
use node_types::H256;
use node_types::consensus::{Bloom, Log, Receipt, ReceiptOutcome};
use node_types::wire::{AddressData, BytesData, HashData, Quantity64};
use serde::Deserialize;

/// A receipt. Its bloom filter is computed from its logs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReceiptJson {
    #[serde(rename = "type", default)]
    transaction_type: Quantity64,
    status: Option<Quantity64>,
    root: Option<BytesData>,
    cumulative_gas_used: Quantity64,
    logs: Vec<LogJson>,
}

#[derive(Deserialize)]
struct LogJson {
    address: AddressData,
    #[serde(deserialize_with = "up_to::<4, _, _>")]
    topics: Vec<HashData>,
    data: BytesData,
}

impl ReceiptJson {
    /// Converts the receipt.
    pub(crate) fn read(self) -> Result<Receipt, Rejection> {
        let root = self.root.and_then(|root| <[u8; 32]>::try_from(root.as_ref()).ok());
        let outcome = match (root, self.status) {
            // Some nodes add a status to receipts from before Byzantium.
            (Some(root), _) => ReceiptOutcome::StateRoot(H256(root)),
            (None, Some(status)) => ReceiptOutcome::Success(*status == 1),
            (None, None) => return Err(Wrong::Malformed("a receipt has neither a status nor a root".to_owned()).into()),
        };
        let logs: Vec<_> = self.logs.into_iter().map(LogJson::read).collect();
        Ok(Receipt {
            transaction_type: transaction_type(*self.transaction_type)?,
            outcome,
            cumulative_gas_used: *self.cumulative_gas_used,
            logs_bloom: logs.iter().collect::<Bloom>(),
            logs,
        })
    }
}

impl LogJson {
    fn read(self) -> Log {
        let topics = self.topics.iter().map(|topic| **topic).collect();
        Log { address: *self.address, topics, data: self.data.0 }
    }
}
