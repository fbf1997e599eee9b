//! Damaged files: every query returns the right result or an error, and nothing panics.

use super::queries::{Tally, ask};
use super::{cases, small};
use crate::files::faults::FaultyDisk;
use crate::store::Manifest;
use crate::wal::{WalError, WalOptions};
use crate::{Options, Store, StoreError, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{BackendError, MemoryBackend, Record, RecordKind, RecordWrite, StateBackend};
use proptest::prelude::*;

/// A store on a disk, and its expected content.
struct Fixture {
    disk: FaultyDisk,
    chain: TestChain,
    reference: MemoryBackend,
}

/// Returns whether a file of this name is a run or the manifest, which are needed.
fn is_needed(name: &str) -> bool {
    name.starts_with("run-") || name.starts_with("manifest-")
}

/// Returns options with a cache that is too small for a page, so that every read reaches the disk.
fn options() -> Options {
    Options { cache_bytes: 0, ..small(10, SyncPolicy::Always) }
}

impl Fixture {
    /// Creates a store that was closed, or killed while the newest blocks were only in the log.
    fn new(seed: u64, blocks: u64, killed: bool) -> Self {
        let random = &mut Random(seed);
        let chain = random.chain(blocks);
        let genesis = chain.blocks()[0].clone();
        let disk = FaultyDisk::new();
        let store = Store::open_in(disk.folder(), genesis.clone(), options()).unwrap();
        let reference = MemoryBackend::new(genesis).unwrap();
        for block in chain.above(0) {
            store.append(block.clone()).unwrap();
            reference.append(block).unwrap();
        }
        for key in 0..3 {
            store.write_records(&[put(key)]).unwrap();
        }
        store.wait_for_merges();
        if killed {
            disk.kill();
        }
        drop(store);
        disk.kill();
        Self { disk, chain, reference }
    }

    fn open(&self) -> Result<Store, BackendError> {
        Store::open_in(self.disk.folder(), self.chain.blocks()[0].clone(), options())
    }

    /// Opens the store, if possible, and queries it for everything.
    fn ask(&self) -> Result<Tally, BackendError> {
        let store = match self.open() {
            Ok(store) => store,
            Err(error @ BackendError::Storage(_)) => return Err(error),
            Err(error) => panic!("{error:?}"),
        };
        let records: Vec<_> = store.records(RecordKind::Filter).unwrap().into_iter().map(|record| record.key).collect();
        assert_eq!(records, [[0], [1], [2]]);
        let tally = ask(&*store.view().unwrap(), &*self.reference.view().unwrap(), 0, 7);
        // Bytes that could not be read must not be written.
        self.disk.kill();
        Ok(tally)
    }

    /// Returns whether the damage is detected.
    fn is_noticed(&self) -> bool {
        self.ask().map_or(true, |tally| tally.refused > 0)
    }

    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.disk.names().into_iter();
        names.filter_map(|name| Some((name.clone(), self.disk.content(&name)?))).collect()
    }

    fn restore(&self, contents: &[(String, Vec<u8>)]) {
        self.disk.kill();
        self.disk.names().iter().for_each(|name| self.disk.delete(name));
        contents.iter().for_each(|(name, bytes)| self.disk.put(name, bytes.clone()));
    }

    /// Checks that the store opens, has everything and accepts changes.
    fn assert_whole(&self) {
        let store = self.open().unwrap();
        check_view(&*store.view().unwrap(), &self.chain);
        let mut longer = self.chain.up_to(self.chain.head().header.header.number);
        Random(9).extend(&mut longer, 25);
        longer.above(self.chain.head().header.header.number).into_iter().for_each(|block| store.append(block).unwrap());
        check_view(&*store.view().unwrap(), &longer);
        self.disk.kill();
    }
}

fn put(key: u8) -> RecordWrite {
    RecordWrite::Put(RecordKind::Filter, Record { key: vec![key], value: vec![7; 10] })
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn flipped_bits_never_give_wrong_results(seed: u64, killed: bool) {
        let fixture = Fixture::new(seed, 80, killed);
        let contents = fixture.contents();
        let random = &mut Random(seed);
        for (name, bytes) in contents.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            for flips in [1, 1, 1, 8, 200] {
                for _ in 0..flips {
                    fixture.disk.flip_bit(name, random.below(bytes.len() as u64 * 8) as usize);
                }
                let _ = fixture.ask();
                fixture.restore(&contents);
            }
            // Bytes of another place in the file.
            let mut damaged = bytes.clone();
            let [from, to] = [0; 2].map(|_| random.below(bytes.len() as u64) as usize);
            let length = (1 + random.below(5000) as usize).min(bytes.len() - from.max(to));
            damaged.copy_within(from..from + length, to);
            fixture.disk.put(name, damaged);
            let _ = fixture.ask();
            fixture.restore(&contents);
        }
        fixture.assert_whole();
    }
}

#[test]
fn detects_any_flipped_bit_of_a_run() {
    let fixture = Fixture::new(1, 80, false);
    let contents = fixture.contents();
    let (mut noticed, mut tried) = (0, 0);
    for (name, bytes) in contents.iter().filter(|(name, _)| name.starts_with("run-")) {
        for bit in (0..bytes.len() * 8).step_by(bytes.len() + 1) {
            fixture.disk.flip_bit(name, bit);
            tried += 1;
            noticed += u64::from(fixture.is_noticed());
            fixture.restore(&contents);
        }
    }
    // The others are in data that no query needs, such as the changes of blocks.
    assert!(noticed * 2 > tried, "{noticed} of {tried}");
}

#[test]
fn a_folder_that_cannot_be_opened_remains_unchanged() {
    // The last five blocks are in the log, and applying them reads the tries in runs.
    let fixture = Fixture::new(2, 85, true);
    let contents = fixture.contents();
    let mut refused = 0;
    for (name, bytes) in contents.iter().filter(|(name, _)| name.starts_with("run-")) {
        for bit in (0..bytes.len() * 8).step_by(501) {
            fixture.disk.flip_bit(name, bit);
            let damaged = fixture.contents();
            if fixture.open().is_err() {
                refused += 1;
                assert_eq!(fixture.contents(), damaged, "bit {bit} of {name}");
            }
            fixture.restore(&contents);
        }
    }
    assert!(refused > 0);
}

#[test]
fn rejects_runs_older_than_the_log() {
    let random = &mut Random(3);
    let chain = random.chain(200);
    let genesis = chain.blocks()[0].clone();
    let disk = FaultyDisk::new();
    let options = Options { log: WalOptions { segment_bytes: 1, ..options().log }, ..options() };
    let store = Store::open_in(disk.folder(), genesis.clone(), options).unwrap();
    let blocks = chain.above(0);
    let (early, late) = blocks.split_at(100);
    early.iter().for_each(|block| store.append(block.clone()).unwrap());
    store.flush().unwrap();
    let present = || -> Vec<_> {
        let names = disk.names().into_iter().filter(|name| is_needed(name));
        names.map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
    };
    let earlier = present();
    late.iter().for_each(|block| store.append(block.clone()).unwrap());
    store.flush().unwrap();
    disk.kill();
    drop(store);
    for files in [&earlier[..], &[]] {
        // An earlier copy of the runs and the manifest, and none.
        present().iter().for_each(|(name, _)| disk.delete(name));
        files.iter().for_each(|(name, bytes)| disk.put(name, bytes.clone()));
        let refused = Store::open_in(disk.folder(), genesis.clone(), options).err();
        let Some(BackendError::Storage(error)) = refused else { panic!("{refused:?}") };
        let error = error.downcast::<StoreError>().unwrap();
        assert!(matches!(*error, StoreError::Log(WalError::Missing { .. })), "{error:?}");
    }
}

#[test]
fn rejects_truncated_files_unless_the_lost_bytes_are_not_needed() {
    for killed in [false, true] {
        let fixture = Fixture::new(4, 60, killed);
        let contents = fixture.contents();
        let random = &mut Random(5);
        for (name, bytes) in contents.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let edges = [0, 1, 4096, 8192, bytes.len() - 4096.min(bytes.len()), bytes.len() - 1];
            let sizes: Vec<_> =
                edges.into_iter().chain((0..8).map(|_| random.below(bytes.len() as u64) as usize)).collect();
            for size in sizes.into_iter().filter(|size| *size < bytes.len()) {
                fixture.disk.truncate(name, size);
                let asked = fixture.ask();
                // One of two copies of the manifest is enough, and the log replaces the first manifest.
                let is_needed = name.starts_with("run-");
                assert!(!is_needed || asked.is_err(), "{name} of {size} bytes");
                fixture.restore(&contents);
            }
        }
        fixture.assert_whole();
    }
}

#[test]
fn rejects_missing_files_unless_they_are_not_needed() {
    for killed in [false, true] {
        let fixture = Fixture::new(6, 60, killed);
        let contents = fixture.contents();
        let manifest = Manifest::read(&*fixture.disk.folder()).unwrap().unwrap();
        let listed: Vec<_> = manifest.numbered.iter().chain(&manifest.keyed).map(|run| run.id.file_name()).collect();
        // A complete log replaces the manifest. A run that was merged may not have been removed yet.
        let has_whole_log = contents.iter().any(|(name, _)| *name == "wal-00000000000000000001.log");
        let is_needed = |name: &String| listed.contains(name) || !has_whole_log && name.starts_with("manifest-");
        for (name, bytes) in &contents {
            for emptied in [false, true] {
                if emptied {
                    fixture.disk.put(name, Vec::new());
                } else {
                    fixture.disk.delete(name);
                }
                match fixture.ask() {
                    Err(_) => assert!(!bytes.is_empty(), "{name}"),
                    Ok(tally) => {
                        assert_eq!(tally.refused, 0, "{name}");
                        assert!(!is_needed(name), "{name}");
                        fixture.assert_whole();
                    }
                }
                fixture.restore(&contents);
            }
        }
    }
}

#[test]
fn a_complete_log_replaces_missing_runs() {
    let fixture = {
        let chain = Random(7).chain(8);
        let genesis = chain.blocks()[0].clone();
        let disk = FaultyDisk::new();
        let store = Store::open_in(disk.folder(), genesis.clone(), options()).unwrap();
        chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
        disk.kill();
        drop(store);
        Fixture { disk, chain, reference: MemoryBackend::new(genesis).unwrap() }
    };
    for name in fixture.disk.names().iter().filter(|name| is_needed(name)) {
        fixture.disk.delete(name);
    }
    // More than once, because entries that are read from the log must not count as stored in runs.
    for _ in 0..2 {
        check_view(&*fixture.open().unwrap().view().unwrap(), &fixture.chain);
        fixture.disk.kill();
    }
    drop(fixture.open().unwrap());
    fixture.disk.kill();
    fixture.assert_whole();
}
