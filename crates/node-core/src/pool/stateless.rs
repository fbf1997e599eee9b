//! Checks that do not need the state.

use super::{NextBlockRules, PoolError, PoolLimits};
use crate::executor::{Property, TransactionError};
use crate::protocol::gas::{floor_gas, intrinsic_gas};
use crate::protocol::{Fork, blobs};
use node_types::U256;
use node_types::consensus::{BlobSidecar, TransactionBody, TransactionType};

/// Maximum length of an encoded transaction without blobs, in bytes.
const MAX_SIZE: usize = 128 << 10;

/// Maximum length of an encoded blob transaction in bytes, not counting the blobs.
const MAX_BLOB_TRANSACTION_SIZE: usize = 1 << 20;

/// Returns all reasons for rejecting a transaction that can be determined without the state. `size` is the length of
/// its encoding in bytes, not counting blobs.
pub(super) fn check(
    next: &NextBlockRules,
    chain_id: u64,
    limits: &PoolLimits,
    body: &TransactionBody,
    sidecar: Option<&BlobSidecar>,
    size: usize,
) -> Vec<PoolError> {
    let mut reasons = Vec::new();
    let transaction_type = body.transaction_type();
    if !next.fork.allows(transaction_type) {
        reasons.push(TransactionError::TypeNotSupported(transaction_type as u8).into());
    }
    if let Some(got) = body.chain_id() {
        if next.fork < Fork::SpuriousDragon {
            reasons.push(TransactionError::ReplayProtectionTooEarly { chain_id: got }.into());
        }
        if got != chain_id {
            reasons.push(TransactionError::ChainId { got, expected: chain_id }.into());
        }
    }
    let is_blob = transaction_type == TransactionType::Blob;
    let limit = if is_blob { MAX_BLOB_TRANSACTION_SIZE } else { MAX_SIZE };
    if size > limit {
        reasons.push(PoolError::Oversized { size, limit });
    }
    if body.nonce() == u64::MAX {
        reasons.push(TransactionError::NonceOverflow.into());
    }
    check_gas(next, body, &mut reasons);
    check_price(limits, body, &mut reasons);
    if let TransactionBody::Blob(_) = body {
        check_blobs(next, body, &mut reasons);
    }
    if let TransactionBody::SetCode(tx) = body
        && tx.authorization_list.is_empty()
    {
        reasons.push(TransactionError::NoAuthorizations.into());
    }
    match sidecar {
        None if is_blob => reasons.push(PoolError::MissingSidecar),
        Some(_) if !is_blob => reasons.push(PoolError::UnexpectedSidecar),
        Some(BlobSidecar::V1 { .. }) if next.fork < Fork::Osaka => {
            reasons.push(PoolError::SidecarVersion { got: 1, expected: 0 });
        }
        _ => {}
    }
    reasons
}

fn check_gas(next: &NextBlockRules, body: &TransactionBody, reasons: &mut Vec<PoolError>) {
    let limit = body.gas_limit();
    if limit > next.gas_limit {
        reasons.push(TransactionError::BlockGasExceeded { limit, available: next.gas_limit }.into());
    }
    if let Some(cap) = next.transaction_gas_cap.filter(|cap| limit > *cap) {
        reasons.push(TransactionError::GasLimitCap { limit, cap }.into());
    }
    let intrinsic = intrinsic_gas(next.fork, body);
    if limit < intrinsic {
        reasons.push(TransactionError::IntrinsicGas { limit, required: intrinsic }.into());
    }
    let floor = floor_gas(next.fork, body).filter(|floor| *floor > intrinsic);
    if let Some(required) = floor.filter(|required| limit < *required) {
        reasons.push(TransactionError::FloorGas { limit, required }.into());
    }
    let length = body.input().len();
    if let Some(limit) = next.init_code_limit.filter(|limit| body.to().is_none() && length > *limit) {
        reasons.push(TransactionError::InitCodeTooLong { length, limit }.into());
    }
}

fn check_price(limits: &PoolLimits, body: &TransactionBody, reasons: &mut Vec<PoolError>) {
    let (tip, cap) = (body.max_priority_fee_per_gas(), body.max_fee_per_gas());
    if tip > cap {
        reasons.push(TransactionError::TipAboveFeeCap { tip, cap }.into());
    }
    if tip < limits.minimum_tip.into() {
        reasons.push(PoolError::TipTooLow { cap: Property::tip_of(body), tip, minimum: limits.minimum_tip });
    }
    if let TransactionBody::Blob(tx) = body
        && tx.max_fee_per_blob_gas.is_zero()
    {
        // The blob base fee is never below 1 wei, so the transaction could never be mined.
        let base_fee = U256::one();
        reasons.push(TransactionError::BlobFeeCapTooLow { cap: tx.max_fee_per_blob_gas, base_fee }.into());
    }
}

fn check_blobs(next: &NextBlockRules, body: &TransactionBody, reasons: &mut Vec<PoolError>) {
    let hashes = body.blob_versioned_hashes();
    let count = hashes.len() as u64;
    if count == 0 {
        reasons.push(TransactionError::NoBlobs.into());
    }
    if let Some(params) = next.blob_params {
        let limit = blobs::max_blobs_per_transaction(next.fork).map_or(params.max, |most| most.min(params.max));
        if count > limit {
            reasons.push(TransactionError::TooManyBlobs { count, limit }.into());
        }
    }
    if let Some((index, hash)) = blobs::unknown_version(hashes) {
        reasons.push(TransactionError::BlobVersion { index, hash }.into());
    }
}
