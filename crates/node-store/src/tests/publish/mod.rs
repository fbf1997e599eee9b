//! Publishing a chain to a shared store, catching up and restoring.

mod lost;
mod model;

use super::small;
use crate::files::faults::FaultyDisk;
use crate::shared::faults::{FaultyObjects, Rates};
use crate::shared::{Fault, FolderObjects, MemoryObjects, Objects, Reader, RetryPolicy};
use crate::{Options, PublishOptions, RestoreProgress, SharedOptions, Store, StoreError, StoreReader, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{BackendError, Record, RecordKind, RecordWrite, StateBackend};
use node_core::block::ExecutedBlock;
use node_core::context::Context;
use node_core::sources::Sources;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Publishes as fast as possible.
fn quick(sync: bool) -> PublishOptions {
    let interval = Duration::from_millis(1);
    let retry = RetryPolicy { first: interval, longest: interval, deadline: Duration::from_millis(50) };
    PublishOptions { sync, interval, manifest_interval: interval, retry, ..PublishOptions::default() }
}

fn open(disk: &FaultyDisk, genesis: &ExecutedBlock) -> Store {
    let options = Options { publish: true, ..small(3, SyncPolicy::Always) };
    Store::open_in(disk.folder(), genesis.clone(), options).unwrap()
}

/// Opens the store of a folder that will not be published.
fn open_alone(disk: &FaultyDisk, genesis: &ExecutedBlock) -> Store {
    Store::open_in(disk.folder(), genesis.clone(), small(3, SyncPolicy::Always)).unwrap()
}

fn memory() -> Arc<dyn Objects> {
    Arc::new(MemoryObjects::default())
}

fn append(store: &Store, chain: &TestChain, above: u64) {
    chain.above(above).into_iter().for_each(|block| store.append(block).unwrap());
}

fn settle(store: &Store) {
    store.wait_until_published(&Context::unbounded(), drop).unwrap();
}

fn restore(objects: &Arc<dyn Objects>) -> FaultyDisk {
    let disk = FaultyDisk::new();
    Store::restore_in(&disk.folder(), Arc::clone(objects), &Context::unbounded(), drop).unwrap();
    disk
}

/// Checks that a folder restored from the store has `chain`.
fn check(objects: &Arc<dyn Objects>, chain: &TestChain) {
    let store = open_alone(&restore(objects), &chain.blocks()[0]);
    check_view(&*store.view().unwrap(), chain);
}

/// Returns the error of this crate.
fn reason<T>(refused: Result<T, BackendError>) -> StoreError {
    match refused.map(drop).unwrap_err() {
        BackendError::Storage(error) | BackendError::NotWriter(error) => *error.downcast().unwrap(),
        error => panic!("{error}"),
    }
}

#[test]
fn a_chain_is_published_from_its_beginning() {
    let (objects, mut random) = (memory(), Random(1));
    let chain = random.chain(20);
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(false)).unwrap();
    append(&store, &chain, 0);
    let record = Record { key: vec![1], value: vec![2] };
    store.write_records(&[RecordWrite::Put(RecordKind::Filter, record.clone())]).unwrap();
    settle(&store);
    let health = store.health().publication.unwrap();
    assert_eq!((health.lag_entries, health.lag_bytes, health.published_entries), (0, 0, 21));
    assert_eq!((health.epoch, health.failure), (1, None));

    let (mut reader, manifest) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert!(manifest.content.chain.unwrap().head.number > 10);
    let mut last = manifest.content.logged;
    while let Some(step) = reader.poll().unwrap() {
        last = last.max(step.object.header.end().previous());
    }
    assert_eq!(last.0, 21);
    check(&objects, &chain);
    let restored = open_alone(&restore(&objects), &chain.blocks()[0]);
    assert_eq!(restored.records(RecordKind::Filter).unwrap(), [record]);
}

#[test]
fn an_existing_folder_is_published_although_its_log_does_not_reach_back() {
    let (objects, mut random, disk) = (memory(), Random(2), FaultyDisk::new());
    let mut chain = random.chain(60);
    let store = open_alone(&disk, &chain.blocks()[0]);
    append(&store, &chain, 0);
    drop(store);
    let store = open(&disk, &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    random.extend(&mut chain, 5);
    append(&store, &chain, 60);
    check(&objects, &chain);
    // Without publishing in the meantime, the log is shortened again.
    drop(store);
    let store = open_alone(&disk, &chain.blocks()[0]);
    random.extend(&mut chain, 30);
    append(&store, &chain, 65);
    drop(store);
    let store = open(&disk, &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(false)).unwrap();
    settle(&store);
    assert_eq!(store.health().publication.unwrap().epoch, 2);
    check(&objects, &chain);
}

#[test]
fn a_new_writer_ends_the_old_one_and_the_old_folder_can_catch_up() {
    let (objects, mut random, disk) = (memory(), Random(3), FaultyDisk::new());
    let mut chain = random.chain(20);
    let genesis = chain.blocks()[0].clone();
    let store = open(&disk, &genesis);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    append(&store, &chain, 0);

    let other = restore(&objects);
    let successor = open(&other, &genesis);
    successor.publish(Arc::clone(&objects), quick(true)).unwrap();
    check_view(&*successor.view().unwrap(), &chain);
    random.extend(&mut chain, 40);
    append(&successor, &chain, 20);
    // The old one notices at once whether or not it tries to change something.
    let begun = Instant::now();
    while store.health().write_failure.is_none() && begun.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
        let mut branch = chain.up_to(20);
        random.extend(&mut branch, 1);
        assert!(matches!(reason(store.append(branch.head().clone())), StoreError::Fenced { by: Some(_) }));
    }
    let health = store.health();
    assert!(
        health.write_failure.unwrap().contains("another server has become the writer of the shared store (epoch 2)")
    );
    assert!(health.publication.unwrap().failure.is_some());
    assert_eq!(store.view().unwrap().head().number, 20);
    check(&objects, &chain);
    drop(successor);
    disk.kill();
    drop(store);
    // Its refused changes are forgotten, so it can catch up.
    let store = open(&disk, &genesis);
    assert!(store.removed_refused() > 0);
    check_view(&*store.view().unwrap(), &chain.up_to(20));
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    check_view(&*store.view().unwrap(), &chain);
    random.extend(&mut chain, 1);
    append(&store, &chain, 60);
    drop(store);
    assert_eq!(open(&disk, &genesis).removed_refused(), 0);

    // The other folder catches up, twice.
    let third = open(&restore(&objects), &genesis);
    third.publish(Arc::clone(&objects), quick(true)).unwrap();
    random.extend(&mut chain, 10);
    append(&third, &chain, 61);
    drop(third);
    for _ in 0..2 {
        let store = open(&other, &genesis);
        store.publish(Arc::clone(&objects), quick(false)).unwrap();
        check_view(&*store.view().unwrap(), &chain);
    }
    check(&objects, &chain);
}

#[test]
fn a_folder_that_cannot_continue_the_store_is_refused_and_does_not_end_its_writer() {
    let (objects, mut random) = (memory(), Random(4));
    let mut chain = random.chain(10);
    let genesis = chain.blocks()[0].clone();
    let store = open(&FaultyDisk::new(), &genesis);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    append(&store, &chain, 0);
    let fork = restore(&objects);
    random.extend(&mut chain, 1);
    append(&store, &chain, 10);

    let refused = |disk: &FaultyDisk, genesis| reason(open(disk, genesis).publish(Arc::clone(&objects), quick(true)));
    assert!(matches!(refused(&FaultyDisk::new(), &genesis), StoreError::OtherFolder));
    let other = Random(5).chain(0);
    assert!(matches!(refused(&FaultyDisk::new(), other.head()), StoreError::OtherGenesis { .. }));
    let alone = open_alone(&fork, &genesis);
    let mut branch = chain.up_to(10);
    random.extend(&mut branch, 1);
    append(&alone, &branch, 10);
    alone.flush().unwrap();
    drop(alone);
    assert!(matches!(refused(&fork, &genesis), StoreError::Diverged));
    let options = Options { publish: true, ..Options::in_memory() };
    let in_memory = Store::in_memory(genesis.clone(), options).unwrap();
    assert!(matches!(reason(in_memory.publish(Arc::clone(&objects), quick(true))), StoreError::Volatile));

    random.extend(&mut chain, 1);
    append(&store, &chain, 11);
    check(&objects, &chain);
}

#[test]
fn an_outage_is_waited_for_and_the_end_does_not_wait_long() {
    let (random, disk) = (&mut Random(6), FaultyDisk::new());
    let medium = Arc::new(FaultyObjects::new(memory(), 1, Rates::default()));
    let objects: Arc<dyn Objects> = Arc::clone(&medium) as _;
    let mut chain = random.chain(5);
    let genesis = chain.blocks()[0].clone();
    let store = Arc::new(open(&disk, &genesis));
    let options = PublishOptions { closing: Duration::from_millis(50), ..quick(true) };
    store.publish(Arc::clone(&objects), options.clone()).unwrap();
    append(&store, &chain, 0);
    let fail = |percent| medium.set_rates(Rates { failed: percent, ..Rates::default() });
    let start = |chain: &TestChain| {
        let (store, block) = (Arc::clone(&store), chain.head().clone());
        thread::spawn(move || store.append(block))
    };

    fail(100);
    random.extend(&mut chain, 1);
    let waiting = start(&chain);
    thread::sleep(Duration::from_millis(200));
    assert!(!waiting.is_finished());
    assert_eq!(store.view().unwrap().head().number, 5);
    fail(0);
    waiting.join().unwrap().unwrap();
    check(&objects, &chain);

    fail(100);
    random.extend(&mut chain, 1);
    let waiting = start(&chain);
    thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    store.stop_publishing();
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(matches!(reason(waiting.join().unwrap()), StoreError::Unpublished));
    assert!(store.flush().is_err());
    drop(store);
    // Its outcome was unknown: it is in the log.
    fail(0);
    let store = open(&disk, &genesis);
    check_view(&*store.view().unwrap(), &chain);
    store.publish(Arc::clone(&objects), options).unwrap();
    settle(&store);
    check(&objects, &chain);
}

#[test]
fn blocks_wait_if_too_much_is_not_published() {
    let medium = Arc::new(FaultyObjects::new(memory(), 1, Rates::default()));
    let chain = Random(7).chain(30);
    let store = Arc::new(open(&FaultyDisk::new(), &chain.blocks()[0]));
    let options = PublishOptions { max_unpublished: 10_000, ..quick(false) };
    store.publish(Arc::clone(&medium) as _, options).unwrap();
    settle(&store);
    medium.set_rates(Rates { failed: 100, ..Rates::default() });
    let (writer, blocks) = (Arc::clone(&store), chain.above(0));
    let importing = thread::spawn(move || blocks.into_iter().for_each(|block| writer.append(block).unwrap()));
    thread::sleep(Duration::from_millis(300));
    assert!(!importing.is_finished());
    let health = store.health().publication.unwrap();
    assert!((10_000..40_000).contains(&health.lag_bytes), "{health:?}");
    assert!(health.lag_entries > 1 && health.lag > Duration::ZERO);
    medium.set_rates(Rates::default());
    importing.join().unwrap();
    settle(&store);
    let lag = store.health().publication.unwrap();
    assert_eq!((lag.lag_bytes, lag.lag_entries, lag.failure), (0, 0, None));
}

#[test]
fn a_reader_never_has_to_read_a_long_log_and_old_objects_are_deleted() {
    let objects = memory();
    let chain = Random(8).chain(5);
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    let interval = Duration::from_millis(1);
    let options = PublishOptions { heartbeat: 3 * interval, keep_for: interval, ..quick(true) };
    store.publish(Arc::clone(&objects), options).unwrap();
    append(&store, &chain, 0);
    let begun = Instant::now();
    let start = || Reader::open(Arc::clone(&objects)).unwrap().unwrap().1.start.0;
    while start() < 600 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", start());
        thread::sleep(Duration::from_millis(5));
    }
    settle(&store);
    drop(store);
    // The fence and the announcement of the first manifest, and what the newest ones need.
    let names = objects.list("log", None).unwrap();
    assert!(names.len() < 1_000 && names[0].ends_with("1"), "{}", names.len());
    assert!(names[2] > format!("log/{:020}", 20), "{}", names[2]);
    check(&objects, &chain);
}

#[test]
fn an_interrupted_restoration_continues_with_the_runs_that_are_complete() {
    let objects = memory();
    let chain = Random(9).chain(100);
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    for block in chain.above(0) {
        store.append(block).unwrap();
        store.flush().unwrap();
    }
    settle(&store);
    drop(store);
    let disk = FaultyDisk::new();
    let (mut interrupted, mut seen) = (0, 0);
    loop {
        let context = Context::unbounded();
        let cancel = context.clone();
        let restored =
            Store::restore_in(&disk.folder(), Arc::clone(&objects), &context, |progress: RestoreProgress| {
                if seen < progress.bytes {
                    seen = progress.bytes;
                    cancel.cancel();
                }
            });
        if restored.is_ok() {
            break;
        }
        interrupted += 1;
        disk.crash(interrupted);
        assert!(matches!(
            Store::open_in(disk.folder(), chain.blocks()[0].clone(), Options::default()).map(drop).map_err(reason_of),
            Err(StoreError::Unrestored)
        ));
    }
    assert!(interrupted > 2, "{interrupted}");
    let store = open(&disk, &chain.blocks()[0]);
    check_view(&*store.view().unwrap(), &chain);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    assert!(store.health().publication.unwrap().uploaded_bytes == 0);
    let again = Store::restore_in(&disk.folder(), objects, &Context::unbounded(), drop);
    assert!(matches!(reason(again), StoreError::HasChain));
}

fn reason_of(error: BackendError) -> StoreError {
    reason::<()>(Err(error))
}

#[test]
fn a_store_without_a_chain_cannot_be_restored() {
    let restored = Store::restore_in(&FaultyDisk::new().folder(), memory(), &Context::unbounded(), drop);
    assert!(matches!(reason(restored), StoreError::NothingPublished));
}

/// Each block waits for the store, and the next one is appended at once.
#[test]
fn a_writer_that_publishes_without_a_pause_is_followed() {
    let (medium, mut random) = (memory(), Random(11));
    let chain = random.chain(2_000);
    let genesis = chain.blocks()[0].clone();
    let slow = Arc::new(FaultyObjects::new(Arc::clone(&medium), 1, Rates::default()));
    slow.set_delay(Duration::from_millis(5));
    let (slow, options) =
        (slow as Arc<dyn Objects>, PublishOptions { manifest_interval: Duration::from_secs(3_600), ..quick(true) });
    let store = open(&FaultyDisk::new(), &genesis);
    store.publish(Arc::clone(&slow), options.clone()).unwrap();
    settle(&store);
    let fenced = thread::scope(|scope| {
        let writing = scope.spawn(|| chain.above(0).into_iter().find_map(|block| store.append(block).err()));
        let successor = open(&restore(&slow), &genesis);
        successor.publish(Arc::clone(&slow), options).unwrap();
        assert_eq!(successor.health().publication.unwrap().epoch, 2);
        writing.join().unwrap()
    });
    assert!(matches!(reason(Err::<(), _>(fenced.unwrap())), StoreError::Fenced { by: Some(_) }));
}

#[test]
fn whoever_waits_for_a_store_that_fails_ends_when_the_process_should() {
    let (objects, mut random) = (memory(), Random(12));
    let chain = random.chain(3);
    let faulty = Arc::new(FaultyObjects::new(objects, 1, Rates::default()));
    let objects: Arc<dyn Objects> = Arc::clone(&faulty) as _;
    let context = Context::unbounded();
    let closing = Duration::from_millis(200);
    let retry = RetryPolicy { deadline: Duration::from_secs(600), ..quick(true).retry };
    let options = PublishOptions { closing, retry, context: context.clone(), ..quick(true) };
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), options.clone()).unwrap();
    append(&store, &chain.up_to(2), 0);
    faulty.set_rates(Rates { failed: 100, ..Rates::default() });
    let begun = Instant::now();
    let (refused, started) = thread::scope(|scope| {
        let change = scope.spawn(|| store.append(chain.head().clone()));
        let starts: [Box<dyn FnOnce() -> Result<(), BackendError> + Send>; 4] = [
            Box::new(|| open(&FaultyDisk::new(), &chain.blocks()[0]).publish(Arc::clone(&objects), options).map(drop)),
            Box::new(|| Store::restore_in(&FaultyDisk::new().folder(), Arc::clone(&objects), &context, drop).map(drop)),
            Box::new(|| Store::open_shared_snapshot(Arc::clone(&objects), Options::default(), &context).map(drop)),
            Box::new(|| {
                let options = SharedOptions { context: context.clone(), retry, ..SharedOptions::default() };
                StoreReader::open_shared(Arc::clone(&objects), options).map(drop)
            }),
        ];
        let started = starts.map(|start| scope.spawn(start));
        thread::sleep(Duration::from_millis(100));
        assert!(!change.is_finished() && !started.iter().any(|start| start.is_finished()));
        context.cancel();
        (change.join().unwrap(), started.map(|start| start.join().unwrap()))
    });
    assert!(matches!(reason(refused), StoreError::Unpublished));
    for started in started {
        assert!(matches!(started, Err(BackendError::Interrupted(_))), "{started:?}");
    }
    drop(store);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_truncated_object_is_damage_and_no_outage() {
    let (folder, mut random) = (tempfile::tempdir().unwrap(), Random(13));
    let objects: Arc<dyn Objects> = Arc::new(FolderObjects::new(folder.path()));
    let chain = random.chain(3);
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    append(&store, &chain, 0);
    settle(&store);
    drop(store);
    let last = objects.list("log", None).unwrap().pop().unwrap();
    std::fs::write(folder.path().join(&last), b"NODE").unwrap();
    let error = StoreReader::open_shared(objects, SharedOptions::default()).map(drop);
    let error = reason(error);
    assert_eq!(error.shared_fault(), Some(Fault::Permanent));
    assert!(Sources(&error).to_string().contains(&format!("cannot read {last} in the shared store: it is truncated")));
}
