//! Merkle Patricia tries (Yellow Paper, appendix D): the encoding of nodes, and a trie in memory. Paths and the
//! verification of proofs are in node-types.

mod decode;
mod encode;
mod node;
mod sorted;
mod update;

#[cfg(test)]
mod tests;

pub use decode::{DecodedNode, Found, find};
pub use encode::{Reference, encode_branch, encode_extension, encode_extension_to, encode_leaf};
pub use node_types::trie::{MalformedNode, NibblePath, ProofError, verify_proof};
pub use sorted::sorted_root;

use node::{Link, Node};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Bytes, H256};

/// A map from byte strings to byte strings with a Merkle root.
///
/// Nodes are shared between a trie and its clones, and every node caches its hash. Cloning is free, an update copies
/// only the nodes on the path to its key, and the next [`Trie::root`] hashes only the nodes that have changed.
///
/// Keys have at most 32 bytes; methods panic if a key is longer. Keys are not hashed: for Ethereum's secure tries,
/// the caller has to do that. A key may be a prefix of other keys.
///
/// # Examples
/// ```
/// use node_core::trie::{Trie, verify_proof};
/// use node_types::keccak256;
///
/// let key = keccak256("key");
/// let trie = Trie::from_iter([(key, b"value".to_vec()), (keccak256("other"), b"2".to_vec())]);
/// let proof = trie.prove(key.as_bytes());
/// assert_eq!(verify_proof(trie.root(), key.as_bytes(), &proof).unwrap().as_deref(), Some(&b"value"[..]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trie {
    root: Option<Link>,
}

impl Trie {
    /// Returns the empty trie.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the trie is empty.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Returns the value of `key`, or `None` if the trie does not contain it.
    pub fn get(&self, key: &[u8]) -> Option<&Bytes> {
        let key = NibblePath::of_key(key);
        let mut link = self.root.as_ref()?;
        loop {
            match link.node() {
                Node::Leaf { path, value } => return (*path == key).then_some(value),
                Node::Branch(branch) if !key.starts_with(&branch.path) => return None,
                Node::Branch(branch) if key == branch.path => return branch.value.as_ref(),
                Node::Branch(branch) => link = branch.child(&key)?,
            }
        }
    }

    /// Sets the value of `key`. An empty value removes the key, because a trie cannot contain empty values.
    pub fn insert(&mut self, key: &[u8], value: impl Into<Bytes>) {
        let value = value.into();
        if value.is_empty() {
            self.remove(key);
        } else {
            self.root = Some(update::insert(self.root.take(), 0, &NibblePath::of_key(key), value));
        }
    }

    /// Removes `key`. Returns whether the trie contained it.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let held = self.get(key).is_some();
        if held {
            self.root = self.root.take().and_then(|root| update::remove(root, &NibblePath::of_key(key)));
        }
        held
    }

    /// Returns the root hash.
    pub fn root(&self) -> H256 {
        self.root.as_ref().map_or(EMPTY_ROOT, Link::hash)
    }

    /// Returns the RLP of the nodes on the path from the root towards `key`: a proof of its value, or of its absence.
    ///
    /// Nodes shorter than 32 bytes are embedded in their parents and not listed. The proof for the empty trie is
    /// empty.
    pub fn prove(&self, key: &[u8]) -> Vec<Bytes> {
        let key = NibblePath::of_key(key);
        let mut proof = Vec::new();
        let mut push = |encoded: Vec<u8>| {
            if encoded.len() >= 32 || proof.is_empty() {
                proof.push(Bytes::from(encoded));
            }
        };
        let mut next = self.root.as_ref();
        while let Some(link) = next {
            let Node::Branch(branch) = link.node() else {
                push(link.encode());
                break;
            };
            let encoded = branch.encode();
            if let Some(extension) = encode_extension(&branch.path, link.start(), &encoded) {
                push(extension);
            }
            if !key.starts_with(&branch.path) {
                break;
            }
            push(encoded);
            next = if key == branch.path { None } else { branch.child(&key) };
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

/// Returns the root of the trie that maps the RLP of 0, 1, 2, … to `items`. Headers commit to transactions, receipts
/// and withdrawals with such roots.
///
/// # Examples
/// ```
/// use node_core::trie::ordered_root;
/// use node_types::consensus::EMPTY_ROOT;
///
/// let withdrawals: [Vec<u8>; 0] = [];
/// assert_eq!(ordered_root(&withdrawals), EMPTY_ROOT);
/// ```
pub fn ordered_root<I: AsRef<[u8]>>(items: &[I]) -> H256 {
    let entries = items.iter().enumerate().map(|(index, item)| (rlp::encode(&index), Bytes::from(item.as_ref())));
    entries.collect::<Trie>().root()
}
