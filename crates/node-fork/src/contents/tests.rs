//! The file after kills, power failures and damage.

use super::*;
use crate::history::{encode_block, encode_receipts};
use node_core::backend::suite::Random;
use node_store::files::faults::FaultyDisk;
use node_store::files::{DiskFolder, MemoryFolder, ReadOnlyFolder};

fn options() -> ForkOptions {
    ForkOptions::default()
}

fn open(disk: &FaultyDisk) -> Contents {
    Contents::open(disk.folder(), &options()).unwrap()
}

/// The node with a number.
fn node(n: u64) -> (Kind, H256, Bytes) {
    let bytes = n.to_be_bytes().repeat(1 + (n % 40) as usize);
    (Kind::Node, keccak256(&bytes), bytes.into())
}

fn nodes(range: std::ops::Range<u64>) -> Vec<(Kind, H256, Bytes)> {
    range.map(node).collect()
}

/// The parts of a block with transactions.
fn block() -> Vec<(Kind, H256, Bytes)> {
    let chain = Random(1).chain(12);
    let block = chain.blocks().iter().max_by_key(|block| block.body.transactions.len()).unwrap();
    let header = &block.header.header;
    let parts = [
        (Kind::Header, rlp::encode(header).to_vec()),
        (Kind::Block, encode_block(header, &block.body)),
        (Kind::Receipts, encode_receipts(&block.receipts)),
    ];
    parts.map(|(kind, content)| (kind, block.header.hash, content.into())).to_vec()
}

/// Returns how many of some contents are known, after checking that they are right.
fn known(contents: &Contents, all: &[(Kind, H256, Bytes)]) -> usize {
    let is_known = |(kind, key, content): &&(Kind, H256, Bytes)| {
        let read = contents.get(*kind, *key).unwrap();
        assert!(read.is_none() || read.as_ref() == Some(content));
        read.is_some()
    };
    all.iter().filter(is_known).count()
}

#[test]
fn contents_are_known_after_opening_again() {
    let temporary = tempfile::tempdir().unwrap();
    let folders: [Box<dyn Fn() -> Arc<dyn Folder>>; 2] = {
        let memory: Arc<dyn Folder> = Arc::new(MemoryFolder::default());
        let path = temporary.path().to_owned();
        [Box::new(move || Arc::clone(&memory)), Box::new(move || Arc::new(DiskFolder::open(&path).unwrap()))]
    };
    for folder in folders {
        let all = [nodes(0..300), block()].concat();
        for part in [0..100, 100..200, 0..all.len()] {
            let contents = Contents::open(folder(), &options()).unwrap();
            contents.add(all[part].to_vec());
        }
        let contents = Contents::open(folder(), &options()).unwrap();
        assert_eq!(known(&contents, &all), all.len());
        let stats = contents.stats();
        assert_eq!((stats.entries, stats.nodes, stats.blocks, stats.damaged), (all.len() as u64, 300, 1, 0));
        // The same key of another kind.
        assert_eq!(contents.get(Kind::Code, all[0].1).unwrap(), None);
        let copy = MemoryFolder::default();
        drop(contents);
        assert_eq!(Contents::copy(&*folder(), &copy).unwrap(), stats.bytes);
        let copy = Contents::open(Arc::new(copy), &options()).unwrap();
        assert_eq!(known(&copy, &all), all.len());
        let checked = copy.check().unwrap();
        assert_eq!((checked.entries, checked.damaged), (stats.entries, 0));
    }
}

#[test]
fn contents_are_read_and_copied_while_another_process_adds_to_them() {
    let path = tempfile::tempdir().unwrap();
    let read_only = || Arc::new(ReadOnlyFolder::open(path.path()).unwrap());
    assert!(Contents::open_read_only(read_only(), &options()).is_err());
    let (early, late) = (nodes(0..50), nodes(50..90));
    let contents = Contents::open(Arc::new(DiskFolder::open(path.path()).unwrap()), &options()).unwrap();
    contents.add(early.clone());
    let file = path.path().join(FILE);
    let added = std::fs::read(&file).unwrap();
    // As far as the other process may have come with what it is writing.
    for cut in [0, 1, FRAME_HEADER - 1, FRAME_HEADER, FRAME_HEADER + 7] {
        let torn = &whole_frames(&late)[..cut];
        std::fs::write(&file, [&added, torn].concat()).unwrap();
        let reader = Contents::open_read_only(read_only(), &options()).unwrap();
        assert_eq!((known(&reader, &early), reader.stats().damaged), (50, 0));
        assert_eq!(reader.check().unwrap().entries, 50);
        // It keeps what it is given, but not in the file.
        reader.add(late.clone());
        assert_eq!(known(&reader, &late), 40);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), (added.len() + cut) as u64);
        let copy = Arc::new(MemoryFolder::default());
        Contents::copy(&*read_only(), &*copy).unwrap();
        let copy = Contents::open(copy, &options()).unwrap();
        assert_eq!((known(&copy, &early), known(&copy, &late), copy.stats().damaged), (50, 0, 0));
    }
}

/// The frames of some contents, with checksums of another file.
fn whole_frames(all: &[(Kind, H256, Bytes)]) -> Vec<u8> {
    let other = Arc::new(MemoryFolder::default());
    Contents::open(other.clone(), &options()).unwrap().add(all.to_vec());
    let file = other.open(FILE).unwrap();
    let mut bytes = vec![0; (file.size().unwrap() - FILE_HEADER) as usize];
    file.read_at(FILE_HEADER, &mut bytes).unwrap();
    bytes
}

#[test]
fn what_may_change_is_replaced() {
    let disk = FaultyDisk::new();
    let (key, contents) = (H256::repeat_byte(1), open(&disk));
    for kind in [Kind::ClaimedAncestor, Kind::Receipts] {
        for value in [1, 2, 2] {
            contents.add(vec![(kind, key, vec![value; 40].into())]);
        }
    }
    drop(contents);
    disk.kill();
    let contents = open(&disk);
    assert_eq!(contents.get(Kind::ClaimedAncestor, key).unwrap(), Some(vec![2; 40].into()));
    assert_eq!(contents.get(Kind::Receipts, key).unwrap(), Some(vec![1; 40].into()));
    assert_eq!(contents.stats().bytes, FILE_HEADER + 3 * (FRAME_HEADER as u64 + 40));
}

#[test]
fn a_write_that_a_kill_cut_is_removed() {
    let disk = FaultyDisk::new();
    let all = nodes(0..30);
    all.iter().for_each(|content| open(&disk).add(vec![content.clone()]));
    let whole = disk.content(FILE).unwrap();
    for length in 0..whole.len() {
        disk.put(FILE, whole[..length].to_vec());
        let contents = open(&disk);
        let mut end = FILE_HEADER as usize;
        let count = all.iter().take_while(|(.., content)| {
            end += FRAME_HEADER + content.len();
            end <= length
        });
        assert_eq!(known(&contents, &all), count.count(), "the first {length} bytes");
        contents.add(all.clone());
        disk.kill();
        let contents = open(&disk);
        assert_eq!((known(&contents, &all), contents.stats().damaged), (all.len(), 0));
    }
}

#[test]
fn damage_affects_one_entry_which_is_added_again() {
    let disk = FaultyDisk::new();
    let all = [nodes(0..12), block()].concat();
    open(&disk).add(all.clone());
    let whole = disk.content(FILE).unwrap();
    for byte in FILE_HEADER as usize..whole.len() {
        disk.put(FILE, whole.clone());
        disk.flip_bit(FILE, 8 * byte + byte % 8);
        let contents = open(&disk);
        // Damage at the end is taken for a cut write.
        assert_eq!(known(&contents, &all), all.len() - 1, "byte {byte}");
        contents.add(all.clone());
        assert_eq!(known(&contents, &all), all.len());
        disk.kill();
        // Another program that finds it by a check.
        disk.put(FILE, whole.clone());
        disk.flip_bit(FILE, 8 * byte + byte % 8);
        let contents = open(&disk);
        let (found, checked) = (contents.stats().entries, contents.check().unwrap());
        assert_eq!((checked.entries, checked.entries + checked.damaged), (all.len() as u64 - 1, found));
        assert_eq!(contents.check().unwrap().damaged, 0);
        disk.kill();
    }
    for byte in 0..FILE_HEADER as usize {
        disk.put(FILE, whole.clone());
        disk.flip_bit(FILE, 8 * byte);
        let error = Contents::open(disk.folder(), &options()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_power_failure_loses_only_what_was_not_synced() {
    for seed in 0..200 {
        let disk = FaultyDisk::new();
        let contents = open(&disk);
        let (kept, lost) = (nodes(0..40), nodes(40..80));
        kept.chunks(7).for_each(|some| contents.add(some.to_vec()));
        contents.sync().unwrap();
        lost.chunks(7).for_each(|some| contents.add(some.to_vec()));
        disk.crash(seed);
        let contents = open(&disk);
        assert_eq!(known(&contents, &kept), kept.len(), "seed {seed}");
        known(&contents, &lost);
        contents.add(lost.clone());
        disk.kill();
        let contents = open(&disk);
        assert_eq!(known(&contents, &[kept, lost].concat()), 80);
        // A crash while the file is created.
        let disk = FaultyDisk::new();
        disk.fail_operation(seed % 6);
        let _ = Contents::open(disk.folder(), &options());
        disk.fail_nothing();
        disk.crash(seed);
        open(&disk);
    }
}

#[test]
fn what_exceeds_the_limit_is_only_cached() {
    for folder in [FaultyDisk::new().folder(), Arc::new(MemoryFolder::default())] {
        let options = ForkOptions { contents_bytes: 1_000, ..options() };
        let contents = Contents::open(Arc::clone(&folder), &options).unwrap();
        let all = nodes(0..100);
        contents.add(all.clone());
        assert_eq!(known(&contents, &all), all.len());
        assert!(contents.stats().bytes <= 1_000);
        contents.sync().unwrap();
        let again = Contents::open(folder, &options).unwrap();
        assert!((1..20).contains(&known(&again, &all)));
        let small = ForkOptions { contents_bytes: 0, cache_bytes: 4_096, ..options };
        let contents = Contents::open(Arc::new(MemoryFolder::default()), &small).unwrap();
        contents.add(nodes(0..10_000));
        assert!(contents.cache_use().bytes <= 4_096);
    }
}

#[test]
fn failed_writes_and_syncs_lose_nothing_that_was_promised() {
    let disk = FaultyDisk::new();
    let contents = open(&disk);
    contents.add(nodes(0..10));
    disk.set_capacity(Some(disk.used() + 100));
    contents.add(nodes(10..20));
    assert_eq!(known(&contents, &nodes(0..20)), 20);
    disk.set_capacity(None);
    contents.add(nodes(20..30));
    contents.sync().unwrap();
    let syncs = disk.syncs();
    contents.sync().unwrap();
    assert_eq!(disk.syncs(), syncs, "nothing was added");
    disk.crash(0);
    let contents = open(&disk);
    assert_eq!(known(&contents, &[nodes(0..10), nodes(20..30)].concat()), 20);

    contents.add(nodes(30..40));
    disk.fail_operation(0);
    assert!(contents.sync().is_err());
    // The operating system may report success now, although the bytes are lost.
    assert!(contents.sync().is_err());
}
