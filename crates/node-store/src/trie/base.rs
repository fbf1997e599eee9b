//! Tries of the base of a chain, of which nodes are known by their hashes.

use super::row::{Branch, Node, Opaque};
use super::subtrie::Leaf;
use crate::error::StoreError;
use node_core::backend::BaseState;
use node_core::trie::{DecodedNode, MalformedNode, NibblePath, Reference};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, Bytes, H256};

/// A trie of the base, from which the nodes come that have no rows.
pub(crate) struct BaseTrie<'a> {
    state: &'a dyn BaseState,
    /// The account whose storage trie it is. `None` for the account trie.
    account: Option<Address>,
    root: H256,
    /// The leaves that were read.
    leaves: Vec<Leaf>,
    /// Those of them whose values were read.
    used: Vec<Leaf>,
}

impl<'a> BaseTrie<'a> {
    pub(crate) fn accounts(state: &'a dyn BaseState) -> Self {
        Self { state, account: None, root: state.root(), leaves: Vec::new(), used: Vec::new() }
    }

    /// Returns the storage trie of an account. `root` is its root hash.
    pub(crate) fn storage(state: &'a dyn BaseState, account: Address, root: H256) -> Self {
        Self { state, account: Some(account), root, leaves: Vec::new(), used: Vec::new() }
    }

    /// Returns the node at a position, given the reference in its parent; `None` stands for the root.
    pub(crate) fn node(&mut self, position: &NibblePath, reference: Option<&Reference>) -> Result<Node, StoreError> {
        let reference = match reference {
            None if self.root == EMPTY_ROOT => return Ok(Node::Empty),
            None => Reference::from(self.root),
            Some(reference) => *reference,
        };
        let decoded = match self.known(position, &reference)? {
            Some(decoded) => decoded,
            None => self.resolve(position, &reference)?,
        };
        Ok(match decoded {
            DecodedNode::Leaf { path, value } => {
                self.leaves.push((path, value));
                Node::Leaves(vec![path])
            }
            DecodedNode::Branch(children) => Node::Branch(Box::new(Branch { path: *position, children: *children })),
            DecodedNode::Extension { path, child } => {
                let opaque = Opaque { path, branch: child };
                match self.known_branch(&opaque)? {
                    Some(branch) => Node::Branch(branch),
                    None => Node::Opaque(Box::new(opaque)),
                }
            }
        })
    }

    /// Returns the branch of which only the reference is stored, or `None` if the base does not know it either.
    pub(crate) fn known_branch(&self, opaque: &Opaque) -> Result<Option<Box<Branch>>, StoreError> {
        self.known(&opaque.path, &opaque.branch)?.map(|decoded| branch(opaque.path, decoded)).transpose()
    }

    /// Returns the branch of which only the reference is stored. Fetches it if the base does not know it.
    pub(crate) fn branch(&self, opaque: &Opaque) -> Result<Box<Branch>, StoreError> {
        match self.known_branch(opaque)? {
            Some(branch) => Ok(branch),
            None => branch(opaque.path, self.resolve(&opaque.path, &opaque.branch)?),
        }
    }

    /// Returns the value of a leaf, as RLP, or `None` if its node was not read from the base.
    pub(crate) fn value(&mut self, path: &NibblePath) -> Option<Bytes> {
        let leaf = self.leaves.iter().find(|(other, _)| other == path)?.clone();
        self.used.push(leaf.clone());
        Some(leaf.1)
    }

    /// Returns the leaves whose values were read.
    pub(crate) fn into_used(self) -> Vec<Leaf> {
        self.used
    }

    fn known(&self, position: &NibblePath, reference: &Reference) -> Result<Option<DecodedNode>, StoreError> {
        match reference.hash() {
            None => Ok(Some(decode(position, reference.as_rlp())?)),
            Some(hash) => {
                let node = self.state.node(hash).map_err(StoreError::Base)?;
                node.map(|encoded| decode(position, &encoded)).transpose()
            }
        }
    }

    /// Fetches a node below which no key is known.
    fn resolve(&self, position: &NibblePath, reference: &Reference) -> Result<DecodedNode, StoreError> {
        let hash = reference.hash().unwrap_or_default();
        decode(position, &self.state.resolve(self.account, position, hash).map_err(StoreError::Base)?)
    }
}

fn decode(position: &NibblePath, encoded: &[u8]) -> Result<DecodedNode, StoreError> {
    DecodedNode::decode(position, encoded).map_err(StoreError::malformed_base)
}

/// Returns the branch below an extension.
fn branch(path: NibblePath, decoded: DecodedNode) -> Result<Box<Branch>, StoreError> {
    match decoded {
        DecodedNode::Branch(children) => Ok(Box::new(Branch { path, children: *children })),
        DecodedNode::Leaf { .. } | DecodedNode::Extension { .. } => {
            Err(StoreError::malformed_base(MalformedNode::Shape))
        }
    }
}
