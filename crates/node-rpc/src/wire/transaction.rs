//! Transactions.

use super::Hex;
use node_core::block::{RecoveredTransaction, SealedHeader};
use node_core::node::FoundTransaction;
use node_types::consensus::{self, AccessListItem as Item, TransactionBody};
use node_types::wire::{AddressData, BytesData, Data, HashData};
use node_types::{Address, H256, U256};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transaction {
    block_hash: Option<HashData>,
    block_number: Option<Hex<u64>>,
    block_timestamp: Option<Hex<u64>>,
    from: AddressData,
    gas: Hex<u64>,
    gas_price: Hex<U256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_fee_per_gas: Option<Hex<U256>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_priority_fee_per_gas: Option<Hex<U256>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_fee_per_blob_gas: Option<Hex<U256>>,
    hash: HashData,
    input: BytesData,
    nonce: Hex<u64>,
    to: Option<AddressData>,
    transaction_index: Option<Hex<u64>>,
    value: Hex<U256>,
    #[serde(rename = "type")]
    transaction_type: Hex<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_list: Option<Vec<AccessListItem>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<Hex<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_versioned_hashes: Option<Vec<HashData>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization_list: Option<Vec<Authorization>>,
    v: Hex<U256>,
    r: Hex<U256>,
    s: Hex<U256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y_parity: Option<Hex<u64>>,
}

/// An item of an access list (EIP-2930).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccessListItem {
    address: Data<Address>,
    storage_keys: Vec<Data<H256>>,
}

/// A signed authorization (EIP-7702).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Authorization {
    chain_id: Hex<U256>,
    address: AddressData,
    nonce: Hex<u64>,
    #[serde(alias = "v")]
    y_parity: Hex<u64>,
    r: Hex<U256>,
    s: Hex<U256>,
}

impl From<&Item> for AccessListItem {
    fn from(item: &Item) -> Self {
        Self { address: Data(item.address), storage_keys: item.storage_keys.iter().copied().map(Data).collect() }
    }
}

impl AccessListItem {
    /// Converts the item.
    pub(crate) fn read(self) -> Item {
        Item { address: self.address.0, storage_keys: self.storage_keys.into_iter().map(|key| key.0).collect() }
    }
}

impl Transaction {
    /// Converts a transaction of a block or of the pool.
    pub(crate) fn of(found: &FoundTransaction) -> Self {
        match found {
            FoundTransaction::Mined { block, index } if !block.pending => {
                Self::mined(&block.header, *index, found.recovered())
            }
            _ => Self::waiting(found.recovered()),
        }
    }

    /// Converts the transaction at a position of a block.
    pub(crate) fn mined(header: &SealedHeader, index: usize, recovered: &RecoveredTransaction) -> Self {
        Self {
            block_hash: Some(Data(header.hash)),
            block_number: Some(Hex(header.header.number)),
            block_timestamp: Some(Hex(header.header.timestamp)),
            transaction_index: Some(Hex(index as u64)),
            gas_price: Hex(recovered.paid_price(header.header.base_fee_per_gas)),
            ..Self::waiting(recovered)
        }
    }

    /// Converts a transaction that is not mined.
    pub(crate) fn waiting(recovered: &RecoveredTransaction) -> Self {
        let transaction = &recovered.transaction;
        let body = &transaction.body;
        let typed = !matches!(body, TransactionBody::Legacy(_));
        let capped = typed && !matches!(body, TransactionBody::AccessList(_));
        let blob = if let TransactionBody::Blob(blob) = body { Some(blob) } else { None };
        let authorizations = if let TransactionBody::SetCode(body) = body {
            Some(body.authorization_list.iter().map(Authorization::of).collect())
        } else {
            None
        };
        let signature = &transaction.signature;
        Self {
            block_hash: None,
            block_number: None,
            block_timestamp: None,
            from: Data(recovered.sender),
            gas: Hex(body.gas_limit()),
            gas_price: Hex(body.max_fee_per_gas()),
            max_fee_per_gas: capped.then(|| Hex(body.max_fee_per_gas())),
            max_priority_fee_per_gas: capped.then(|| Hex(body.max_priority_fee_per_gas())),
            max_fee_per_blob_gas: blob.map(|blob| Hex(blob.max_fee_per_blob_gas)),
            hash: Data(recovered.hash),
            input: Data(body.input().clone()),
            nonce: Hex(body.nonce()),
            to: body.to().map(Data),
            transaction_index: None,
            value: Hex(body.value()),
            transaction_type: Hex(body.transaction_type() as u64),
            access_list: typed.then(|| body.access_list().iter().map(AccessListItem::from).collect()),
            chain_id: body.chain_id().map(Hex),
            blob_versioned_hashes: blob.map(|blob| blob.blob_versioned_hashes.iter().copied().map(Data).collect()),
            authorization_list: authorizations,
            v: Hex(transaction.v()),
            r: Hex(signature.r),
            s: Hex(signature.s),
            y_parity: typed.then(|| Hex(signature.y_parity.into())),
        }
    }
}

impl Authorization {
    /// Converts the authorization.
    pub(crate) fn read(self) -> consensus::Authorization {
        consensus::Authorization {
            chain_id: self.chain_id.0,
            address: self.address.0,
            nonce: self.nonce.0,
            // Any parity other than 0 and 1 is invalid.
            y_parity: u8::try_from(self.y_parity.0).unwrap_or(u8::MAX),
            r: self.r.0,
            s: self.s.0,
        }
    }

    fn of(authorization: &consensus::Authorization) -> Self {
        Self {
            chain_id: Hex(authorization.chain_id),
            address: Data(authorization.address),
            nonce: Hex(authorization.nonce),
            y_parity: Hex(authorization.y_parity.into()),
            r: Hex(authorization.r),
            s: Hex(authorization.s),
        }
    }
}
