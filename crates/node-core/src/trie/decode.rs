//! Decoding nodes, and finding keys in a trie of which only some nodes are known.

use super::{MalformedNode, NibblePath, Reference};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256};
use rlp::Rlp;

/// A node as it is encoded. Paths are full paths from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedNode {
    /// A key and its value.
    Leaf { path: NibblePath, value: Bytes },
    /// The path of the only branch below this node, and the reference to it.
    Extension { path: NibblePath, child: Reference },
    /// The child for each next nibble. In a trie whose keys are equally long, branches have no values.
    Branch(Box<[Reference; 16]>),
}

impl DecodedNode {
    /// Decodes the RLP of the node at a position.
    ///
    /// # Errors
    /// If it is not the RLP of a node, or its path is longer than 64 nibbles.
    pub fn decode(position: &NibblePath, encoded: &[u8]) -> Result<Self, MalformedNode> {
        let list = Rlp::new(encoded);
        let string = |index| -> Result<Vec<u8>, MalformedNode> { Ok(list.val_at(index)?) };
        let reference = |index| -> Result<Reference, MalformedNode> {
            let mut item = list.at(index)?.as_raw();
            Reference::split_from(&mut item).filter(|_| item.is_empty()).ok_or(MalformedNode::Reference)
        };
        match list.item_count()? {
            2 => {
                let (path, is_leaf) = position.join_compact(&string(0)?).ok_or(MalformedNode::Path)?;
                Ok(match is_leaf {
                    true => Self::Leaf { path, value: string(1)?.into() },
                    false => Self::Extension { path, child: reference(1)? },
                })
            }
            17 => {
                let mut children = Box::new([Reference::NONE; 16]);
                for (index, child) in children.iter_mut().enumerate() {
                    *child = reference(index)?;
                }
                Ok(Self::Branch(children))
            }
            _ => Err(MalformedNode::Shape),
        }
    }
}

/// What the known nodes of a trie show about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Value(Bytes),
    /// The trie does not contain the key.
    Absent,
    /// The node with this hash, which is at this position, is not known.
    Unknown {
        position: NibblePath,
        hash: H256,
    },
}

/// Finds `key` in the trie with the hash `root`, among the nodes that `node` returns by their hashes.
///
/// # Errors
/// Those of `node`, and [`MalformedNode`] if what it returns is not a node.
pub fn find<E: From<MalformedNode>>(
    root: H256,
    key: H256,
    mut node: impl FnMut(H256) -> Result<Option<Bytes>, E>,
) -> Result<Found, E> {
    if root == EMPTY_ROOT {
        return Ok(Found::Absent);
    }
    let key = NibblePath::from(key);
    let mut position = NibblePath::ROOT;
    let mut next = Reference::from(root);
    loop {
        let decoded = match next.hash() {
            Some(hash) => match node(hash)? {
                Some(encoded) => DecodedNode::decode(&position, &encoded)?,
                None => return Ok(Found::Unknown { position, hash }),
            },
            None => DecodedNode::decode(&position, next.as_rlp())?,
        };
        match decoded {
            DecodedNode::Leaf { path, value } => {
                return Ok(if path == key { Found::Value(value) } else { Found::Absent });
            }
            DecodedNode::Extension { path, child } if key.starts_with(&path) => (position, next) = (path, child),
            // No key of the trie ends at a branch.
            DecodedNode::Branch(children) if position.len() < NibblePath::MAX_LEN => {
                let nibble = key.nibble(position.len());
                (position, next) = (position.child(nibble), children[usize::from(nibble)]);
                if next.is_none() {
                    return Ok(Found::Absent);
                }
            }
            DecodedNode::Extension { .. } | DecodedNode::Branch(_) => return Ok(Found::Absent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Trie;
    use super::*;
    use node_types::keccak256;
    use std::collections::HashMap;

    #[test]
    fn keys_are_found_among_the_nodes_of_their_proofs_and_of_no_others() {
        for count in [0u8, 1, 2, 3, 17, 200] {
            // Short values, so that nodes are embedded in their parents.
            let trie: Trie = (0..count).map(|n| (keccak256([n]), vec![n + 1])).collect();
            for n in 0..=250u8 {
                let key = keccak256([n]);
                let nodes: HashMap<H256, Bytes> =
                    trie.prove(key.as_bytes()).into_iter().map(|node| (keccak256(&node), node)).collect();
                let found = |known: &HashMap<H256, Bytes>| {
                    find::<MalformedNode>(trie.root(), key, |hash| Ok(known.get(&hash).cloned())).unwrap()
                };
                let expected = if n < count { Found::Value(vec![n + 1].into()) } else { Found::Absent };
                assert_eq!(found(&nodes), expected, "{n} of {count}");
                for missing in nodes.keys() {
                    let mut fewer = nodes.clone();
                    fewer.remove(missing);
                    assert!(matches!(found(&fewer), Found::Unknown { hash, .. } if hash == *missing));
                }
            }
        }
    }

    #[test]
    fn malformed_nodes_are_refused() {
        let position = NibblePath::ROOT;
        for encoded in [
            &[][..],
            &[0x80],
            &[0xc0],
            &[0xc1, 0x80],
            &[0xc2, 0x40, 0x80],
            &[0xc2, 0x00, 0x01],
            &[0xc3, 0x20, 0x81, 0x01],
        ] {
            assert!(DecodedNode::decode(&position, encoded).is_err(), "{encoded:x?}");
        }
    }
}
