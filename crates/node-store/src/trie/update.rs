//! Changing a trie: a batch of leaves results in the rows of one block.

use super::row::{self, Branch, Node, Stored};
use crate::error::StoreError;
use node_core::trie::{NibblePath, Reference, encode_leaf};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256, keccak256};
use std::sync::Arc;

/// Reads nodes and the values of leaves.
pub(crate) trait Source {
    /// Why a node or value cannot be read.
    type Error;

    /// Returns the node at a position before the change.
    fn node(&mut self, position: &NibblePath) -> Result<Arc<Stored>, Self::Error>;

    /// Returns the RLP of the value of a leaf that does not change.
    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, Self::Error>;
}

/// The path of a leaf with its new value as RLP, or `None` to remove the leaf.
pub(crate) type Change = (NibblePath, Option<Bytes>);

/// The result of a change.
pub(crate) struct Update {
    /// The root hash.
    pub(crate) root: H256,
    /// A row for each position that changed.
    pub(crate) rows: Vec<NewRow>,
}

/// The row of a position, with the node that it encodes.
pub(crate) struct NewRow {
    pub(crate) position: NibblePath,
    pub(crate) value: Vec<u8>,
    pub(crate) stored: Stored,
}

/// Applies `changes` to the trie in `source`. They must be in ascending order of distinct paths.
pub(crate) fn update(source: &mut dyn Source<Error = StoreError>, changes: &[Change]) -> Result<Update, StoreError> {
    let mut updater = Updater { source, rows: Vec::new() };
    let old = updater.source.node(&NibblePath::ROOT)?;
    let new = updater.change(NibblePath::ROOT, &old.node, changes)?;
    let root = new.encode_at(0).map_or(EMPTY_ROOT, keccak256);
    updater.write(NibblePath::ROOT, &old, new.into_node());
    Ok(Update { root, rows: updater.rows })
}

/// A new node whose position is not decided yet.
enum New {
    Empty,
    Leaf(NibblePath, Bytes),
    Branch(Box<Branch>),
}

impl New {
    fn encode_at(&self, start: usize) -> Option<Vec<u8>> {
        match self {
            Self::Empty => None,
            Self::Leaf(path, value) => Some(encode_leaf(path, start, value)),
            Self::Branch(branch) => Some(branch.encode_at(start)),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn into_node(self) -> Node {
        match self {
            Self::Empty => Node::Empty,
            Self::Leaf(path, _) => Node::Leaf(path),
            Self::Branch(branch) => Node::Branch(branch),
        }
    }
}

/// A child that may have changed: its nibble, the stored node, and the new one.
type Touched = (u8, Arc<Stored>, New);

struct Updater<'a> {
    source: &'a mut dyn Source<Error = StoreError>,
    rows: Vec<NewRow>,
}

impl Updater<'_> {
    /// Applies `changes`, which are all below `position`, to the node `old` at that position. The caller writes the row
    /// of the position itself, because it may have to move the node.
    fn change(&mut self, position: NibblePath, old: &Node, changes: &[Change]) -> Result<New, StoreError> {
        match old {
            Node::Empty => self.build(&puts(changes)),
            Node::Leaf(path) => {
                let mut leaves = puts(changes);
                if let Err(index) = changes.binary_search_by(|(other, _)| other.packed().cmp(path.packed())) {
                    let before = changes[..index].iter().filter(|(_, value)| value.is_some()).count();
                    leaves.insert(before, (*path, self.source.value(path)?));
                }
                self.build(&leaves)
            }
            Node::Branch(branch) => self.change_branch(position, branch, changes),
        }
    }

    fn change_branch(&mut self, position: NibblePath, branch: &Branch, changes: &[Change]) -> Result<New, StoreError> {
        let parting = changes.iter().filter(|(_, value)| value.is_some()).map(|(path, _)| path.common(&branch.path));
        let shared = parting.min().unwrap_or(64).min(branch.path.len());
        if shared == branch.path.len() {
            let mut touched = Vec::new();
            for (nibble, changes) in groups(changes, &branch.path) {
                let child = branch.path.child(nibble);
                let old = match branch.children[usize::from(nibble)].is_none() {
                    true => Arc::new(Stored::NOTHING),
                    false => self.source.node(&child)?,
                };
                let new = self.change(child, &old.node, changes)?;
                touched.push((nibble, old, new));
            }
            return self.finish(branch.clone(), touched);
        }
        // The extension is split: a new branch becomes the parent of the old one.
        debug_assert!(shared >= position.len());
        let path = branch.path.prefix(shared);
        let branch_nibble = branch.path.nibble(shared);
        let mut touched: Vec<Touched> = Vec::new();
        let mut moved = false;
        for (nibble, changes) in groups(changes, &path) {
            let child = path.child(nibble);
            let new = if nibble == branch_nibble {
                moved = true;
                self.change_branch(child, branch, changes)?
            } else {
                self.build(&puts(changes))?
            };
            touched.push((nibble, Arc::new(Stored::NOTHING), new));
        }
        if !moved {
            touched.push((branch_nibble, Arc::new(Stored::NOTHING), New::Branch(Box::new(branch.clone()))));
        }
        self.finish(Branch::new(path), touched)
    }

    /// Returns the subtrie of `leaves`, which must be ascending by path.
    fn build(&mut self, leaves: &[(NibblePath, Bytes)]) -> Result<New, StoreError> {
        let (first, last) = match leaves {
            [] => return Ok(New::Empty),
            [(path, value)] => return Ok(New::Leaf(*path, value.clone())),
            [first, .., last] => (first.0, last.0),
        };
        let path = first.prefix(first.common(&last));
        let mut touched = Vec::new();
        for group in leaves.chunk_by(|(a, _), (b, _)| a.nibble(path.len()) == b.nibble(path.len())) {
            let nibble = group[0].0.nibble(path.len());
            touched.push((nibble, Arc::new(Stored::NOTHING), self.build(group)?));
        }
        self.finish(Branch::new(path), touched)
    }

    /// Returns `branch` with its new children, or the node that replaces it if fewer than two children are left.
    fn finish(&mut self, mut branch: Branch, touched: Vec<Touched>) -> Result<New, StoreError> {
        let mut left = branch.children.map(|child| !child.is_none());
        touched.iter().for_each(|(nibble, _, new)| left[usize::from(*nibble)] = !new.is_empty());
        let mut nibbles = (0..16u8).filter(|nibble| left[usize::from(*nibble)]);
        let (first, second) = (nibbles.next(), nibbles.next());
        let only = match (first, second) {
            (Some(only), None) => Some(only),
            (None, _) => None,
            _ => {
                for (nibble, old, new) in touched {
                    let child = branch.path.child(nibble);
                    let reference = new.encode_at(child.len()).map_or(Reference::NONE, |rlp| Reference::to(&rlp));
                    branch.children[usize::from(nibble)] = reference;
                    self.write(child, &old, new.into_node());
                }
                return Ok(New::Branch(Box::new(branch)));
            }
        };
        let mut survivor = None;
        for (nibble, old, new) in touched {
            self.write(branch.path.child(nibble), &old, Node::Empty);
            if only == Some(nibble) {
                survivor = Some(new);
            }
        }
        match (survivor, only) {
            (Some(survivor), _) => Ok(survivor),
            (None, None) => Ok(New::Empty),
            (None, Some(nibble)) => {
                let position = branch.path.child(nibble);
                let old = self.source.node(&position)?;
                self.write(position, &old, Node::Empty);
                Ok(match &old.node {
                    Node::Empty => return Err(StoreError::Missing { table: "trie" }),
                    Node::Leaf(path) => New::Leaf(*path, self.source.value(path)?),
                    Node::Branch(branch) => New::Branch(branch.clone()),
                })
            }
        }
    }

    fn write(&mut self, position: NibblePath, old: &Stored, node: Node) {
        if let Some((value, age)) = row::encode(old, &node, position.len()) {
            self.rows.push(NewRow { position, value, stored: Stored { node, age } });
        }
    }
}

/// Returns the leaves that are set.
fn puts(changes: &[Change]) -> Vec<(NibblePath, Bytes)> {
    changes.iter().filter_map(|(path, value)| Some((*path, value.clone()?))).collect()
}

/// Groups the changes below `branch` by the nibble that follows its path. Changes that are not below it remove leaves
/// that do not exist.
fn groups<'a>(changes: &'a [Change], branch: &NibblePath) -> impl Iterator<Item = (u8, &'a [Change])> {
    let length = branch.len();
    let below = |(path, _): &Change| path.starts_with(branch);
    let start = changes.iter().position(below).unwrap_or(changes.len());
    let count = changes[start..].iter().take_while(|change| below(change)).count();
    let chunks = changes[start..start + count].chunk_by(move |(a, _), (b, _)| a.nibble(length) == b.nibble(length));
    chunks.map(move |chunk| (chunk[0].0.nibble(length), chunk))
}
