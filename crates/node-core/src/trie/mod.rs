//! Merkle Patricia tries in memory (Yellow Paper, appendix D).
//!
//! Nodes are shared between a trie and its clones, and every node remembers its hash: cloning is free, an update
//! copies only the nodes on the way to its key, and the next [`Trie::root`] hashes only what was copied since.

mod nibbles;
mod node;
mod ordered;
mod proof;
mod update;

#[cfg(test)]
mod tests;

pub use ordered::ordered_root;
pub use proof::{NodeError, ProofError, verify_proof};

use nibbles::Nibbles;
use node::{Link, Node};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256};

/// A map from byte strings to byte strings with a Merkle root.
///
/// Keys are taken as they are; for the secure tries of Ethereum the caller hashes them. A branch holds the value of a
/// key that is a prefix of others. The trie is as deep as its longest shared prefix, so keys from outside must be
/// hashed or short.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    root: Option<Link>,
}

impl Trie {
    /// The empty trie.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let nibbles = Nibbles::unpack(key);
        let mut rest = &nibbles[..];
        let mut link = self.root.as_ref()?;
        loop {
            match link.node() {
                Node::Leaf { path, value } => return (**path == *rest).then_some(value),
                Node::Extension { path, child } => {
                    rest = rest.strip_prefix(&path[..])?;
                    link = child;
                }
                Node::Branch(branch) => match rest.split_first() {
                    None => return branch.value.as_ref(),
                    Some((nibble, behind)) => {
                        rest = behind;
                        link = branch.child(*nibble)?;
                    }
                },
            }
        }
    }

    /// Sets the value of `key`. An empty value removes the key, for a trie cannot hold one.
    pub fn insert(&mut self, key: &[u8], value: impl Into<Bytes>) {
        let value = value.into();
        if value.is_empty() {
            self.remove(key);
        } else {
            self.root = Some(update::insert(self.root.take(), &Nibbles::unpack(key), value));
        }
    }

    /// Removes `key`; answers whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let held = self.get(key).is_some();
        if held {
            self.root = self.root.take().and_then(|root| update::remove(root, &Nibbles::unpack(key)));
        }
        held
    }

    /// The root hash.
    pub fn root(&self) -> H256 {
        self.root.as_ref().map_or(EMPTY_ROOT, Link::hash)
    }

    /// The nodes from the root on the way to `key`, as RLP: a proof of its value, or that there is none.
    ///
    /// Nodes shorter than 32 bytes stand within their parents and are not listed. The empty trie proves with nothing.
    pub fn prove(&self, key: &[u8]) -> Vec<Bytes> {
        let nibbles = Nibbles::unpack(key);
        let mut rest = &nibbles[..];
        let mut proof = Vec::new();
        let mut next = self.root.as_ref();
        while let Some(link) = next {
            if proof.is_empty() || !link.reference().is_inline() {
                proof.push(Bytes::from(link.node().encode()));
            }
            next = match link.node() {
                Node::Leaf { .. } => None,
                Node::Extension { path, child } => rest.strip_prefix(&path[..]).map(|behind| {
                    rest = behind;
                    child
                }),
                Node::Branch(branch) => rest.split_first().and_then(|(nibble, behind)| {
                    rest = behind;
                    branch.child(*nibble)
                }),
            };
        }
        proof
    }
}

impl<K: AsRef<[u8]>, V: Into<Bytes>> FromIterator<(K, V)> for Trie {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut trie = Self::new();
        for (key, value) in entries {
            trie.insert(key.as_ref(), value);
        }
        trie
    }
}
