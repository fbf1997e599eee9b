//! Changing a trie: from a batch of changed leaves to the rows of one block.

use super::row::{self, Branch, MAX_LEAVES, Node, Stored};
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

    /// Returns the node at a position before the change.
    fn node(&mut self, position: &NibblePath) -> Result<Arc<Stored>, Self::Error>;

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
    let old = updater.source.node(&NibblePath::ROOT)?;
    let root = updater.change(NibblePath::ROOT, &old.node, changes)?;
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
            match pending[index].parent {
                Some((parent, nibble)) => {
                    if let Content::Branch(branch) = &mut pending[parent].node {
                        branch.children[usize::from(nibble)] = reference;
                    }
                }
                None if encoded.is_empty() => {}
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
}

/// What to store at the position of a node.
struct PendingRow {
    old: Arc<Stored>,
    /// The leaves below the position, if they are stored instead of the node.
    leaves: Option<Vec<NibblePath>>,
}

impl PendingNode {
    /// Returns the RLP of the node; empty if there is no node.
    fn encode(&self) -> Vec<u8> {
        let start = self.position.len();
        match &self.node {
            Content::Empty => Vec::new(),
            Content::Leaf(path, value) => encode_leaf(path, start, value),
            Content::Branch(branch) => branch.encode_at(start),
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
}

/// A child that may have changed: its nibble, the stored node, and the new one.
type Touched = (u8, Arc<Stored>, New);

struct Updater<'a> {
    source: &'a mut dyn Source<Error = StoreError>,
    rows: Vec<NewRow>,
}

impl Updater<'_> {
    /// Applies `changes`, which are all below `position`, to the node `old` at that position. The caller writes the
    /// row of that position, because it may have to move the node.
    fn change(&mut self, position: NibblePath, old: &Node, changes: &[Change]) -> Result<New, StoreError> {
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
            Node::Branch(branch) => self.change_branch(position, branch, changes),
        }
    }

    #[expect(clippy::borrowed_box, reason = "a clone of the box copies the branch once")]
    fn change_branch(
        &mut self,
        position: NibblePath,
        branch: &Box<Branch>,
        changes: &[Change],
    ) -> Result<New, StoreError> {
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
                build(&puts(changes))
            };
            touched.push((nibble, Arc::new(Stored::NOTHING), new));
        }
        if !moved {
            let branch = New::Branch(branch.clone(), Vec::new());
            touched.push((branch_nibble, Arc::new(Stored::NOTHING), branch));
        }
        self.finish(Box::new(Branch::new(path)), touched)
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
                let old = self.source.node(&position)?;
                write(&mut self.rows, position, &old, Node::Empty);
                Ok(match &old.node {
                    Node::Empty => return Err(StoreError::Missing { table: "trie" }),
                    Node::Leaves(paths) => New::Leaves(self.source.leaves(paths)?),
                    Node::Branch(branch) => New::Branch(branch.clone(), Vec::new()),
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
