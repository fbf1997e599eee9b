//! Computing a trie from its leaves.

use super::row::Node;
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
pub(crate) fn recompute<S: Source>(source: &mut S) -> Result<H256, RecomputeError<S::Error>> {
    Ok(encode(source, NibblePath::ROOT)?.map_or(EMPTY_ROOT, keccak256))
}

/// Returns the RLP of the node at a position, or `None` if there is no node.
fn encode<S: Source>(source: &mut S, position: NibblePath) -> Result<Option<Vec<u8>>, RecomputeError<S::Error>> {
    let stored = source.node(&position)?;
    let branch = match &stored.node {
        Node::Empty => return Ok(None),
        Node::Leaves(paths) => {
            let leaves = source.leaves(paths)?;
            return Ok(Some(subtrie::encode(&leaves, position.len(), None, &mut Vec::new())));
        }
        Node::Branch(branch) => branch,
    };
    for (nibble, expected) in (0..).zip(&branch.children).filter(|(_, child)| !child.is_none()) {
        let child = branch.path.child(nibble);
        let found = encode(source, child)?.map(|encoded| Reference::to(&encoded));
        if found != Some(*expected) {
            let found = found.map(|found| found.as_rlp().to_vec()).unwrap_or_default();
            let expected = expected.as_rlp().to_vec();
            return Err(RecomputeError::WrongReference { position: child, expected, found });
        }
    }
    Ok(Some(branch.encode_at(position.len())))
}
