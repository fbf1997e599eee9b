//! The nodes of a stored trie.

use node_core::trie::{NibblePath, Reference, encode_branch, encode_extension};

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
