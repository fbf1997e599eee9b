//! Changing a trie: from a batch of changed leaves to the rows of one block.

use super::row::{self, Branch, MAX_LEAVES, Node, Opaque, Stored};
use super::subtrie::{self, Leaf};
use crate::error::StoreError;
use node_core::trie::{NibblePath, Reference, encode_leaf};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256, keccak256};
use std::sync::Arc;

/// Reads nodes and the values of leaves.
pub(crate) trait Source {
    /// Why a node or value cannot be read.
    type Error;

    /// Returns the node at a position before the change. `reference` is the one in its parent, or `None` for the root.
    fn node(&mut self, position: &NibblePath, reference: Option<&Reference>) -> Result<Arc<Stored>, Self::Error>;

    /// Returns the branch of which only the reference was known.
    fn open(&mut self, opaque: &Opaque) -> Result<Box<Branch>, Self::Error>;

    /// Returns the RLP of the value of an unchanged leaf.
    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, Self::Error>;

    /// Announces that the values of these leaves are read next.
    fn expect(&mut self, _leaves: &[NibblePath]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Returns unchanged leaves with their values.
    fn leaves(&mut self, paths: &[NibblePath]) -> Result<Vec<Leaf>, Self::Error> {
        paths.iter().map(|path| Ok((*path, self.value(path)?))).collect()
    }
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

/// A changed trie whose hashes have not been computed yet.
pub(crate) struct Planned {
    old: Arc<Stored>,
    root: New,
    /// The rows of positions that no longer have a node.
    rows: Vec<NewRow>,
}

/// Applies `changes` to the trie in `source`. They must be in ascending order of distinct paths.
pub(crate) fn plan(source: &mut dyn Source<Error = StoreError>, changes: &[Change]) -> Result<Planned, StoreError> {
    let mut updater = Updater { source, rows: Vec::new() };
    let old = updater.source.node(&NibblePath::ROOT, None)?;
    let root = updater.change(&old.node, changes)?;
    Ok(Planned { old, root, rows: updater.rows })
}

/// Computes the hashes of several tries, starting with the lowest nodes. Nodes of the same depth do not depend on
/// each other, so they are hashed together.
pub(crate) fn finish(planned: Vec<Planned>) -> Vec<Update> {
    let mut updates = Vec::with_capacity(planned.len());
    let mut level = Vec::with_capacity(planned.len());
    for (trie, Planned { old, root, rows }) in planned.into_iter().enumerate() {
        updates.push(Update { root: EMPTY_ROOT, rows });
        level.push((trie, None, NibblePath::ROOT, Some(old), root));
    }
    // Nodes after their parents, and the index of the first one of each level.
    let mut pending: Vec<PendingNode> = Vec::new();
    let mut levels = Vec::new();
    while !level.is_empty() {
        levels.push(pending.len());
        let mut below = Vec::new();
        for (trie, parent, position, old, new) in level {
            let index = pending.len();
            let mut leaves = None;
            let node = match new {
                New::Empty => Content::Empty,
                New::Leaves(few) => {
                    leaves = Some(few.iter().map(|(path, _)| *path).collect());
                    if let [(path, value)] = &*few {
                        Content::Leaf(*path, value.clone())
                    } else {
                        let branch = subtrie::lowest_branch(&few);
                        below.extend(subtrie::children(&branch, &few).map(|(nibble, few)| {
                            (trie, Some((index, nibble)), branch.path.child(nibble), None, New::Leaves(few.to_vec()))
                        }));
                        Content::Branch(Box::new(branch))
                    }
                }
                New::Branch(branch, touched) => {
                    let child =
                        |(nibble, old, new)| (trie, Some((index, nibble)), branch.path.child(nibble), Some(old), new);
                    below.extend(touched.into_iter().map(child));
                    Content::Branch(branch)
                }
                New::Opaque(opaque) => Content::Opaque(opaque),
            };
            let row = old.map(|old| PendingRow { old, leaves });
            pending.push(PendingNode { trie, parent, position, node, row });
        }
        level = below;
    }
    let mut end = pending.len();
    for start in levels.into_iter().rev() {
        let encoded: Vec<Vec<u8>> = pending[start..end].iter().map(PendingNode::encode).collect();
        for ((index, reference), encoded) in (start..end).zip(Reference::to_all(&encoded)).zip(encoded) {
            let reference = pending[index].given_reference().unwrap_or(reference);
            match pending[index].parent {
                Some((parent, nibble)) => {
                    if let Content::Branch(branch) = &mut pending[parent].node {
                        branch.children[usize::from(nibble)] = reference;
                    }
                }
                None if reference.is_none() => {}
                None => updates[pending[index].trie].root = reference.hash().unwrap_or_else(|| keccak256(encoded)),
            }
        }
        end = start;
    }
    for PendingNode { trie, position, node, row, .. } in pending {
        let Some(PendingRow { old, leaves }) = row else { continue };
        let node = match (leaves, node) {
            (Some(leaves), _) => Node::Leaves(leaves),
            (None, Content::Branch(branch)) => Node::Branch(branch),
            (None, Content::Opaque(opaque)) => Node::Opaque(opaque),
            (None, _) => Node::Empty,
        };
        write(&mut updates[trie].rows, position, &old, node);
    }
    updates
}

/// A node whose references to changed children may be missing.
struct PendingNode {
    /// Index of the trie.
    trie: usize,
    /// Index of the parent, and the nibble of this node in it. `None` for a root.
    parent: Option<(usize, u8)>,
    position: NibblePath,
    node: Content,
    /// `None` for nodes that are not stored, because few leaves are below their parent.
    row: Option<PendingRow>,
}

/// The content of a node.
enum Content {
    Empty,
    Leaf(NibblePath, Bytes),
    Branch(Box<Branch>),
    Opaque(Box<Opaque>),
}

/// What to store at the position of a node.
struct PendingRow {
    old: Arc<Stored>,
    /// The leaves below the position, if they are stored instead of the node.
    leaves: Option<Vec<NibblePath>>,
}

impl PendingNode {
    /// Returns the RLP of the node; empty if there is no node, or if only its reference is known.
    fn encode(&self) -> Vec<u8> {
        let start = self.position.len();
        match &self.node {
            Content::Empty => Vec::new(),
            Content::Leaf(path, value) => encode_leaf(path, start, value),
            Content::Branch(branch) => branch.encode_at(start),
            Content::Opaque(opaque) => opaque.encode_at(start).unwrap_or_default(),
        }
    }

    /// Returns the reference to the node if its RLP is not known.
    fn given_reference(&self) -> Option<Reference> {
        match &self.node {
            Content::Opaque(opaque) if opaque.path.len() == self.position.len() => Some(opaque.branch),
            _ => None,
        }
    }
}

/// Adds the row that changes `old` to `node`, unless both are equal.
fn write(rows: &mut Vec<NewRow>, position: NibblePath, old: &Stored, node: Node) {
    if let Some((value, age)) = row::encode(old, &node, position.len()) {
        rows.push(NewRow { position, value, stored: Stored { node, age } });
    }
}

/// A new node whose position is not determined yet.
enum New {
    Empty,
    /// All leaves below the position, which are few.
    Leaves(Vec<Leaf>),
    /// A branch, and those of its children that may have changed.
    Branch(Box<Branch>, Vec<Touched>),
    /// An unchanged branch, of which only the reference is known.
    Opaque(Box<Opaque>),
}

/// A child that may have changed: its nibble, the stored node, and the new one.
type Touched = (u8, Arc<Stored>, New);

struct Updater<'a> {
    source: &'a mut dyn Source<Error = StoreError>,
    rows: Vec<NewRow>,
}

impl Updater<'_> {
    /// Applies `changes`, which are all below one position, to the node `old` at that position. The caller writes the
    /// row of that position, because it may have to move the node.
    fn change(&mut self, old: &Node, changes: &[Change]) -> Result<New, StoreError> {
        match old {
            Node::Empty => Ok(build(&puts(changes))),
            Node::Leaves(paths) => {
                let mut leaves = puts(changes);
                for path in paths {
                    if changes.binary_search_by(|(other, _)| other.packed().cmp(path.packed())).is_err() {
                        leaves.push((*path, self.source.value(path)?));
                    }
                }
                leaves.sort_unstable_by(|(a, _), (b, _)| a.packed().cmp(b.packed()));
                Ok(build(&leaves))
            }
            Node::Branch(branch) => match split_at(&branch.path, changes) {
                Some(shared) => self.split(old, &branch.path, shared, changes),
                None => self.change_children(branch.clone(), changes),
            },
            Node::Opaque(opaque) => match split_at(&opaque.path, changes) {
                Some(shared) => self.split(old, &opaque.path, shared, changes),
                None if groups(changes, &opaque.path).next().is_some() => {
                    let branch = self.source.open(opaque)?;
                    self.change_children(branch, changes)
                }
                None => Ok(New::Opaque(opaque.clone())),
            },
        }
    }

    /// Applies `changes` to the children of a branch.
    fn change_children(&mut self, branch: Box<Branch>, changes: &[Change]) -> Result<New, StoreError> {
        let mut touched = Vec::new();
        for (nibble, changes) in groups(changes, &branch.path) {
            let child = branch.path.child(nibble);
            let reference = &branch.children[usize::from(nibble)];
            let old = match reference.is_none() {
                true => Arc::new(Stored::NOTHING),
                false => self.source.node(&child, Some(reference))?,
            };
            let new = self.change(&old.node, changes)?;
            touched.push((nibble, old, new));
        }
        self.finish(branch, touched)
    }

    /// Splits the extension above the branch `old` with the path `path`: a new branch, whose path has the first `shared`
    /// nibbles, becomes the parent of the old one.
    fn split(&mut self, old: &Node, path: &NibblePath, shared: usize, changes: &[Change]) -> Result<New, StoreError> {
        let (above, old_nibble) = (path.prefix(shared), path.nibble(shared));
        let mut touched: Vec<Touched> = Vec::new();
        let mut changed = None;
        for (nibble, changes) in groups(changes, &above) {
            if nibble == old_nibble {
                changed = Some(changes);
            } else {
                touched.push((nibble, Arc::new(Stored::NOTHING), build(&puts(changes))));
            }
        }
        let moved = self.change(old, changed.unwrap_or_default())?;
        touched.push((old_nibble, Arc::new(Stored::NOTHING), moved));
        self.finish(Box::new(Branch::new(above)), touched)
    }

    /// Returns `branch` with its new children, or the node that replaces it if fewer than two children are left.
    fn finish(&mut self, branch: Box<Branch>, touched: Vec<Touched>) -> Result<New, StoreError> {
        // A stored branch has two children already, and a new one gets them here.
        if touched.iter().all(|(_, _, new)| !matches!(new, New::Empty)) {
            return Ok(New::Branch(branch, touched));
        }
        let mut left = branch.children.each_ref().map(|child| !child.is_none());
        touched.iter().for_each(|(nibble, _, new)| left[usize::from(*nibble)] = !matches!(new, New::Empty));
        let mut nibbles = (0..16u8).filter(|nibble| left[usize::from(*nibble)]);
        let only = match (nibbles.next(), nibbles.next()) {
            (Some(_), Some(_)) => return Ok(New::Branch(branch, touched)),
            (only, _) => only,
        };
        let mut survivor = None;
        for (nibble, old, new) in touched {
            write(&mut self.rows, branch.path.child(nibble), &old, Node::Empty);
            if only == Some(nibble) {
                survivor = Some(new);
            }
        }
        match (survivor, only) {
            (Some(survivor), _) => Ok(survivor),
            (None, None) => Ok(New::Empty),
            (None, Some(nibble)) => {
                let position = branch.path.child(nibble);
                let old = self.source.node(&position, Some(&branch.children[usize::from(nibble)]))?;
                write(&mut self.rows, position, &old, Node::Empty);
                Ok(match &old.node {
                    Node::Empty => return Err(StoreError::Missing { table: "trie" }),
                    Node::Leaves(paths) => New::Leaves(self.source.leaves(paths)?),
                    Node::Branch(branch) => New::Branch(branch.clone(), Vec::new()),
                    Node::Opaque(opaque) => New::Opaque(opaque.clone()),
                })
            }
        }
    }
}

/// Returns the subtrie of `leaves`, which must be ascending by path.
fn build(leaves: &[Leaf]) -> New {
    match leaves {
        [] => return New::Empty,
        few if few.len() <= MAX_LEAVES => return New::Leaves(few.to_vec()),
        _ => {}
    }
    let branch = subtrie::lowest_branch(leaves);
    let child = |(nibble, group)| (nibble, Arc::new(Stored::NOTHING), build(group));
    let touched = subtrie::children(&branch, leaves).map(child).collect();
    New::Branch(Box::new(branch), touched)
}

/// Returns how many nibbles of the path of a branch remain above it, or `None` if `changes`, all of which are below the
/// position of the branch, do not split its extension.
fn split_at(path: &NibblePath, changes: &[Change]) -> Option<usize> {
    let set = changes.iter().filter(|(_, value)| value.is_some());
    set.map(|(other, _)| other.common(path)).min().filter(|shared| *shared < path.len())
}

/// Returns the leaves that are set to a value.
fn puts(changes: &[Change]) -> Vec<Leaf> {
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
