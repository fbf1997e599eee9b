//! Stores of which somebody has deleted something.

use super::*;
use crate::shared::{Creation, FolderObjects, LogNumber, SharedError};
use crate::{SharedOptions, StoreReader};

fn all(objects: &dyn Objects) -> Vec<String> {
    ["log", "manifests", "runs"].into_iter().flat_map(|folder| objects.list(folder, None).unwrap()).collect()
}

fn empty(objects: &dyn Objects) {
    all(objects).iter().for_each(|name| objects.delete(name).unwrap());
}

fn replace(objects: &dyn Objects, name: &str, bytes: &[u8]) {
    objects.delete(name).unwrap();
    assert_eq!(objects.create(name, bytes).unwrap(), Creation::Created);
}

fn run_fault(error: StoreError) -> String {
    match error {
        StoreError::Shared(error @ SharedError::Runs(_)) => error.to_string(),
        error => panic!("{error:?}"),
    }
}

/// Adds blocks until one is refused. Returns the error.
fn append_until_refused(store: &Store, chain: &mut TestChain, random: &mut Random) -> StoreError {
    let begun = Instant::now();
    loop {
        let mut longer = chain.clone();
        random.extend(&mut longer, 1);
        match store.append(longer.head().clone()) {
            Ok(()) => *chain = longer,
            refused => return reason(refused),
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_writer_whose_store_was_emptied_takes_no_changes_any_longer() {
    for other_store in [false, true] {
        let (objects, mut random, disk) = (memory(), Random(20), FaultyDisk::new());
        let mut chain = random.chain(20);
        let genesis = chain.blocks()[0].clone();
        let store = open(&disk, &genesis);
        let options = PublishOptions { heartbeat: Duration::from_millis(50), ..quick(true) };
        store.publish(Arc::clone(&objects), options).unwrap();
        append(&store, &chain, 0);
        settle(&store);
        empty(&*objects);
        if other_store {
            let other = memory();
            open(&FaultyDisk::new(), &genesis).publish(Arc::clone(&other), quick(true)).unwrap();
            for name in all(&*other) {
                objects.create(&name, &other.get(&name).unwrap().unwrap()).unwrap();
            }
        }
        let emptied = Instant::now();
        let error = append_until_refused(&store, &mut chain, &mut random);
        assert!(matches!(error, StoreError::Vanished(LogNumber(1))), "{error}");
        assert!(emptied.elapsed() < Duration::from_secs(5));
        let health = store.health();
        assert!(health.write_failure.unwrap().contains("the shared store no longer has object 1 of the log"));
        let publication = health.publication.unwrap();
        assert!(publication.has_ended && publication.failure.is_some());
        let again = append_until_refused(&store, &mut chain, &mut random);
        assert!(matches!(again, StoreError::Vanished(_)), "{again}");
    }
}

#[test]
fn an_idle_writer_notices_that_its_store_was_emptied() {
    let objects = memory();
    let store = open(&FaultyDisk::new(), Random(21).chain(0).head());
    let options = PublishOptions { heartbeat: Duration::from_millis(20), ..quick(false) };
    store.publish(Arc::clone(&objects), options).unwrap();
    settle(&store);
    empty(&*objects);
    let begun = Instant::now();
    while store.health().write_failure.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_folder_that_was_removed_is_noticed_by_the_next_change_and_not_created_again() {
    for remove_root in [false, true] {
        let (temporary, mut random) = (tempfile::tempdir().unwrap(), Random(22));
        let root = temporary.path().join("store");
        let mut chain = random.chain(10);
        let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
        // By default, five seconds pass between two checks.
        store.publish(Arc::new(FolderObjects::new(&root)), quick(true)).unwrap();
        append(&store, &chain, 0);
        std::fs::remove_dir_all(&root).unwrap();
        if !remove_root {
            // Its file system is not mounted any longer.
            std::fs::create_dir(&root).unwrap();
        }
        random.extend(&mut chain, 1);
        let refused = reason(store.append(chain.head().clone()));
        assert!(matches!(refused, StoreError::Vanished(LogNumber(1))), "{refused}");
        drop(store);
        let left =
            std::fs::read_dir(&root).map(|files| files.map(|file| file.unwrap().file_name()).collect::<Vec<_>>());
        assert!(left.is_ok_and(|left| left.iter().all(|name| name == "unfinished")) != remove_root);
    }
}

#[test]
fn a_reader_of_a_store_that_was_emptied_says_so_and_goes_on() {
    let (objects, mut random) = (memory(), Random(23));
    let chain = random.chain(10);
    let store = open(&FaultyDisk::new(), &chain.blocks()[0]);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    append(&store, &chain, 0);
    drop(store);
    let reader = StoreReader::open_shared(Arc::clone(&objects), SharedOptions::default()).unwrap();
    let bytes: Vec<_> = all(&*objects).into_iter().map(|name| (objects.get(&name).unwrap().unwrap(), name)).collect();
    empty(&*objects);
    let refreshed = (0..20).find_map(|_| reader.refresh().err()).unwrap();
    let error = reason::<()>(Err(refreshed));
    assert!(matches!(error, StoreError::Shared(SharedError::Vanished(LogNumber(1)))), "{error:?}");
    assert_eq!(reader.view().unwrap().head().number, 10);
    // It is found again.
    for (bytes, name) in bytes {
        objects.create(&name, &bytes).unwrap();
    }
    reader.refresh().unwrap();
    check_view(&*reader.view().unwrap(), &chain);
}

#[test]
fn whoever_reads_a_log_with_a_gap_says_what_is_missing() {
    let (objects, mut random, disk) = (memory(), Random(24), FaultyDisk::new());
    let chain = random.chain(30);
    let genesis = &chain.blocks()[0];
    let store = open(&disk, genesis);
    let options = PublishOptions { manifest_interval: Duration::from_secs(3_600), ..quick(true) };
    store.publish(Arc::clone(&objects), options.clone()).unwrap();
    settle(&store);
    append(&store, &chain, 0);
    disk.kill();
    drop(store);
    let log = objects.list("log", None).unwrap();
    let lost = &log[log.len() - 8];
    objects.delete(lost).unwrap();
    let is_named = |error: StoreError| match error {
        StoreError::Shared(SharedError::Missing { object, .. }) => object == *lost,
        error => panic!("{error:?}"),
    };
    let restored = Store::restore_in(&FaultyDisk::new().folder(), Arc::clone(&objects), &Context::unbounded(), drop);
    assert!(is_named(reason(restored)));
    assert!(is_named(reason(Store::open_shared_snapshot(
        Arc::clone(&objects),
        Options::default(),
        &Context::unbounded()
    ))));
    assert!(is_named(reason(StoreReader::open_shared(Arc::clone(&objects), SharedOptions::default()))));
    assert!(is_named(reason(open(&disk, genesis).publish(Arc::clone(&objects), options))));
    // Nobody has written anything.
    assert_eq!(objects.list("log", None).unwrap().len(), log.len() - 1);
}

#[test]
fn a_run_that_is_missing_or_damaged_is_named_and_the_writer_uploads_it_again() {
    let (objects, mut random, disk) = (memory(), Random(25), FaultyDisk::new());
    let chain = random.chain(40);
    let genesis = &chain.blocks()[0];
    let start = || {
        let store = open(&disk, genesis);
        let faults = store.publish(Arc::clone(&objects), quick(true)).unwrap();
        (store, faults)
    };
    let (store, faults) = start();
    assert!(faults.is_empty());
    append(&store, &chain, 0);
    store.flush().unwrap();
    settle(&store);
    drop(store);
    let manifest = || Reader::open(Arc::clone(&objects)).unwrap().unwrap().1;
    let names: Vec<_> = manifest().content.runs().map(|run| run.object()).collect();
    assert!(names.len() >= 2);
    let [gone, short] = [&names[0], &names[1]];
    let original = objects.get(short).unwrap().unwrap();
    objects.delete(gone).unwrap();
    replace(&*objects, short, &original[..original.len() / 2]);

    let restore = || Store::restore_in(&FaultyDisk::new().folder(), Arc::clone(&objects), &Context::unbounded(), drop);
    let expected = [
        format!("{gone} is missing"),
        format!("{short} has {} bytes instead of {}", original.len() / 2, original.len()),
    ];
    let restored = run_fault(reason(restore()));
    let verified = run_fault(reason(Store::check_shared_runs(Arc::clone(&objects), &Context::unbounded())));
    for text in [&restored, &verified] {
        assert!(expected.iter().all(|fault| text.contains(fault)), "{text}");
    }
    // A run of the right length whose rows are damaged.
    let mut damaged = original.clone();
    damaged[original.len() / 2] ^= 1;
    replace(&*objects, short, &damaged);
    let content = objects.get(&names[0]).unwrap();
    assert!(content.is_none());

    let (store, faults) = start();
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, [format!("{gone} is missing")]);
    settle(&store);
    let uploaded = store.health().publication.unwrap().uploaded_bytes;
    assert!(uploaded > 0);
    drop(store);
    Store::check_shared_runs(Arc::clone(&objects), &Context::unbounded()).unwrap();
    let error = reason(restore());
    assert!(
        matches!(&error, StoreError::Shared(error @ SharedError::DamagedRun { .. }) if error.to_string().contains(short)),
        "{error:?}"
    );
    // Without the damaged object, the writer uploads this run again, too.
    objects.delete(short).unwrap();
    let (store, faults) = start();
    assert_eq!(faults.len(), 1);
    settle(&store);
    drop(store);
    check(&objects, &chain);
}

#[test]
fn refused_changes_do_not_reappear_in_a_folder_that_is_not_published_any_longer() {
    let (objects, mut random, disk) = (memory(), Random(26), FaultyDisk::new());
    let mut chain = random.chain(10);
    let genesis = chain.blocks()[0].clone();
    let store = open(&disk, &genesis);
    store.publish(Arc::clone(&objects), quick(true)).unwrap();
    append(&store, &chain, 0);
    let other = open(&restore(&objects), &genesis);
    other.publish(Arc::clone(&objects), quick(true)).unwrap();
    let mut refused = chain.clone();
    random.extend(&mut refused, 1);
    assert!(matches!(reason(store.append(refused.head().clone())), StoreError::Fenced { by: Some(_) }));
    disk.crash(1);
    drop(store);
    // Interrupted at every moment.
    for operation in 0.. {
        disk.fail_operation(operation);
        let opened = Store::open_in(disk.folder(), genesis.clone(), small(3, SyncPolicy::Always));
        let is_over = disk.fail_nothing();
        if let Ok(store) = &opened {
            assert_eq!(store.view().unwrap().head().number, 10);
        }
        disk.crash(operation);
        drop(opened);
        if is_over {
            break;
        }
    }
    let store = open_alone(&disk, &genesis);
    check_view(&*store.view().unwrap(), &chain);
    // What is added now was acknowledged, and remains.
    random.extend(&mut chain, 1);
    append(&store, &chain, 10);
    drop(store);
    check_view(&*open_alone(&disk, &genesis).view().unwrap(), &chain);
}
