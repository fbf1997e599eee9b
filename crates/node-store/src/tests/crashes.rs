//! Power cuts and failing disks: what was acknowledged is there, what was not is there as a whole or not at all.

use super::small;
use crate::files::faults::FaultyDisk;
use crate::{Store, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{Record, RecordKind, RecordWrite, StateBackend};
use node_core::block::BlockRef;
use proptest::prelude::*;

/// What a store may hold after a crash.
#[derive(Clone)]
struct Expected {
    chain: TestChain,
    record: Option<u8>,
}

impl Expected {
    fn head(&self) -> BlockRef {
        self.chain.head().header.block_ref()
    }
}

const KEY: &[u8] = b"key";

/// Makes random changes until one fails; answers what was acknowledged, and what the one that failed would have made.
fn work(store: &Store, random: &mut Random, expected: &mut Expected, steps: u64) -> Option<Expected> {
    for _ in 0..steps {
        let mut next = expected.clone();
        let head = next.head().number;
        let done = match random.below(8) {
            0 => {
                let value = random.below(256) as u8;
                next.record = Some(value);
                let record = Record { key: KEY.to_vec(), value: vec![value] };
                store.write_records(&[RecordWrite::Put(RecordKind::Filter, record)])
            }
            1 => {
                let ancestor = head - random.below(head.min(20) + 1);
                next.chain = next.chain.up_to(ancestor);
                let count = random.below(10);
                random.extend(&mut next.chain, count);
                store.switch(ancestor, next.chain.above(ancestor)).map(drop)
            }
            _ => {
                random.extend(&mut next.chain, 1);
                store.append(next.chain.head().clone())
            }
        };
        if done.is_err() {
            return Some(next);
        }
        *expected = next;
    }
    None
}

fn check(store: &Store, candidates: &[&Expected]) -> Expected {
    let view = store.view().unwrap();
    let record = store.records(RecordKind::Filter).unwrap().first().map(|record| record.value[0]);
    let found = candidates.iter().find(|expected| expected.head() == view.head() && expected.record == record);
    let Some(found) = found else {
        let heads: Vec<_> = candidates.iter().map(|expected| (expected.head(), expected.record)).collect();
        panic!("{} and record {record:?}, expected one of {heads:?}", view.head());
    };
    check_view(&*view, &found.chain);
    (*found).clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn acknowledged_changes_outlive_power_cuts(seed: u64, blocks_in_memory in 1u64..20, fail in 0u64..400, kill: bool) {
        let random = &mut Random(seed);
        let disk = FaultyDisk::new();
        let mut expected = Expected { chain: random.chain(0), record: None };
        let genesis = expected.chain.head().clone();
        let options = small(blocks_in_memory, SyncPolicy::Always);
        // Never both: when a sync has failed, and the process ends and not the operating system, what reads show of the
        // database may be lost by a later power cut, and nothing can tell.
        let end = |seed| if kill { disk.kill() } else { disk.crash(seed) };
        for round in 0..4 {
            disk.fail_nothing();
            let store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
            expected = check(&store, &[&expected]);
            disk.fail_operation(fail + 37 * round);
            let unsure = work(&store, random, &mut expected, 40);
            end(seed ^ round);
            drop(store);
            disk.fail_nothing();
            let store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
            let candidates: Vec<_> = [&expected].into_iter().chain(&unsure).collect();
            expected = check(&store, &candidates);
            // A second time, right after recovery.
            end(seed.rotate_left(17) ^ round);
        }
    }
}
