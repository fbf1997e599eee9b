//! Tries of few leaves, computed from these.

use super::row::Branch;
use node_core::trie::{NibblePath, Reference, encode_extension, encode_leaf};
use node_types::Bytes;

/// A leaf: its path, and its value as RLP.
pub(super) type Leaf = (NibblePath, Bytes);

/// Returns the branch that is the lowest common ancestor of `leaves`, without its children. There must be at least two
/// leaves, ascending by path.
pub(super) fn lowest_branch(leaves: &[Leaf]) -> Branch {
    let [(first, _), .., (last, _)] = leaves else { unreachable!("a branch has several leaves") };
    Branch::new(first.prefix(first.common(last)))
}

/// Groups leaves, which must be ascending and below `branch`, by the nibble that follows its path.
pub(super) fn children<'a>(branch: &Branch, leaves: &'a [Leaf]) -> impl Iterator<Item = (u8, &'a [Leaf])> + use<'a> {
    let length = branch.path.len();
    let groups = leaves.chunk_by(move |(a, _), (b, _)| a.nibble(length) == b.nibble(length));
    groups.map(move |group| (group[0].0.nibble(length), group))
}

/// Returns the RLP of the node at a position of `start` nibbles that has these leaves below it. Appends the nodes on
/// the path towards `target`, if there is one, from the lowest to this node.
pub(super) fn encode(leaves: &[Leaf], start: usize, target: Option<&NibblePath>, nodes: &mut Vec<Vec<u8>>) -> Vec<u8> {
    if let [(path, value)] = leaves {
        let leaf = encode_leaf(path, start, value);
        nodes.extend(target.map(|_| leaf.clone()));
        return leaf;
    }
    let mut branch = lowest_branch(leaves);
    let below = target.filter(|target| target.starts_with(&branch.path));
    for (nibble, group) in children(&branch, leaves) {
        let target = below.filter(|target| target.nibble(branch.path.len()) == nibble);
        branch.children[usize::from(nibble)] = Reference::to(&encode(group, branch.path.len() + 1, target, nodes));
    }
    let encoded = branch.encode();
    nodes.extend(below.map(|_| encoded.clone()));
    let Some(extension) = encode_extension(&branch.path, start, &encoded) else { return encoded };
    nodes.extend(target.map(|_| extension.clone()));
    extension
}
