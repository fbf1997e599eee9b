//! Checking what a Merkle Patricia trie holds, given only its root (Yellow Paper, appendix D).

mod nibbles;
mod proof;

pub use nibbles::NibblePath;
pub use proof::{MalformedNode, ProofError, verify_proof};
