//! Transactions.

use super::decode::{decode_object, wire_objects};
use super::{AddressData, BytesData, HashData, Quantity64, Quantity256, Word};
use serde::{Deserialize, Serialize};

wire_objects! {
    /// The request body of sendRawTransaction.
    request SendRawTransactionInput {
        /// The encoded, signed transaction (EIP-2718); one of type 3 with its sidecar.
        data: BytesData = required("Data"),
    }

    /// The response of sendRawTransaction.
    response SendRawTransactionOutput {
        /// Hash of the transaction.
        transaction_hash: HashData,
    }

    /// The response of getTransactionByHash, getTransactionByBlockHashAndIndex and getTransactionByBlockNumberAndIndex.
    response TransactionOutput {
        /// The transaction; null if it does not exist.
        transaction: Option<Transaction>,
    }

    /// The response of getRawTransaction.
    response GetRawTransactionOutput {
        /// The encoded, signed transaction (EIP-2718); null if it does not exist.
        data: Option<BytesData>,
    }
}

/// The response of getTransactionStatus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionStatusOutput {
    /// The status of the transaction.
    pub status: TransactionStatus,
    /// The reason why it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The status of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TransactionStatus {
    /// In a block of the canonical chain.
    Mined,
    /// In the pool, and executable.
    Pending,
    /// In the pool, waiting for a lower nonce or for balance.
    Queued,
    /// No longer in the pool.
    Dropped,
    /// Not known: never received, or no longer remembered.
    Unknown,
}

wire_objects! {
    /// A signed transaction and its position in the chain.
    response Transaction as Response_Transaction {
        /// The access list (EIP-2930); empty for types without one.
        access_list: Vec<AccessListItem>,
        /// Hash of its block; null while it is pending.
        block_hash: Option<HashData>,
        /// Number of its block; null while it is pending.
        block_number: Option<Quantity64>,
        /// Id of its chain; null for a legacy transaction without replay protection (EIP-155).
        chain_id: Option<Quantity64>,
        /// Sender.
        from: AddressData,
        /// Gas limit.
        gas: Quantity64,
        /// Price in wei per gas: the effective price of a mined transaction, the highest price of a pending one.
        gas_price: Quantity256,
        /// Hash of the transaction.
        hash: HashData,
        /// Call data or creation code.
        input: BytesData,
        /// Highest price that the sender pays, in wei per gas (EIP-1559); null before type 2.
        max_fee_per_gas: Option<Quantity256>,
        /// Highest tip for the producer, in wei per gas (EIP-1559); null before type 2.
        max_priority_fee_per_gas: Option<Quantity256>,
        /// Number of transactions that the sender sent before.
        nonce: Quantity64,
        /// The r value of the signature.
        r: Word,
        /// The s value of the signature.
        s: Word,
        /// Recipient; null for a contract creation.
        to: Option<AddressData>,
        /// Index in the block; null while it is pending.
        transaction_index: Option<Quantity64>,
        /// Type of the transaction (EIP-2718).
        #[serde(rename = "Type")]
        transaction_type: Quantity64,
        /// The v value of a legacy signature; the y parity of other signatures.
        v: Quantity256,
        /// Amount transferred, in wei.
        value: Quantity256,
    }

    /// An entry of an access list (EIP-2930).
    response AccessListItem {
        /// The account.
        address: AddressData,
        /// Its storage slots.
        storage_keys: Vec<HashData>,
    }

    /// An authorization that delegates an account to the code of another one (EIP-7702).
    response Authorization {
        /// The account with the code; the zero address ends the delegation.
        address: AddressData,
        /// Id of the chain; zero for any chain.
        chain_id: Quantity256,
        /// Nonce of the account that signed.
        nonce: Quantity64,
        /// The r value of the signature.
        r: Word,
        /// The s value of the signature.
        s: Word,
        /// The y parity of the signature, 0 or 1.
        v: Quantity64,
    }

    /// The response of getTransactionExtras: fields that other responses with transactions lack.
    response GetTransactionExtrasOutput {
        /// Authorizations (EIP-7702); null for types without them.
        authorization_list: Option<Vec<Authorization>>,
        /// Price paid in wei per blob gas (EIP-4844); null for types without blobs and for pending transactions.
        blob_gas_price: Option<Quantity256>,
        /// Blob gas of the transaction (EIP-4844); null for types without blobs.
        blob_gas_used: Option<Quantity64>,
        /// Versioned hashes of the blobs (EIP-4844); null for types without blobs.
        blob_versioned_hashes: Option<Vec<HashData>>,
        /// Highest price that the sender pays, in wei per blob gas (EIP-4844); null for types without blobs.
        max_fee_per_blob_gas: Option<Quantity256>,
    }
}

decode_object! {
    AccessListItem { address: required("Address"), storage_keys: required("StorageKeys") }
    Authorization {
        address: required("Address"),
        chain_id: required("ChainId"),
        nonce: required("Nonce"),
        r: required("R"),
        s: required("S"),
        v: required("V"),
    }
}
