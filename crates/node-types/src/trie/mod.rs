//! Verification of Merkle Patricia proofs, given only the root of the trie (Yellow Paper, appendix D).

mod nibbles;
mod proof;

pub use nibbles::{CompactPath, NibblePath};
pub use proof::{MalformedNode, ProofError, verify_proof};
