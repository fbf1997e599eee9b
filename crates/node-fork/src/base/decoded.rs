//! Accounts and slots that were read, without the walk through the trie.

use node_types::consensus::Account;
use node_types::{Address, H256, U256};
use quick_cache::sync::Cache;

/// Estimated memory of an account in its cache, in bytes.
const ACCOUNT: u64 = 224;

/// Estimated memory of a slot in its cache, in bytes.
const SLOT: u64 = 160;

/// Accounts and slots of one state. They never change, so entries are never invalidated.
#[derive(Debug)]
pub(super) struct Decoded {
    accounts: Cache<Address, Option<Account>>,
    slots: Cache<(Address, H256), U256>,
}

impl Decoded {
    /// Creates caches of about `bytes` bytes in total.
    pub(super) fn new(bytes: u64) -> Self {
        let (accounts, slots) = (bytes / 4 / ACCOUNT, bytes / 4 * 3 / SLOT);
        Self { accounts: Cache::new(accounts as usize), slots: Cache::new(slots as usize) }
    }

    pub(super) fn account(&self, address: Address) -> Option<Option<Account>> {
        self.accounts.get(&address)
    }

    pub(super) fn slot(&self, address: Address, slot: H256) -> Option<U256> {
        self.slots.get(&(address, slot))
    }

    pub(super) fn keep_account(&self, address: Address, account: Option<Account>) {
        self.accounts.insert(address, account);
    }

    pub(super) fn keep_slot(&self, address: Address, slot: H256, value: U256) {
        self.slots.insert((address, slot), value);
    }
}
