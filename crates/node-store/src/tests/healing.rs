//! Failed writes and damaged pages while a store stays open.

use super::crashes::Runs;
use super::queries::ask;
use super::{cases, small};
use crate::files::faults::FaultyDisk;
use crate::wal::WalOptions;
use crate::{Options, Store, SyncPolicy};
use node_core::backend::suite::Random;
use node_core::backend::{BackendHealth, MemoryBackend, Record, RecordKind, RecordWrite, StateBackend};
use node_core::context::Context;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn a_refused_change_is_not_found_again(seed: u64, blocks_in_memory in 1u64..20, fail in 0u64..300) {
        let mut runs = Runs::new(seed, blocks_in_memory);
        let mut pruned = None;
        for _ in 0..3 {
            let store = runs.recover(pruned.take());
            for round in 0..4 {
                runs.disk.fail_operation(fail + 37 * round);
                let Some(refused) = runs.work(&store, 40) else { continue };
                runs.disk.fail_nothing();
                runs.refuse(&store, refused.clone());
                // A manifest may be durable although its sync failed, until another follows.
                pruned = Some(refused).filter(|refused| refused.is_pruned_after(&runs.expected));
                if runs.random.once_in(3) {
                    // Before anything else is written.
                    break;
                }
                let health = store.heal();
                if let Some(reason) = health.write_failure {
                    // Only pruning that fails requires that the folder is opened again.
                    prop_assert!(health.failed_writes == 0 || reason.contains("opened again"), "{reason}");
                    break;
                }
                pruned = None;
            }
            runs.end();
            drop(store);
        }
        drop(runs.recover(pruned));
    }

    #[test]
    fn writing_resumes_when_there_is_room_again(seed: u64, blocks_in_memory in 1u64..20, room in 0u64..600_000) {
        let mut runs = Runs::new(seed, blocks_in_memory);
        for _ in 0..2 {
            let store = runs.recover(None);
            runs.disk.set_capacity(Some(runs.disk.used() + room));
            let mut refused = 0;
            for _ in 0..4 {
                if let Some(change) = runs.work(&store, 20) {
                    refused += 1;
                    runs.refuse(&store, change);
                }
            }
            let health = store.health();
            prop_assert!(refused == 0 || health.failed_writes > 0 && health.write_failure.is_some(), "{health:?}");
            runs.disk.set_capacity(None);
            let health = store.heal();
            if health.write_failure.is_none() {
                prop_assert!(runs.work(&store, 20).is_none());
            }
            runs.end();
            drop(store);
        }
        drop(runs.recover(None));
    }
}

#[test]
fn a_failed_write_is_reported_until_there_is_room() {
    let chain = Random(1).chain(3);
    let disk = FaultyDisk::new();
    let options = Options { retry: std::time::Duration::from_millis(1), ..small(100, SyncPolicy::Always) };
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    let runs = store.health().files;
    assert_eq!(store.health(), BackendHealth { files: runs, ..BackendHealth::default() });
    disk.set_capacity(Some(disk.used()));
    for _ in 0..2 {
        store.append(chain.blocks()[1].clone()).unwrap_err();
    }
    let record = Record { key: vec![1], value: vec![2] };
    store.write_records(&[RecordWrite::Put(RecordKind::Filter, record.clone())]).unwrap_err();
    assert_eq!(store.record(RecordKind::Filter, &[1]).unwrap(), None);
    let health = store.health();
    assert_eq!(health.failed_writes, 3);
    let reason = health.write_failure.unwrap();
    assert!(reason.contains("no storage space"), "{reason}");

    disk.set_capacity(None);
    while store.health().write_failure.is_some() {
        std::thread::yield_now();
    }
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.write_records(&[RecordWrite::Put(RecordKind::Filter, record)]).unwrap();
    disk.crash(1);
    let names = disk.names();
    assert!(!names.contains(&"room".to_owned()), "{names:?}");
    drop(store);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    assert_eq!(store.view().unwrap().head().number, 3);
    assert_eq!(store.record(RecordKind::Filter, &[1]).unwrap(), Some(vec![2]));
}

#[test]
fn blocks_that_were_not_synced_are_written_once_there_is_room() {
    let chain = Random(1).chain(40);
    let disk = FaultyDisk::new();
    // The log writes after every few blocks.
    let retry = std::time::Duration::from_millis(1);
    let log = WalOptions { buffer_bytes: 8 << 10, ..small(100, SyncPolicy::OnDemand).log };
    let options = Options { retry, log, ..small(100, SyncPolicy::OnDemand) };
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    disk.set_capacity(Some(disk.used() + 20_000));
    let mut blocks = chain.above(0).into_iter();
    let failed = blocks.by_ref().find(|block| store.append(block.clone()).is_err()).expect("the disk is full");
    assert!(store.sync().is_err());
    let reason = store.health().write_failure.unwrap();
    assert!(reason.contains("no storage space"), "{reason}");
    assert_eq!(store.view().unwrap().head().number + 1, failed.header.block_ref().number);

    disk.set_capacity(None);
    while store.health().write_failure.is_some() {
        std::thread::yield_now();
    }
    store.append(failed).unwrap();
    blocks.for_each(|block| store.append(block).unwrap());
    store.sync().unwrap();
    disk.crash(1);
    drop(store);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    assert_eq!(store.view().unwrap().head().number, 40);
}

#[test]
fn a_store_whose_folder_was_replaced_leaves_the_other_folder_alone() {
    let chain = Random(1).chain(40);
    let temporary = tempfile::tempdir().unwrap();
    let [path, moved, copy] = ["data", "moved", "copy"].map(|name| temporary.path().join(name));
    // Every entry begins a new file of the log.
    let log = WalOptions { segment_bytes: 1, ..Options::default().log };
    let options = Options { log, ..small(10, SyncPolicy::Always) };
    let open = |path: &Path| Store::open(path, chain.blocks()[0].clone(), options).unwrap();
    let store = open(&path);
    let mut blocks = chain.above(0).into_iter();
    blocks.by_ref().take(20).for_each(|block| store.append(block).unwrap());
    store.backup(&copy, &Context::unbounded(), |_| ()).unwrap();
    fs::rename(&path, &moved).unwrap();
    fs::rename(&copy, &path).unwrap();
    let content = || -> BTreeMap<_, _> {
        let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        names.map(|name| (name.clone(), fs::read(name).unwrap())).collect()
    };
    let theirs = content();

    let refused = blocks.find(|block| store.append(block.clone()).is_err()).expect("new files cannot be created");
    let head = refused.header.header.number - 1;
    assert!(store.flush().is_err());
    let reason = store.heal().write_failure.unwrap();
    assert!(reason.contains("was moved, removed or replaced"), "{reason}");
    assert!(content() == theirs, "{:?} of {:?}", content().keys(), theirs.keys());
    assert_eq!(store.view().unwrap().head().number, head);
    drop(store);
    assert!(content() == theirs, "{:?} of {:?}", content().keys(), theirs.keys());

    assert_eq!(open(&path).view().unwrap().head().number, 20);
    let store = open(&moved);
    assert_eq!(store.view().unwrap().head().number, head);
    store.append(refused).unwrap();
}

#[test]
fn a_record_whose_sync_fails_for_another_is_undone() {
    let chain = Random(1).chain(1);
    let disk = FaultyDisk::new();
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(100, SyncPolicy::Always)).unwrap();
    let put = |value| RecordWrite::Put(RecordKind::Filter, Record { key: vec![1], value: vec![value] });
    store.write_records(&[put(1)]).unwrap();
    store.write_records_unsynced(&[put(2)]).unwrap();
    store.write_records_unsynced(&[put(3), RecordWrite::Delete(RecordKind::Filter, vec![1])]).unwrap();
    disk.fail_operation(1);
    store.append(chain.head().clone()).unwrap_err();
    assert_eq!(store.record(RecordKind::Filter, &[1]).unwrap(), Some(vec![1]));
    store.sync_records().unwrap();
    store.append(chain.head().clone()).unwrap();
    disk.crash(2);
    drop(store);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(100, SyncPolicy::Always)).unwrap();
    assert_eq!(store.record(RecordKind::Filter, &[1]).unwrap(), Some(vec![1]));
    assert_eq!(store.view().unwrap().head().number, 1);
}

#[test]
fn a_damaged_page_affects_only_the_reads_that_need_it() {
    let chain = Random(1).chain(60);
    let genesis = chain.blocks()[0].clone();
    let disk = FaultyDisk::new();
    // The cache is too small for a page, so that every read reaches the disk.
    let options = Options { cache_bytes: 0, ..small(10, SyncPolicy::Always) };
    let store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
    let reference = MemoryBackend::new(genesis).unwrap();
    for block in chain.above(0) {
        store.append(block.clone()).unwrap();
        reference.append(block).unwrap();
    }
    store.flush().unwrap();
    store.wait_for_merges();
    let questions = ask(&*store.view().unwrap(), &*reference.view().unwrap(), 0, 7);
    assert_eq!(questions.refused, 0);
    let (mut damaged, mut unaffected) = (0, 0);
    for name in disk.names().iter().filter(|name| name.starts_with("run-")) {
        let intact = disk.content(name).unwrap();
        // The end was read when the run was opened.
        for byte in (0..intact.len() * 3 / 4).step_by(5000) {
            disk.flip_bit(name, byte * 8);
            let asked = ask(&*store.view().unwrap(), &*reference.view().unwrap(), 0, 7);
            let health = store.health();
            assert_eq!(health.read_failure.is_some(), asked.refused > 0, "{name} byte {byte}: {health:?}");
            if let Some(reason) = health.read_failure {
                assert!(reason.starts_with(&format!("{name} is damaged: the ")), "{reason}");
                damaged += 1;
                unaffected += asked.right;
            }
            disk.put(name, intact.clone());
            assert_eq!(store.heal().read_failure, None);
        }
    }
    // Blocks near the roots are needed by most queries.
    assert!(damaged > 0 && unaffected > damaged * questions.right / 20, "{unaffected} of {damaged}");
    assert_eq!(ask(&*store.view().unwrap(), &*reference.view().unwrap(), 0, 7).refused, 0);
}
