//! Transactions.

use crate::bounded::up_to;
use crate::error::Wrong;
use crate::upstream::{Rejection, read};
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Authorization, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction, Signature, Transaction, TransactionBody, TransactionType, split_v,
};
use node_types::wire::{AddressData, BytesData, HashData, Quantity64, Quantity256};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct TypeJson {
    #[serde(rename = "type", default)]
    transaction_type: Quantity64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransactionJson {
    chain_id: Option<Quantity64>,
    nonce: Quantity64,
    gas: Quantity64,
    gas_price: Option<Quantity256>,
    max_priority_fee_per_gas: Option<Quantity256>,
    max_fee_per_gas: Option<Quantity256>,
    max_fee_per_blob_gas: Option<Quantity256>,
    to: Option<AddressData>,
    value: Quantity256,
    input: BytesData,
    #[serde(default)]
    access_list: Option<Vec<AccessListItemJson>>,
    #[serde(default)]
    blob_versioned_hashes: Option<Vec<HashData>>,
    #[serde(default)]
    authorization_list: Option<Vec<AuthorizationJson>>,
    v: Option<Quantity256>,
    y_parity: Option<Quantity64>,
    r: Quantity256,
    s: Quantity256,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessListItemJson {
    address: AddressData,
    #[serde(deserialize_with = "up_to::<65536, _, _>")]
    storage_keys: Vec<HashData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorizationJson {
    chain_id: Quantity256,
    address: AddressData,
    nonce: Quantity64,
    #[serde(alias = "v")]
    y_parity: Quantity64,
    r: Quantity256,
    s: Quantity256,
}

/// Reads a transaction.
pub(crate) fn transaction(json: &RawValue) -> Result<Transaction, Rejection> {
    let number = *read::<TypeJson>(json)?.transaction_type;
    let transaction_type = transaction_type(number)?;
    let json: TransactionJson = read(json)?;
    let (legacy_chain_id, y_parity) = json.signed(transaction_type)?;
    let signature = Signature { r: *json.r, s: *json.s, y_parity };
    let body = match transaction_type {
        TransactionType::Legacy => json.legacy(legacy_chain_id),
        _ => json.typed(transaction_type),
    };
    let body = body.ok_or_else(|| Wrong::Malformed("a transaction lacks a field of its type".to_owned()))?;
    Ok(Transaction { body, signature })
}

/// Returns the type with this number (EIP-2718).
pub(super) fn transaction_type(number: u64) -> Result<TransactionType, Rejection> {
    let known = u8::try_from(number).ok().and_then(|byte| TransactionType::try_from(byte).ok());
    known.ok_or_else(|| Rejection::Unsupported(format!("transaction type {number:#x}")))
}

impl TransactionJson {
    /// Returns the chain id of a legacy transaction and the y parity of the signature.
    fn signed(&self, transaction_type: TransactionType) -> Result<(Option<u64>, bool), Rejection> {
        let lacking = || Wrong::Malformed("a transaction lacks its y parity".to_owned());
        if transaction_type == TransactionType::Legacy {
            return Ok(split_v(*self.v.ok_or_else(lacking)?).map_err(Wrong::from)?);
        }
        let parity = self.y_parity.map(|parity| (*parity).into()).or(self.v.map(|v| *v)).ok_or_else(lacking)?;
        Ok((None, !parity.is_zero()))
    }

    fn legacy(self, chain_id: Option<u64>) -> Option<TransactionBody> {
        Some(TransactionBody::Legacy(LegacyTransaction {
            chain_id,
            nonce: *self.nonce,
            gas_price: *self.gas_price?,
            gas_limit: *self.gas,
            to: self.to.map(|to| *to),
            value: *self.value,
            input: self.input.0,
        }))
    }

    /// Returns a transaction of a type other than legacy, or `None` if a field is missing.
    fn typed(self, transaction_type: TransactionType) -> Option<TransactionBody> {
        let access_list = self.access_list?.into_iter().map(AccessListItemJson::read).collect();
        let (chain_id, nonce, gas_limit) = (*self.chain_id?, *self.nonce, *self.gas);
        let (to, value, input) = (self.to.map(|to| *to), *self.value, self.input.0);
        if transaction_type == TransactionType::AccessList {
            let gas_price = *self.gas_price?;
            let transaction =
                AccessListTransaction { chain_id, nonce, gas_price, gas_limit, to, value, input, access_list };
            return Some(TransactionBody::AccessList(transaction));
        }
        let (max_priority_fee_per_gas, max_fee_per_gas) = (*self.max_priority_fee_per_gas?, *self.max_fee_per_gas?);
        Some(match transaction_type {
            TransactionType::Blob => TransactionBody::Blob(BlobTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: to?,
                value,
                input,
                access_list,
                max_fee_per_blob_gas: *self.max_fee_per_blob_gas?,
                blob_versioned_hashes: self.blob_versioned_hashes?.into_iter().map(|hash| *hash).collect(),
            }),
            TransactionType::SetCode => TransactionBody::SetCode(SetCodeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: to?,
                value,
                input,
                access_list,
                authorization_list: self.authorization_list?.into_iter().map(AuthorizationJson::read).collect(),
            }),
            _ => TransactionBody::DynamicFee(DynamicFeeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                access_list,
            }),
        })
    }
}

impl AccessListItemJson {
    fn read(self) -> AccessListItem {
        AccessListItem { address: *self.address, storage_keys: self.storage_keys.iter().map(|key| **key).collect() }
    }
}

impl AuthorizationJson {
    fn read(self) -> Authorization {
        Authorization {
            chain_id: *self.chain_id,
            address: *self.address,
            nonce: *self.nonce,
            // Any parity other than 0 and 1 is invalid, but may be in a block.
            y_parity: u8::try_from(*self.y_parity).unwrap_or(u8::MAX),
            r: *self.r,
            s: *self.s,
        }
    }
}
