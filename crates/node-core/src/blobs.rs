//! What a transaction's blobs must be like, wherever it is.

use crate::forks::Fork;
use node_types::H256;

/// Most blobs a transaction since Osaka (EIP-7594).
const MAX_BLOBS_PER_TRANSACTION: u64 = 6;

/// First byte of the versioned hash of a KZG commitment (EIP-4844).
const KZG_VERSION: u8 = 1;

/// Most blobs a transaction, beside what its block allows; none before Osaka.
pub fn max_blobs_per_transaction(fork: Fork) -> Option<u64> {
    (fork >= Fork::Osaka).then_some(MAX_BLOBS_PER_TRANSACTION)
}

/// The first versioned hash of an unknown version. One is enough to refuse a transaction; naming each of thousands would
/// make the answer larger than the question.
pub fn unknown_version(versioned_hashes: &[H256]) -> Option<H256> {
    versioned_hashes.iter().find(|hash| hash[0] != KZG_VERSION).copied()
}
