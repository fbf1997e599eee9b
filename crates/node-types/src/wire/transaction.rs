//! Transactions.

use super::decode::{decode_object, deserialize_by_decoding};
use super::{AddressData, BytesData, HashData, Quantity64, Quantity256, Word};
use serde::{Deserialize, Serialize};

/// The body of sendRawTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_sendRawTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct SendRawTransactionInput {
    /// The encoded, signed transaction (EIP-2718); of type 3 with its sidecar.
    pub data: BytesData,
}

/// The answer of sendRawTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_sendRawTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct SendRawTransactionOutput {
    /// Hash of the transaction.
    pub transaction_hash: HashData,
}

/// The answer of getTransactionByHash, getTransactionByBlockHashAndIndex and getTransactionByBlockNumberAndIndex.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getTransactionByHash))]
#[serde(rename_all = "PascalCase")]
pub struct TransactionOutput {
    /// The transaction; null when there is none.
    pub transaction: Option<Transaction>,
}

/// The answer of getRawTransaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getRawTransaction))]
#[serde(rename_all = "PascalCase")]
pub struct GetRawTransactionOutput {
    /// The encoded, signed transaction (EIP-2718); null when there is none.
    pub data: Option<BytesData>,
}

/// The answer of getTransactionStatus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getTransactionStatus))]
#[serde(rename_all = "PascalCase")]
pub struct GetTransactionStatusOutput {
    /// Where the transaction is.
    pub status: TransactionStatus,
    /// Why it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum TransactionStatus {
    /// In a block of the canonical chain.
    Mined,
    /// In the pool, executable.
    Pending,
    /// In the pool, behind a nonce that is missing.
    Queued,
    /// No longer in the pool.
    Dropped,
    /// Never seen, or forgotten.
    Unknown,
}

/// A signed transaction, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Response_Transaction))]
#[serde(rename_all = "PascalCase")]
pub struct Transaction {
    /// Addresses and slots that it declares (EIP-2930); empty where its type has no such list.
    pub access_list: Vec<AccessListItem>,
    /// Hash of its block; null while it is pending.
    pub block_hash: Option<HashData>,
    /// Height of its block; null while it is pending.
    pub block_number: Option<Quantity64>,
    /// Chain it is bound to; null for a legacy transaction without replay protection (EIP-155).
    pub chain_id: Option<Quantity64>,
    /// Sender.
    pub from: AddressData,
    /// Gas limit.
    pub gas: Quantity64,
    /// Price in wei per gas: the effective one once it is mined, the most the sender pays while it is pending.
    pub gas_price: Quantity256,
    /// Hash of the transaction.
    pub hash: HashData,
    /// Call data, or creation code.
    pub input: BytesData,
    /// The most the sender pays, in wei per gas; null before type 2.
    pub max_fee_per_gas: Option<Quantity256>,
    /// The most the producer gets, in wei per gas; null before type 2.
    pub max_priority_fee_per_gas: Option<Quantity256>,
    /// Transactions sent before by the same sender.
    pub nonce: Quantity64,
    /// The r value of the signature.
    pub r: Word,
    /// The s value of the signature.
    pub s: Word,
    /// Receiver; null for a creation.
    pub to: Option<AddressData>,
    /// Position in the block; null while it is pending.
    pub transaction_index: Option<Quantity64>,
    /// Type of the transaction (EIP-2718).
    #[serde(rename = "Type")]
    pub transaction_type: Quantity64,
    /// The v value of a legacy signature, the y parity of others.
    pub v: Quantity256,
    /// Wei transferred.
    pub value: Quantity256,
}

/// An address and slots that a transaction declares (EIP-2930).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct AccessListItem {
    /// The account.
    pub address: AddressData,
    /// Its slots.
    pub storage_keys: Vec<HashData>,
}

decode_object! {
    SendRawTransactionInput { data: required("Data") }
}

deserialize_by_decoding!(SendRawTransactionInput);
