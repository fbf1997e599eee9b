//! Receipts.

use super::{Hex, Log};
use node_core::node::{FoundReceipt, FoundReceipts, ReceiptInBlock};
use node_core::protocol::ChainSpec;
use node_core::protocol::fees::{self, GAS_PER_BLOB};
use node_types::U256;
use node_types::consensus::{Bloom, ReceiptOutcome};
use node_types::wire::{AddressData, Data, HashData};
use serde::Serialize;

/// The receipt of a transaction.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_price: Option<Hex<U256>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<Hex<u64>>,
    block_hash: Option<HashData>,
    block_number: Option<Hex<u64>>,
    contract_address: Option<AddressData>,
    cumulative_gas_used: Hex<u64>,
    effective_gas_price: Hex<U256>,
    from: AddressData,
    gas_used: Hex<u64>,
    logs: Vec<Log>,
    logs_bloom: Data<Bloom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<HashData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Hex<u64>>,
    to: Option<AddressData>,
    transaction_hash: HashData,
    transaction_index: Hex<u64>,
    #[serde(rename = "type")]
    transaction_type: Hex<u64>,
}

impl Receipt {
    /// Converts all receipts of a block.
    pub(crate) fn all(spec: &ChainSpec, found: &FoundReceipts) -> Vec<Self> {
        found.iter().map(|receipt| Self::of(spec, found, receipt)).collect()
    }

    /// Converts the receipt of a transaction.
    pub(crate) fn of_transaction(spec: &ChainSpec, found: &FoundReceipt) -> Option<Self> {
        found.receipt().map(|receipt| Self::of(spec, &found.receipts, receipt))
    }

    fn of(spec: &ChainSpec, found: &FoundReceipts, placed: ReceiptInBlock<'_>) -> Self {
        let ReceiptInBlock { index, transaction: recovered, receipt, gas_used, first_log } = placed;
        let sealed = &found.block.header;
        let header = &sealed.header;
        // The pending block is not sealed.
        let block_hash = (!found.block.pending).then_some(Data(sealed.hash));
        let body = &recovered.transaction.body;
        let blobs = body.blob_versioned_hashes().len() as u64;
        let logs = receipt.logs.iter().zip(first_log..).map(|(log, log_index)| Log {
            address: Data(log.address),
            topics: log.topics.iter().copied().map(Data).collect(),
            data: Data(log.data.clone()),
            block_number: Some(Hex(header.number)),
            transaction_hash: Some(Data(recovered.hash)),
            transaction_index: Some(Hex(index as u64)),
            block_hash,
            block_timestamp: Some(Hex(header.timestamp)),
            log_index: Some(Hex(log_index)),
            removed: false,
        });
        let (root, status) = match receipt.outcome {
            ReceiptOutcome::StateRoot(root) => (Some(Data(root)), None),
            ReceiptOutcome::Success(success) => (None, Some(Hex(success.into()))),
        };
        Self {
            blob_gas_price: (blobs > 0).then(|| fees::blob_base_fee(spec, header).map(Hex)).flatten(),
            blob_gas_used: (blobs > 0).then_some(Hex(blobs * GAS_PER_BLOB)),
            block_hash,
            block_number: Some(Hex(header.number)),
            contract_address: body.to().is_none().then(|| Data(recovered.created_address())),
            cumulative_gas_used: Hex(receipt.cumulative_gas_used),
            effective_gas_price: Hex(recovered.paid_price(header.base_fee_per_gas)),
            from: Data(recovered.sender),
            gas_used: Hex(gas_used),
            logs: logs.collect(),
            logs_bloom: Data(receipt.logs_bloom),
            root,
            status,
            to: body.to().map(Data),
            transaction_hash: Data(recovered.hash),
            transaction_index: Hex(index as u64),
            transaction_type: Hex(receipt.transaction_type as u64),
        }
    }
}
