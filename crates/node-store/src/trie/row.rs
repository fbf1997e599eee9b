//! The nodes of a stored trie, and their encoding as rows of the table `trie`.
//!
//! A branch is stored whole, or as a delta: the children that changed since the previous row. Reading a branch takes
//! at most [`MAX_AGE`] + 1 rows. Few leaves share a row, which has only their paths.

use crate::codec::Malformed;
use node_core::trie::{NibblePath, Reference, encode_branch, encode_extension, encode_extension_to};
use node_types::H256;

/// Maximum number of leaves in a row. The branches above them are computed when they are needed: the row changes only
/// if a leaf is added or removed, but to prove one leaf, the values of all are read.
pub(super) const MAX_LEAVES: usize = 4;

/// Maximum number of deltas after a whole branch.
pub(crate) const MAX_AGE: u8 = 23;

/// The age of a node that has no row, because it is still as in the base of the chain.
pub(crate) const FROM_BASE: u8 = u8::MAX;

const EMPTY: u8 = 0;
const LEAVES: u8 = 1;
const BRANCH: u8 = 2;
/// A branch with an extension.
const EXTENDED: u8 = 3;
/// The children of a branch that changed.
const DELTA: u8 = 4;
/// A branch with an extension, of which only the reference to the branch is known.
const OPAQUE: u8 = 5;
/// Added to the tag of a branch or a delta if a child is not a hash.
const ITEMS: u8 = 8;
/// Added to the nibble of the only child that changed, if it is a hash.
const CHILD: u8 = 0x10;

/// A node, and the number of deltas from which it was read; or [`FROM_BASE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) node: Node,
    pub(crate) age: u8,
}

impl Stored {
    /// No node.
    pub(crate) const NOTHING: Self = Self { node: Node::Empty, age: 0 };
}

/// Encodes the row that changes `old` to `new` at a position of `start` nibbles, and returns it with its age. Returns
/// `None` if both nodes are equal.
pub(crate) fn encode(old: &Stored, new: &Node, start: usize) -> Option<(Vec<u8>, u8)> {
    let branch = match new {
        Node::Empty | Node::Opaque(_) if old.node == *new => return None,
        // The rows of a position and of the values below it come together: a leaf whose position has no row is as in the
        // base.
        Node::Leaves(_) if old.node == *new && old.age != FROM_BASE => return None,
        Node::Empty => return Some((vec![EMPTY], 0)),
        Node::Leaves(paths) => {
            let mut out = vec![LEAVES];
            paths.iter().for_each(|path| out.extend_from_slice(path.packed_from(start)));
            return Some((out, 0));
        }
        Node::Branch(branch) => branch,
        Node::Opaque(opaque) => {
            let mut out = vec![OPAQUE, opaque.path.len() as u8];
            out.extend_from_slice(opaque.path.packed_from(start));
            out.extend_from_slice(opaque.branch.as_rlp());
            return Some((out, 0));
        }
    };
    if let Node::Branch(before) = &old.node
        && before.path == branch.path
    {
        let changed = |nibble: &usize| before.children[*nibble] != branch.children[*nibble];
        let mask = (0..16).filter(changed).fold(0u16, |mask, nibble| mask | 1 << nibble);
        let stays = |nibble: usize| mask & 1 << nibble == 0 && !branch.children[nibble].is_none();
        if mask == 0 {
            return None;
        }
        if old.age < MAX_AGE && (0..16).any(stays) {
            return Some((encode_children(None, &[], mask, chosen(branch, mask)), old.age + 1));
        }
    }
    let mask = (0..16).filter(|n| !branch.children[*n].is_none()).fold(0u16, |mask, nibble| mask | 1 << nibble);
    let children = chosen(branch, mask);
    let row = if branch.path.len() == start {
        encode_children(Some(BRANCH), &[], mask, children)
    } else {
        let extension = [&[branch.path.len() as u8], branch.path.packed_from(start)].concat();
        encode_children(Some(EXTENDED), &extension, mask, children)
    };
    Some((row, 0))
}

/// Returns the children whose bits are set in `mask`.
fn chosen(branch: &Branch, mask: u16) -> impl Iterator<Item = &Reference> + Clone {
    let is_chosen = move |(nibble, _): &(usize, &Reference)| mask & 1 << nibble != 0;
    branch.children.iter().enumerate().filter(is_chosen).map(|(_, child)| child)
}

/// Encodes the row of a branch with the given tag, or of a delta, from the children whose bits are set in `mask`.
fn encode_children<'a>(
    whole: Option<u8>,
    extension: &[u8],
    mask: u16,
    children: impl Iterator<Item = &'a Reference> + Clone,
) -> Vec<u8> {
    let count = mask.count_ones() as usize;
    if whole.is_none()
        && count == 1
        && let Some(hash) = children.clone().next().and_then(Reference::hash)
    {
        let mut out = Vec::with_capacity(33);
        out.push(CHILD + mask.trailing_zeros() as u8);
        out.extend_from_slice(hash.as_bytes());
        return out;
    }
    let are_hashes = children.clone().all(Reference::is_hash);
    let tag = whole.unwrap_or(DELTA) + if are_hashes { 0 } else { ITEMS };
    let mut out = Vec::with_capacity(3 + extension.len() + 33 * count);
    out.push(tag);
    out.extend_from_slice(extension);
    out.extend_from_slice(&mask.to_be_bytes());
    for child in children {
        // The first byte of a hash's RLP is its length.
        out.extend_from_slice(&child.as_rlp()[usize::from(are_hashes)..]);
    }
    out
}

/// Returns whether decoding the row requires older rows.
pub(crate) fn is_delta(row: &[u8]) -> bool {
    row.first().is_some_and(|tag| *tag >= CHILD || *tag & !ITEMS == DELTA)
}

/// Returns whether the row marks the absence of a node.
pub(crate) fn is_empty(row: &[u8]) -> bool {
    row == [EMPTY]
}

/// Decodes the rows of one position, the newest first.
pub(crate) struct Decoder {
    position: NibblePath,
    /// Number of deltas so far.
    age: u8,
    branch: Branch,
    /// A mask of the children that newer rows define.
    known: u16,
}

const MALFORMED: Malformed = Malformed("a row of trie");

impl Decoder {
    pub(crate) fn new(position: NibblePath) -> Self {
        Self { position, age: 0, branch: Branch::new(NibblePath::ROOT), known: 0 }
    }

    /// Decodes the next row. Returns the node once it is complete, or `None` if older rows are required.
    pub(crate) fn read(&mut self, row: &[u8]) -> Result<Option<Stored>, Malformed> {
        let (tag, mut rest) = row.split_first().ok_or(MALFORMED)?;
        if is_delta(row) {
            self.age += 1;
        }
        if self.age > MAX_AGE || self.position.len() == 64 && *tag != EMPTY && *tag != LEAVES {
            return Err(MALFORMED);
        }
        if *tag >= CHILD {
            let nibble = usize::from(tag - CHILD);
            let hash: [u8; 32] = rest.try_into().map_err(|_| MALFORMED)?;
            if nibble >= 16 {
                return Err(MALFORMED);
            }
            self.set(nibble, || Some(Reference::from(H256(hash))))?;
            return Ok(None);
        }
        let age = self.age;
        let path = match *tag & !ITEMS {
            EMPTY if age == 0 && row == [EMPTY] => return Ok(Some(Stored::NOTHING)),
            LEAVES if age == 0 && *tag == LEAVES => {
                return Ok(Some(Stored { node: Node::Leaves(self.leaves(rest)?), age }));
            }
            OPAQUE if age == 0 && *tag == OPAQUE => {
                let path = self.split_path(&mut rest)?;
                let branch = Reference::split_from(&mut rest).filter(|_| rest.is_empty()).ok_or(MALFORMED)?;
                return Ok(Some(Stored { node: Node::Opaque(Box::new(Opaque { path, branch })), age }));
            }
            BRANCH => Some(self.position),
            EXTENDED => Some(self.split_path(&mut rest)?),
            DELTA => None,
            _ => return Err(MALFORMED),
        };
        let (mask, mut rest) = rest.split_first_chunk().ok_or(MALFORMED)?;
        let mask = u16::from_be_bytes(*mask);
        for nibble in (0..16).filter(|nibble| mask & 1 << nibble != 0) {
            self.set(nibble, || match tag & ITEMS {
                0 => {
                    let (hash, after) = rest.split_first_chunk()?;
                    rest = after;
                    Some(Reference::from(H256(*hash)))
                }
                _ => Reference::split_from(&mut rest),
            })?;
        }
        if !rest.is_empty() {
            return Err(MALFORMED);
        }
        let Some(path) = path else { return Ok(None) };
        self.branch.path = path;
        let branch = std::mem::replace(&mut self.branch, Branch::new(NibblePath::ROOT));
        Ok(Some(Stored { node: Node::Branch(Box::new(branch)), age }))
    }

    /// Splits the path of a branch with an extension off the front of `bytes`.
    fn split_path(&self, bytes: &mut &[u8]) -> Result<NibblePath, Malformed> {
        let (length, after) = bytes.split_first().ok_or(MALFORMED)?;
        let length = usize::from(*length);
        let count = length.div_ceil(2).checked_sub(self.position.len() / 2).ok_or(MALFORMED)?;
        let (tail, after) = after.split_at_checked(count).ok_or(MALFORMED)?;
        *bytes = after;
        self.position.join_packed(length, tail).filter(|path| path.len() < 64).ok_or(MALFORMED)
    }

    /// Decodes the paths of leaves, which must be ascending.
    fn leaves(&self, packed: &[u8]) -> Result<Vec<NibblePath>, Malformed> {
        // If the position is a whole path, the row has one leaf, whose remaining path is empty.
        let each = NibblePath::MAX_LEN / 2 - self.position.len() / 2;
        let tails: Vec<&[u8]> = if each == 0 { vec![packed] } else { packed.chunks(each).collect() };
        if tails.is_empty() || tails.len() > MAX_LEAVES || !tails.is_sorted_by(|a, b| a < b) {
            return Err(MALFORMED);
        }
        let join = |tail| self.position.join_packed(NibblePath::MAX_LEN, tail).ok_or(MALFORMED);
        tails.into_iter().map(join).collect()
    }

    /// Reads a child, and keeps it unless a newer row has already defined it.
    fn set(&mut self, nibble: usize, read: impl FnOnce() -> Option<Reference>) -> Result<(), Malformed> {
        let child = read().ok_or(MALFORMED)?;
        if self.known & 1 << nibble == 0 {
            self.known |= 1 << nibble;
            self.branch.children[nibble] = child;
        }
        Ok(())
    }
}

/// What is stored at a position: the root, or a branch's path followed by one nibble.
///
/// Leaves and branches have their full path, so a node that moves to another position stays the same; only its
/// encoding changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// No node.
    Empty,
    /// All leaves below the position, as ascending paths of 64 nibbles: from one to [`MAX_LEAVES`]. Their values are in
    /// another table, and there are no rows for the nodes between the position and the leaves.
    Leaves(Vec<NibblePath>),
    /// A branch, with an extension above it if its path is longer than its position.
    Branch(Box<Branch>),
    /// A branch of the base whose children are not known.
    Opaque(Box<Opaque>),
}

impl Node {
    /// Returns whether of the same branch one node has the children and the other one only the reference.
    pub(crate) fn is_same_branch(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Branch(branch), Self::Opaque(opaque)) | (Self::Opaque(opaque), Self::Branch(branch)) => {
                branch.path == opaque.path && Reference::to(&branch.encode()) == opaque.branch
            }
            _ => false,
        }
    }
}

/// A branch whose children are not known: that of an extension at which an exclusion proof ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opaque {
    /// The position followed by the nibbles of the extension.
    pub(crate) path: NibblePath,
    /// The reference to the branch without its extension.
    pub(crate) branch: Reference,
}

impl Opaque {
    /// Returns the RLP of the extension, or `None` at the position of the branch itself.
    pub(crate) fn encode_at(&self, start: usize) -> Option<Vec<u8>> {
        encode_extension_to(&self.path, start, &self.branch)
    }
}

/// A node at which paths diverge. At least two children are not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The position followed by the nibbles of the extension.
    pub(crate) path: NibblePath,
    /// The child for each next nibble.
    pub(crate) children: [Reference; 16],
}

impl Branch {
    /// Returns a branch without children.
    pub(crate) fn new(path: NibblePath) -> Self {
        Self { path, children: [Reference::NONE; 16] }
    }

    /// Returns the RLP of the branch without its extension. Branches have no value, because all keys are equally
    /// long.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode_branch(self.children.each_ref(), &[])
    }

    /// Returns the RLP of the node at a position of `start` nibbles: of the extension, or of the branch if it has none.
    pub(crate) fn encode_at(&self, start: usize) -> Vec<u8> {
        let branch = self.encode();
        encode_extension(&self.path, start, &branch).unwrap_or(branch)
    }
}
