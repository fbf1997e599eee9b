//! Accounts and changes to them.

use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256};
use std::collections::BTreeMap;

/// An account without its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    /// Keccak of the code.
    pub code_hash: H256,
}

impl Default for AccountState {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::zero(), code_hash: KECCAK_EMPTY }
    }
}

impl AccountState {
    /// Whether there is code.
    pub fn has_code(&self) -> bool {
        self.code_hash != KECCAK_EMPTY
    }
}

/// The difference between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChanges {
    /// Accounts that changed.
    pub accounts: BTreeMap<Address, AccountChange>,
    /// Code that was deployed, by its hash.
    pub code: BTreeMap<H256, Bytes>,
}

/// What became of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// The account afterwards; none when it does not exist any more.
    pub account: Option<AccountState>,
    /// Whether all storage from before is gone. `storage` then holds all there is.
    pub storage_cleared: bool,
    /// Slots that changed, with their values afterwards; zero frees a slot.
    pub storage: BTreeMap<H256, U256>,
}

impl StateChanges {
    /// Lays `later` over these changes, so that they lead to the state after both.
    pub fn merge(&mut self, later: &Self) {
        for (address, change) in &later.accounts {
            self.accounts.entry(*address).or_default().merge(change);
        }
        self.code.extend(later.code.iter().map(|(hash, code)| (*hash, code.clone())));
    }
}

impl AccountChange {
    /// Whether all storage from before is gone, be it with the account or for a new one in its place.
    pub fn clears_storage(&self) -> bool {
        self.storage_cleared || self.account.is_none()
    }

    /// Lays `later` over this change.
    pub fn merge(&mut self, later: &Self) {
        self.account = later.account;
        if later.clears_storage() {
            self.storage_cleared = true;
            self.storage.clear();
        }
        self.storage.extend(&later.storage);
    }

    /// The value of `slot` after this change, where the change decides it.
    pub fn slot(&self, slot: H256) -> Option<U256> {
        match self.storage.get(&slot) {
            Some(value) => Some(*value),
            None if self.clears_storage() => Some(U256::zero()),
            None => None,
        }
    }
}
