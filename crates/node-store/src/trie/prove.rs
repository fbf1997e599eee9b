//! Proofs: the nodes from the root on the way to a leaf.

use super::node::{Node, encode_leaf};
use super::path::Path;
use super::update::Source;
use crate::error::StoreError;
use node_types::Bytes;

/// The nodes from the root on the way to `leaf`, as RLP, without those that stand within their parents. `value` is that
/// of the leaf, where it is already known.
pub(crate) fn prove(source: &mut dyn Source, leaf: &Path, value: Option<&[u8]>) -> Result<Vec<Bytes>, StoreError> {
    let mut proof = Vec::new();
    let mut position = Path::ROOT;
    loop {
        let start = position.len();
        let mut push = |encoded: Vec<u8>| {
            if encoded.len() >= 32 || proof.is_empty() {
                proof.push(Bytes::from(encoded));
            }
        };
        let stored = source.node(&position)?;
        match &stored.node {
            // No parent refers to nothing.
            Node::Empty if start > 0 => return Err(StoreError::Missing { table: "trie" }),
            Node::Empty => return Ok(proof),
            Node::Leaf(path) => {
                push(match value {
                    Some(value) if path == leaf => encode_leaf(path, start, value),
                    _ => encode_leaf(path, start, &source.value(path)?),
                });
                return Ok(proof);
            }
            Node::Branch(branch) => {
                let encoded = branch.encode();
                if let Some(extension) = branch.encode_extension(start, &encoded) {
                    push(extension);
                }
                if leaf.common(&branch.path) < branch.path.len() {
                    return Ok(proof);
                }
                push(encoded);
                let nibble = leaf.nibble(branch.path.len());
                if branch.children[usize::from(nibble)].is_none() {
                    return Ok(proof);
                }
                position = branch.path.child(nibble);
            }
        }
    }
}
