//! Changing a trie: one batch of leaves makes the rows of one block.

use super::node::{Branch, Node, Reference, encode_leaf, root_hash};
use super::path::Path;
use super::row::{self, Stored};
use crate::error::StoreError;
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256};
use std::sync::Arc;

/// Where nodes and the values of leaves are read.
pub(crate) trait Source {
    /// The node at a position, before the change.
    fn node(&mut self, position: &Path) -> Result<Arc<Stored>, StoreError>;

    /// The value of a leaf that the change leaves as it is, as RLP.
    fn value(&mut self, leaf: &Path) -> Result<Bytes, StoreError>;
}

/// A leaf to set, or to remove.
pub(crate) type Change = (Path, Option<Bytes>);

/// What a change makes of a trie.
pub(crate) struct Update {
    /// The root hash.
    pub(crate) root: H256,
    /// A row for each position that changed, with the node it stands for.
    pub(crate) rows: Vec<NewRow>,
}

/// A row for a position.
pub(crate) struct NewRow {
    pub(crate) position: Path,
    pub(crate) value: Vec<u8>,
    pub(crate) stored: Stored,
}

/// Applies `changes`, ascending by path and no path twice, to the trie that `source` shows.
pub(crate) fn update(source: &mut dyn Source, changes: &[Change]) -> Result<Update, StoreError> {
    let mut updater = Updater { source, rows: Vec::new() };
    let old = updater.source.node(&Path::ROOT)?;
    let new = updater.change(Path::ROOT, &old.node, changes)?;
    let root = new.encode_at(0).map_or(EMPTY_ROOT, |encoded| root_hash(&encoded));
    updater.write(Path::ROOT, &old, new.into_node());
    Ok(Update { root, rows: updater.rows })
}

/// A node that is being made, before it is known at which position.
enum New {
    Empty,
    Leaf(Path, Bytes),
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

/// A child that was looked at: its nibble, what was stored at its position, what is to be there.
type Touched = (u8, Arc<Stored>, New);

struct Updater<'a> {
    source: &'a mut dyn Source,
    rows: Vec<NewRow>,
}

impl Updater<'_> {
    /// Applies `changes`, which all lie below `position`, to the node `old` there. The row of the position itself is
    /// for the caller to write, who may have to move the node.
    fn change(&mut self, position: Path, old: &Node, changes: &[Change]) -> Result<New, StoreError> {
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

    fn change_branch(&mut self, position: Path, branch: &Branch, changes: &[Change]) -> Result<New, StoreError> {
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
        // The extension is split: a new branch stands before the old one.
        debug_assert!(shared >= position.len());
        let path = branch.path.prefix(shared);
        let behind = branch.path.nibble(shared);
        let mut touched: Vec<Touched> = Vec::new();
        let mut moved = false;
        for (nibble, changes) in groups(changes, &path) {
            let child = path.child(nibble);
            let new = if nibble == behind {
                moved = true;
                self.change_branch(child, branch, changes)?
            } else {
                self.build(&puts(changes))?
            };
            touched.push((nibble, Arc::new(Stored::NOTHING), new));
        }
        if !moved {
            touched.push((behind, Arc::new(Stored::NOTHING), New::Branch(Box::new(branch.clone()))));
        }
        self.finish(Branch::new(path), touched)
    }

    /// The subtrie of `leaves`, ascending by path.
    fn build(&mut self, leaves: &[(Path, Bytes)]) -> Result<New, StoreError> {
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

    /// `branch` with its new children: as it is, or what has to stand in its place when fewer than two are left.
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

    fn write(&mut self, position: Path, old: &Stored, node: Node) {
        if let Some((value, age)) = row::encode(old, &node, position.len()) {
            self.rows.push(NewRow { position, value, stored: Stored { node, age } });
        }
    }
}

/// The leaves that are set.
fn puts(changes: &[Change]) -> Vec<(Path, Bytes)> {
    changes.iter().filter_map(|(path, value)| Some((*path, value.clone()?))).collect()
}

/// The changes below `branch` by the nibble that follows it. Others lie beside it and remove what is not there.
fn groups<'a>(changes: &'a [Change], branch: &Path) -> impl Iterator<Item = (u8, &'a [Change])> {
    let length = branch.len();
    let below = |(path, _): &Change| path.common(branch) == length;
    let start = changes.iter().position(below).unwrap_or(changes.len());
    let count = changes[start..].iter().take_while(|change| below(change)).count();
    let chunks = changes[start..start + count].chunk_by(move |(a, _), (b, _)| a.nibble(length) == b.nibble(length));
    chunks.map(move |chunk| (chunk[0].0.nibble(length), chunk))
}
