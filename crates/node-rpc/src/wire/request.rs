//! Transactions to send.

use super::loose::Loose;
use super::transaction::{AccessListItem, Authorization};
use crate::error::RpcError;
use node_core::node::TransactionRequest as Request;
use node_types::consensus::{BlobSidecar, TransactionType};
use node_types::wire::{AddressData, BytesData, HashData};
use node_types::{Bytes, U256};
use serde::Deserialize;

/// Number of cells, and therefore of cell proofs, of a blob (EIP-7594).
const CELLS_PER_BLOB: usize = 128;

/// The fields of a transaction. The node fills in missing fields; unknown ones are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TransactionRequest {
    #[serde(rename = "type")]
    transaction_type: Option<Loose<u64>>,
    chain_id: Option<Loose<u64>>,
    from: Option<AddressData>,
    to: Option<AddressData>,
    gas: Option<Loose<u64>>,
    gas_limit: Option<Loose<u64>>,
    gas_price: Option<Loose<U256>>,
    max_fee_per_gas: Option<Loose<U256>>,
    max_priority_fee_per_gas: Option<Loose<U256>>,
    max_fee_per_blob_gas: Option<Loose<U256>>,
    nonce: Option<Loose<u64>>,
    value: Option<Loose<U256>>,
    data: Option<BytesData>,
    input: Option<BytesData>,
    access_list: Option<Vec<AccessListItem>>,
    blob_versioned_hashes: Option<Vec<HashData>>,
    blobs: Option<Vec<BytesData>>,
    commitments: Option<Vec<BytesData>>,
    proofs: Option<Vec<BytesData>>,
    authorization_list: Option<Vec<Authorization>>,
}

impl TransactionRequest {
    /// Sets the sender to the zero address if it is missing.
    pub(crate) fn of_anyone(mut self) -> Self {
        self.from.get_or_insert_default();
        self
    }

    /// Converts the request, which is the parameter at `position`.
    pub(crate) fn read(self, position: usize) -> Result<Request, RpcError> {
        self.request().map_err(|reason| RpcError::argument(position, reason))
    }

    fn request(self) -> Result<Request, String> {
        let from = self.from.ok_or("missing from: the sender must be named")?;
        let input = match (self.data, self.input) {
            (Some(data), Some(input)) if data != input => {
                return Err(
                    "both \"data\" and \"input\" are set and not equal, use \"input\" to pass call data".to_owned()
                );
            }
            (data, input) => input.or(data).unwrap_or_default(),
        };
        let lists = |all: Vec<BytesData>| all.into_iter().map(|item| item.0).collect::<Vec<Bytes>>();
        let sidecar = match (self.blobs, self.commitments, self.proofs) {
            (None, None, None) => None,
            (Some(blobs), Some(commitments), Some(proofs)) => {
                let (blobs, commitments, proofs) = (lists(blobs), lists(commitments), lists(proofs));
                Some(if !blobs.is_empty() && proofs.len() == blobs.len() * CELLS_PER_BLOB {
                    BlobSidecar::V1 { blobs, commitments, cell_proofs: proofs }
                } else {
                    BlobSidecar::V0 { blobs, commitments, proofs }
                })
            }
            _ => return Err("blobs must come with their commitments and proofs".to_owned()),
        };
        Ok(Request {
            transaction_type: self.transaction_type.map(|kind| known_type(kind.0)).transpose()?,
            chain_id: self.chain_id.map(|id| id.0),
            from: from.0,
            to: self.to.map(|to| to.0),
            gas: self.gas.or(self.gas_limit).map(|gas| gas.0),
            gas_price: self.gas_price.map(|price| price.0),
            max_fee_per_gas: self.max_fee_per_gas.map(|fee| fee.0),
            max_priority_fee_per_gas: self.max_priority_fee_per_gas.map(|fee| fee.0),
            max_fee_per_blob_gas: self.max_fee_per_blob_gas.map(|fee| fee.0),
            nonce: self.nonce.map(|nonce| nonce.0),
            value: self.value.map_or_else(U256::zero, |value| value.0),
            input: input.0,
            access_list: self.access_list.map(|all| all.into_iter().map(AccessListItem::read).collect()),
            blob_versioned_hashes: self.blob_versioned_hashes.map(|all| all.into_iter().map(|hash| hash.0).collect()),
            sidecar,
            authorization_list: self.authorization_list.map(|all| all.into_iter().map(Authorization::read).collect()),
        })
    }
}

fn known_type(number: u64) -> Result<TransactionType, String> {
    let known = u8::try_from(number).ok().and_then(|byte| TransactionType::try_from(byte).ok());
    known.ok_or_else(|| format!("transaction type not supported: {number}"))
}
