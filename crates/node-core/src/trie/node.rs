//! Nodes of a trie in memory.

use super::NibblePath;
use super::encode::{Reference, encode_branch, encode_extension, encode_leaf};
use node_types::{Bytes, H256, keccak256};
use std::sync::{Arc, OnceLock};

/// A leaf, or a branch together with the extension that leads to it.
///
/// Both have their full path from the root. Values are not empty.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf { path: NibblePath, value: Bytes },
    Branch(Branch),
}

/// A node at which paths diverge. At least two of its seventeen entries are set; roots depend on this.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) path: NibblePath,
    /// The child for each next nibble.
    pub(super) children: [Option<Link>; 16],
    /// The value of the key that ends here.
    pub(super) value: Option<Bytes>,
}

impl Branch {
    pub(super) fn new(path: NibblePath) -> Self {
        Self { path, children: Default::default(), value: None }
    }

    /// Returns the child towards `path`, which must be longer than the path of the branch.
    pub(super) fn child(&self, path: &NibblePath) -> Option<&Link> {
        self.children[usize::from(path.nibble(self.path.len()))].as_ref()
    }

    /// Returns the RLP of the branch without its extension.
    pub(super) fn encode(&self) -> Vec<u8> {
        let children = self.children.each_ref();
        let references = children.map(|child| child.as_ref().map_or(&Reference::NONE, Link::reference));
        encode_branch(references, self.value.as_deref().unwrap_or_default())
    }
}

/// A shared node at a position in the trie. Its reference is computed when it is first needed.
#[derive(Clone, Debug)]
pub(super) struct Link(Arc<Placed>);

#[derive(Debug)]
struct Placed {
    node: Node,
    /// The number of nibbles that the nodes above consume.
    start: usize,
    reference: OnceLock<Reference>,
}

impl Link {
    pub(super) fn new(node: Node, start: usize) -> Self {
        Self(Arc::new(Placed { node, start, reference: OnceLock::new() }))
    }

    pub(super) fn node(&self) -> &Node {
        &self.0.node
    }

    pub(super) fn start(&self) -> usize {
        self.0.start
    }

    /// Returns the node, or a copy of it if it is shared.
    pub(super) fn into_node(self) -> Node {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.node.clone(), |placed| placed.node)
    }

    pub(super) fn reference(&self) -> &Reference {
        self.0.reference.get_or_init(|| Reference::to(&self.encode()))
    }

    /// Computes the missing references of this node and of all nodes below it, the deepest first. Nodes of the same
    /// depth do not depend on each other, so they are hashed together.
    fn hash_by_level(&self) {
        let mut levels = vec![vec![self]];
        while let Some(level) = levels.last().filter(|level| !level.is_empty()) {
            let is_new = |link: &&Self| link.0.reference.get().is_none();
            let below = level.iter().copied().flat_map(Self::children).filter(is_new).collect();
            levels.push(below);
        }
        for level in levels.into_iter().rev() {
            let encoded: Vec<_> = level.iter().map(|link| link.encode()).collect();
            for (link, reference) in level.into_iter().zip(Reference::to_all(&encoded)) {
                // Another thread may have set it to the same value.
                let _ = link.0.reference.set(reference);
            }
        }
    }

    fn children(&self) -> impl Iterator<Item = &Self> {
        let children: &[Option<Self>] = match self.node() {
            Node::Leaf { .. } => &[],
            Node::Branch(branch) => &branch.children,
        };
        children.iter().flatten()
    }

    /// Returns the hash of the encoded node, even if a parent would embed the node.
    pub(super) fn hash(&self) -> H256 {
        if self.0.reference.get().is_none() {
            self.hash_by_level();
        }
        let reference = self.reference();
        reference.hash().unwrap_or_else(|| keccak256(reference.as_rlp()))
    }

    /// Returns the RLP of the leaf, of the extension, or of the branch if it has no extension.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self.node() {
            Node::Leaf { path, value } => encode_leaf(path, self.start(), value),
            Node::Branch(branch) => {
                let encoded = branch.encode();
                encode_extension(&branch.path, self.start(), &encoded).unwrap_or(encoded)
            }
        }
    }
}
