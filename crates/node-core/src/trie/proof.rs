//! Checking proofs of what a trie holds, from its root alone.

use super::nibbles::Nibbles;
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256, keccak256};
use rlp::{DecoderError, Rlp};

/// Checks that `proof` leads from `root` to `key`; answers the value, or none if the proof shows that there is none.
///
/// A proof holds the nodes on the way in order, without those that stand within their parents, and no others. Only the
/// empty trie has an empty proof.
pub fn verify_proof<N: AsRef<[u8]>>(root: H256, key: &[u8], proof: &[N]) -> Result<Option<Bytes>, ProofError> {
    let nibbles = Nibbles::unpack(key);
    let mut rest = &nibbles[..];
    let mut nodes = proof.iter().map(AsRef::as_ref).enumerate();
    let mut depth = 0;
    let mut next = if root == EMPTY_ROOT { Next::Absent } else { Next::Hash(root) };
    loop {
        let inline;
        let (encoded, fits): (&[u8], fn(usize) -> bool) = match next {
            Next::Absent | Next::Value(_) => break,
            Next::Hash(expected) => {
                let (index, node) = nodes.next().ok_or(ProofError::Incomplete { missing: expected })?;
                let got = keccak256(node);
                if got != expected {
                    return Err(ProofError::HashMismatch { index, got, expected });
                }
                depth = index;
                // Only the root may be shorter than its hash.
                (node, if index == 0 { |_| true } else { |length| length >= 32 })
            }
            Next::Inline(node) => {
                inline = node;
                (&inline, |length| length < 32)
            }
        };
        if !fits(encoded.len()) {
            return Err(ProofError::Malformed { index: depth, source: NodeError::Reference });
        }
        next = step(encoded, &mut rest).map_err(|source| ProofError::Malformed { index: depth, source })?;
    }
    match (nodes.next(), next) {
        (Some((index, _)), _) => Err(ProofError::Surplus { index }),
        (None, Next::Value(value)) => Ok(Some(value)),
        (None, _) => Ok(None),
    }
}

/// Why a proof proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// A node is not the one its parent, or the root, refers to.
    #[error("proof node {index} has the hash {got:#x}, expected {expected:#x}")]
    HashMismatch {
        /// Position in the proof.
        index: usize,
        /// Hash of the node.
        got: H256,
        /// Hash by which it is referred to.
        expected: H256,
    },
    /// The proof ends before the key is decided.
    #[error("the proof ends before the node with the hash {missing:#x}")]
    Incomplete {
        /// Hash of the next node.
        missing: H256,
    },
    /// The key is decided before the proof ends.
    #[error("proof node {index} is not on the way to the key")]
    Surplus {
        /// Position in the proof.
        index: usize,
    },
    /// A node, or one within it, is none.
    #[error("proof node {index} is malformed")]
    Malformed {
        /// Position in the proof.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: NodeError,
    },
}

/// Why bytes are no trie node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// It is not RLP.
    #[error("invalid RLP")]
    Rlp(#[from] DecoderError),
    /// It is RLP of another shape.
    #[error("neither a leaf, an extension nor a branch")]
    Shape,
    /// A path is not in compact encoding.
    #[error("invalid path")]
    Path,
    /// A reference is neither a hash nor a node that is shorter than one.
    #[error("invalid reference to a node")]
    Reference,
}

/// Where the way to the key goes on.
enum Next {
    Absent,
    Value(Bytes),
    Hash(H256),
    Inline(Vec<u8>),
}

/// Goes through one node, taking from `rest` what it decides of the key.
fn step(encoded: &[u8], rest: &mut &[u8]) -> Result<Next, NodeError> {
    match items(encoded)?.as_slice() {
        [path, entry] => {
            let (path, leaf) = Nibbles::from_compact(&string(path)?).ok_or(NodeError::Path)?;
            match rest.strip_prefix(&path[..]) {
                Some([]) if leaf => value(entry),
                None => Ok(Next::Absent),
                Some(_) if leaf => Ok(Next::Absent),
                Some(behind) => {
                    *rest = behind;
                    reference(entry)
                }
            }
        }
        [children @ .., entry] if children.len() == 16 => match rest.split_first() {
            None => value(entry),
            Some((nibble, behind)) => {
                *rest = behind;
                reference(&children[usize::from(*nibble)])
            }
        },
        _ => Err(NodeError::Shape),
    }
}

/// The items of the list `encoded`, which has nothing before, between or behind them.
fn items(encoded: &[u8]) -> Result<Vec<Rlp<'_>>, NodeError> {
    let list = Rlp::new(encoded);
    let payload = list.payload_info()?;
    let items: Vec<_> = list.iter().collect();
    // Iterating ends at the first malformed item.
    let length: usize = items.iter().map(|item| item.as_raw().len()).sum();
    if list.is_list() && payload.total() == encoded.len() && payload.value_len == length {
        Ok(items)
    } else {
        Err(NodeError::Shape)
    }
}

fn string(item: &Rlp<'_>) -> Result<Vec<u8>, NodeError> {
    Ok(item.decoder().decode_value(|bytes| Ok(bytes.to_vec()))?)
}

fn value(item: &Rlp<'_>) -> Result<Next, NodeError> {
    let value = string(item)?;
    Ok(if value.is_empty() { Next::Absent } else { Next::Value(value.into()) })
}

fn reference(item: &Rlp<'_>) -> Result<Next, NodeError> {
    if item.is_list() {
        return Ok(Next::Inline(item.as_raw().to_vec()));
    }
    match string(item)?.as_slice() {
        [] => Ok(Next::Absent),
        hash if hash.len() == 32 => Ok(Next::Hash(H256::from_slice(hash))),
        _ => Err(NodeError::Reference),
    }
}
