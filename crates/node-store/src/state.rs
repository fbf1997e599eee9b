//! Reading states from rows, and creating the rows of the next state.

use crate::error::StoreError;
use crate::keys::{Key, Table, TrieId};
use crate::rows::Rows;
use crate::trie::{self, Branch, Change, Decoder, MAX_AGE, NewRow, Node, Planned, Source, Stored, Update};
use crate::values::{AccountRow, encode_word};
use node_core::backend::CacheUse;
use node_core::state::{AccountChange, StateChanges};
use node_core::trie::NibblePath;
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, BlockNumber, Bytes, H256, keccak256_all};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Returns an account as of block `at`, or `None` if it does not exist.
pub(crate) fn account(rows: &Rows, address_hash: H256, at: BlockNumber) -> Result<Option<AccountRow>, StoreError> {
    let mut account = None;
    rows.newest_first(&Key::of_hash(Table::Accounts, address_hash), at, |_, value| {
        account = AccountRow::decode(value)?;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(account)
}

/// Like [`account`], with the cache of that state.
fn cached_account(
    rows: &Rows,
    cache: Option<&mut StateParts>,
    address_hash: H256,
    at: BlockNumber,
) -> Result<Option<AccountRow>, StoreError> {
    let Some(cache) = cache else { return account(rows, address_hash, at) };
    if let Some(account) = cache.accounts.get(&address_hash) {
        return Ok(*account);
    }
    let account = account(rows, address_hash, at)?;
    cache.accounts.insert(address_hash, account);
    Ok(account)
}

/// A cache of one state: of the accounts and trie nodes that the next block may change. Only the writer of the newest
/// state uses it.
pub(crate) struct StateParts {
    nodes: Cache<(TrieId, NibblePath), Arc<Stored>, NodeBytes>,
    /// By the hash of the address. `None` if there is no such account.
    accounts: Cache<H256, Option<AccountRow>>,
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
    nodes: Vec<(TrieId, NibblePath, Arc<Stored>)>,
    accounts: Vec<(H256, Option<AccountRow>)>,
}

/// Counts the bytes of a cached node, including its key and bookkeeping.
#[derive(Clone)]
struct NodeBytes;

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
        };
        (Self::EMPTY + content) as u64
    }
}

pub(crate) struct TrieReader<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) trie: TrieId,
    /// The block as of which nodes are read; `None` for a new trie, which has no nodes.
    pub(crate) at: Option<BlockNumber>,
    /// Whether new rows replace the rows that are read, because the same block wrote them. New rows must then not be
    /// deltas.
    pub(crate) replaces: bool,
    pub(crate) cache: Option<&'a mut StateParts>,
}

impl Source for TrieReader<'_> {
    type Error = StoreError;

    fn node(&mut self, position: &NibblePath) -> Result<Arc<Stored>, StoreError> {
        let Some(at) = self.at else { return Ok(Arc::new(Stored::NOTHING)) };
        if let Some(stored) = self.cache.as_mut().and_then(|cache| cache.nodes.get(&(self.trie, *position))) {
            return Ok(Arc::clone(stored));
        }
        let key = Key::of_node(self.trie, position.len() as u8, position.packed());
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
            None => Arc::new(Stored::NOTHING),
        };
        if let Some(cache) = &mut self.cache {
            cache.nodes.insert((self.trie, *position), Arc::clone(&stored));
        }
        Ok(stored)
    }

    fn expect(&mut self, leaves: &[NibblePath]) -> Result<(), StoreError> {
        let Some(at) = self.at else { return Ok(()) };
        let keys = leaves.iter().map(|leaf| (leaf_key(self.trie, H256::from_slice(leaf.packed())), at));
        self.rows.tables.fetch(&keys.collect::<Vec<_>>())
    }

    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, StoreError> {
        let hash = H256::from_slice(leaf.packed());
        let at = self.at.unwrap_or_default();
        if self.trie == TrieId::ACCOUNTS {
            let account = cached_account(self.rows, self.cache.as_deref_mut(), hash, at)?;
            let account = account.ok_or(StoreError::Missing { table: Table::Accounts.name() })?;
            return Ok(account.leaf().encode().into());
        }
        match self.rows.newest(&Key::of_slot(self.trie, hash), at)? {
            Some((_, word)) if !word.is_empty() => Ok(trie::encode_word_leaf(&word)),
            _ => Err(StoreError::Missing { table: Table::Storage.name() }),
        }
    }
}

/// Number of nibbles up to which the positions on a path are fetched in advance. Nodes below are rare.
const FETCHED_NIBBLES: usize = 12;

/// Returns the keys of the rows that prove a leaf, unless it is deep in its trie.
pub(crate) fn keys_of_proof(trie: TrieId, hash: H256) -> impl Iterator<Item = Key> {
    let leaf = NibblePath::from(hash);
    let nodes = (0..=FETCHED_NIBBLES).map(move |nibbles| {
        let position = leaf.prefix(nibbles);
        Key::of_node(trie, nibbles as u8, position.packed())
    });
    nodes.chain([leaf_key(trie, hash)])
}

/// Returns the key of the value of a leaf.
fn leaf_key(trie: TrieId, hash: H256) -> Key {
    if trie == TrieId::ACCOUNTS { Key::of_hash(Table::Accounts, hash) } else { Key::of_slot(trie, hash) }
}

/// A new state, as the rows in which it differs from the previous one.
#[derive(Default)]
pub(crate) struct NewState {
    pub(crate) root: H256,
    /// Rows of accounts and storage, then of tries.
    pub(crate) rows: Vec<(Key, Vec<u8>)>,
    pub(crate) changed: ChangedParts,
}

/// The state to which changes are applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    Block(BlockNumber),
    /// The part of the genesis state that is stored so far, with this number of accounts. The changes are further
    /// accounts.
    Genesis {
        accounts: u32,
    },
}

impl Before {
    /// No state.
    pub(crate) const NOTHING: Self = Self::Genesis { accounts: 0 };

    /// Returns the state as of the block before `number`.
    pub(crate) fn block(number: BlockNumber) -> Self {
        number.checked_sub(1).map_or(Self::NOTHING, Self::Block)
    }

    /// Returns the block as of which rows are read, or `None` if there are no rows.
    fn at(self) -> Option<BlockNumber> {
        match self {
            Self::Block(number) => Some(number),
            Self::Genesis { accounts } => (accounts > 0).then_some(0),
        }
    }

    /// Returns the account before the changes. `cache` is that of this state.
    fn account(
        self,
        rows: &Rows,
        cache: Option<&mut StateParts>,
        hash: H256,
    ) -> Result<Option<AccountRow>, StoreError> {
        let Self::Block(number) = self else { return Ok(None) };
        cached_account(rows, cache, hash, number)
    }
}

/// Returns the state of block `number`: `changes` applied to `parent`.
pub(crate) fn apply(
    rows: &Rows,
    mut cache: Option<&mut StateParts>,
    parent: Before,
    number: BlockNumber,
    changes: &StateChanges,
) -> Result<NewState, StoreError> {
    let (first, replaces) = match parent {
        Before::Block(_) => (0, false),
        Before::Genesis { accounts } => (accounts, true),
    };
    let mut new = NewState::default();
    let addresses: Vec<&Address> = changes.accounts.keys().collect();
    let hashes = keccak256_all(&addresses);
    let mut tries = Vec::new();
    let mut planned = Vec::with_capacity(changes.accounts.len());
    for ((index, change), hash) in (first..).zip(changes.accounts.values()).zip(hashes) {
        let before = parent.account(rows, cache.as_deref_mut(), hash)?;
        let storage = match change.account {
            Some(_) => {
                let before = before.and_then(|account| account.storage).filter(|_| !change.clears_storage());
                let fresh = TrieId::storage(number, index);
                match new.change_storage(rows, cache.as_deref_mut(), parent, before, fresh, change)? {
                    Some((trie, trie_changes)) => {
                        tries.push(trie_changes);
                        Storage::Changed(trie)
                    }
                    None => Storage::Unchanged(before),
                }
            }
            None => Storage::Unchanged(None),
        };
        planned.push((hash, change.account, before, storage));
    }
    let mut roots = trie::finish(tries).into_iter();
    let mut leaves: Vec<Change> = Vec::with_capacity(planned.len());
    for (hash, state, before, storage) in planned {
        let storage = match storage {
            Storage::Unchanged(storage) => storage,
            Storage::Changed(trie) => roots.next().and_then(|Update { root, rows }| {
                new.add_nodes(trie, rows);
                (root != EMPTY_ROOT).then_some((trie, root))
            }),
        };
        let after = state.map(|state| AccountRow { state, storage });
        if after == before {
            continue;
        }
        new.changed.accounts.push((hash, after));
        let value = after.map(|account| account.encode()).unwrap_or_default();
        new.rows.push((Key::of_hash(Table::Accounts, hash), value));
        leaves.push((NibblePath::from(hash), after.map(|account| account.leaf().encode().into())));
    }
    leaves.sort_unstable_by(|(a, _), (b, _)| a.packed().cmp(b.packed()));
    let mut reader = TrieReader { rows, trie: TrieId::ACCOUNTS, at: parent.at(), replaces, cache };
    if let Some(Update { root, rows }) = trie::finish(vec![trie::plan(&mut reader, &leaves)?]).pop() {
        new.root = root;
        new.add_nodes(TrieId::ACCOUNTS, rows);
    }
    Ok(new)
}

/// The change of an account's storage trie.
enum Storage {
    Unchanged(Option<(TrieId, H256)>),
    Changed(TrieId),
}

impl NewState {
    /// Adds the changed slots of one account whose storage trie was `before`. Returns the storage trie with the
    /// changes to it, or `None` if there are no changes.
    fn change_storage(
        &mut self,
        rows: &Rows,
        cache: Option<&mut StateParts>,
        parent: Before,
        before: Option<(TrieId, H256)>,
        fresh: TrieId,
        change: &AccountChange,
    ) -> Result<Option<(TrieId, Planned)>, StoreError> {
        // A new trie has no slots that could be set to zero.
        let changed = change.storage.iter().filter(|(_, value)| before.is_some() || !value.is_zero());
        let (names, words): (Vec<&H256>, Vec<_>) = changed.map(|(slot, value)| (slot, encode_word(*value))).unzip();
        let slots: BTreeMap<_, _> = keccak256_all(&names).into_iter().zip(words).collect();
        if slots.is_empty() {
            return Ok(None);
        }
        let (trie, at) = match before {
            Some((trie, _)) => (trie, parent.at()),
            None => (fresh, None),
        };
        let leaf = |(hash, word): (&H256, &Vec<u8>)| {
            (NibblePath::from(*hash), (!word.is_empty()).then(|| trie::encode_word_leaf(word)))
        };
        let leaves: Vec<Change> = slots.iter().map(leaf).collect();
        let mut reader = TrieReader { rows, trie, at, replaces: false, cache };
        let planned = trie::plan(&mut reader, &leaves)?;
        self.rows.extend(slots.into_iter().map(|(hash, word)| (Key::of_slot(trie, hash), word)));
        Ok(Some((trie, planned)))
    }

    fn add_nodes(&mut self, trie: TrieId, rows: Vec<NewRow>) {
        self.rows.reserve(rows.len());
        self.changed.nodes.reserve(rows.len());
        for NewRow { position, value, stored } in rows {
            self.rows.push((Key::of_node(trie, position.len() as u8, position.packed()), value));
            self.changed.nodes.push((trie, position, Arc::new(stored)));
        }
    }
}
