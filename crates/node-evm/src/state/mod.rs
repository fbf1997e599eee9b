//! revm's database: the state as of a block, with the changes made during execution.

pub(crate) mod code_cache;

use crate::convert::{ToEvm, ToNode, slot_to_node};
use crate::state::code_cache::CodeCache;
use node_core::backend::{BackendError, StateView, View, has_storage_after};
use node_core::context::Interrupted;
use node_core::protocol::Fork;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::BlockNumber;
use revm::bytecode::Bytecode;
use revm::database_interface::{DBErrorMarker, Database};
use revm::primitives::map::hash_map::Entry;
use revm::primitives::{Address, AddressMap, B256, B256Map, U256, U256Map};
use revm::state::{Account, AccountInfo, EvmState};

/// The state as of a block with changes on top. It caches everything that was read or written.
pub struct StateDb<'a> {
    view: &'a dyn View,
    state: Box<dyn StateView + 'a>,
    codes: &'a CodeCache,
    fork: Fork,
    /// The block whose ancestors BLOCKHASH knows.
    block: BlockNumber,
    accounts: AddressMap<CachedAccount>,
    /// Code that may not be in the backend yet.
    new_code: B256Map<Bytecode>,
}

/// An account before and after the changes.
#[derive(Clone, Debug, Default)]
struct CachedAccount {
    before: Option<AccountInfo>,
    now: Option<AccountInfo>,
    /// Whether the account's previous storage was deleted.
    cleared: bool,
    slots: U256Map<CachedSlot>,
}

/// A storage slot before and after the changes.
#[derive(Clone, Copy, Debug)]
struct CachedSlot {
    /// Zero if the storage was cleared, `None` if it is not known.
    before: Option<U256>,
    now: U256,
}

impl CachedSlot {
    fn unchanged(value: U256) -> Self {
        Self { before: Some(value), now: value }
    }
}

impl<'a> StateDb<'a> {
    /// Creates the state as of block `at`, without changes, for execution of the next block under the rules of `fork`.
    pub(crate) fn new(
        view: &'a dyn View,
        at: BlockNumber,
        codes: &'a CodeCache,
        fork: Fork,
    ) -> Result<Self, BackendError> {
        let state = view.state(at)?;
        let block = at.saturating_add(1);
        Ok(Self { view, state, codes, fork, block, accounts: AddressMap::default(), new_code: B256Map::default() })
    }

    /// Returns the same state for execution in the environment of `block`.
    pub(crate) fn with_ancestors_of(self, block: BlockNumber) -> Self {
        Self { block, ..self }
    }

    /// Returns the same state for execution under the rules of `fork`.
    pub(crate) fn with_fork(self, fork: Fork) -> Self {
        Self { fork, ..self }
    }

    /// Returns the account with all changes, or `None` if it does not exist.
    pub(crate) fn account(&mut self, address: Address) -> Result<Option<&AccountInfo>, DatabaseError> {
        Ok(self.cached(address)?.now.as_ref())
    }

    /// Returns whether the account has storage after all changes.
    pub(crate) fn has_storage(&mut self, address: Address) -> Result<bool, DatabaseError> {
        let account = self.cached(address)?;
        if account.now.is_none() {
            return Ok(false);
        }
        let (address, change) = (address.to_node(), account.change());
        Ok(match change {
            Some(change) => has_storage_after(&*self.state, address, &change)?,
            None => self.state.has_storage(address)?,
        })
    }

    /// Returns `code` in the form that the fork executes: before EIP-7702 a delegation is ordinary code, which halts
    /// at its first byte.
    pub(crate) fn under_fork(&self, code: Bytecode) -> Bytecode {
        if self.fork < Fork::Prague && code.is_eip7702() { Bytecode::new_legacy(code.original_bytes()) } else { code }
    }

    /// Sets nonce, balance and code of an account without changing its storage. `None` deletes the account.
    pub(crate) fn set_account(&mut self, address: Address, info: Option<AccountInfo>) -> Result<(), DatabaseError> {
        if let Some(AccountInfo { code_hash, code: Some(code), .. }) = &info {
            self.new_code.insert(*code_hash, code.clone());
        }
        let account = self.cached(address)?;
        match info {
            Some(info) => account.now = Some(info),
            None => account.destroy(),
        }
        Ok(())
    }

    /// Deletes all storage of an account.
    pub(crate) fn clear_storage(&mut self, address: Address) -> Result<(), DatabaseError> {
        self.cached(address)?.clear_storage();
        Ok(())
    }

    /// Writes a storage slot.
    pub(crate) fn set_slot(&mut self, address: Address, slot: U256, value: U256) -> Result<(), DatabaseError> {
        self.storage(address, slot)?;
        self.cached(address)?.slots.entry(slot).or_insert(CachedSlot::unchanged(U256::ZERO)).now = value;
        Ok(())
    }

    /// Writes a storage slot without reading it. It is then among the changes even if it has this value already.
    pub(crate) fn overwrite_slot(&mut self, address: Address, slot: U256, value: U256) -> Result<(), DatabaseError> {
        self.cached(address)?.slots.entry(slot).or_insert(CachedSlot { before: None, now: value }).now = value;
        Ok(())
    }

    /// Applies the changes of a transaction. Empty touched accounts are deleted, unless revm marks them as created,
    /// which it does for all of them before EIP-161.
    pub(crate) fn commit(&mut self, state: EvmState) -> Result<(), DatabaseError> {
        for (address, account) in state {
            if account.is_touched() {
                self.commit_account(address, account)?;
            }
        }
        Ok(())
    }

    pub(crate) fn changes(&self) -> StateChanges {
        let mut changes = StateChanges::default();
        for (address, account) in &self.accounts {
            let Some(change) = account.change() else { continue };
            if let Some(code_hash) = account.deployed_code()
                && let Some(code) = self.new_code.get(&code_hash)
            {
                changes.code.insert(code_hash.to_node(), code.original_bytes().to_node());
            }
            changes.accounts.insert(address.to_node(), change);
        }
        changes
    }

    fn commit_account(&mut self, address: Address, account: Account) -> Result<(), DatabaseError> {
        // A touched account is loaded, so this does not read from the backend.
        let cached = self.cached(address)?;
        if account.is_selfdestructed() {
            cached.destroy();
            return Ok(());
        }
        if account.is_created() {
            cached.clear_storage();
        } else if account.is_empty() {
            cached.destroy();
            return Ok(());
        }
        for (slot, value) in account.storage {
            if value.is_changed() {
                let cached = cached.slots.entry(slot).or_insert(CachedSlot::unchanged(value.original_value));
                cached.now = value.present_value;
            }
        }
        let known = cached.now.as_ref().map(|info| info.code_hash);
        let (code_hash, code) = (account.info.code_hash, account.info.code.clone());
        cached.now = Some(account.info);
        if known != Some(code_hash)
            && let Some(code) = code
        {
            self.new_code.insert(code_hash, code);
        }
        Ok(())
    }

    fn cached(&mut self, address: Address) -> Result<&mut CachedAccount, DatabaseError> {
        cached(&mut self.accounts, &*self.state, address)
    }
}

/// Returns the cached account, reading it from `state` first if necessary.
fn cached<'a>(
    accounts: &'a mut AddressMap<CachedAccount>,
    state: &dyn StateView,
    address: Address,
) -> Result<&'a mut CachedAccount, DatabaseError> {
    match accounts.entry(address) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => {
            let account = state.account(address.to_node())?.map(|account| AccountInfo {
                balance: account.balance.to_evm(),
                nonce: account.nonce,
                code_hash: account.code_hash.to_evm(),
                account_id: None,
                code: None,
            });
            Ok(entry.insert(CachedAccount { before: account.clone(), now: account, ..CachedAccount::default() }))
        }
    }
}

impl CachedAccount {
    fn destroy(&mut self) {
        self.now = None;
        self.clear_storage();
    }

    fn clear_storage(&mut self) {
        self.cleared = self.before.is_some();
        self.slots.clear();
    }

    /// Returns the change of the account, or `None` if it has not changed.
    fn change(&self) -> Option<AccountChange> {
        let existed = self.before.is_some() || self.now.is_some();
        let storage: std::collections::BTreeMap<_, _> = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.before != Some(slot.now))
            .map(|(slot, value)| (slot_to_node(*slot), value.now.to_node()))
            .collect();
        let changed = self.before != self.now || self.cleared || !storage.is_empty();
        (existed && changed).then(|| AccountChange {
            account: self.now.as_ref().map(|info| AccountState {
                nonce: info.nonce,
                balance: info.balance.to_node(),
                code_hash: info.code_hash.to_node(),
            }),
            storage_cleared: self.cleared,
            storage,
        })
    }

    /// Returns the hash of the account's code if the code is new.
    fn deployed_code(&self) -> Option<B256> {
        let now = self.now.as_ref()?;
        let had_it = self.before.as_ref().is_some_and(|before| before.code_hash == now.code_hash);
        (!had_it && !now.is_empty_code_hash()).then_some(now.code_hash)
    }
}

impl Database for StateDb<'_> {
    type Error = DatabaseError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, DatabaseError> {
        Ok(self.account(address)?.cloned())
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, DatabaseError> {
        if let Some(code) = self.new_code.get(&hash) {
            return Ok(code.clone());
        }
        if let Some(code) = self.codes.get(&hash) {
            return Ok(self.under_fork(code));
        }
        let code = self.state.code_of_account(hash.to_node())?;
        Ok(self.under_fork(self.codes.insert(hash, code.to_evm())))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, DatabaseError> {
        let account = cached(&mut self.accounts, &*self.state, address)?;
        match account.slots.entry(slot) {
            Entry::Occupied(entry) => Ok(entry.get().now),
            Entry::Vacant(_) if account.cleared || account.before.is_none() => Ok(U256::ZERO),
            Entry::Vacant(entry) => {
                let value = self.state.storage(address.to_node(), slot_to_node(slot))?.to_evm();
                Ok(entry.insert(CachedSlot::unchanged(value)).now)
            }
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, DatabaseError> {
        let hash = if number < self.block { self.view.canonical_hash(number)? } else { None };
        Ok(hash.unwrap_or_default().to_evm())
    }
}

/// A failure of the backend, which revm passes through as its database error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DatabaseError(#[from] pub BackendError);

impl DBErrorMarker for DatabaseError {}

impl From<Interrupted> for DatabaseError {
    fn from(interrupted: Interrupted) -> Self {
        Self(interrupted.into())
    }
}
