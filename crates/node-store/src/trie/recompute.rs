//! Computing a trie from its leaves.

use super::row::{FROM_BASE, Node};
use super::subtrie;
use super::update::Source;
use node_core::trie::{NibblePath, Reference};
use node_types::consensus::EMPTY_ROOT;
use node_types::{H256, keccak256};

/// Why a trie cannot be computed.
#[derive(Debug)]
pub(crate) enum RecomputeError<E> {
    /// A node or value cannot be read.
    Read(E),
    /// A parent refers to another node than the one at the position.
    WrongReference {
        /// Position of the node.
        position: NibblePath,
        /// The reference in the parent, as RLP.
        expected: Vec<u8>,
        /// The reference to the stored node, as RLP; empty if there is no node.
        found: Vec<u8>,
    },
}

impl<E> From<E> for RecomputeError<E> {
    fn from(error: E) -> Self {
        Self::Read(error)
    }
}

/// Reads every node and, in ascending order, the value of every leaf, and returns the root hash. Only one path of
/// nodes is in memory at a time.
///
/// `root` is the expected hash. If the trie continues one of the base, what has no row is not read: it is as its parent
/// says.
pub(crate) fn recompute<S: Source>(source: &mut S, root: H256) -> Result<H256, RecomputeError<S::Error>> {
    Ok(match compute(source, NibblePath::ROOT, None)? {
        Computed::Unchanged => root,
        Computed::Reference(reference) => reference.hash().unwrap_or_default(),
        Computed::Encoded(encoded) => keccak256(encoded),
        Computed::Nothing => EMPTY_ROOT,
    })
}

/// What was computed of a node.
enum Computed {
    Nothing,
    Encoded(Vec<u8>),
    /// Only the reference is known.
    Reference(Reference),
    /// It is as in the base.
    Unchanged,
}

/// Computes the node at a position from its children, given the reference in its parent.
fn compute<S: Source>(
    source: &mut S,
    position: NibblePath,
    reference: Option<&Reference>,
) -> Result<Computed, RecomputeError<S::Error>> {
    let stored = source.node(&position, reference)?;
    if stored.age == FROM_BASE {
        return Ok(Computed::Unchanged);
    }
    let branch = match &stored.node {
        Node::Empty => return Ok(Computed::Nothing),
        Node::Leaves(paths) => {
            let leaves = source.leaves(paths)?;
            return Ok(Computed::Encoded(subtrie::encode(&leaves, position.len(), None, &mut Vec::new())));
        }
        Node::Branch(branch) => branch,
        Node::Opaque(opaque) => {
            let extension = opaque.encode_at(position.len());
            return Ok(extension.map_or(Computed::Reference(opaque.branch), Computed::Encoded));
        }
    };
    for (nibble, expected) in (0..).zip(&branch.children).filter(|(_, child)| !child.is_none()) {
        let child = branch.path.child(nibble);
        let found = match compute(source, child, Some(expected))? {
            Computed::Unchanged => continue,
            Computed::Nothing => None,
            Computed::Encoded(encoded) => Some(Reference::to(&encoded)),
            Computed::Reference(reference) => Some(reference),
        };
        if found != Some(*expected) {
            let found = found.map(|found| found.as_rlp().to_vec()).unwrap_or_default();
            let expected = expected.as_rlp().to_vec();
            return Err(RecomputeError::WrongReference { position: child, expected, found });
        }
    }
    Ok(Computed::Encoded(branch.encode_at(position.len())))
}
