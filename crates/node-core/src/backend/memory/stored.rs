//! Blocks as they are kept in memory.

use crate::backend::FeeRow;
use crate::backend::fee_row;
use crate::block::{Body, ExecutedBlock, SealedHeader};
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, Bytes, H256, U256};
use std::sync::Arc;

/// An executed block in compact form, because development chains may have a million nearly empty blocks.
pub(super) struct StoredBlock {
    pub(super) header: Arc<SealedHeader>,
    pub(super) body: Arc<Body>,
    pub(super) receipts: Arc<Vec<Receipt>>,
    pub(super) fee_row: FeeRow,
    changes: PackedChanges,
}

impl StoredBlock {
    pub(super) fn changes(&self) -> StateChanges {
        self.changes.unpack()
    }

    /// Returns the block as it was given to the backend.
    pub(super) fn executed(&self) -> ExecutedBlock {
        ExecutedBlock {
            header: self.header.clone(),
            body: self.body.clone(),
            receipts: self.receipts.clone(),
            changes: Arc::new(self.changes()),
        }
    }
}

impl From<ExecutedBlock> for StoredBlock {
    fn from(block: ExecutedBlock) -> Self {
        Self {
            fee_row: fee_row(&block),
            changes: PackedChanges::of(&block.changes),
            header: block.header,
            body: block.body,
            receipts: block.receipts,
        }
    }
}

/// [`StateChanges`] in boxed slices: a `BTreeMap` allocates room for eleven entries even if it has few.
struct PackedChanges {
    accounts: Box<[PackedAccount]>,
    /// The slots of all accounts, in the order of the accounts.
    slots: Box<[(H256, U256)]>,
    code: Box<[(H256, Bytes)]>,
}

struct PackedAccount {
    address: Address,
    account: Option<AccountState>,
    storage_cleared: bool,
    slots: usize,
}

impl PackedChanges {
    fn of(changes: &StateChanges) -> Self {
        let pack = |(address, change): (&Address, &AccountChange)| PackedAccount {
            address: *address,
            account: change.account,
            storage_cleared: change.storage_cleared,
            slots: change.storage.len(),
        };
        let slots = changes.accounts.values().flat_map(|change| &change.storage);
        Self {
            accounts: changes.accounts.iter().map(pack).collect(),
            slots: slots.map(|(slot, value)| (*slot, *value)).collect(),
            code: changes.code.iter().map(|(hash, code)| (*hash, code.clone())).collect(),
        }
    }

    fn unpack(&self) -> StateChanges {
        let mut slots = self.slots.iter().copied();
        let mut unpack = |packed: &PackedAccount| {
            let change = AccountChange {
                account: packed.account,
                storage_cleared: packed.storage_cleared,
                storage: slots.by_ref().take(packed.slots).collect(),
            };
            (packed.address, change)
        };
        StateChanges {
            accounts: self.accounts.iter().map(&mut unpack).collect(),
            code: self.code.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_returned_as_they_were_stored() {
        let slots = |range: std::ops::Range<u64>| {
            range.map(|slot| (H256::from_low_u64_be(slot), U256::from(slot + 1))).collect()
        };
        let account = Some(AccountState { nonce: 7, ..AccountState::default() });
        let change = |storage| AccountChange { account, storage, storage_cleared: false };
        let changes = StateChanges {
            accounts: [
                (Address::repeat_byte(1), change(slots(0..3))),
                (Address::repeat_byte(2), change(slots(0..0))),
                (Address::repeat_byte(3), AccountChange { storage_cleared: true, ..change(slots(2..40)) }),
                (Address::repeat_byte(4), AccountChange { account: None, ..change(slots(5..6)) }),
            ]
            .into(),
            code: [(H256::repeat_byte(5), Bytes::from([6; 3]))].into(),
        };
        assert_eq!(PackedChanges::of(&changes).unpack(), changes);
    }
}
