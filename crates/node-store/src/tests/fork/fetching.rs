//! What is fetched, and when.

use super::{TestBase, fork_at};
use crate::tests::small;
use crate::{Store, SyncPolicy, Table};
use node_core::backend::suite::{Content, Random, TestChain};
use node_core::backend::{BackendError, StateBackend};
use node_core::collecting;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, H256, U256};
use std::sync::Arc;

fn address(n: u64) -> Address {
    Address::from_low_u64_be(n)
}

fn slot(n: u64) -> H256 {
    H256::from_low_u64_be(n)
}

/// Returns a change that gives these accounts a balance, and each of these slots the value `value`.
fn change(accounts: std::ops::Range<u64>, slots: std::ops::Range<u64>, balance: u64, value: u64) -> Content {
    let account = AccountState { balance: balance.into(), ..AccountState::default() };
    let change = AccountChange {
        account: Some(account),
        storage_cleared: false,
        storage: slots.map(|n| (slot(n), value.into())).collect(),
    };
    let accounts = accounts.map(|n| (address(n), change.clone())).collect();
    Content { changes: StateChanges { accounts, ..StateChanges::default() }, ..Content::default() }
}

/// Returns a chain whose genesis block has 50 accounts with 20 slots each, and a store that continues it.
fn open() -> (TestChain, TestBase, Store) {
    let chain = TestChain::new(change(0..50, 0..20, 5, 7));
    let (base, first) = fork_at(&chain, 0);
    let store = Store::fork_in_memory(first, Arc::new(base.clone()), small(1, SyncPolicy::Always)).unwrap();
    (chain, base, store)
}

fn unplug(base: &TestBase) {
    base.known().fails = Some((1, Random(0)));
}

#[test]
fn a_block_needs_one_fetch_and_nothing_that_it_changed_afterwards() {
    let (mut chain, base, store) = open();
    let block = chain.push(change(10..60, 10..30, 6, 8));
    let state_root = block.header.header.state_root;
    let root = store.view().unwrap().state(0).unwrap().root_after(&block.changes).unwrap();
    assert_eq!(root, state_root);
    store.append(block).unwrap();
    let known = base.known();
    assert_eq!((known.fetches, known.resolved), (1, 0));
    drop(known);

    unplug(&base);
    store.append(chain.push(change(20..60, 15..30, 7, 9))).unwrap();
    let mut branch = chain.up_to(1);
    store.switch(1, vec![branch.push(change(15..55, 12..22, 3, 1))]).unwrap();
    let view = store.view().unwrap();
    let state = view.state(2).unwrap();
    assert_eq!(state.storage(address(15), slot(25)).unwrap(), 8.into());
    assert_eq!(state.storage(address(15), slot(12)).unwrap(), 1.into());
    state.proof(address(15), &[slot(12), slot(25)]).unwrap();
    let lacking = state.storage(address(15), slot(3));
    assert!(matches!(lacking, Err(BackendError::Upstream(_))), "{lacking:?}");
    let head = view.head();
    let block = branch.push(change(0..3, 0..3, 3, 0));
    let refused = store.append(block.clone());
    assert!(matches!(refused, Err(BackendError::Upstream(_))), "{refused:?}");
    assert_eq!(store.view().unwrap().head(), head);
    base.known().fails = None;
    store.append(block).unwrap();
}

#[test]
fn reads_that_are_collected_are_fetched_together_and_remain_known() {
    let (_, base, store) = open();
    let view = store.view().unwrap();
    let state = view.state(0).unwrap();
    let read = || -> Result<U256, BackendError> {
        let mut sum = state.account(address(1))?.map(|account| account.balance).unwrap_or_default();
        for n in 0..10 {
            sum += state.storage(address(n % 3 + 2), slot(n))?;
        }
        // Nobody needs the root of a run that is discarded.
        state.root_after(&change(20..30, 0..3, 1, 1).changes)?;
        Ok(sum)
    };
    assert_eq!(collecting::gather(read).unwrap(), (5 + 10 * 7).into());
    // The second one is for the changes.
    assert_eq!(base.known().fetches, 2);
    unplug(&base);
    assert_eq!(collecting::gather(read).unwrap(), (5 + 10 * 7).into());
    let reads = base.known().reads;
    assert_eq!(state.storage(address(2), slot(0)).unwrap(), 7.into());
    assert_eq!(state.account(address(1)).unwrap().unwrap().balance, 5.into());
    assert_eq!(base.known().reads, reads, "warm reads are served from the cache");
}

#[test]
fn a_change_without_effect_writes_no_rows_of_the_state() {
    let (mut chain, base, store) = open();
    store.append(chain.push(change(3..5, 2..4, 5, 7))).unwrap();
    store.append(chain.push(change(7..8, 30..32, 5, 0))).unwrap();
    store.flush().unwrap();
    let mut rows = 0;
    store.for_each_row(|table, _, _| {
        rows += u64::from(matches!(table, Table::Accounts | Table::Storage | Table::Trie));
    });
    assert_eq!(rows, 0);
    assert_eq!(base.known().fetches, 2);
}
