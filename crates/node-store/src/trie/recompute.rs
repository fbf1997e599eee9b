//! Computing a trie again from its leaves.

use super::node::{Node, Reference, encode_leaf, root_hash};
use super::path::Path;
use super::update::Source;
use crate::error::StoreError;
use node_types::H256;
use node_types::consensus::EMPTY_ROOT;

/// A node that is not the one its parent refers to.
#[derive(Debug)]
pub(crate) struct Broken {
    /// Where it is.
    pub(crate) position: Path,
    /// How the parent refers to it, as RLP.
    pub(crate) expected: Vec<u8>,
    /// How it would have to, by what is there; nothing where no node is.
    pub(crate) found: Vec<u8>,
}

/// Reads every node, asks for the value of every leaf in ascending order, and answers the root hash of what is there.
/// Takes memory for one path only.
pub(crate) fn recompute(source: &mut dyn Source) -> Result<Result<H256, Broken>, StoreError> {
    Ok(encode(source, Path::ROOT)?.map(|root| root.map_or(EMPTY_ROOT, |encoded| root_hash(&encoded))))
}

/// The RLP of what is at a position; none where nothing is.
fn encode(source: &mut dyn Source, position: Path) -> Result<Result<Option<Vec<u8>>, Broken>, StoreError> {
    let stored = source.node(&position)?;
    let branch = match &stored.node {
        Node::Empty => return Ok(Ok(None)),
        Node::Leaf(path) => return Ok(Ok(Some(encode_leaf(path, position.len(), &source.value(path)?)))),
        Node::Branch(branch) => branch,
    };
    for (nibble, expected) in (0..).zip(&branch.children).filter(|(_, child)| !child.is_none()) {
        let child = branch.path.child(nibble);
        let found = match encode(source, child)? {
            Ok(found) => found.map(|encoded| Reference::to(&encoded)),
            Err(broken) => return Ok(Err(broken)),
        };
        if found != Some(*expected) {
            let found = found.map(|found| found.item().to_vec()).unwrap_or_default();
            return Ok(Err(Broken { position: child, expected: expected.item().to_vec(), found }));
        }
    }
    Ok(Ok(Some(branch.encode_at(position.len()))))
}
