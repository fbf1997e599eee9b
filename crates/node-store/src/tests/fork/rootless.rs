//! Blocks without a state root, because trie nodes of the base cannot be had.

use super::{TestBase, fork_at};
use crate::files::faults::FaultyDisk;
use crate::tests::{OneSender, small};
use crate::{Store, SyncPolicy, Verified, VerifyOptions};
use node_core::backend::suite::{Content, Random, TestChain};
use node_core::backend::{BackendError, StateBackend, has_storage_after};
use node_core::block::{ExecutedBlock, SealedHeader};
use node_core::context::Context;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, H256, U256, keccak256};
use std::sync::Arc;

/// Returns a block on `parent` with the content of `block`, without a state root.
fn rootless(block: &ExecutedBlock, parent: &SealedHeader) -> ExecutedBlock {
    let mut header = block.header.header.clone();
    (header.state_root, header.parent_hash) = (H256::zero(), parent.hash);
    let sealed = SealedHeader { hash: header.hash(), header, ..(*block.header).clone() };
    ExecutedBlock { header: Arc::new(sealed), ..block.clone() }
}

/// Appends blocks without state roots.
fn append_rootless(store: &Store, blocks: &[ExecutedBlock]) {
    for block in blocks {
        let parent = store.view().unwrap().head().hash;
        let parent = store.view().unwrap().header(parent.into()).unwrap().unwrap();
        store.append(rootless(block, &parent)).unwrap();
    }
}

fn verified(store: &mut Store) -> Verified {
    let verified = store.verify(VerifyOptions::default(), &Context::unbounded(), &OneSender, |_| {}).unwrap();
    assert_eq!(verified.difference.as_ref().map(ToString::to_string), None);
    verified
}

/// Compares accounts and the slots that blocks after `first` changed as of block `at` with the model.
fn compare(store: &Store, chain: &TestChain, first: u64, at: u64) {
    let view = store.view().unwrap();
    let state = view.state(at).unwrap();
    for block in &chain.blocks()[first as usize + 1..=at as usize] {
        for (address, change) in &block.changes.accounts {
            let model = chain.state(at).get(address);
            let expected = model.map(|model| model.account);
            assert_eq!(state.account(*address).unwrap(), expected, "{address:#x} as of {at}");
            for slot in change.storage.keys() {
                let expected = model.and_then(|model| model.storage.get(slot)).copied().unwrap_or_default();
                assert_eq!(state.storage(*address, *slot).unwrap(), expected, "{slot:#x} of {address:#x} as of {at}");
            }
        }
    }
}

#[test]
fn states_are_exact_and_survive_restarts() {
    const FIRST: u64 = 10;
    for seed in 0..12 {
        let chain = Random(seed).chain(40);
        let (base, first) = fork_at(&chain, FIRST);
        // Execution reads the accounts that it changes, but need not read their slots.
        for block in chain.above(FIRST) {
            block.changes.accounts.keys().for_each(|address| base.learn(None, keccak256(address)));
        }
        base.known().offline = true;
        let disk = FaultyDisk::new();
        let open = |first: &ExecutedBlock| {
            let options = small(7, SyncPolicy::Always);
            Store::open_fork_in(disk.folder(), first.clone(), Arc::new(base.clone()), options).unwrap()
        };
        let mut store = open(&first);
        append_rootless(&store, &chain.above(FIRST));
        (FIRST..=40).for_each(|at| compare(&store, &chain, FIRST, at));
        drop(store);
        store = open(&first);
        (FIRST..=40).for_each(|at| compare(&store, &chain, FIRST, at));
        assert_eq!(verified(&mut store).first_without_state_root, Some(FIRST + 1));

        // Another branch without state roots, and then the blocks with theirs.
        let mut branch = chain.up_to(20);
        Random(seed + 100).chain(3).blocks()[1..].iter().for_each(|block| {
            let changes = StateChanges::clone(&block.changes);
            branch.push(Content { changes, salt: 7, ..Content::default() });
        });
        for block in branch.above(20) {
            block.changes.accounts.keys().for_each(|address| base.learn(None, keccak256(address)));
        }
        store.switch(20, Vec::new()).unwrap();
        append_rootless(&store, &branch.above(20));
        (FIRST..=23).for_each(|at| compare(&store, &branch, FIRST, at));
        base.known().offline = false;
        store.switch(FIRST, chain.above(FIRST)).unwrap();
        let view = store.view().unwrap();
        for (address, model) in chain.state(40) {
            let slots: Vec<_> = model.storage.keys().copied().collect();
            let proof = view.state(40).unwrap().proof(*address, &slots).unwrap();
            assert_eq!(proof.account, Some(model.with_storage_root()));
        }
        drop(view);
        assert_eq!(verified(&mut store).first_without_state_root, None);
    }
}

fn account(balance: u64) -> AccountState {
    AccountState { balance: balance.into(), ..AccountState::default() }
}

/// A change of two slots of an account.
fn change(address: Address, values: [u64; 2]) -> StateChanges {
    let storage = [1, 2].map(H256::from_low_u64_be).into_iter().zip(values);
    let storage = storage.map(|(slot, value)| (slot, if value == 0 { U256::zero() } else { U256::MAX - value }));
    let change =
        AccountChange { account: Some(account(values[0])), storage_cleared: false, storage: storage.collect() };
    StateChanges { accounts: [(address, change)].into(), ..StateChanges::default() }
}

/// Returns a fork of a chain with two accounts of two slots each, and the accounts.
fn fork() -> (TestChain, TestBase, Store, [Address; 2]) {
    let addresses = [1, 2].map(Address::from_low_u64_be);
    let mut changes = change(addresses[0], [5, 6]);
    changes.merge(&change(addresses[1], [7, 8]));
    let chain = TestChain::new(Content { changes, ..Content::default() });
    let (base, first) = fork_at(&chain, 0);
    let store = Store::fork_in_memory(first, Arc::new(base.clone()), small(5, SyncPolicy::Always)).unwrap();
    (chain, base, store, addresses)
}

#[test]
fn proofs_are_refused_from_the_first_block_without_a_root_on() {
    let (mut chain, base, store, [known, unknown]) = fork();
    let push = |chain: &mut TestChain, changes| chain.push(Content { changes, ..Content::default() });
    let whole = push(&mut chain, change(known, [1, 2]));
    store.append(whole.clone()).unwrap();
    base.learn(None, keccak256(unknown));
    base.known().offline = true;
    let blocks = [push(&mut chain, change(unknown, [3, 4])), push(&mut chain, change(known, [9, 9]))];
    let root = |at, changes| store.view().unwrap().state(at).unwrap().root_after(changes).unwrap();
    assert_eq!(root(1, &blocks[0].changes), H256::zero());
    append_rootless(&store, &blocks);
    // What this changes is known, but not what the block before it changed.
    assert_eq!(root(2, &blocks[1].changes), H256::zero());
    let view = store.view().unwrap();
    for at in [2, 3] {
        let refused = view.state(at).unwrap().proof(known, &[]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("there are no proofs for block {at}: the blocks from 2 on have no state root, because offline")
        );
        assert!(matches!(refused, BackendError::NoStateRoot { block, first: 2, .. } if block == at), "{refused:?}");
    }
    view.state(1).unwrap().proof(known, &[H256::from_low_u64_be(1)]).unwrap();
    // Whether other slots are left is not known, so they may be.
    assert!(has_storage_after(&*view.state(3).unwrap(), unknown, &change(unknown, [0, 0]).accounts[&unknown]).unwrap());

    // The block after one without a root has none, whatever it changes.
    let head = view.header(3.into()).unwrap().unwrap();
    let rooted = push(&mut chain, StateChanges::default());
    let mut header = rooted.header.header.clone();
    header.parent_hash = head.hash;
    let sealed = SealedHeader { hash: header.hash(), header, ..(*rooted.header).clone() };
    let refused = store.append(ExecutedBlock { header: Arc::new(sealed), ..rooted }).unwrap_err();
    assert!(matches!(refused, BackendError::StateRootMismatch { block: 4, .. }), "{refused:?}");

    // What cannot be had may be known later.
    base.known().offline = false;
    let refused = view.state(3).unwrap().proof(known, &[]).unwrap_err().to_string();
    assert!(refused.contains("which is known by now"), "{refused}");
    store.switch(1, Vec::new()).unwrap();
    let again = blocks[0].clone();
    store.append(again).unwrap();
    store.view().unwrap().state(2).unwrap().proof(unknown, &[H256::from_low_u64_be(1)]).unwrap();
}

#[test]
fn a_lone_child_to_which_no_key_leads_leaves_a_block_without_a_root() {
    let (mut chain, base, store, [address, _]) = fork();
    // The other slot is the only child of its branch afterwards.
    let mut changes = change(address, [0, 6]);
    changes.accounts.values_mut().for_each(|change| change.storage.retain(|_, value| value.is_zero()));
    let block = chain.push(Content { changes, ..Content::default() });
    let root = || store.view().unwrap().state(0).unwrap().root_after(&block.changes);
    base.known().unresolvable = true;
    assert_eq!(root().unwrap(), H256::zero());
    // A failure that may pass leaves none.
    base.known().fails = Some((1, Random(0)));
    let failed = root();
    assert!(matches!(failed, Err(BackendError::Upstream(_))), "{failed:?}");
    base.known().fails = None;
    append_rootless(&store, std::slice::from_ref(&block));
    let view = store.view().unwrap();
    assert_eq!(view.state(1).unwrap().storage(address, H256::from_low_u64_be(1)).unwrap(), U256::zero());
    let refused = view.state(1).unwrap().proof(address, &[]).unwrap_err().to_string();
    assert!(refused.contains("because no key leads to 0x"), "{refused}");
    drop(view);
    base.known().unresolvable = false;
    store.switch(0, Vec::new()).unwrap();
    assert_eq!(root().unwrap(), block.header.header.state_root);
    store.append(block.clone()).unwrap();
    store.view().unwrap().state(1).unwrap().proof(address, &[H256::from_low_u64_be(2)]).unwrap();
}
