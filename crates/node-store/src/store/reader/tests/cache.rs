//! The copies on a disk.

use super::*;
use crate::files::{Folder, MemoryFolder, Object};
use crate::shared::faults::{FaultyObjects, Rates};
use crate::shared::{Counted, Epoch, RunName, RunObject, SharedRun};
use crate::{Store, SyncPolicy};
use node_core::backend::suite::Random;

/// Returns a store with a chain, all of which is in runs.
fn published(chain: &TestChain) -> Arc<dyn Objects> {
    published_with(chain, crate::tests::small(u64::MAX, SyncPolicy::OnDemand))
}

fn published_with(chain: &TestChain, options: Options) -> Arc<dyn Objects> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.flush().unwrap();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut publisher = Publisher::begin(&objects);
    publisher.publish_runs(&store);
    publisher.commit(&store);
    objects
}

fn with_disk(disk: &Arc<MemoryFolder>, bytes: u64) -> SharedOptions {
    SharedOptions { disk: Some((Arc::clone(disk) as _, bytes)), ..small() }
}

fn disk_use(reader: &StoreReader) -> CacheUse {
    reader.caches().into_iter().find(|cache| cache.name == "disk").unwrap()
}

#[test]
fn a_warm_cache_survives_a_restart() {
    let chain = Random(1).chain(60);
    let counted = Arc::new(Counted::new(published(&chain)));
    let objects: Arc<dyn Objects> = Arc::clone(&counted) as _;
    let disk = Arc::new(MemoryFolder::default());
    let open = || StoreReader::open_shared(Arc::clone(&objects), with_disk(&disk, 64 << 20)).unwrap();
    let reader = open();
    check(&reader, &chain);
    assert!(disk_use(&reader).bytes > 0);
    drop(reader);
    let reader = open();
    let opened = counted.counts();
    check(&reader, &chain);
    assert_eq!(counted.counts(), opened, "a warm cache needs no request");
    assert!(disk_use(&reader).hits > 0);
}

#[test]
fn a_full_cache_replaces_what_was_not_used() {
    let chain = Random(2).chain(300);
    let objects = published(&chain);
    let disk = Arc::new(MemoryFolder::default());
    let reader = StoreReader::open_shared(objects, with_disk(&disk, 3 * (32 << 10))).unwrap();
    for _ in 0..2 {
        check(&reader, &chain);
    }
    assert_eq!(disk_use(&reader).bytes, disk_use(&reader).capacity);
    assert!(disk.open("chunks").unwrap().size().unwrap() <= 3 * (32 << 10));
}

#[test]
fn damage_is_read_again_from_the_store() {
    let chain = Random(3).chain(60);
    let objects = published(&chain);
    let disk = Arc::new(MemoryFolder::default());
    let open = || StoreReader::open_shared(Arc::clone(&objects), with_disk(&disk, 64 << 20)).unwrap();
    check(&open(), &chain);
    let overwrite = |name: &str, step: usize| {
        let file = disk.open(name).unwrap();
        for offset in (0..file.size().unwrap()).step_by(step) {
            file.write_at(offset, &[0x5a]).unwrap();
        }
    };
    overwrite("chunks", 100);
    let reader = open();
    check(&reader, &chain);
    assert_eq!((reader.health().failed_reads, reader.health().read_failure), (0, None));
    drop(reader);
    // The copies were replaced.
    let counted = Arc::new(Counted::new(Arc::clone(&objects)));
    let reader = StoreReader::open_shared(Arc::clone(&counted) as _, with_disk(&disk, 64 << 20)).unwrap();
    let opened = counted.counts();
    check(&reader, &chain);
    assert_eq!(counted.counts(), opened);
    drop(reader);
    for truncated in ["chunks", "index"] {
        disk.open(truncated).unwrap().set_len(50_001).unwrap();
        check(&open(), &chain);
        overwrite("index", 33);
        check(&open(), &chain);
    }
}

#[test]
fn copies_of_another_store_are_not_used() {
    let disk = Arc::new(MemoryFolder::default());
    for seed in [4, 5] {
        // The runs of both have the same names.
        let chain = Random(seed).chain(40);
        let reader = StoreReader::open_shared(published(&chain), with_disk(&disk, 64 << 20)).unwrap();
        check(&reader, &chain);
        assert_eq!(reader.health().failed_reads, 0);
    }
    disk.create("manifest-000000000001").unwrap();
    let chain = Random(6).chain(3);
    let refused = StoreReader::open_shared(published(&chain), with_disk(&disk, 64 << 20)).map(drop).unwrap_err();
    assert!(Sources(&refused).to_string().contains("manifest-000000000001"), "{}", Sources(&refused));
}

/// With 25 ms for each request, as between a server and a bucket in the same region.
#[test]
fn the_first_answer_on_an_empty_cache_is_fast() {
    let chain = Random(7).chain(400);
    let options = Options { merge: false, ..crate::tests::small(20, SyncPolicy::OnDemand) };
    let counted = Arc::new(Counted::new(published_with(&chain, options)));
    let slow = Arc::new(FaultyObjects::new(Arc::clone(&counted) as _, 0, Rates::default()));
    slow.set_delay(Duration::from_millis(25));
    let begun = Instant::now();
    let before = counted.counts().reads;
    let disk = Arc::new(MemoryFolder::default());
    let reader = StoreReader::open_shared(slow, with_disk(&disk, 64 << 20)).unwrap();
    let (opened, requests) = (begun.elapsed(), counted.counts().reads - before);
    let view = reader.view().unwrap();
    let head = view.head().number;
    let proof = view.state(head).unwrap().proof(Random::addresses()[0], &Random::slots()[..1]).unwrap();
    assert!(!proof.proof.is_empty());
    let done = begun.elapsed();
    println!(
        "opened after {opened:?} with {requests} requests, {} runs; a proof after {done:?}",
        reader.health().files
    );
    assert!(done < Duration::from_secs(2), "opened after {opened:?}, a proof after {done:?}");
}

#[test]
fn identical_reads_under_way_are_shared() {
    let memory: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let name = RunName { epoch: Epoch(1), id: 1 };
    memory.create(&name.object(), &[7; 1_000]).unwrap();
    let counted = Arc::new(Counted::new(memory));
    let slow = Arc::new(FaultyObjects::new(Arc::clone(&counted) as _, 0, Rates::default()));
    slow.set_delay(Duration::from_millis(200));
    let run = SharedRun { name, size: 1_000, limit: 0, ending: [][..].into() };
    let object = RunObject::new(slow, &run);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut bytes = [0; 100];
                object.read_at(300, &mut bytes).unwrap();
                assert_eq!(bytes, [7; 100]);
            });
        }
    });
    // A thread that starts late reads again.
    assert!(counted.counts().reads < 8);
}

#[test]
fn indexes_and_filters_are_read_in_the_background() {
    let chain = Random(8).chain(200);
    let options = Options { merge: false, ..crate::tests::small(10, SyncPolicy::OnDemand) };
    let counted = Arc::new(Counted::new(published_with(&chain, options)));
    let disk = Arc::new(MemoryFolder::default());
    for options in [with_disk(&disk, 64 << 20), SharedOptions { cache_bytes: 16 << 20, ..small() }] {
        let reader = StoreReader::open_shared(Arc::clone(&counted) as _, options).unwrap();
        let reads = || counted.counts().reads;
        let mut seen = 0;
        while std::mem::replace(&mut seen, reads()) != seen {
            thread::sleep(Duration::from_millis(300));
        }
        // Every keyed run has a filter. Few of them have to be followed by a read of rows.
        let (view, absent) = (reader.view().unwrap(), node_types::Address::repeat_byte(0x77));
        assert_eq!(view.state(view.head().number).unwrap().account(absent).unwrap(), None);
        let more = reads() - seen;
        assert!(more <= 1, "{more} reads of {} runs", reader.health().files);
    }
}
