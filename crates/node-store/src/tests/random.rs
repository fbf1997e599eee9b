//! Random chains with random reorganizations, on a store and on the reference.

use super::small;
use crate::files::Folder;
use crate::files::faults::FaultyDisk;
use crate::{Store, SyncPolicy};
use alloy_trie::{HashBuilder, Nibbles};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{LogFilter, MemoryBackend, Record, RecordKind, RecordWrite, StateBackend, View};
use node_core::block::LogPosition;
use node_core::context::Context;
use node_core::logs::{self, PageSize};
use node_types::{H256, keccak256};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Checks that both views return the same, including proofs as of some blocks.
fn compare(random: &mut Random, store: &dyn View, reference: &dyn View) {
    let head = reference.head();
    assert_eq!(store.head(), head);
    for number in 0..=head.number + 1 {
        let [got, expected] = [store, reference].map(|view| view.canonical_hash(number).unwrap());
        assert_eq!(got, expected, "block {number}");
        let [got, expected] = [store, reference].map(|view| view.header(number.into()).unwrap());
        assert_eq!(got, expected, "header {number}");
    }
    let first = random.below(head.number + 1);
    let some = Vec::from_iter((first..=head.number).filter(|_| random.below(3) > 0));
    let [got, expected] = [store, reference].map(|view| view.logs(&some).unwrap());
    assert_eq!(got, expected, "logs of {some:?}");
    for at in [0, head.number, random.below(head.number + 1), random.below(head.number + 1)] {
        for address in Random::addresses() {
            let proof = |view: &dyn View| view.state(at).unwrap().proof(address, &Random::slots()).unwrap();
            let [got, expected] = [store, reference].map(proof);
            assert_eq!(got, expected, "{address:#x} as of {at}");
        }
    }
    let [got, expected] = [store, reference].map(|view| view.fee_rows(0..=head.number).unwrap());
    assert_eq!(got, expected);
    for _ in 0..20 {
        let filter = LogFilter {
            addresses: (0..random.below(3)).map(|_| random.address()).collect(),
            topics: (0..random.below(6)).map(|_| (0..random.below(3)).map(|_| random.topic()).collect()).collect(),
        };
        let from = LogPosition { block: random.below(head.number + 2), log_index: random.below(3) };
        let (to, limit) = (random.below(head.number + 1), random.below(40) as usize);
        let scan =
            |view| logs::scan(view, &Context::unbounded(), &filter, from, to, PageSize::of_entries(limit)).unwrap();
        assert_eq!(scan(store), scan(reference), "{filter:?} from {from:?} to {to}, at most {limit}");
    }
}

/// Checks that the state root as of `at` is that of the header, computed by another implementation from everything that
/// `view` returns.
fn recompute_root(view: &dyn View, at: u64) {
    let state = view.state(at).unwrap();
    let mut accounts = BTreeMap::new();
    for address in Random::addresses() {
        let Some(account) = state.account(address).unwrap() else { continue };
        let values = Random::slots().into_iter().map(|slot| (slot, state.storage(address, slot).unwrap()));
        let leaves: BTreeMap<_, _> = values
            .filter(|(_, value)| !value.is_zero())
            .map(|(slot, value)| (keccak256(slot), rlp::encode(&value).to_vec()))
            .collect();
        let mut leaf = rlp::RlpStream::new_list(4);
        leaf.append(&account.nonce).append(&account.balance).append(&root_of(&leaves)).append(&account.code_hash);
        accounts.insert(keccak256(address), leaf.out().to_vec());
    }
    let header = view.header(at.into()).unwrap().unwrap();
    assert_eq!(root_of(&accounts), header.header.state_root, "state root as of {at}");
}

fn root_of(leaves: &BTreeMap<H256, Vec<u8>>) -> H256 {
    let mut builder = HashBuilder::default();
    leaves.iter().for_each(|(key, value)| builder.add_leaf(Nibbles::unpack(key.0), value));
    H256(builder.root().0)
}

/// Applies `steps` random changes and compares after each.
fn play(seed: u64, steps: usize, blocks_in_memory: u64) {
    let random = &mut Random(seed);
    let mut chain = random.chain(0);
    let genesis = chain.head().clone();
    let disk = FaultyDisk::new();
    let options = small(blocks_in_memory, SyncPolicy::OnDemand);
    let open = || {
        let folder: Arc<dyn Folder> = disk.folder();
        Store::open_in(folder, genesis.clone(), options).unwrap()
    };
    let mut store = open();
    let reference = MemoryBackend::new(genesis.clone()).unwrap();
    let mut dropped: Vec<TestChain> = Vec::new();
    for _ in 0..steps {
        match random.below(10) {
            0..=3 => {
                let head = chain.head().header.header.number;
                let count = 1 + random.below(12);
                random.extend(&mut chain, count);
                for block in chain.above(head) {
                    store.append(block.clone()).unwrap();
                    reference.append(block).unwrap();
                }
            }
            4 | 5 => {
                let head = chain.head().header.header.number;
                let ancestor = head - random.below(head.min(64) + 1);
                let mut branch = chain.up_to(ancestor);
                let count = random.below(20);
                random.extend(&mut branch, count);
                let [got, expected] = [&store as &dyn StateBackend, &reference]
                    .map(|backend| backend.switch(ancestor, branch.above(ancestor)).unwrap());
                assert_eq!(got, expected);
                dropped.push(std::mem::replace(&mut chain, branch));
            }
            6 => {
                // Back to a branch that was canonical before.
                let Some(branch) = dropped.pop() else { continue };
                let same = |number: &u64| {
                    let [a, b] = [&chain, &branch].map(|chain| chain.blocks().get(*number as usize));
                    matches!((a, b), (Some(a), Some(b)) if a.header.hash == b.header.hash)
                };
                let ancestor = (0..).take_while(same).last().unwrap();
                for backend in [&store as &dyn StateBackend, &reference] {
                    backend.switch(ancestor, branch.above(ancestor)).unwrap();
                }
                dropped.push(std::mem::replace(&mut chain, branch));
            }
            7 => {
                let head = chain.head().header.header.number;
                let mut side = chain.up_to(head - random.below(head.min(5) + 1));
                random.extend(&mut side, 1);
                for backend in [&store as &dyn StateBackend, &reference] {
                    backend.keep_side_block(side.head().clone()).unwrap();
                }
                let hash = side.head().header.hash;
                let [got, expected] = [&store as &dyn StateBackend, &reference]
                    .map(|backend| backend.view().unwrap().side_block(hash).unwrap().map(|block| block.changes));
                assert_eq!(got, expected);
            }
            8 => {
                let record = Record { key: vec![random.below(5) as u8], value: vec![random.below(256) as u8] };
                let write = match random.once_in(3) {
                    true => RecordWrite::Delete(RecordKind::Filter, record.key),
                    false => RecordWrite::Put(RecordKind::Filter, record),
                };
                for backend in [&store as &dyn StateBackend, &reference] {
                    backend.write_records(std::slice::from_ref(&write)).unwrap();
                }
            }
            _ => {
                match random.below(3) {
                    0 => store.flush().unwrap(),
                    1 => drop(store),
                    _ => {
                        store.sync().unwrap();
                        // Destructors do not write to this disk.
                        disk.kill();
                        drop(store);
                    }
                }
                disk.kill();
                store = open();
            }
        }
        let [got, expected] =
            [&store as &dyn StateBackend, &reference].map(|backend| backend.records(RecordKind::Filter).unwrap());
        assert_eq!(got, expected);
        let view = store.view().unwrap();
        compare(random, &*view, &*reference.view().unwrap());
        recompute_root(&*view, view.head().number);
        recompute_root(&*view, random.below(view.head().number + 1));
    }
    check_view(&*store.view().unwrap(), &chain);
    for chain in dropped {
        for block in chain.blocks() {
            let hash = block.header.hash;
            let [got, expected] = [&store as &dyn StateBackend, &reference]
                .map(|backend| backend.view().unwrap().side_block(hash).unwrap().map(|block| block.changes));
            assert_eq!(got, expected, "side block {}", block.header.block_ref());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_store_returns_the_same_as_the_reference(seed: u64, blocks_in_memory in 1u64..60) {
        play(seed, 25, blocks_in_memory);
    }
}
