//! Reading a folder that another process writes.

use super::small;
use crate::{Options, Store, StoreReader, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend};
use node_core::block::BlockRef;
use node_core::sources::Sources;
use parking_lot::Mutex;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Applies changes to a list of blocks, as a client that follows the head does.
#[derive(Default)]
struct Follower(Mutex<Vec<BlockRef>>);

impl HeadListener for Follower {
    fn head_changed(&self, change: &HeadChange) {
        let mut blocks = self.0.lock();
        for removed in &change.removed {
            assert_eq!(blocks.pop().as_ref(), Some(removed));
        }
        blocks.extend(change.added.iter().copied());
    }
}

fn following(reader: &StoreReader, chain: &TestChain) -> Arc<Follower> {
    let blocks = chain.blocks().iter().map(|block| block.header.block_ref()).collect();
    let follower = Arc::new(Follower(Mutex::new(blocks)));
    reader.subscribe(follower.clone());
    follower
}

fn check(reader: &StoreReader, chain: &TestChain) {
    assert_eq!(reader.view().unwrap().head(), chain.head().header.block_ref());
    check_view(&*reader.view().unwrap(), chain);
}

#[test]
fn sees_every_durable_change_and_keeps_older_views() {
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let mut chain = random.chain(3);
        let options = small(60, SyncPolicy::Always);
        let open = |chain: &TestChain| Store::open(folder.path(), chain.blocks()[0].clone(), options).unwrap();
        let mut store = open(&chain);
        chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
        let reader = StoreReader::open(folder.path(), Options::default()).unwrap();
        check(&reader, &chain);
        let follower = following(&reader, &chain);
        let mut seen = chain.clone();
        for step in 0..40 {
            let (old, view) = (seen.clone(), reader.view().unwrap());
            match random.below(8) {
                0 => {
                    let (ancestor, other) = random.branch(&chain, 4);
                    store.switch(ancestor, other.above(ancestor)).unwrap();
                    chain = other;
                }
                1 => store.flush().unwrap(),
                2 => {
                    drop(store);
                    store = open(&chain);
                }
                _ => {
                    let head = chain.head().header.header.number;
                    random.extend(&mut chain, 1);
                    chain.above(head).into_iter().for_each(|block| store.append(block).unwrap());
                }
            }
            if random.below(3) == 0 {
                // The reader looks only now and then.
                reader.refresh().unwrap();
                check(&reader, &chain);
                let heads = chain.blocks().iter().map(|block| block.header.block_ref()).collect::<Vec<_>>();
                assert_eq!(*follower.0.lock(), heads, "seed {seed}, step {step}");
                check_view(&*view, &old);
                seen = chain.clone();
            }
        }
    }
}

#[test]
fn changes_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Random(1).chain(5);
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), small(60, SyncPolicy::Always)).unwrap();
    let put = |kind, value: &[u8]| RecordWrite::Put(kind, Record { key: vec![1], value: value.to_vec() });
    store.write_records(&[put(RecordKind::ChainId, b"id"), put(RecordKind::Filter, b"theirs")]).unwrap();
    chain.above(0)[..4].iter().for_each(|block| store.append(block.clone()).unwrap());
    drop(store);
    fs::remove_file(folder.path().join("lock")).unwrap();

    let state = |path: &Path| {
        let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|file| (fs::read(&file).unwrap(), file)).collect::<Vec<_>>()
    };
    let before = state(folder.path());
    let reader = StoreReader::open(folder.path(), Options::default()).unwrap();
    check(&reader, &chain.up_to(4));
    assert!(reader.append(chain.above(4)[0].clone()).is_err());
    assert!(reader.switch(2, Vec::new()).is_err());
    // What the process itself records is in its memory, apart from the writer's.
    assert_eq!(reader.records(RecordKind::Filter).unwrap(), []);
    assert_eq!(reader.record(RecordKind::ChainId, &[1]).unwrap().as_deref(), Some(&b"id"[..]));
    reader.write_records(&[put(RecordKind::Filter, b"ours")]).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.record(RecordKind::Filter, &[1]).unwrap().as_deref(), Some(&b"ours"[..]));
    drop(reader);
    assert!(state(folder.path()) == before);
    assert!(StoreReader::open(folder.path().join("none"), Options::default()).is_err());
}

#[test]
fn a_folder_that_takes_the_place_is_read_and_one_that_is_gone_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let [path, moved] = ["data", "moved"].map(|name| root.path().join(name));
    let mut random = Random(3);
    let chain = random.chain(4);
    let mut other = chain.up_to(2);
    random.extend(&mut other, 5);
    let write = |path: &Path, chain: &TestChain| {
        let store = Store::open(path, chain.blocks()[0].clone(), small(60, SyncPolicy::Always)).unwrap();
        chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    };
    write(&path, &chain);
    let reader = StoreReader::open(&path, Options::default()).unwrap();
    let follower = following(&reader, &chain);
    fs::rename(&path, &moved).unwrap();
    assert!(reader.refresh().is_err());
    check(&reader, &chain);
    // Not a failure yet: the next look may succeed.
    assert_eq!(reader.health().failed_reads, 0);
    let foreign = Random(4).chain(6);
    write(&path, &foreign);
    let refused = Sources(&reader.refresh().unwrap_err()).to_string();
    assert!(refused.contains("the folder holds a chain with genesis"), "{refused}");
    check(&reader, &chain);
    fs::remove_dir_all(&path).unwrap();
    write(&path, &other);
    reader.refresh().unwrap();
    check(&reader, &other);
    assert_eq!(follower.0.lock().len(), other.blocks().len());
}

#[test]
fn a_thread_keeps_up_with_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    let chain = random.chain(400);
    let store = Store::open(folder.path(), chain.blocks()[0].clone(), small(200, SyncPolicy::OnDemand)).unwrap();
    let reader = Arc::new(StoreReader::open(folder.path(), Options::default()).unwrap());
    let follower = following(&reader, &chain.up_to(0));
    let refreshing = reader.refresh_every(Duration::from_millis(1)).unwrap();
    for (index, block) in chain.above(0).into_iter().enumerate() {
        store.append(block).unwrap();
        if index % 10 == 0 {
            store.sync().unwrap();
            let head = reader.view().unwrap().head();
            assert!(chain.blocks()[head.number as usize].header.block_ref() == head);
        }
    }
    store.sync().unwrap();
    while reader.view().unwrap().head().number < 400 {
        thread::sleep(Duration::from_millis(1));
    }
    check(&reader, &chain);
    assert!(reader.lag() < Duration::from_secs(5));
    drop(refreshing);
    assert_eq!(follower.0.lock().len(), 401);
    drop(store);
    reader.refresh().unwrap();
    check(&reader, &chain);
}
