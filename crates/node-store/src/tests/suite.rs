//! The suite for all backends, with rows in memory, in runs, and in both; in a folder and without one.

use super::small;
use crate::{Options, Store, SyncPolicy};
use node_core::backend::{StateBackend, suite};
use node_core::block::ExecutedBlock;
use std::cell::Cell;

fn run(blocks_in_memory: u64) {
    let folder = tempfile::tempdir().unwrap();
    let count = Cell::new(0);
    let open = |genesis: ExecutedBlock| -> Box<dyn StateBackend> {
        count.set(count.get() + 1);
        let path = folder.path().join(count.get().to_string());
        Box::new(Store::open(path, genesis, small(blocks_in_memory, SyncPolicy::OnDemand)).unwrap())
    };
    suite::run(&open);
}

#[test]
fn passes_the_suite_in_memory() {
    run(u64::MAX);
}

#[test]
fn passes_the_suite_in_runs() {
    run(1);
}

#[test]
fn passes_the_suite_in_memory_and_runs() {
    run(7);
}

#[test]
fn passes_the_suite_without_a_folder() {
    for blocks_in_memory in [1, 7] {
        let options = small(blocks_in_memory, SyncPolicy::Always);
        suite::run(&|genesis| Box::new(Store::in_memory(genesis, options).unwrap()));
    }
    suite::run(&|genesis| Box::new(Store::in_memory(genesis, Options::in_memory()).unwrap()));
}
