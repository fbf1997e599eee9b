mod follow;
mod hostile;
mod memory;
mod order;
mod properties;
mod records;
mod rules;

use super::{AddError, Pool, PoolError, PoolLimits};
use crate::block::RecoveredTransaction;
use crate::test_world::{account, signed, transfer};
use node_types::consensus::{BlobSidecar, BlobTransaction, DynamicFeeTransaction, PooledTransaction, TransactionBody};
use node_types::{Bytes, H256};

/// Returns a transaction without blobs in the form in which it is sent.
fn sent(body: TransactionBody, sender: u8) -> PooledTransaction {
    PooledTransaction { transaction: signed(body, account(sender)), sidecar: None }
}

/// Returns a transfer with a fee cap and a tip cap of `tip`.
fn priced(sender: u8, nonce: u64, tip: u64) -> PooledTransaction {
    let tx = DynamicFeeTransaction {
        max_fee_per_gas: (10_000 + tip).into(),
        max_priority_fee_per_gas: tip.into(),
        ..transfer(nonce)
    };
    sent(TransactionBody::DynamicFee(tx), sender)
}

fn blob_body(nonce: u64, blobs: u8) -> BlobTransaction {
    let DynamicFeeTransaction { chain_id, max_priority_fee_per_gas, max_fee_per_gas, gas_limit, value, .. } =
        transfer(nonce);
    BlobTransaction {
        chain_id,
        nonce,
        max_priority_fee_per_gas,
        max_fee_per_gas,
        gas_limit,
        value,
        to: account(9),
        max_fee_per_blob_gas: 1_000.into(),
        blob_versioned_hashes: (0..blobs).map(|index| versioned_hash(1, index)).collect(),
        ..Default::default()
    }
}

fn versioned_hash(version: u8, index: u8) -> H256 {
    let mut hash = H256::repeat_byte(index);
    hash.0[0] = version;
    hash
}

/// Returns a version 0 sidecar with very small blobs.
fn sidecar(blobs: usize) -> BlobSidecar {
    let items = |length| vec![Bytes::from(vec![7; length]); blobs];
    BlobSidecar::V0 { blobs: items(64), commitments: items(48), proofs: items(48) }
}

fn blob_transaction(sender: u8, nonce: u64, blobs: u8) -> PooledTransaction {
    let body = TransactionBody::Blob(blob_body(nonce, blobs));
    PooledTransaction { sidecar: Some(sidecar(blobs.into())), ..sent(body, sender) }
}

/// Adds a transaction that must be accepted.
fn add(pool: &Pool, transaction: PooledTransaction) -> H256 {
    pool.add_transaction(transaction).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the reasons for rejecting a transaction, which must be rejected.
fn refused(pool: &Pool, transaction: PooledTransaction) -> Vec<PoolError> {
    match pool.add_transaction(transaction) {
        Err(AddError::Rejected(rejection)) => rejection.reasons,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

/// Returns a transaction of the pool in the form of a block.
fn mined(pool: &Pool, hash: H256) -> RecoveredTransaction {
    pool.get(hash).expect("in the pool").recovered.clone()
}

fn small_limits() -> PoolLimits {
    PoolLimits {
        transactions: 12,
        bytes: 4_000,
        queued: 6,
        queued_per_account: 4,
        guaranteed_per_account: 2,
        ..PoolLimits::default()
    }
}
