//! Chains whose genesis state is written in parts.

use super::{OneSender, small};
use crate::files::faults::FaultyDisk;
use crate::{Store, SyncPolicy, VerifyOptions};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{BackendError, MemoryBackend, StateBackend};
use node_core::block::ExecutedBlock;
use node_core::context::Context;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, H256, keccak256};
use std::collections::BTreeMap;
use std::io;

/// Returns a chain of 40 blocks above a genesis block with many accounts, some of them with storage and code.
fn chain(seed: u64) -> TestChain {
    let random = &mut Random(seed);
    let mut first = random.content(&BTreeMap::default());
    for _ in 0..300 {
        let address = Address::from_slice(&keccak256(random.below(u64::MAX).to_be_bytes()).0[12..]);
        let code = vec![0x60, random.below(200) as u8];
        let mut account = AccountState { balance: random.below(1 << 40).into(), ..AccountState::default() };
        if random.once_in(3) {
            account.code_hash = keccak256(&code);
            first.changes.code.insert(account.code_hash, code.into());
        }
        let storage =
            (0..random.below(9)).map(|_| (H256(keccak256([random.below(50) as u8]).0), random.below(99).into()));
        let change = AccountChange { account: Some(account), storage_cleared: false, storage: storage.collect() };
        first.changes.accounts.insert(address, change);
    }
    let mut chain = TestChain::new(first);
    random.extend(&mut chain, 40);
    chain
}

/// Returns the genesis block without its state, and its state in parts of `size` accounts.
fn in_parts(genesis: &ExecutedBlock, size: usize) -> (ExecutedBlock, Vec<StateChanges>) {
    let mut accounts: Vec<_> = genesis.changes.accounts.iter().collect();
    accounts.sort_by_key(|(address, _)| keccak256(address));
    let part = |accounts: &[(&Address, &AccountChange)]| StateChanges {
        accounts: accounts.iter().map(|(address, change)| (**address, (*change).clone())).collect(),
        // Parts may have code in common.
        code: genesis.changes.code.clone(),
    };
    (ExecutedBlock { changes: Default::default(), ..genesis.clone() }, accounts.chunks(size).map(part).collect())
}

#[test]
fn equals_a_chain_whose_genesis_was_written_at_once() {
    for (seed, size) in [(1, 1), (2, 2), (3, 7), (4, 100), (5, 1_000)] {
        let chain = chain(seed);
        let (genesis, parts) = in_parts(&chain.blocks()[0], size);
        let disk = FaultyDisk::new();
        let options = small(5, SyncPolicy::Always);
        let open = || Store::open_large_in(disk.folder(), genesis.clone(), parts.clone().into_iter().map(Ok), options);
        let mut store = open().unwrap();
        let reference = MemoryBackend::new(chain.blocks()[0].clone()).unwrap();
        for block in chain.above(0) {
            store.append(block.clone()).unwrap();
            reference.append(block).unwrap();
        }
        let check = |store: &Store| {
            let (view, expected) = (store.view().unwrap(), reference.view().unwrap());
            check_view(&*view, &chain);
            assert_eq!(view.changes(0).unwrap(), None);
            for at in [0, 40] {
                for (address, change) in chain.blocks()[0].changes.accounts.iter().step_by(9) {
                    let slots: Vec<H256> = change.storage.keys().copied().collect();
                    let proof = view.state(at).unwrap().proof(*address, &slots).unwrap();
                    assert_eq!(
                        proof,
                        expected.state(at).unwrap().proof(*address, &slots).unwrap(),
                        "{address:#x} at {at}"
                    );
                }
            }
        };
        store.wait_for_merges();
        let verified = store.verify(VerifyOptions::default(), &Context::unbounded(), &OneSender, |_| ()).unwrap();
        assert_eq!(verified.difference, None, "parts of {size}");
        check(&store);
        drop(store);
        check(&open().unwrap());
    }
}

#[test]
fn a_state_that_ends_early_leaves_no_chain() {
    let chain = chain(6);
    let (genesis, parts) = in_parts(&chain.blocks()[0], 20);
    let disk = FaultyDisk::new();
    let options = small(5, SyncPolicy::Always);
    let open = |state: Vec<Result<StateChanges, BackendError>>| {
        Store::open_large_in(disk.folder(), genesis.clone(), state.into_iter(), options)
    };
    let failing = parts.iter().take(4).cloned().map(Ok);
    let failure = BackendError::Storage(Box::new(io::Error::other("the source failed")));
    let failed = open(failing.chain([Err(failure)]).collect()).err();
    assert!(matches!(failed, Some(BackendError::Storage(_))), "{failed:?}");
    let cut = open(parts.iter().take(4).cloned().map(Ok).collect()).err();
    assert!(matches!(cut, Some(BackendError::StateRootMismatch { block: 0, .. })), "{cut:?}");
    disk.crash(1);
    let missing = Store::open_in(disk.folder(), Random(9).chain(0).head().clone(), options);
    drop(missing.unwrap());
    assert!(disk.folder().list().unwrap().iter().filter(|name| name.starts_with("run-")).count() <= 2);
}
