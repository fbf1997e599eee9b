//! Proofs of a value, or of its absence.

use super::row::Node;
use super::subtrie::{self, Leaf};
use super::update::Source;
use crate::error::StoreError;
use node_core::trie::{NibblePath, encode_extension};
use node_types::Bytes;

/// Returns the RLP of the nodes on the path from the root towards `leaf`, without nodes that are embedded in their
/// parents. `value` is the RLP of the leaf's value, if the caller has it.
pub(crate) fn prove(
    source: &mut dyn Source<Error = StoreError>,
    leaf: &NibblePath,
    value: Option<&Bytes>,
) -> Result<Vec<Bytes>, StoreError> {
    let mut proof = Vec::new();
    let mut position = NibblePath::ROOT;
    let mut reference = None;
    loop {
        let start = position.len();
        let mut push = |encoded: Vec<u8>| {
            if encoded.len() >= 32 || proof.is_empty() {
                proof.push(Bytes::from(encoded));
            }
        };
        let stored = source.node(&position, reference.as_ref())?;
        let opened;
        let branch = match &stored.node {
            // A parent refers to this position.
            Node::Empty if start > 0 => return Err(StoreError::Missing { table: "trie" }),
            Node::Empty => return Ok(proof),
            Node::Leaves(paths) => {
                source.expect(paths)?;
                let leaves = paths.iter().map(|path| match value {
                    Some(value) if path == leaf => Ok((*path, value.clone())),
                    _ => Ok((*path, source.value(path)?)),
                });
                let leaves: Vec<Leaf> = leaves.collect::<Result<_, StoreError>>()?;
                let mut nodes = Vec::new();
                subtrie::encode(&leaves, start, Some(leaf), &mut nodes);
                nodes.into_iter().rev().for_each(push);
                return Ok(proof);
            }
            Node::Branch(branch) => branch,
            Node::Opaque(opaque) if !leaf.starts_with(&opaque.path) => {
                opaque.encode_at(start).into_iter().for_each(push);
                return Ok(proof);
            }
            Node::Opaque(opaque) => {
                opened = source.open(opaque)?;
                &opened
            }
        };
        let encoded = branch.encode();
        if let Some(extension) = encode_extension(&branch.path, start, &encoded) {
            push(extension);
        }
        if !leaf.starts_with(&branch.path) {
            return Ok(proof);
        }
        push(encoded);
        let nibble = leaf.nibble(branch.path.len());
        let child = branch.children[usize::from(nibble)];
        if child.is_none() {
            return Ok(proof);
        }
        (position, reference) = (branch.path.child(nibble), Some(child));
    }
}
