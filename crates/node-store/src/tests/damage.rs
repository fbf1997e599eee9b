//! Damaged files: every query returns the right result or an error, and nothing panics.

use super::queries::{Tally, ask};
use super::{cases, small};
use crate::files::faults::FaultyDisk;
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

const DATABASE: &str = "chain.redb";
const CHECKSUMS: &str = "chain.sums";

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
    fn is_whole(&self) {
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
        fixture.is_whole();
    }
}

#[test]
fn detects_any_flipped_bit_of_a_page_in_use() {
    let fixture = Fixture::new(1, 80, false);
    let contents = fixture.contents();
    let pages = fixture.disk.content(DATABASE).unwrap();
    let (mut noticed, mut blocks) = (0, 0);
    for block in 1..pages.len() / 4096 {
        if pages[block * 4096..][..4096].iter().all(|byte| *byte == 0) {
            continue;
        }
        blocks += 1;
        fixture.disk.flip_bit(DATABASE, block * 4096 * 8 + block * 977 % (4096 * 8));
        noticed += u64::from(fixture.is_noticed());
        fixture.restore(&contents);
    }
    // The other pages are free, or hold data that no query needs.
    assert!(noticed * 3 > blocks, "{noticed} of {blocks} blocks");
}

#[test]
fn tolerates_any_flipped_bit_of_the_header() {
    for killed in [false, true] {
        let fixture = Fixture::new(2, 30, killed);
        let contents = fixture.contents();
        for bit in (0..540 * 8).step_by(97) {
            for (name, offset) in [(DATABASE, 0), (CHECKSUMS, 0), (CHECKSUMS, 4096)] {
                fixture.disk.flip_bit(name, offset * 8 + bit);
                let store = fixture.open().unwrap_or_else(|error| panic!("bit {bit} of {name}: {error:?}"));
                let view = store.view().unwrap();
                assert_eq!(view.head(), fixture.chain.head().header.block_ref(), "bit {bit} of {name} at {offset}");
                fixture.restore(&contents);
            }
        }
    }
}

#[test]
fn rejects_a_database_older_than_the_log() {
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
    let earlier = [DATABASE, CHECKSUMS].map(|name| (name, disk.content(name).unwrap()));
    late.iter().for_each(|block| store.append(block.clone()).unwrap());
    store.flush().unwrap();
    disk.kill();
    drop(store);
    for files in [&earlier[..], &[]] {
        // An earlier copy of the database, and none.
        [DATABASE, CHECKSUMS].into_iter().for_each(|name| disk.delete(name));
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
                // After the checksums in use there are some of blocks that are not in use.
                let is_needed = name == DATABASE || (name == CHECKSUMS && size <= 2 * 4096);
                assert!(!is_needed || asked.is_err(), "{name} of {size} bytes");
                fixture.restore(&contents);
            }
        }
        fixture.is_whole();
    }
}

#[test]
fn rejects_missing_files_unless_they_are_not_needed() {
    for killed in [false, true] {
        let fixture = Fixture::new(6, 60, killed);
        let contents = fixture.contents();
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
                        assert!(name != DATABASE && name != CHECKSUMS, "{name}");
                        fixture.is_whole();
                    }
                }
                fixture.restore(&contents);
            }
        }
    }
}

#[test]
fn a_complete_log_replaces_a_missing_database() {
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
    for name in [DATABASE, CHECKSUMS] {
        fixture.disk.delete(name);
    }
    // More than once, because entries that are read from the log must not count as stored in the database.
    for _ in 0..2 {
        check_view(&*fixture.open().unwrap().view().unwrap(), &fixture.chain);
        fixture.disk.kill();
    }
    drop(fixture.open().unwrap());
    fixture.disk.kill();
    fixture.is_whole();
}
