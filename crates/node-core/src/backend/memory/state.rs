//! All states of the canonical chain: versions of accounts and slots, and the tries of the newest state.

use super::versions::Versions;
use crate::backend::{AccountProof, StorageProof};
use crate::state::{AccountChange, AccountState, StateChanges};
use crate::trie::Trie;
use node_types::consensus::Account;
use node_types::{Address, BlockNumber, H256, U256, keccak256};
use parking_lot::Mutex;
use rpds::HashTrieMapSync;
use std::sync::Arc;

/// The states as of all blocks from genesis to `newest`. Cloning is cheap.
#[derive(Clone)]
pub(super) struct States {
    newest: BlockNumber,
    accounts: HashTrieMapSync<Address, AccountHistory>,
    /// The state trie as of `newest`.
    trie: Trie,
    /// The changes whose root on top of `newest` was computed last, with the resulting tries: usually those of the
    /// next block. Clones share this, since they have the same newest state.
    next: Arc<Mutex<Option<(StateChanges, Tries)>>>,
}

struct Tries {
    state: Trie,
    /// The storage tries of the changed accounts, in the order of the changes.
    storage: Vec<Trie>,
}

/// The history of one address.
#[derive(Clone, Default)]
struct AccountHistory {
    versions: Versions<Option<AccountState>>,
    /// Blocks in which all storage was deleted. Slots with the same block number were written after the deletion.
    clearings: Versions<()>,
    slots: HashTrieMapSync<H256, Versions<U256>>,
    /// The storage trie as of the newest block.
    trie: Trie,
}

impl States {
    /// Returns the states of a chain with only a genesis block, and the state root.
    pub(super) fn genesis(changes: &StateChanges) -> (Self, H256) {
        let mut states =
            Self { newest: 0, accounts: HashTrieMapSync::new_sync(), trie: Trie::new(), next: Arc::default() };
        let root = states.apply(0, changes);
        (states, root)
    }

    /// Adds the state as of block `number`, one above the newest. Returns its root.
    pub(super) fn apply(&mut self, number: BlockNumber, changes: &StateChanges) -> H256 {
        // Usually the root has already been computed for the header.
        let computed = self.next.lock().take_if(|(next, _)| next == changes).map(|(_, tries)| tries);
        let tries = computed.unwrap_or_else(|| self.tries_with(changes, self.newest));
        for ((address, change), storage) in changes.accounts.iter().zip(tries.storage) {
            let mut history = self.accounts.get(address).cloned().unwrap_or_default();
            history.apply(number, change, storage);
            self.accounts.insert_mut(*address, history);
        }
        self.newest = number;
        self.trie = tries.state;
        self.next = Arc::default();
        self.trie.root()
    }

    /// Removes the newest state, as of block `number`, which `changes` produced.
    pub(super) fn revert(&mut self, number: BlockNumber, changes: &StateChanges) {
        self.newest = number - 1;
        self.next = Arc::default();
        for (address, change) in &changes.accounts {
            let Some(mut history) = self.accounts.get(address).cloned() else { continue };
            let known = history.revert(number, change);
            set_account(&mut self.trie, *address, history.account(self.newest), &history.trie);
            if known {
                self.accounts.insert_mut(*address, history);
            } else {
                self.accounts.remove_mut(address);
            }
        }
    }

    pub(super) fn account(&self, address: Address, at: BlockNumber) -> Option<AccountState> {
        self.accounts.get(&address)?.account(at)
    }

    pub(super) fn slot(&self, address: Address, slot: H256, at: BlockNumber) -> U256 {
        self.accounts.get(&address).map(|history| history.slot(slot, at)).unwrap_or_default()
    }

    /// Returns whether an account has storage as of block `at`.
    pub(super) fn has_storage(&self, address: Address, at: BlockNumber) -> bool {
        self.accounts.get(&address).is_some_and(|history| history.has_storage(at))
    }

    /// Returns the root of the state as of block `at` after applying `changes`.
    pub(super) fn root_with(&self, changes: &StateChanges, at: BlockNumber) -> H256 {
        let tries = self.tries_with(changes, at);
        let root = tries.state.root();
        if at == self.newest {
            *self.next.lock() = Some((changes.clone(), tries));
        }
        root
    }

    /// Returns the tries of the state as of block `at` after applying `changes`.
    fn tries_with(&self, changes: &StateChanges, at: BlockNumber) -> Tries {
        let mut state = self.trie(at);
        let after = |(address, change): (&Address, &AccountChange)| {
            let mut storage = self.storage_trie(*address, at);
            change_storage(&mut storage, change);
            set_account(&mut state, *address, change.account, &storage);
            storage
        };
        let storage = changes.accounts.iter().map(after).collect();
        Tries { state, storage }
    }

    /// Returns an account and its slots as of block `at`, with their proofs.
    pub(super) fn prove(&self, address: Address, slots: &[H256], at: BlockNumber) -> AccountProof {
        let storage = self.storage_trie(address, at);
        let prove_slot = |slot: &H256| StorageProof {
            slot: *slot,
            value: self.slot(address, *slot, at),
            proof: storage.prove(keccak256(slot).as_bytes()),
        };
        AccountProof {
            account: self.account(address, at).map(|account| with_storage_root(account, storage.root())),
            proof: self.trie(at).prove(keccak256(address).as_bytes()),
            storage: slots.iter().map(prove_slot).collect(),
        }
    }

    /// Returns the state trie as of block `at`, built from its leaves unless `at` is the newest block.
    fn trie(&self, at: BlockNumber) -> Trie {
        if at == self.newest {
            return self.trie.clone();
        }
        let mut trie = Trie::new();
        for (address, history) in self.accounts.iter() {
            set_account(&mut trie, *address, history.account(at), &history.trie(at));
        }
        trie
    }

    /// Returns the storage trie of `address` as of block `at`, built in the same way.
    fn storage_trie(&self, address: Address, at: BlockNumber) -> Trie {
        match self.accounts.get(&address) {
            Some(history) if at == self.newest => history.trie.clone(),
            Some(history) => history.trie(at),
            None => Trie::new(),
        }
    }
}

impl AccountHistory {
    /// Adds `change`, after which the storage has the trie `storage`.
    fn apply(&mut self, number: BlockNumber, change: &AccountChange, storage: Trie) {
        // Often only the storage changes.
        if self.versions.newest() != Some(&change.account) {
            self.versions.push(number, change.account);
        }
        if change.clears_storage() {
            self.clearings.push(number, ());
        }
        for (slot, value) in &change.storage {
            let mut versions = self.slots.get(slot).cloned().unwrap_or_default();
            versions.push(number, *value);
            self.slots.insert_mut(*slot, versions);
        }
        self.trie = storage;
    }

    /// Undoes [`Self::apply`]. Returns whether the address has any earlier history.
    fn revert(&mut self, number: BlockNumber, change: &AccountChange) -> bool {
        let known = self.versions.drop_newest(number);
        self.clearings.drop_newest(number);
        for slot in change.storage.keys() {
            let Some(mut versions) = self.slots.get(slot).cloned() else { continue };
            if versions.drop_newest(number) {
                self.slots.insert_mut(*slot, versions);
            } else {
                self.slots.remove_mut(slot);
            }
        }
        if change.clears_storage() {
            self.trie = self.trie(number - 1);
        } else {
            for slot in change.storage.keys() {
                let value = self.slot(*slot, number - 1);
                set_slot(&mut self.trie, *slot, value);
            }
        }
        known
    }

    fn account(&self, at: BlockNumber) -> Option<AccountState> {
        self.versions.at(at).and_then(|(_, account)| account)
    }

    fn slot(&self, slot: H256, at: BlockNumber) -> U256 {
        self.slots.get(&slot).map(|versions| self.value(versions, at)).unwrap_or_default()
    }

    fn has_storage(&self, at: BlockNumber) -> bool {
        self.slots.values().any(|versions| !self.value(versions, at).is_zero())
    }

    /// Returns the value of a slot with these versions.
    fn value(&self, versions: &Versions<U256>, at: BlockNumber) -> U256 {
        match (versions.at(at), self.clearings.at(at)) {
            (Some((written, _)), Some((cleared, ()))) if cleared > written => U256::zero(),
            (Some((_, value)), _) => value,
            (None, _) => U256::zero(),
        }
    }

    fn trie(&self, at: BlockNumber) -> Trie {
        let mut trie = Trie::new();
        for (slot, versions) in self.slots.iter() {
            set_slot(&mut trie, *slot, self.value(versions, at));
        }
        trie
    }
}

fn change_storage(trie: &mut Trie, change: &AccountChange) {
    if change.clears_storage() {
        *trie = Trie::new();
    }
    for (slot, value) in &change.storage {
        set_slot(trie, *slot, *value);
    }
}

fn set_slot(trie: &mut Trie, slot: H256, value: U256) {
    let key = keccak256(slot);
    if value.is_zero() {
        trie.remove(key.as_bytes());
    } else {
        trie.insert(key.as_bytes(), rlp::encode(&value).to_vec());
    }
}

fn set_account(trie: &mut Trie, address: Address, account: Option<AccountState>, storage: &Trie) {
    let key = keccak256(address);
    match account {
        Some(account) => {
            let leaf = with_storage_root(account, storage.root());
            trie.insert(key.as_bytes(), rlp::encode(&leaf).to_vec());
        }
        None => {
            trie.remove(key.as_bytes());
        }
    }
}

fn with_storage_root(account: AccountState, storage_root: H256) -> Account {
    let AccountState { nonce, balance, code_hash } = account;
    Account { nonce, balance, storage_root, code_hash }
}
