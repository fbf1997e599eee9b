//! A reader of what a store publishes, compared with that store after every step.

use super::*;
use crate::files::DiskFolder;
use crate::shared::RetryPolicy;
use crate::shared::faults::{FaultyObjects, Rates};
use crate::{Store, SyncPolicy};
use node_core::backend::RecordWrite;
use node_core::backend::suite::{self, Random};
use node_core::clock::{Clock, ManualClock, SystemClock};
use node_core::context::Context;
use parking_lot::Mutex as TestMutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn small_store(blocks_in_memory: u64) -> Options {
    crate::tests::small(blocks_in_memory, SyncPolicy::Always)
}

/// A store whose chain is read in a shared store.
struct Published {
    _folder: tempfile::TempDir,
    store: Store,
    publisher: TestMutex<Publisher>,
    reader: StoreReader,
    changes: AtomicU64,
}

impl Published {
    fn open(genesis: ExecutedBlock, blocks_in_memory: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), genesis, small_store(blocks_in_memory)).unwrap();
        let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
        let mut publisher = Publisher::begin(&objects);
        publisher.publish_runs(&store);
        let reader = open(&objects);
        Self { _folder: folder, store, publisher: TestMutex::new(publisher), reader, changes: AtomicU64::new(0) }
    }

    fn publish<T>(&self, changed: Result<T, BackendError>) -> Result<T, BackendError> {
        let mut publisher = self.publisher.lock();
        publisher.commit(&self.store);
        if self.changes.fetch_add(1, Ordering::Relaxed) % 4 == 3 {
            publisher.publish_runs(&self.store);
        }
        self.reader.refresh().unwrap();
        changed
    }
}

impl StateBackend for Published {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.reader.view()
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.publish(self.store.append_recording(block, writes))
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.publish(self.store.switch_recording(ancestor, branch, writes))
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.publish(self.store.keep_side_block(block))
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.reader.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.reader.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.publish(self.store.write_records_unsynced(writes))
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.publish(self.store.sync_records())
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.store.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.store.records(kind)
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.reader.caches()
    }

    fn health(&self) -> BackendHealth {
        self.reader.health()
    }
}

#[test]
fn a_reader_of_published_chains_passes_the_suite() {
    for blocks_in_memory in [1, 7] {
        suite::run(&|genesis| Box::new(Published::open(genesis, blocks_in_memory)));
    }
}

/// Applies changes to a list of blocks, as a client that follows the head does.
#[derive(Default)]
struct Follower(TestMutex<Vec<node_core::block::BlockRef>>);

impl HeadListener for Follower {
    fn head_changed(&self, change: &HeadChange) {
        let mut blocks = self.0.lock();
        for removed in &change.removed {
            assert_eq!(blocks.pop().as_ref(), Some(removed));
        }
        blocks.extend(change.added.iter().copied());
    }
}

/// Plays a random history: reorganizations, flushes, restarts and failovers of the writer, deletions in the store, and
/// failures of the medium on the reader's side.
fn play(seed: u64, steps: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let mut chain = random.chain(3);
    let open_store =
        |chain: &TestChain| Store::open(folder.path(), chain.blocks()[0].clone(), small_store(60)).unwrap();
    let mut store = open_store(&chain);
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());

    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut publisher = Publisher::begin(&objects);
    publisher.publish_runs(&store);
    publisher.commit(&store);
    let rates = Rates { failed: 2, torn: 2, stale: 10, ..Rates::default() };
    let faulty = Arc::new(FaultyObjects::new(Arc::clone(&objects), seed, rates));
    let faulty: Arc<dyn Objects> = faulty;
    let cache = tempfile::tempdir().unwrap();
    let open_reader = |with_disk: bool| {
        let disk = with_disk.then(|| -> (Arc<dyn crate::files::Folder>, u64) {
            (Arc::new(DiskFolder::open(cache.path()).unwrap()), 1 << 20)
        });
        StoreReader::open_shared(Arc::clone(&faulty), SharedOptions { disk, ..small() }).unwrap()
    };
    let follow = |reader: &StoreReader, chain: &TestChain| {
        let blocks = chain.blocks().iter().map(|block| block.header.block_ref()).collect();
        let follower = Arc::new(Follower(TestMutex::new(blocks)));
        reader.subscribe(follower.clone());
        follower
    };
    let mut reader = open_reader(seed.is_multiple_of(2));
    check(&reader, &chain);
    let mut follower = follow(&reader, &chain);
    let mut seen = chain.clone();
    for step in 0..steps {
        let (old, view) = (seen.clone(), reader.view().unwrap());
        match random.below(12) {
            0 | 1 => {
                let (ancestor, other) = random.branch(&chain, 6);
                store.switch(ancestor, other.above(ancestor)).unwrap();
                chain = other;
            }
            2 => store.flush().unwrap(),
            3 => {
                drop(store);
                store = open_store(&chain);
            }
            4 => {
                publisher.commit(&store);
                publisher.publish_runs(&store);
                if random.once_in(2) {
                    publisher.collect();
                }
            }
            5 => {
                publisher = Publisher::begin(&objects);
                if random.once_in(2) {
                    publisher.upload_again();
                }
            }
            6 => {
                drop((view, reader));
                publisher.commit(&store);
                reader = open_reader(seed.is_multiple_of(2));
                check(&reader, &chain);
                follower = follow(&reader, &chain);
                seen = chain.clone();
                continue;
            }
            _ => {
                let head = chain.head().header.header.number;
                let count = 1 + random.below(5);
                random.extend(&mut chain, count);
                chain.above(head).into_iter().for_each(|block| store.append(block).unwrap());
            }
        }
        if random.below(3) > 0 {
            publisher.commit(&store);
            // That an object is missing because it was deleted is noticed at the latest by the sixteenth look.
            for _ in 0..32 {
                if reader.refresh().is_ok() && reader.view().unwrap().head() == chain.head().header.block_ref() {
                    break;
                }
            }
            check(&reader, &chain);
            let heads = chain.blocks().iter().map(|block| block.header.block_ref()).collect::<Vec<_>>();
            assert_eq!(*follower.0.lock(), heads, "seed {seed}, step {step}");
            if random.once_in(4) {
                check_view(&*view, &old);
            }
            seen = chain.clone();
        }
    }
}

#[test]
fn a_reader_equals_the_store_through_random_histories() {
    for seed in 0..16 {
        play(seed, 60);
    }
}

#[test]
fn a_store_without_a_chain_has_none_to_read() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let refused = |objects: &Arc<dyn Objects>| {
        let error = StoreReader::open_shared(Arc::clone(objects), small()).map(drop).unwrap_err();
        let BackendError::Storage(error) = error else { panic!("{error}") };
        assert!(matches!(error.downcast_ref(), Some(StoreError::NoChain)), "{error}");
    };
    refused(&objects);
    let publisher = Publisher::begin(&objects);
    refused(&objects);
    drop(publisher);
}

#[test]
fn a_snapshot_of_a_shared_store_is_complete() {
    let mut chain = Random(9).chain(50);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), small_store(20)).unwrap();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut publisher = Publisher::begin(&objects);
    publisher.publish_runs(&store);
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    publisher.commit(&store);
    publisher.publish_runs(&store);
    let ancestor = chain.head().header.header.number - 2;
    let mut other = chain.up_to(ancestor);
    Random(10).extend(&mut other, 4);
    store.switch(ancestor, other.above(ancestor)).unwrap();
    chain = other;
    publisher.commit(&store);
    let before = objects.list("runs", None).unwrap();

    let mut snapshot =
        Store::open_shared_snapshot(Arc::clone(&objects), Options::default(), &Context::unbounded()).unwrap();
    check_view(&*snapshot.view().unwrap(), &chain);
    assert_eq!(snapshot.stats().unwrap().head, chain.head().header.block_ref());
    let context = node_core::context::Context::unbounded();
    let verified = snapshot.verify(Default::default(), &context, &crate::tests::OneSender, |_| ()).unwrap();
    assert_eq!((verified.head, verified.difference), (chain.head().header.block_ref(), None));
    let copy = folder.path().join("copy");
    snapshot.backup(&copy, &context, |_| ()).unwrap();
    check_view(&*Store::open_existing(&copy, Options::default()).unwrap().view().unwrap(), &chain);
    assert_eq!(objects.list("runs", None).unwrap(), before);
}

#[test]
fn an_outage_is_reported_and_over_when_it_is() {
    let mut chain = Random(11).chain(30);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), small_store(10)).unwrap();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut publisher = Publisher::begin(&objects);
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    publisher.publish_runs(&store);
    publisher.commit(&store);
    let faulty = Arc::new(FaultyObjects::new(objects, 0, Rates::default()));
    let retry = RetryPolicy { deadline: Duration::from_millis(100), ..SharedOptions::default().retry };
    let options = SharedOptions { retry, ..small() };
    let reader = StoreReader::open_shared(Arc::clone(&faulty) as _, options).unwrap();
    assert_eq!(reader.health().read_failure, None);
    let old = chain.clone();
    let head = chain.head().header.header.number;
    Random(12).extend(&mut chain, 20);
    chain.above(head).into_iter().for_each(|block| store.append(block).unwrap());
    publisher.commit(&store);
    publisher.publish_runs(&store);

    faulty.set_rates(Rates { failed: 100, ..Rates::default() });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        reader.refresh().unwrap_err();
    }
    assert_eq!(reader.view().unwrap().head(), old.head().header.block_ref());
    assert!(reader.health().read_failure.unwrap().contains("503 Slow Down"));
    // Some requests succeed.
    faulty.set_rates(Rates { failed: 60, ..Rates::default() });
    for _ in 0..20 {
        let _ = reader.refresh();
    }
    faulty.set_rates(Rates::default());
    reader.refresh().unwrap();
    check(&reader, &chain);
    assert_eq!(reader.health().read_failure, None);
}

#[test]
fn a_reader_that_hears_nothing_of_the_writer_is_late() {
    let chain = Random(13).chain(5);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), small_store(10)).unwrap();
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let clock = Arc::new(ManualClock::at(SystemClock.now_millis() - 60_000));
    let mut publisher = Publisher::begin_at(&objects, clock);
    publisher.publish_runs(&store);
    publisher.commit(&store);
    for (max_lag, is_late) in [(None, false), (Some(3_600), false), (Some(50), true)] {
        let options = SharedOptions { max_lag: max_lag.map(Duration::from_secs), ..small() };
        let reader = StoreReader::open_shared(Arc::clone(&objects), options).unwrap();
        let failure = reader.health().read_failure;
        assert_eq!(failure.is_some_and(|reason| reason.contains("`max-lag`")), is_late, "{max_lag:?}");
        assert!((60..600).contains(&reader.lag().as_secs()));
    }
}
