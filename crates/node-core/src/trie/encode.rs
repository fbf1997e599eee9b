//! The RLP of trie nodes, and the references by which parents refer to children (Yellow Paper, appendix D).
//!
//! Nodes have their full path from the root. The part of it that a node encodes depends on `start`, the number of
//! nibbles that the nodes above it consume.

use super::NibblePath;
use node_types::rlp::{put_list_header, put_string, string_length};
use node_types::{H256, keccak256, keccak256_all};

/// Returns the RLP of the leaf with the full path `path` and the given value.
pub fn encode_leaf(path: &NibblePath, start: usize, value: &[u8]) -> Vec<u8> {
    let compact = path.compact_from(start, true);
    let mut out = list(string_length(&compact) + string_length(value));
    put_string(&mut out, &compact);
    put_string(&mut out, value);
    out
}

/// Returns the RLP of the extension that leads to the branch with the full path `path` and the RLP `branch`, or
/// `None` if the branch needs no extension.
pub fn encode_extension(path: &NibblePath, start: usize, branch: &[u8]) -> Option<Vec<u8>> {
    if path.len() == start { None } else { encode_extension_to(path, start, &Reference::to(branch)) }
}

/// Like [`encode_extension`], given only the reference to the branch.
pub fn encode_extension_to(path: &NibblePath, start: usize, branch: &Reference) -> Option<Vec<u8>> {
    if path.len() == start {
        return None;
    }
    let compact = path.compact_from(start, false);
    let mut out = list(string_length(&compact) + branch.as_rlp().len());
    put_string(&mut out, &compact);
    out.extend_from_slice(branch.as_rlp());
    Some(out)
}

/// Returns the RLP of a branch. `value` is the value of the key that ends at the branch, or empty if there is none.
pub fn encode_branch(children: [&Reference; 16], value: &[u8]) -> Vec<u8> {
    let mut out = list(children.iter().map(|child| child.as_rlp().len()).sum::<usize>() + string_length(value));
    children.iter().for_each(|child| child.put(&mut out));
    put_string(&mut out, value);
    out
}

/// Returns the header of a list, in a buffer with capacity for its `length` bytes of content.
fn list(length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length + 9);
    put_list_header(&mut out, length);
    out
}

/// A reference from a branch or extension to a child: the hash of the child, or, if its encoding is shorter than 32
/// bytes, the encoding itself.
///
/// It is stored as the RLP item in the parent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    length: u8,
    item: [u8; Self::HASH],
}

impl Reference {
    /// Length of a hash as an RLP item.
    const HASH: usize = 33;

    /// No child: the empty string.
    pub const NONE: Self = {
        let mut item = [0; Self::HASH];
        item[0] = 0x80;
        Self { length: 1, item }
    };

    /// Returns the reference to the node with this encoding.
    pub fn to(encoded: &[u8]) -> Self {
        if encoded.len() < 32 {
            let mut item = [0; Self::HASH];
            item[..encoded.len()].copy_from_slice(encoded);
            return Self { length: encoded.len() as u8, item };
        }
        Self::from(keccak256(encoded))
    }

    /// Returns the references to nodes with these encodings; [`Self::NONE`] for an empty encoding. All are hashed
    /// together, which is faster.
    pub fn to_all(encoded: &[Vec<u8>]) -> Vec<Self> {
        let long: Vec<&[u8]> = encoded.iter().map(Vec::as_slice).filter(|encoded| encoded.len() >= 32).collect();
        let mut hashes = keccak256_all(&long).into_iter();
        let reference = |encoded: &Vec<u8>| match encoded.len() {
            0 => Self::NONE,
            1..32 => Self::to(encoded),
            _ => hashes.next().map_or(Self::NONE, Self::from),
        };
        encoded.iter().map(reference).collect()
    }

    /// Splits a reference off the front of `bytes`. Returns `None` if `bytes` does not begin with one.
    pub fn split_from(bytes: &mut &[u8]) -> Option<Self> {
        let length = match *bytes.first()? {
            0x80 => 1,
            0xa0 => Self::HASH,
            // A list of fewer than 32 bytes including its header.
            header @ 0xc0..=0xde => 1 + usize::from(header - 0xc0),
            _ => return None,
        };
        let (taken, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let mut item = [0; Self::HASH];
        item[..length].copy_from_slice(taken);
        Some(Self { length: length as u8, item })
    }

    /// Returns whether there is no child.
    pub fn is_none(&self) -> bool {
        // A node in its parent is a list, which begins with a higher byte.
        self.item[0] == 0x80
    }

    /// Returns whether the reference is the hash of the child.
    pub fn is_hash(&self) -> bool {
        usize::from(self.length) == Self::HASH
    }

    /// Returns the hash of the child, or `None` if the child is embedded in the parent or does not exist.
    pub fn hash(&self) -> Option<H256> {
        self.is_hash().then(|| H256::from_slice(&self.item[1..]))
    }

    /// Appends the RLP item in the parent.
    fn put(&self, out: &mut Vec<u8>) {
        if self.is_hash() {
            // Copied inline, because the length is known.
            out.extend_from_slice(&self.item);
        } else {
            out.extend_from_slice(self.as_rlp());
        }
    }

    /// Returns the RLP item in the parent.
    pub fn as_rlp(&self) -> &[u8] {
        &self.item[..usize::from(self.length)]
    }
}

impl From<H256> for Reference {
    /// Returns the reference to the node with this hash.
    fn from(hash: H256) -> Self {
        let mut item = [0x80 + 32; Self::HASH];
        item[1..].copy_from_slice(hash.as_bytes());
        Self { length: Self::HASH as u8, item }
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.as_rlp())
    }
}
