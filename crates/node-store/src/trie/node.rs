//! Nodes, their references and their encoding as RLP (Yellow Paper, appendix D).
//!
//! A node lives at a position: the root, or a branch's path and one nibble. Leaves and branches know their whole path,
//! so that one that moves stays as it is; only its position, and with it its encoding, becomes another.

use super::path::Path;
use node_types::{Bytes, H256, keccak256};

/// What is at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nothing.
    Empty,
    /// The leaf with this path of 64 nibbles. Its value is in another table.
    Leaf(Path),
    /// A branch, behind an extension if its path is longer than its position's.
    Branch(Box<Branch>),
}

/// Where paths part. At least two children are not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Where it is: the position and the nibbles of the extension.
    pub(crate) path: Path,
    /// The child for each next nibble.
    pub(crate) children: [Reference; 16],
}

/// How a branch holds a child: nothing, its hash, or, where its encoding is shorter than a hash, that.
///
/// Kept as the RLP item that stands in the branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    length: u8,
    item: [u8; Self::HASH],
}

impl Reference {
    /// Length of a hash as an RLP item.
    const HASH: usize = 33;

    /// No child: the empty byte string.
    pub(crate) const NONE: Self = {
        let mut item = [0; Self::HASH];
        item[0] = 0x80;
        Self { length: 1, item }
    };

    /// The reference to the node with this encoding.
    pub(crate) fn to(encoded: &[u8]) -> Self {
        let mut item = [0; Self::HASH];
        if encoded.len() < 32 {
            item[..encoded.len()].copy_from_slice(encoded);
            return Self { length: encoded.len() as u8, item };
        }
        item[0] = 0x80 + 32;
        item[1..].copy_from_slice(keccak256(encoded).as_bytes());
        Self { length: Self::HASH as u8, item }
    }

    /// Takes a reference from the front of `bytes`.
    pub(crate) fn split_from(bytes: &mut &[u8]) -> Option<Self> {
        let length = match *bytes.first()? {
            0x80 => 1,
            0xa0 => Self::HASH,
            // A list of less than 32 bytes with its prefix.
            prefix @ 0xc0..=0xde => 1 + usize::from(prefix - 0xc0),
            _ => return None,
        };
        let (taken, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let mut item = [0; Self::HASH];
        item[..length].copy_from_slice(taken);
        Some(Self { length: length as u8, item })
    }

    pub(crate) fn is_none(&self) -> bool {
        self.item() == [0x80]
    }

    pub(crate) fn item(&self) -> &[u8] {
        &self.item[..usize::from(self.length)]
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.item())
    }
}

impl Branch {
    /// A branch without children.
    pub(crate) fn new(path: Path) -> Self {
        Self { path, children: [Reference::NONE; 16] }
    }

    /// The RLP of the branch itself. It holds no value, for all keys are equally long.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let length = self.children.iter().map(|child| child.item().len()).sum::<usize>() + 1;
        let mut out = Vec::with_capacity(length + 3);
        put_header(&mut out, 0xc0, length);
        self.children.iter().for_each(|child| out.extend_from_slice(child.item()));
        out.push(0x80);
        out
    }

    /// The RLP of the extension that stands at a position of `start` nibbles and leads to the branch with the RLP
    /// `branch`; none if the branch is there itself.
    pub(crate) fn encode_extension(&self, start: usize, branch: &[u8]) -> Option<Vec<u8>> {
        if self.path.len() == start {
            return None;
        }
        let mut items = Vec::with_capacity(68);
        let mut compact = Vec::with_capacity(33);
        self.path.compact_from(start, false, &mut compact);
        put_string(&mut items, &compact);
        items.extend_from_slice(Reference::to(branch).item());
        Some(list(items))
    }

    /// The RLP of what is at a position of `start` nibbles.
    pub(crate) fn encode_at(&self, start: usize) -> Vec<u8> {
        let branch = self.encode();
        self.encode_extension(start, &branch).unwrap_or(branch)
    }
}

/// The RLP of a leaf at a position of `start` nibbles.
pub(crate) fn encode_leaf(path: &Path, start: usize, value: &[u8]) -> Vec<u8> {
    let mut items = Vec::with_capacity(value.len() + 36);
    let mut compact = Vec::with_capacity(33);
    path.compact_from(start, true, &mut compact);
    put_string(&mut items, &compact);
    put_string(&mut items, value);
    list(items)
}

/// The hash of a root with this encoding.
pub(crate) fn root_hash(encoded: &[u8]) -> H256 {
    keccak256(encoded)
}

/// The RLP of a word as a storage trie holds it.
pub(crate) fn encode_word_leaf(word: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(word.len() + 1);
    put_string(&mut out, word);
    out.into()
}

fn list(items: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(items.len() + 3);
    put_header(&mut out, 0xc0, items.len());
    out.extend_from_slice(&items);
    out
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if !matches!(bytes, [0..0x80]) {
        put_header(out, 0x80, bytes.len());
    }
    out.extend_from_slice(bytes);
}

/// Appends what stands before the `length` bytes of a string (`kind` 0x80) or of a list (0xc0).
fn put_header(out: &mut Vec<u8>, kind: u8, length: usize) {
    if length < 56 {
        out.push(kind + length as u8);
        return;
    }
    let bytes = length.to_be_bytes();
    let significant = &bytes[length.leading_zeros() as usize / 8..];
    out.push(kind + 55 + significant.len() as u8);
    out.extend_from_slice(significant);
}
