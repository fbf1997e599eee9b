//! States of which only accounts and slots are known, not the tries.

use super::{NewState, account};
use crate::error::StoreError;
use crate::keys::{Key, Table, TrieId};
use crate::rows::Rows;
use crate::values::{AccountRow, encode_word};
use node_core::state::{AccountChange, StateChanges};
use node_types::{BlockNumber, H256, keccak256};

/// Returns the state of the block after `at`: `changes` applied to that of `at`, without the rows of tries. The root of the
/// state is zero, and so is that of each storage that changes.
///
/// All slots that change get rows, also those that have the same value in the base, because that value need not be known.
pub(crate) fn apply_flat(rows: &Rows, at: BlockNumber, changes: &StateChanges) -> Result<NewState, StoreError> {
    let mut new = NewState::default();
    for (index, (address, change)) in (0..).zip(&changes.accounts) {
        let hash = keccak256(address);
        let before = account(rows, None, *address, hash, at)?;
        let kept = before.and_then(|account| account.storage).filter(|_| !change.clears_storage());
        let after = change.account.map(|state| {
            let storage = new.write_slots(kept, (at + 1, index), change);
            AccountRow { state, storage }
        });
        if after != before {
            let value = after.map(|account| account.encode()).unwrap_or_default();
            new.rows.push((Key::of_hash(Table::Accounts, hash), value));
        }
    }
    Ok(new)
}

impl NewState {
    /// Adds the changed slots of an account whose storage was `before`, and returns its storage afterwards. `new` is the
    /// block, and the number of the storage trie within it if it gets a new id.
    fn write_slots(
        &mut self,
        before: Option<(TrieId, H256)>,
        new: (BlockNumber, u32),
        change: &AccountChange,
    ) -> Option<(TrieId, H256)> {
        let trie = match before {
            Some((TrieId::UNCHANGED, _)) => TrieId::continuing(new.0, new.1),
            Some((trie, _)) => trie,
            None => TrieId::storage(new.0, new.1),
        };
        // A new trie has no slots that could be set to zero.
        let slots = change.storage.iter().filter(|(_, value)| before.is_some() || !value.is_zero());
        let written = self.rows.len();
        self.rows.extend(slots.map(|(slot, value)| (Key::of_slot(trie, keccak256(slot)), encode_word(*value))));
        if self.rows.len() > written { Some((trie, H256::zero())) } else { before }
    }
}
