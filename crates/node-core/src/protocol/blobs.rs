//! Rules on the blobs of a transaction, which the pool and the executor share.

use crate::protocol::Fork;
use node_types::consensus::{BlobSidecar, versioned_hash};
use node_types::{Bytes, H256};

/// Maximum number of blobs per transaction since Osaka (EIP-7594).
const MAX_BLOBS_PER_TRANSACTION: u64 = 6;

/// First byte of the versioned hash of a KZG commitment (EIP-4844).
const KZG_VERSION: u8 = 1;

/// Returns the maximum number of blobs per transaction, or `None` before Osaka, when only the block's limit applies.
pub fn max_blobs_per_transaction(fork: Fork) -> Option<u64> {
    (fork >= Fork::Osaka).then_some(MAX_BLOBS_PER_TRANSACTION)
}

/// Returns the blob of `sidecar` with the versioned hash `hash`, or `None` if it has no such blob.
pub(crate) fn find(sidecar: &BlobSidecar, hash: H256) -> Option<Bytes> {
    let index = sidecar.commitments().iter().position(|commitment| versioned_hash(commitment) == hash)?;
    sidecar.blobs().get(index).cloned()
}

/// Returns the first versioned hash of an unknown version and its index, or `None` if all are known.
pub fn unknown_version(versioned_hashes: &[H256]) -> Option<(usize, H256)> {
    versioned_hashes.iter().copied().enumerate().find(|(_, hash)| hash[0] != KZG_VERSION)
}
