//! Reading the nodes of a trie as of a block.

use super::known_account;
use super::parts::StateParts;
use crate::error::StoreError;
use crate::keys::{Key, Table, TrieId};
use crate::rows::Rows;
use crate::trie::{self, BaseTrie, Branch, Decoder, FROM_BASE, MAX_AGE, Node, Opaque, Source, Stored};
use node_core::trie::{NibblePath, Reference};
use node_types::{Address, BlockNumber, Bytes, H256};
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) struct TrieReader<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) trie: TrieId,
    /// The block as of which nodes are read; `None` for a new trie, which has no nodes.
    pub(crate) at: Option<BlockNumber>,
    /// Whether new rows replace the rows that are read, because the same block wrote them. New rows must then not be
    /// deltas.
    pub(crate) replaces: bool,
    pub(crate) cache: Option<&'a mut StateParts>,
    /// The trie of the base that has the nodes without rows, if there is one.
    pub(crate) base: Option<BaseTrie<'a>>,
}

impl TrieReader<'_> {
    /// Returns the node at a position that has no row.
    fn node_without_row(
        &mut self,
        position: &NibblePath,
        reference: Option<&Reference>,
    ) -> Result<Arc<Stored>, StoreError> {
        let Some(base) = &mut self.base else { return Ok(Arc::new(Stored::NOTHING)) };
        Ok(Arc::new(Stored { node: base.node(position, reference)?, age: FROM_BASE }))
    }

    /// Returns the branch instead of a reference to it if the base knows it by now.
    fn known(&self, stored: Arc<Stored>) -> Result<Arc<Stored>, StoreError> {
        if let (Node::Opaque(opaque), Some(base)) = (&stored.node, &self.base)
            && let Some(branch) = base.known_branch(opaque)?
        {
            // A delta needs a row with the branch.
            return Ok(Arc::new(Stored { node: Node::Branch(branch), age: MAX_AGE }));
        }
        Ok(stored)
    }
}

impl Source for TrieReader<'_> {
    type Error = StoreError;

    fn node(&mut self, position: &NibblePath, reference: Option<&Reference>) -> Result<Arc<Stored>, StoreError> {
        let Some(at) = self.at else { return Ok(Arc::new(Stored::NOTHING)) };
        if let Some(stored) = self.cache.as_mut().and_then(|cache| cache.nodes.get(&(self.trie, *position))) {
            let stored = Arc::clone(stored);
            return self.known(stored);
        }
        let key = Key::of_node(self.trie, position);
        let mut decoder = Decoder::new(*position);
        let mut started = false;
        let mut stored = None;
        self.rows.newest_first(&key, at, |_, row| {
            started = true;
            stored = decoder.read(row)?;
            Ok(if stored.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let stored = match stored {
            Some(Stored { node, .. }) if self.replaces => Arc::new(Stored { node, age: MAX_AGE }),
            Some(stored) => Arc::new(stored),
            None if started => return Err(StoreError::Missing { table: Table::Trie.name() }),
            None => self.node_without_row(position, reference)?,
        };
        // The value of a leaf of the base is in its node, which must then be read again.
        let is_complete = stored.age != FROM_BASE || !matches!(stored.node, Node::Leaves(_));
        if let Some(cache) = self.cache.as_mut().filter(|_| is_complete) {
            cache.nodes.insert((self.trie, *position), Arc::clone(&stored));
        }
        self.known(stored)
    }

    fn open(&mut self, opaque: &Opaque) -> Result<Box<Branch>, StoreError> {
        match &self.base {
            Some(base) => base.branch(opaque),
            None => Err(StoreError::Missing { table: Table::Trie.name() }),
        }
    }

    fn expect(&mut self, leaves: &[NibblePath]) -> Result<(), StoreError> {
        let Some(at) = self.at else { return Ok(()) };
        let keys = leaves.iter().map(|leaf| (leaf_key(self.trie, H256::from_slice(leaf.packed())), at));
        self.rows.tables.fetch(&keys.collect::<Vec<_>>())
    }

    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, StoreError> {
        // A leaf whose position has no row has none either.
        if let Some(value) = self.base.as_mut().and_then(|base| base.value(leaf)) {
            return Ok(value);
        }
        let hash = H256::from_slice(leaf.packed());
        let at = self.at.unwrap_or_default();
        if self.trie == TrieId::ACCOUNTS {
            let account = known_account(self.rows, self.cache.as_deref_mut(), hash, at)?.flatten();
            let account = account.ok_or(StoreError::Missing { table: Table::Accounts.name() })?;
            return Ok(account.leaf().encode().into());
        }
        match self.rows.newest(&Key::of_slot(self.trie, hash), at)? {
            // A base may have leaves of slots that are zero: anvil keeps them.
            Some((_, word)) if !word.is_empty() || self.trie.continues_base() => Ok(trie::encode_word_leaf(&word)),
            _ => Err(StoreError::Missing { table: Table::Storage.name() }),
        }
    }
}

/// Returns the trie of the base that the storage trie `trie` continues, if it does. `before` is the trie with its root
/// hash before a change; if its root has no row, that is the one in the base.
pub(crate) fn storage_base<'a>(
    rows: &'a Rows,
    trie: TrieId,
    address: Address,
    before: Option<(TrieId, H256)>,
) -> Option<BaseTrie<'a>> {
    let base = rows.base.as_deref().filter(|_| trie.continues_base())?;
    before.map(|(_, root)| BaseTrie::storage(base, address, root))
}

/// Number of nibbles up to which the positions on a path are fetched in advance. Nodes below are rare.
const FETCHED_NIBBLES: usize = 12;

/// Returns the keys of the rows that prove a leaf, unless it is deep in its trie.
pub(crate) fn keys_of_proof(trie: TrieId, hash: H256) -> impl Iterator<Item = Key> {
    let leaf = NibblePath::from(hash);
    let nodes = (0..=FETCHED_NIBBLES).map(move |nibbles| Key::of_node(trie, &leaf.prefix(nibbles)));
    nodes.chain([leaf_key(trie, hash)])
}

/// Returns the key of the value of a leaf.
fn leaf_key(trie: TrieId, hash: H256) -> Key {
    if trie == TrieId::ACCOUNTS { Key::of_hash(Table::Accounts, hash) } else { Key::of_slot(trie, hash) }
}
