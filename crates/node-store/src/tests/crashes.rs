//! Power cuts and failing disks: acknowledged changes survive, others are present completely or not at all.

use super::queries::ask;
use super::{TestBase, cases, fork_at, small};
use crate::files::faults::FaultyDisk;
use crate::{Options, Store, SyncPolicy};
use node_core::backend::suite::{Random, TestChain};
use node_core::backend::{BackendError, MemoryBackend, Record, RecordKind, RecordWrite, StateBackend};
use node_core::block::{BlockRef, ExecutedBlock};
use node_types::BlockNumber;
use proptest::prelude::*;
use std::io::ErrorKind;
use std::sync::Arc;

/// A state in which a store may be after a crash.
#[derive(Clone)]
pub(super) struct Expected {
    pub(super) chain: TestChain,
    pub(super) record: Option<u8>,
    pub(super) earliest: BlockNumber,
}

impl Expected {
    pub(super) fn head(&self) -> BlockRef {
        self.chain.head().header.block_ref()
    }

    /// Returns whether more states are pruned than in `other`.
    pub(super) fn is_pruned_after(&self, other: &Self) -> bool {
        self.earliest > other.earliest
    }

    /// Sets the record to a new value, or leaves it. Returns the writes.
    pub(super) fn note(&mut self, random: &mut Random) -> Vec<RecordWrite> {
        if random.once_in(3) {
            return Vec::new();
        }
        let value = random.below(256) as u8;
        self.record = Some(value);
        vec![RecordWrite::Put(RecordKind::Filter, Record { key: KEY.to_vec(), value: vec![value] })]
    }

    fn summary(&self) -> (BlockRef, Option<u8>, BlockNumber) {
        (self.head(), self.record, self.earliest)
    }
}

const KEY: &[u8] = b"key";

/// Applies random changes until one fails. `expected` is the state after the acknowledged changes; returns the state
/// that the failed one would have led to.
fn work(store: &Store, random: &mut Random, expected: &mut Expected, steps: u64) -> Option<Expected> {
    for _ in 0..steps {
        let mut next = expected.clone();
        let head = next.head().number;
        let done = match random.below(16) {
            0 | 1 => store.write_records(&next.note(random)),
            2 | 3 => {
                let ancestor = next.earliest.max(head - random.below(head.min(64) + 1));
                next.chain = next.chain.up_to(ancestor);
                let count = random.below(10);
                random.extend(&mut next.chain, count);
                let writes = next.note(random);
                store.switch_recording(ancestor, next.chain.above(ancestor), &writes).map(drop)
            }
            4 => {
                let mut side = next.chain.up_to(head - random.below(head.min(5) + 1));
                random.extend(&mut side, 1);
                store.keep_side_block(side.head().clone())
            }
            5 => store.flush(),
            6 if random.once_in(2) => {
                let floor = random.below(head + 1);
                next.earliest = next.earliest.max(floor);
                store.prune_before(floor).map(drop)
            }
            _ => {
                random.extend(&mut next.chain, 1);
                let writes = next.note(random);
                store.append_recording(next.chain.head().clone(), &writes)
            }
        };
        if done.is_err() {
            return Some(next);
        }
        *expected = next;
    }
    None
}

pub(super) fn check(store: &Store, candidates: &[&Expected]) -> Expected {
    let view = store.view().unwrap();
    let record = store.records(RecordKind::Filter).unwrap().first().map(|record| record.value[0]);
    let got = (view.head(), record, view.earliest_state());
    let Some(found) = candidates.iter().find(|expected| expected.summary() == got) else {
        let expected: Vec<_> = candidates.iter().map(|expected| expected.summary()).collect();
        panic!("{got:?}, expected one of {expected:?}");
    };
    let reference = MemoryBackend::new(found.chain.blocks()[0].clone()).unwrap();
    found.chain.above(0).into_iter().for_each(|block| reference.append(block).unwrap());
    let tally = ask(&*view, &*reference.view().unwrap(), found.earliest, 5);
    assert_eq!(tally.refused, 0);
    (*found).clone()
}

/// A disk with a store that is opened and closed repeatedly.
pub(super) struct Runs {
    pub(super) disk: FaultyDisk,
    pub(super) genesis: ExecutedBlock,
    pub(super) options: Options,
    pub(super) expected: Expected,
    pub(super) random: Random,
    /// The base, if the genesis state is one.
    base: Option<TestBase>,
}

impl Runs {
    pub(super) fn new(seed: u64, blocks_in_memory: u64) -> Self {
        let mut random = Random(seed);
        let expected = Expected { chain: random.chain(0), record: None, earliest: 0 };
        let genesis = expected.chain.head().clone();
        let options = small(blocks_in_memory, SyncPolicy::Always);
        Self { disk: FaultyDisk::new(), genesis, options, expected, random, base: None }
    }

    /// Like [`new`](Self::new), with the genesis state as a base.
    fn of_fork(seed: u64, blocks_in_memory: u64) -> Self {
        let runs = Self::new(seed, blocks_in_memory);
        let (base, genesis) = fork_at(&runs.expected.chain, 0);
        Self { genesis, base: Some(base), ..runs }
    }

    pub(super) fn open(&self) -> Result<Store, BackendError> {
        let (folder, first) = (self.disk.folder(), self.genesis.clone());
        match &self.base {
            Some(base) => Store::open_fork_in(folder, first, Arc::new(base.clone()), self.options),
            None => Store::open_in(folder, first, self.options),
        }
    }

    /// Opens the store on a disk without faults, and compares it with the possible states.
    pub(super) fn recover(&mut self, unsure: Option<Expected>) -> Store {
        self.disk.fail_nothing();
        self.disk.set_capacity(None);
        let store = self.open().unwrap();
        let candidates: Vec<_> = [&self.expected].into_iter().chain(&unsure).collect();
        self.expected = check(&store, &candidates);
        store
    }

    pub(super) fn work(&mut self, store: &Store, steps: u64) -> Option<Expected> {
        work(store, &mut self.random, &mut self.expected, steps)
    }

    /// Checks that a change that was refused is not in the store. Pruning that fails may have begun.
    pub(super) fn refuse(&mut self, store: &Store, refused: Expected) {
        let begun = Some(refused).filter(|refused| refused.earliest != self.expected.earliest);
        self.expected = check(store, &[&self.expected].into_iter().chain(&begun).collect::<Vec<_>>());
    }

    /// Ends the process, cuts the power, or both.
    pub(super) fn end(&mut self) {
        let seed = self.random.below(u64::MAX);
        match self.random.below(3) {
            0 => self.disk.kill(),
            1 => self.disk.crash(seed),
            _ => {
                self.disk.kill();
                self.disk.crash(seed);
            }
        }
    }
}

fn cut_the_power(mut runs: Runs, fail: u64) {
    let mut unsure = None;
    for round in 0..4 {
        let store = runs.recover(unsure.take());
        runs.disk.fail_operation(fail + 37 * round);
        unsure = runs.work(&store, 40);
        runs.end();
        drop(store);
        // Recovery fails, or the process ends right after it.
        let failing = runs.random.below(120);
        runs.disk.fail_operation(failing);
        drop(runs.open().inspect(|_| runs.disk.kill()));
        runs.end();
    }
    drop(runs.recover(unsure));
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn acknowledged_changes_survive_power_cuts(seed: u64, blocks_in_memory in 1u64..20, fail in 0u64..500) {
        cut_the_power(Runs::new(seed, blocks_in_memory), fail);
    }

    #[test]
    fn acknowledged_changes_of_a_fork_survive_power_cuts(seed: u64, blocks_in_memory in 1u64..20, fail in 0u64..500) {
        cut_the_power(Runs::of_fork(seed, blocks_in_memory), fail);
    }

    #[test]
    fn a_full_disk_loses_nothing(seed: u64, blocks_in_memory in 1u64..20, room in 0u64..600_000) {
        let mut runs = Runs::new(seed, blocks_in_memory);
        let mut unsure = None;
        for _ in 0..3 {
            let store = runs.recover(unsure.take());
            runs.disk.set_capacity(Some(runs.disk.used() + room));
            unsure = runs.work(&store, 60);
            runs.end();
            drop(store);
            // It opens with the existing data, or not at all.
            drop(runs.open().inspect(|_| runs.disk.kill()));
            runs.end();
        }
        drop(runs.recover(unsure));
    }
}

proptest! {
    #![proptest_config(cases(2))]

    /// A run is repeated with a failure of its first operation, of its second, and so on, with either kind of error, and
    /// after each is ended and opened again.
    #[test]
    fn every_operation_may_fail_once(seed: u64, blocks_in_memory in 1u64..6) {
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            for operation in 0.. {
                let mut runs = Runs::new(seed, blocks_in_memory);
                let store = runs.open().unwrap();
                runs.disk.fail_operation_with(operation, kind);
                let unsure = runs.work(&store, 12);
                let is_over = runs.disk.fail_nothing();
                runs.end();
                drop(store);
                drop(runs.recover(unsure));
                if is_over {
                    prop_assert!(operation > 20, "{operation}");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_failure_while_replaying_the_log_does_not_change_the_log() {
    let mut runs = Runs::new(5, 4);
    let store = runs.open().unwrap();
    assert!(runs.work(&store, 60).is_none());
    runs.disk.kill();
    drop(store);
    for operation in 0.. {
        runs.disk.fail_operation(operation);
        let opened = runs.open();
        // Reading a copy of the header may fail without consequences.
        let done = runs.disk.fail_nothing();
        assert!(opened.is_ok() || !done);
        // The remains of a failed opening are dropped while the disk works.
        drop(opened.inspect(|_| runs.disk.kill()));
        runs.disk.kill();
        let store = runs.recover(None);
        runs.disk.kill();
        drop(store);
        if done {
            assert!(operation > 40, "{operation}");
            break;
        }
    }
}

/// A manifest whose sync failed is found by the next process, but not after a power failure. Until it is written again,
/// the log must keep the entries that only this manifest says are in runs.
#[test]
fn a_manifest_that_is_not_durable_does_not_shorten_the_log() {
    // Runs one process in which `first` fails and another in which `second` fails. Returns whether each has happened.
    let fail = |first, second| {
        let mut runs = Runs::new(7, 4);
        runs.options.merge = false;
        let store = runs.open().unwrap();
        assert!(runs.work(&store, 8).is_none());
        runs.disk.fail_operation(first);
        drop(store.flush());
        let first_has_failed = !runs.disk.fail_nothing();
        runs.disk.kill();
        drop(store);

        runs.disk.fail_operation(second);
        let store = runs.open();
        let second_has_failed = !runs.disk.fail_nothing();
        runs.disk.crash(first + second);
        drop(store);
        assert_eq!(runs.open().unwrap().view().unwrap().head(), runs.expected.head(), "{first}, {second}");
        (first_has_failed, second_has_failed)
    };
    let firsts = (0..).take_while(|first| fail(*first, 1000).0).count() as u64;
    for first in 0..firsts {
        let seconds = (0..).take_while(|second| fail(first, *second).1).count();
        assert!(firsts > 10 && seconds > 20, "{firsts}, {seconds}");
    }
}
