//! Receipts.

use super::decode::wire_objects;
use super::{AddressData, BloomData, BytesData, HashData, Log, Quantity64, Quantity256};

wire_objects! {
    /// The response of getTransactionReceipt.
    response GetTransactionReceiptOutput {
        /// The receipt; null if no transaction with this hash was mined.
        transaction_receipt: Option<TransactionReceipt>,
    }

    /// The response of getBlockReceipts.
    response GetBlockReceiptsOutput {
        /// A receipt for each transaction of the block, in block order.
        transaction_receipts: Vec<TransactionReceipt>,
    }

    /// The receipt of a transaction.
    response TransactionReceipt as Response_TransactionReceipt {
        /// Hash of its block; null while it is pending.
        block_hash: Option<HashData>,
        /// Number of its block; null while it is pending.
        block_number: Option<Quantity64>,
        /// Address of the created contract; null if the transaction is not a contract creation.
        contract_address: Option<AddressData>,
        /// Gas used in the block up to and including this transaction.
        cumulative_gas_used: Quantity64,
        /// Price paid in wei per gas.
        effective_gas_price: Quantity256,
        /// Sender.
        from: AddressData,
        /// Gas used by this transaction.
        gas_used: Quantity64,
        /// Logs in the order of emission.
        logs: Vec<Log>,
        /// Bloom filter of the logs.
        logs_bloom: BloomData,
        /// 1 for success, 0 for failure; null before Byzantium (EIP-658).
        status: Option<Quantity64>,
        /// Recipient; null for a contract creation.
        to: Option<AddressData>,
        /// Hash of the transaction.
        transaction_hash: HashData,
        /// Index in the block; null while it is pending.
        transaction_index: Option<Quantity64>,
        /// Type of the transaction (EIP-2718).
        #[serde(rename = "Type")]
        transaction_type: Quantity64,
    }

    /// The response of getRawHeader.
    response GetRawHeaderOutput {
        /// The header as RLP; null if it does not exist.
        data: Option<BytesData>,
    }

    /// The response of getRawBlock.
    response GetRawBlockOutput {
        /// The block as RLP; null if it does not exist.
        data: Option<BytesData>,
    }

    /// The response of getRawReceipts.
    response GetRawReceiptsOutput {
        /// The encoded receipts (EIP-2718) in block order.
        receipts: Vec<BytesData>,
    }
}
