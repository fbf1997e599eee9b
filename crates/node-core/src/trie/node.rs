//! Nodes, their encoding, and the references by which parents hold them (Yellow Paper, appendix D).

use super::nibbles::Nibbles;
use node_types::{Bytes, H256, keccak256};
use std::sync::{Arc, OnceLock};

/// A node of the trie.
///
/// Paths are what is left of the key at the node. An extension's path is not empty and its child is a branch; a
/// branch holds at least two of its seventeen possible entries. Values are not empty. The root hash depends on it.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// The end of a key, with its value.
    Leaf { path: Nibbles, value: Bytes },
    /// A part of the path that all keys below have in common.
    Extension { path: Nibbles, child: Link },
    /// A fork.
    Branch(Branch),
}

/// Where keys part.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// What follows for each next nibble.
    pub(super) children: [Option<Link>; 16],
    /// The value of the key that ends here.
    pub(super) value: Option<Bytes>,
}

impl Branch {
    /// The child for a nibble.
    pub(super) fn child(&self, nibble: u8) -> Option<&Link> {
        self.children[usize::from(nibble)].as_ref()
    }
}

impl Node {
    /// The RLP encoding.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut items = Vec::with_capacity(17 * HASH_ITEM);
        match self {
            Self::Leaf { path, value } => {
                append_string(&mut items, &path.compact(true));
                append_string(&mut items, value);
            }
            Self::Extension { path, child } => {
                append_string(&mut items, &path.compact(false));
                items.extend_from_slice(child.reference().item());
            }
            Self::Branch(branch) => {
                for child in &branch.children {
                    match child {
                        Some(child) => items.extend_from_slice(child.reference().item()),
                        None => append_string(&mut items, &[]),
                    }
                }
                append_string(&mut items, branch.value.as_deref().unwrap_or_default());
            }
        }
        let mut list = Vec::with_capacity(items.len() + 9);
        append_header(&mut list, 0xc0, items.len());
        list.extend_from_slice(&items);
        list
    }
}

// Most of the time of an update goes into encoding and hashing, and the stream of the rlp crate copies byte by byte:
// hence these two.

/// Appends the RLP of a byte string.
fn append_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if !matches!(bytes, [0..0x80]) {
        append_header(out, 0x80, bytes.len());
    }
    out.extend_from_slice(bytes);
}

/// Appends what stands before the `length` bytes of a string (`kind` 0x80) or of a list (0xc0).
fn append_header(out: &mut Vec<u8>, kind: u8, length: usize) {
    if length < 56 {
        out.push(kind + length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let significant = &bytes[length.leading_zeros() as usize / 8..];
        out.push(kind + 55 + significant.len() as u8);
        out.extend_from_slice(significant);
    }
}

/// A shared node with its reference, which is computed when it is first asked for.
#[derive(Clone, Debug)]
pub(super) struct Link(Arc<Linked>);

#[derive(Debug)]
struct Linked {
    node: Node,
    reference: OnceLock<Reference>,
}

impl Link {
    pub(super) fn node(&self) -> &Node {
        &self.0.node
    }

    /// The node itself; a copy of it when others share it.
    pub(super) fn into_node(self) -> Node {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.node.clone(), |linked| linked.node)
    }

    pub(super) fn reference(&self) -> &Reference {
        self.0.reference.get_or_init(|| Reference::to(&self.0.node.encode()))
    }

    /// The hash of the encoded node, however short that is.
    pub(super) fn hash(&self) -> H256 {
        let reference = self.reference();
        if reference.is_inline() { keccak256(reference.item()) } else { H256::from_slice(&reference.item()[1..]) }
    }
}

impl From<Node> for Link {
    fn from(node: Node) -> Self {
        Self(Arc::new(Linked { node, reference: OnceLock::new() }))
    }
}

/// How a parent refers to a node: by its hash, or, where its encoding is shorter than a hash, by holding that.
///
/// Kept as the RLP item that stands in the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    length: u8,
    item: [u8; HASH_ITEM],
}

/// Length of a hash as an RLP item.
const HASH_ITEM: usize = 33;

impl Reference {
    /// The reference to the node with this encoding.
    fn to(encoded: &[u8]) -> Self {
        let mut item = [0; HASH_ITEM];
        let length = if encoded.len() < 32 { encoded.len() } else { HASH_ITEM };
        if length < HASH_ITEM {
            item[..length].copy_from_slice(encoded);
        } else {
            item[0] = 0x80 + 32;
            item[1..].copy_from_slice(keccak256(encoded).as_bytes());
        }
        Self { length: length as u8, item }
    }

    pub(super) fn is_inline(&self) -> bool {
        usize::from(self.length) < HASH_ITEM
    }

    fn item(&self) -> &[u8] {
        &self.item[..usize::from(self.length)]
    }
}
