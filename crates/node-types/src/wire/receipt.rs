//! Receipts.

use super::{AddressData, BloomData, BytesData, HashData, Log, Quantity64, Quantity256};
use serde::{Deserialize, Serialize};

/// The response of getTransactionReceipt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getTransactionReceipt))]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionReceiptOutput {
    /// The receipt; null if no transaction with this hash was mined.
    pub transaction_receipt: Option<TransactionReceipt>,
}

/// The response of getBlockReceipts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getBlockReceipts))]
#[serde(rename_all = "PascalCase")]
pub struct GetBlockReceiptsOutput {
    /// A receipt for each transaction of the block, in block order.
    pub transaction_receipts: Vec<TransactionReceipt>,
}

/// The receipt of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Response_TransactionReceipt))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionReceipt {
    /// Hash of its block; null while it is pending.
    pub block_hash: Option<HashData>,
    /// Number of its block; null while it is pending.
    pub block_number: Option<Quantity64>,
    /// Address of the created contract; null if the transaction is not a contract creation.
    pub contract_address: Option<AddressData>,
    /// Gas used in the block up to and including this transaction.
    pub cumulative_gas_used: Quantity64,
    /// Price paid in wei per gas.
    pub effective_gas_price: Quantity256,
    /// Sender.
    pub from: AddressData,
    /// Gas used by this transaction.
    pub gas_used: Quantity64,
    /// Logs in the order of emission.
    pub logs: Vec<Log>,
    /// Bloom filter of the logs.
    pub logs_bloom: BloomData,
    /// 1 for success, 0 for failure; null before Byzantium (EIP-658).
    pub status: Option<Quantity64>,
    /// Recipient; null for a contract creation.
    pub to: Option<AddressData>,
    /// Hash of the transaction.
    pub transaction_hash: HashData,
    /// Index in the block; null while it is pending.
    pub transaction_index: Option<Quantity64>,
    /// Type of the transaction (EIP-2718).
    #[serde(rename = "Type")]
    pub transaction_type: Quantity64,
}

/// The response of getRawReceipts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getRawReceipts))]
#[serde(rename_all = "PascalCase")]
pub struct GetRawReceiptsOutput {
    /// The encoded receipts (EIP-2718) in block order.
    pub receipts: Vec<BytesData>,
}
