//! Payloads in the format of the Engine API.

use super::Hex;
use super::block::Withdrawal;
use node_core::node::{BlockRequest, BuiltBlock};
use node_types::U256;
use node_types::consensus::{BlobSidecar, Bloom};
use node_types::wire::{AddressData, BytesData, Data, HashData};
use serde::{Deserialize, Serialize};

/// The attributes of a block to build.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayloadAttributes {
    timestamp: Hex<u64>,
    prev_randao: HashData,
    suggested_fee_recipient: AddressData,
    withdrawals: Option<Vec<Withdrawal>>,
    parent_beacon_block_root: Option<HashData>,
}

/// A built block with its value, blobs and requests.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuiltPayload {
    execution_payload: Payload,
    block_value: Hex<U256>,
    blobs_bundle: BlobsBundle,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_requests: Option<Vec<BytesData>>,
    should_override_builder: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    parent_hash: HashData,
    fee_recipient: AddressData,
    state_root: HashData,
    receipts_root: HashData,
    logs_bloom: Data<Bloom>,
    prev_randao: HashData,
    block_number: Hex<u64>,
    gas_limit: Hex<u64>,
    gas_used: Hex<u64>,
    timestamp: Hex<u64>,
    extra_data: BytesData,
    base_fee_per_gas: Hex<u64>,
    block_hash: HashData,
    transactions: Vec<BytesData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawals: Option<Vec<Withdrawal>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<Hex<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_blob_gas: Option<Hex<u64>>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct BlobsBundle {
    commitments: Vec<BytesData>,
    proofs: Vec<BytesData>,
    blobs: Vec<BytesData>,
}

impl PayloadAttributes {
    /// Returns the request for a block with these attributes on top of `parent`.
    pub(crate) fn request(
        self,
        parent: HashData,
        transactions: Option<Vec<BytesData>>,
        extra_data: Option<BytesData>,
    ) -> BlockRequest {
        BlockRequest {
            parent: parent.0,
            timestamp: self.timestamp.0,
            prev_randao: self.prev_randao.0,
            fee_recipient: self.suggested_fee_recipient.0,
            withdrawals: Withdrawal::read_all(self.withdrawals.unwrap_or_default()),
            parent_beacon_block_root: self.parent_beacon_block_root.map(|root| root.0),
            transactions: transactions.map(|all| all.into_iter().map(|bytes| bytes.0).collect()),
            extra_data: extra_data.unwrap_or_default().0,
        }
    }
}

impl From<BuiltBlock> for BuiltPayload {
    fn from(built: BuiltBlock) -> Self {
        let BuiltBlock { block, sidecars, requests, value } = built;
        let header = &block.header.header;
        let transactions = block.body.transactions.iter();
        let execution_payload = Payload {
            parent_hash: Data(header.parent_hash),
            fee_recipient: Data(header.beneficiary),
            state_root: Data(header.state_root),
            receipts_root: Data(header.receipts_root),
            logs_bloom: Data(header.logs_bloom),
            prev_randao: Data(header.mix_hash),
            block_number: Hex(header.number),
            gas_limit: Hex(header.gas_limit),
            gas_used: Hex(header.gas_used),
            timestamp: Hex(header.timestamp),
            extra_data: Data(header.extra_data.clone()),
            base_fee_per_gas: Hex(header.base_fee_per_gas.unwrap_or(0)),
            block_hash: Data(block.header.hash),
            transactions: transactions.map(|recovered| Data(recovered.transaction.encode().into())).collect(),
            withdrawals: block.body.withdrawals.as_ref().map(|all| all.iter().map(Withdrawal::of).collect()),
            blob_gas_used: header.blob_gas_used.map(Hex),
            excess_blob_gas: header.excess_blob_gas.map(Hex),
        };
        let encoded = |requests: Vec<node_types::consensus::Request>| {
            requests.iter().map(|request| Data(request.encode().into())).collect()
        };
        Self {
            execution_payload,
            block_value: Hex(value),
            blobs_bundle: BlobsBundle::of(&sidecars),
            execution_requests: requests.map(encoded),
            should_override_builder: false,
        }
    }
}

impl BlobsBundle {
    fn of(sidecars: &[BlobSidecar]) -> Self {
        let mut bundle = Self::default();
        for sidecar in sidecars {
            bundle.commitments.extend(sidecar.commitments().iter().cloned().map(Data));
            bundle.proofs.extend(sidecar.proofs().iter().cloned().map(Data));
            bundle.blobs.extend(sidecar.blobs().iter().cloned().map(Data));
        }
        bundle
    }
}
