//! Reading states from rows, and creating the rows of the next state.

mod flat;
mod parts;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use flat::apply_flat;
pub(crate) use parts::{ChangedParts, StateParts};
pub(crate) use reader::{TrieReader, keys_of_proof, storage_base};

use crate::base;
use crate::error::StoreError;
use crate::keys::{Key, Table, TrieId};
use crate::rows::Rows;
use crate::trie::{self, BaseTrie, Change, NewRow, Planned, Update};
use crate::values::{AccountRow, encode_word};
use node_core::state::{AccountChange, StateChanges};
use node_core::trie::NibblePath;
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, BlockNumber, H256, U256, keccak256, keccak256_all};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// An account in rows, which is `None` if it does not exist. `None` if it has no row: it does not exist, or is as in the
/// base.
type Recorded = Option<Option<AccountRow>>;

/// Returns an account as of block `at`, if it has a row.
fn recorded(rows: &Rows, address_hash: H256, at: BlockNumber) -> Result<Recorded, StoreError> {
    let mut account = None;
    rows.newest_first(&Key::of_hash(Table::Accounts, address_hash), at, |_, value| {
        account = Some(AccountRow::decode(value)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(account)
}

/// Returns an account as of block `at`, if it has a row or is in `cache`, the cache of that state.
fn known_account(
    rows: &Rows,
    cache: Option<&mut StateParts>,
    address_hash: H256,
    at: BlockNumber,
) -> Result<Recorded, StoreError> {
    let Some(cache) = cache else { return recorded(rows, address_hash, at) };
    if let Some(account) = cache.accounts.get(&address_hash) {
        return Ok(Some(*account));
    }
    let account = recorded(rows, address_hash, at)?;
    if let Some(account) = account {
        cache.accounts.insert(address_hash, account);
    }
    Ok(account)
}

/// Returns an account as of block `at`, or `None` if it does not exist. `cache` is that of this state.
fn account(
    rows: &Rows,
    mut cache: Option<&mut StateParts>,
    address: Address,
    address_hash: H256,
    at: BlockNumber,
) -> Result<Option<AccountRow>, StoreError> {
    if let Some(account) = known_account(rows, cache.as_deref_mut(), address_hash, at)? {
        return Ok(account);
    }
    let account = match &rows.base {
        Some(base) => base::account(&**base, address)?,
        None => None,
    };
    if let Some(cache) = cache {
        cache.accounts.insert(address_hash, account);
    }
    Ok(account)
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
        address: Address,
        hash: H256,
    ) -> Result<Option<AccountRow>, StoreError> {
        let Self::Block(number) = self else { return Ok(None) };
        account(rows, cache, address, hash, number)
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
    if let Before::Block(at) = parent {
        fetch(rows, cache.as_deref_mut(), at, changes)?;
    }
    let mut tries = Vec::new();
    let mut planned = Vec::with_capacity(changes.accounts.len());
    for ((index, (address, change)), hash) in (first..).zip(&changes.accounts).zip(hashes) {
        let before = parent.account(rows, cache.as_deref_mut(), *address, hash)?;
        let storage = match change.account {
            Some(_) => {
                let before = before.and_then(|account| account.storage).filter(|_| !change.clears_storage());
                let storage = StorageBefore { address: *address, parent, before, new: (number, index) };
                match new.change_storage(rows, cache.as_deref_mut(), storage, change)? {
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
    let base = rows.base.as_deref().map(BaseTrie::accounts);
    let mut reader = TrieReader { rows, trie: TrieId::ACCOUNTS, at: parent.at(), replaces, cache, base };
    let planned = trie::plan(&mut reader, &leaves)?;
    for (path, value) in reader.base.map(BaseTrie::into_used).unwrap_or_default() {
        let hash = H256::from_slice(path.packed());
        let account = base::account_row(rlp::decode(&value).map_err(StoreError::malformed_base)?);
        new.rows.push((Key::of_hash(Table::Accounts, hash), account.encode()));
        new.changed.accounts.push((hash, Some(account)));
    }
    if let Some(Update { root, rows }) = trie::finish(vec![planned]).pop() {
        new.root = root;
        new.add_nodes(TrieId::ACCOUNTS, rows);
    }
    Ok(new)
}

/// Has the base, if there is one, fetch what it must know to apply `changes` to the state as of block `at`, all at once.
pub(crate) fn fetch(
    rows: &Rows,
    mut cache: Option<&mut StateParts>,
    at: BlockNumber,
    changes: &StateChanges,
) -> Result<(), StoreError> {
    let Some(base) = &rows.base else { return Ok(()) };
    let mut reads = Vec::new();
    for (address, change) in &changes.accounts {
        let row = known_account(rows, cache.as_deref_mut(), keccak256(address), at)?;
        let slots = change.storage.keys().filter(|_| !change.clears_storage());
        reads.extend(base::lacking(rows, at, *address, row, slots)?);
    }
    if reads.is_empty() { Ok(()) } else { base.fetch(&reads).map_err(StoreError::Base) }
}

/// The storage of an account before a change.
struct StorageBefore {
    address: Address,
    parent: Before,
    /// The storage trie and its root hash. `None` if there is no storage, or if it is cleared.
    before: Option<(TrieId, H256)>,
    /// The block of the change, and the number of the storage trie within it if it gets a new id.
    new: (BlockNumber, u32),
}

impl StorageBefore {
    /// Returns whether a slot without a row has the value `value` in the base. Such a slot gets no row: it would have one
    /// without the nodes above it having any.
    fn is_as_in_base(&self, rows: &Rows, trie: TrieId, slot: H256, value: U256) -> Result<bool, StoreError> {
        let (Some(base), Some(at)) = (rows.base.as_ref().filter(|_| trie.continues_base()), self.parent.at()) else {
            return Ok(false);
        };
        if trie != TrieId::UNCHANGED && rows.newest(&Key::of_slot(trie, keccak256(slot)), at)?.is_some() {
            return Ok(false);
        }
        Ok(base.storage(self.address, slot).map_err(StoreError::Base)? == value)
    }
}

/// The change of an account's storage trie.
enum Storage {
    Unchanged(Option<(TrieId, H256)>),
    Changed(TrieId),
}

impl NewState {
    /// Adds the changed slots of one account. Returns the storage trie with the changes to it, or `None` if there are no
    /// changes.
    fn change_storage(
        &mut self,
        rows: &Rows,
        cache: Option<&mut StateParts>,
        storage: StorageBefore,
        change: &AccountChange,
    ) -> Result<Option<(TrieId, Planned)>, StoreError> {
        let (mut names, mut words) = (Vec::new(), Vec::new());
        for (slot, value) in &change.storage {
            let is_same = match storage.before {
                // A new trie has no slots that could be set to zero.
                None => value.is_zero(),
                Some((trie, _)) => storage.is_as_in_base(rows, trie, *slot, *value)?,
            };
            if !is_same {
                names.push(slot);
                words.push(encode_word(*value));
            }
        }
        self.change_slots(rows, cache, storage, keccak256_all(&names).into_iter().zip(words).collect())
    }

    /// Like [`change_storage`](Self::change_storage), given the changed slots by their hashes.
    fn change_slots(
        &mut self,
        rows: &Rows,
        cache: Option<&mut StateParts>,
        storage: StorageBefore,
        slots: BTreeMap<H256, Vec<u8>>,
    ) -> Result<Option<(TrieId, Planned)>, StoreError> {
        if slots.is_empty() {
            return Ok(None);
        }
        let StorageBefore { address, parent, before, new: (number, index) } = storage;
        let (trie, at, cache) = match before {
            // Until the block is appended, the new id may also stand for the trie of another account.
            Some((TrieId::UNCHANGED, _)) if rows.base.is_some() => {
                (TrieId::continuing(number, index), parent.at(), None)
            }
            Some((trie, _)) => (trie, parent.at(), cache),
            None => (TrieId::storage(number, index), None, cache),
        };
        let leaf = |(hash, word): (&H256, &Vec<u8>)| {
            (NibblePath::from(*hash), (!word.is_empty()).then(|| trie::encode_word_leaf(word)))
        };
        let leaves: Vec<Change> = slots.iter().map(leaf).collect();
        let base = storage_base(rows, trie, address, before);
        let mut reader = TrieReader { rows, trie, at, replaces: false, cache, base };
        let planned = trie::plan(&mut reader, &leaves)?;
        self.rows.extend(slots.into_iter().map(|(hash, word)| (Key::of_slot(trie, hash), word)));
        for (path, value) in reader.base.map(BaseTrie::into_used).unwrap_or_default() {
            let word = rlp::Rlp::new(&value).data().map_err(StoreError::malformed_base)?;
            self.rows.push((Key::of_slot(trie, H256::from_slice(path.packed())), word.to_vec()));
        }
        Ok(Some((trie, planned)))
    }

    fn add_nodes(&mut self, trie: TrieId, rows: Vec<NewRow>) {
        self.rows.reserve(rows.len());
        self.changed.nodes.reserve(rows.len());
        for NewRow { position, value, stored } in rows {
            self.rows.push((Key::of_node(trie, &position), value));
            self.changed.nodes.push((trie, position, Arc::new(stored)));
        }
    }
}
