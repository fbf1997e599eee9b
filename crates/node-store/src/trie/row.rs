//! The nodes of a stored trie, and their encoding as rows of the table `trie`.
//!
//! A branch is stored whole, or as the children that changed since the previous row. Its age is the number of rows
//! since the last whole one, so that reading a branch takes at most [`MAX_AGE`] + 1 rows.

use crate::codec::Malformed;
use node_core::trie::{NibblePath, Reference, encode_branch, encode_extension};

/// Maximum number of deltas after a whole branch.
pub(crate) const MAX_AGE: u8 = 23;

const EMPTY: u8 = 0;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;
/// A branch with an extension.
const EXTENDED: u8 = 3;
/// A delta, plus its age, which is at least 1.
const DELTA: u8 = 0x40;

/// A node, and the age of the row that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) node: Node,
    pub(crate) age: u8,
}

impl Stored {
    /// No node.
    pub(crate) const NOTHING: Self = Self { node: Node::Empty, age: 0 };
}

/// Encodes the row that changes `old` to `new` at a position of `start` nibbles, and returns it with its age. `None` if
/// both nodes are equal.
pub(crate) fn encode(old: &Stored, new: &Node, start: usize) -> Option<(Vec<u8>, u8)> {
    if old.node == *new {
        return None;
    }
    let branch = match new {
        Node::Empty => return Some((vec![EMPTY], 0)),
        Node::Leaf(path) => {
            let mut out = vec![LEAF];
            out.extend_from_slice(path.packed_from(start));
            return Some((out, 0));
        }
        Node::Branch(branch) => branch,
    };
    if let Node::Branch(before) = &old.node
        && before.path == branch.path
        && old.age < MAX_AGE
    {
        let changed = |nibble: &usize| before.children[*nibble] != branch.children[*nibble];
        let mask = (0..16).filter(changed).fold(0u16, |mask, nibble| mask | 1 << nibble);
        if !(0..16).filter(|nibble| !branch.children[*nibble].is_none()).all(|nibble| changed(&nibble)) {
            let mut out = vec![DELTA + old.age + 1];
            put_children(&mut out, branch, mask);
            return Some((out, old.age + 1));
        }
    }
    let mut out = Vec::with_capacity(16 * 33 + 8);
    if branch.path.len() == start {
        out.push(BRANCH);
    } else {
        out.extend_from_slice(&[EXTENDED, branch.path.len() as u8]);
        out.extend_from_slice(branch.path.packed_from(start));
    }
    let mask = (0..16).filter(|n| !branch.children[*n].is_none()).fold(0u16, |mask, nibble| mask | 1 << nibble);
    put_children(&mut out, branch, mask);
    Some((out, 0))
}

fn put_children(out: &mut Vec<u8>, branch: &Branch, mask: u16) {
    out.extend_from_slice(&mask.to_be_bytes());
    let chosen = (0..16).filter(|nibble| mask & 1 << nibble != 0);
    chosen.for_each(|nibble: usize| out.extend_from_slice(branch.children[nibble].as_rlp()));
}

/// Returns whether decoding the row requires older rows.
pub(crate) fn is_delta(row: &[u8]) -> bool {
    row.first().is_some_and(|tag| *tag > DELTA)
}

/// Returns whether the row says that there is no node.
pub(crate) fn is_empty(row: &[u8]) -> bool {
    row == [EMPTY]
}

/// Decodes the rows of one position, the newest first.
pub(crate) struct Decoder {
    position: NibblePath,
    age: Option<u8>,
    branch: Branch,
    /// A mask of the children that newer rows define.
    known: u16,
}

const MALFORMED: Malformed = Malformed("a row of trie");

impl Decoder {
    pub(crate) fn new(position: NibblePath) -> Self {
        Self { position, age: None, branch: Branch::new(NibblePath::ROOT), known: 0 }
    }

    /// Decodes the next row. Returns the node once it is complete, or `None` if older rows are required.
    pub(crate) fn read(&mut self, row: &[u8]) -> Result<Option<Stored>, Malformed> {
        let (tag, mut rest) = row.split_first().ok_or(MALFORMED)?;
        let age = *self.age.get_or_insert(tag.saturating_sub(DELTA));
        let newest = self.known == 0;
        let path = match *tag {
            EMPTY if newest && rest.is_empty() => return Ok(Some(Stored::NOTHING)),
            LEAF if newest => {
                let path = self.position.join_packed(64, rest).ok_or(MALFORMED)?;
                return Ok(Some(Stored { node: Node::Leaf(path), age }));
            }
            BRANCH => Some(self.position),
            EXTENDED => {
                let (length, after) = rest.split_first().ok_or(MALFORMED)?;
                let length = usize::from(*length);
                let bytes = length.div_ceil(2).checked_sub(self.position.len() / 2).ok_or(MALFORMED)?;
                let (tail, after) = after.split_at_checked(bytes).ok_or(MALFORMED)?;
                rest = after;
                Some(self.position.join_packed(length, tail).filter(|path| path.len() < 64).ok_or(MALFORMED)?)
            }
            tag if tag > DELTA && tag <= DELTA + MAX_AGE => None,
            _ => return Err(MALFORMED),
        };
        let (mask, mut rest) = rest.split_first_chunk().ok_or(MALFORMED)?;
        let mask = u16::from_be_bytes(*mask);
        for nibble in (0..16).filter(|nibble| mask & 1 << nibble != 0) {
            let child = Reference::split_from(&mut rest).ok_or(MALFORMED)?;
            if self.known & 1 << nibble == 0 {
                self.branch.children[nibble] = child;
            }
        }
        self.known |= mask;
        if !rest.is_empty() || self.position.len() == 64 {
            return Err(MALFORMED);
        }
        let Some(path) = path else { return Ok(None) };
        self.branch.path = path;
        let branch = std::mem::replace(&mut self.branch, Branch::new(NibblePath::ROOT));
        Ok(Some(Stored { node: Node::Branch(Box::new(branch)), age }))
    }
}

/// The node at a position: the root, or a branch's path followed by one nibble.
///
/// Leaves and branches know their whole path, so that a node that moves to another position stays the same; only its
/// encoding changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// No node.
    Empty,
    /// The leaf with this path of 64 nibbles. Its value is in another table.
    Leaf(NibblePath),
    /// A branch, with an extension above it if its path is longer than its position.
    Branch(Box<Branch>),
}

/// Where paths part. At least two children are not empty.
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

    /// Returns the RLP of the branch without its extension. It holds no value, because all keys are equally long.
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode_branch(self.children.each_ref(), &[])
    }

    /// Returns the RLP of the node at a position of `start` nibbles: of the extension, or of the branch if it has none.
    pub(crate) fn encode_at(&self, start: usize) -> Vec<u8> {
        let branch = self.encode();
        encode_extension(&self.path, start, &branch).unwrap_or(branch)
    }
}
