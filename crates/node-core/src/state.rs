//! Accounts, and changes to the state.

use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256};
use std::collections::BTreeMap;

/// An account without its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Number of transactions sent, or of contracts created by a contract.
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    pub code_hash: H256,
}

impl Default for AccountState {
    fn default() -> Self {
        Self { nonce: 0, balance: U256::zero(), code_hash: KECCAK_EMPTY }
    }
}

impl AccountState {
    /// Returns whether the account has code.
    pub fn has_code(&self) -> bool {
        self.code_hash != KECCAK_EMPTY
    }
}

/// The difference between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChanges {
    pub accounts: BTreeMap<Address, AccountChange>,
    /// Code that was deployed, by its hash.
    pub code: BTreeMap<H256, Bytes>,
}

/// The change of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountChange {
    /// The account afterwards; `None` if it no longer exists.
    pub account: Option<AccountState>,
    /// Whether all previous storage is deleted. If so, `storage` is the complete storage afterwards.
    pub storage_cleared: bool,
    /// Changed slots with their values afterwards; zero deletes a slot.
    pub storage: BTreeMap<H256, U256>,
}

/// Estimated memory in bytes of an account in a map, without code and storage.
const ACCOUNT: usize = 256;

/// Estimated memory in bytes of a slot in a map.
const SLOT: usize = 96;

/// Estimated memory in bytes of code in a map, without its bytes.
const CODE: usize = 128;

impl StateChanges {
    /// Returns about how many bytes of memory the changes take. Encoded, they have fewer.
    pub(crate) fn memory(&self) -> usize {
        let slots: usize = self.accounts.values().map(|change| change.storage.len()).sum();
        let code: usize = self.code.values().map(|code| CODE + code.len()).sum();
        self.accounts.len() * ACCOUNT + slots * SLOT + code
    }

    /// Combines these changes with `later`, which were made afterwards.
    pub fn merge(&mut self, later: &Self) {
        for (address, change) in &later.accounts {
            self.accounts.entry(*address).or_default().merge(change);
        }
        self.code.extend(later.code.iter().map(|(hash, code)| (*hash, code.clone())));
    }
}

impl AccountChange {
    /// Returns whether all previous storage is deleted, either because the account was deleted or because a new one
    /// replaced it.
    pub fn clears_storage(&self) -> bool {
        self.storage_cleared || self.account.is_none()
    }

    /// Combines this change with `later`, which was made afterwards.
    pub fn merge(&mut self, later: &Self) {
        self.account = later.account;
        if later.clears_storage() {
            self.storage_cleared = true;
            self.storage.clear();
        }
        self.storage.extend(&later.storage);
    }

    /// Returns the value of `slot` after this change, or `None` if the change does not affect it.
    pub fn slot(&self, slot: H256) -> Option<U256> {
        match self.storage.get(&slot) {
            Some(value) => Some(*value),
            None if self.clears_storage() => Some(U256::zero()),
            None => None,
        }
    }
}
