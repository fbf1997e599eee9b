//! Cached parts of the newest state.

use crate::keys::{Key, TrieId};
use crate::trie::{Branch, Node, Opaque, Stored};
use crate::values::AccountRow;
use node_core::backend::CacheUse;
use node_core::trie::NibblePath;
use node_types::H256;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use std::sync::Arc;

/// A cache of one state: of the accounts and trie nodes that the next block may change. Only the writer of the newest
/// state uses it.
pub(crate) struct StateParts {
    pub(super) nodes: Cache<(TrieId, NibblePath), Arc<Stored>, NodeBytes>,
    /// By the hash of the address. `None` if there is no such account.
    pub(super) accounts: Cache<H256, Option<AccountRow>>,
}

impl StateParts {
    /// Bytes of a cached account, including its key and bookkeeping.
    const ACCOUNT: usize = 256;

    /// Returns an empty cache of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let of_accounts = bytes / 8;
        let of_nodes = bytes - of_accounts;
        Self {
            nodes: Cache::with_weighter(of_nodes / NodeBytes::EMPTY, of_nodes as u64, NodeBytes),
            accounts: Cache::new(of_accounts / Self::ACCOUNT),
        }
    }

    pub(crate) fn usage(&self) -> [CacheUse; 2] {
        let Self { nodes, accounts } = self;
        let bytes = |accounts: u64| accounts * Self::ACCOUNT as u64;
        [
            CacheUse {
                name: "trie_nodes",
                bytes: nodes.weight(),
                capacity: nodes.capacity(),
                hits: nodes.hits(),
                misses: nodes.misses(),
            },
            CacheUse {
                name: "accounts",
                bytes: bytes(accounts.weight()),
                capacity: bytes(accounts.capacity()),
                hits: accounts.hits(),
                misses: accounts.misses(),
            },
        ]
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.accounts.clear();
    }

    /// Makes this the cache of the state that differs from this one by `changed`.
    pub(crate) fn advance(&mut self, changed: ChangedParts) {
        let ChangedParts { nodes, accounts } = changed;
        nodes.into_iter().for_each(|(trie, path, stored)| self.nodes.insert((trie, path), stored));
        accounts.into_iter().for_each(|(hash, account)| self.accounts.insert(hash, account));
    }
}

/// The parts of a state that differ from the state before.
#[derive(Default)]
pub(crate) struct ChangedParts {
    /// Positions at which nodes were written, with the nodes.
    pub(super) nodes: Vec<(TrieId, NibblePath, Arc<Stored>)>,
    pub(super) accounts: Vec<(H256, Option<AccountRow>)>,
}

impl ChangedParts {
    /// Returns the node that the row with this key has, with its position.
    pub(crate) fn node_of(&self, key: &Key) -> Option<(NibblePath, &Node)> {
        let (_, position, stored) =
            self.nodes.iter().find(|(trie, position, _)| Key::of_node(*trie, position) == *key)?;
        Some((*position, &stored.node))
    }
}

/// Counts the bytes of a cached node, including its key and bookkeeping.
#[derive(Clone)]
pub(super) struct NodeBytes;

impl NodeBytes {
    /// Bytes of an entry without its content.
    const EMPTY: usize = 192;
}

impl Weighter<(TrieId, NibblePath), Arc<Stored>> for NodeBytes {
    fn weight(&self, _key: &(TrieId, NibblePath), stored: &Arc<Stored>) -> u64 {
        let content = match &stored.node {
            Node::Empty => 0,
            Node::Leaves(paths) => size_of_val(&**paths),
            Node::Branch(_) => size_of::<Branch>(),
            Node::Opaque(_) => size_of::<Opaque>(),
        };
        (Self::EMPTY + content) as u64
    }
}
