//! Reading the base of a chain: the state with which it begins, most of which has no rows.

use crate::error::StoreError;
use crate::keys::{Key, TrieId};
use crate::rows::Rows;
use crate::values::AccountRow;
use node_core::backend::{BackendError, BaseRead, BaseState};
use node_core::state::AccountState;
use node_types::consensus::{Account, EMPTY_ROOT, Header};
use node_types::{Address, BlockNumber, H256, keccak256};

/// Returns an account of the base as a row, or `None` if it does not exist.
pub(crate) fn account(base: &dyn BaseState, address: Address) -> Result<Option<AccountRow>, StoreError> {
    Ok(base.account(address).map_err(StoreError::Base)?.map(account_row))
}

/// Fails unless the state as of the block with this header is that of the base.
pub(crate) fn check_root(base: &dyn BaseState, header: &Header) -> Result<(), BackendError> {
    let (block, header, computed) = (header.number, header.state_root, base.root());
    if header == computed { Ok(()) } else { Err(BackendError::StateRootMismatch { block, header, computed }) }
}

pub(crate) fn account_row(account: Account) -> AccountRow {
    let Account { nonce, balance, storage_root, code_hash } = account;
    let storage = (storage_root != EMPTY_ROOT).then_some((TrieId::UNCHANGED, storage_root));
    AccountRow { state: AccountState { nonce, balance, code_hash }, storage }
}

/// Returns what the base must know so that an account and these slots of it can be read and changed as of block `at`, or
/// `None` if rows have all of it. `row` is the row of the account, if there is one, without a value if the account does
/// not exist.
pub(crate) fn lacking<'a>(
    rows: &Rows,
    at: BlockNumber,
    address: Address,
    row: Option<Option<AccountRow>>,
    slots: impl Iterator<Item = &'a H256>,
) -> Result<Option<BaseRead>, StoreError> {
    let trie = match row {
        None => return Ok(Some(BaseRead { address, slots: slots.copied().collect() })),
        Some(row) => row.and_then(|account| account.storage).map(|(trie, _)| trie),
    };
    let Some(trie) = trie.filter(|trie| trie.continues_base()) else { return Ok(None) };
    let mut lacking = Vec::new();
    for slot in slots {
        if trie == TrieId::UNCHANGED || rows.newest(&Key::of_slot(trie, keccak256(slot)), at)?.is_none() {
            lacking.push(*slot);
        }
    }
    Ok((!lacking.is_empty()).then_some(BaseRead { address, slots: lacking }))
}
