//! Verification of a proof for one key, given only the root of the trie.

use super::NibblePath;
use crate::consensus::EMPTY_ROOT;
use crate::{Bytes, H256, keccak256_all};
use rlp::{DecoderError, Rlp};

/// Verifies a proof for `key` in the trie with the hash `root`. Returns the value of the key, or `None` if the proof
/// shows that the trie does not contain the key.
///
/// A proof consists of the RLP of exactly the nodes on the path from the root towards the key, in order, without
/// nodes that are embedded in their parents. Only the proof for an empty trie is empty.
///
/// # Errors
/// Fails if the proof shows neither. Nodes with paths longer than 64 nibbles are malformed.
///
/// # Panics
/// If `key` is longer than 32 bytes.
pub fn verify_proof<N: AsRef<[u8]>>(root: H256, key: &[u8], proof: &[N]) -> Result<Option<Bytes>, ProofError> {
    let mut walk = Walk { key: NibblePath::of_key(key), position: NibblePath::ROOT };
    // Hashed together, which is faster than one after the other.
    let mut nodes = proof.iter().map(AsRef::as_ref).zip(keccak256_all(proof)).enumerate();
    let mut depth = 0;
    let mut next = if root == EMPTY_ROOT { Next::Absent } else { Next::Hash(root) };
    loop {
        let inline;
        let encoded: &[u8] = match next {
            Next::Absent | Next::Value(_) => break,
            Next::Hash(expected) => {
                let (index, (node, got)) = nodes.next().ok_or(ProofError::Incomplete { missing: expected })?;
                if got != expected {
                    return Err(ProofError::HashMismatch { index, got, expected });
                }
                depth = index;
                // Only the root may be shorter than its hash.
                if index > 0 && node.len() < 32 {
                    return Err(ProofError::Malformed { index, source: MalformedNode::Reference });
                }
                node
            }
            Next::Inline(node) => {
                inline = node;
                &inline
            }
        };
        next = walk.step(encoded).map_err(|source| ProofError::Malformed { index: depth, source })?;
    }
    match (nodes.next(), next) {
        (Some((index, _)), _) => Err(ProofError::Surplus { index }),
        (None, Next::Value(value)) => Ok(Some(value)),
        (None, _) => Ok(None),
    }
}

/// Why a proof is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    #[error("proof node {index} has the hash {got:#x}, expected {expected:#x}")]
    HashMismatch { index: usize, got: H256, expected: H256 },
    #[error("the proof ends before the node with the hash {missing:#x}")]
    Incomplete { missing: H256 },
    #[error("proof node {index} is not on the way to the key")]
    Surplus { index: usize },
    #[error("proof node {index} is malformed")]
    Malformed { index: usize, source: MalformedNode },
}

/// Why bytes are not the RLP of a trie node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedNode {
    #[error("invalid RLP")]
    Rlp(#[from] DecoderError),
    #[error("neither a leaf, an extension nor a branch")]
    Shape,
    #[error("invalid path")]
    Path,
    #[error("invalid reference to a node")]
    Reference,
}

/// What follows from a node.
enum Next {
    Absent,
    Value(Bytes),
    Hash(H256),
    Inline(Vec<u8>),
}

struct Walk {
    key: NibblePath,
    /// The prefix of the key that the nodes have consumed so far.
    position: NibblePath,
}

impl Walk {
    /// Advances through one node.
    fn step(&mut self, encoded: &[u8]) -> Result<Next, MalformedNode> {
        match items(encoded)?.as_slice() {
            [path, entry] => {
                let (path, leaf) = self.position.join_compact(&string(path)?).ok_or(MalformedNode::Path)?;
                let (next, is_on_the_way) = if leaf {
                    (value(entry)?, path == self.key)
                } else {
                    (reference(entry)?, self.key.starts_with(&path))
                };
                self.position = path;
                Ok(if is_on_the_way { next } else { Next::Absent })
            }
            [children @ .., entry] if children.len() == 16 => {
                let value = value(entry)?;
                if !children.iter().all(|child| is_reference(child.as_raw())) {
                    return Err(MalformedNode::Reference);
                }
                if self.position == self.key {
                    return Ok(value);
                }
                let nibble = self.key.nibble(self.position.len());
                self.position = self.position.child(nibble);
                reference(&children[usize::from(nibble)])
            }
            _ => Err(MalformedNode::Shape),
        }
    }
}

/// Returns the items of a list whose encoding fills `encoded` exactly.
fn items(encoded: &[u8]) -> Result<Vec<Rlp<'_>>, MalformedNode> {
    let list = Rlp::new(encoded);
    let payload = list.payload_info()?;
    let items: Vec<_> = list.iter().collect();
    // The iterator ends at the first malformed item.
    let length: usize = items.iter().map(|item| item.as_raw().len()).sum();
    if list.is_list() && payload.total() == encoded.len() && payload.value_len == length {
        Ok(items)
    } else {
        Err(MalformedNode::Shape)
    }
}

fn string(item: &Rlp<'_>) -> Result<Vec<u8>, MalformedNode> {
    Ok(item.decoder().decode_value(|bytes| Ok(bytes.to_vec()))?)
}

fn value(item: &Rlp<'_>) -> Result<Next, MalformedNode> {
    let value = string(item)?;
    Ok(if value.is_empty() { Next::Absent } else { Next::Value(value.into()) })
}

fn reference(item: &Rlp<'_>) -> Result<Next, MalformedNode> {
    match item.as_raw() {
        encoded if !is_reference(encoded) => Err(MalformedNode::Reference),
        [0x80] => Ok(Next::Absent),
        [0xa0, hash @ ..] => Ok(Next::Hash(H256::from_slice(hash))),
        node => Ok(Next::Inline(node.to_vec())),
    }
}

/// Returns whether `encoded` is empty, a hash, or a node that is shorter than its hash.
fn is_reference(encoded: &[u8]) -> bool {
    match encoded {
        [0x80] => true,
        [0xa0, hash @ ..] => hash.len() == 32,
        [first, ..] => *first >= 0xc0 && encoded.len() < 32,
        [] => false,
    }
}
