//! Copies of a folder while it is in use.

use super::crashes::{Runs, check};
use super::queries::ask;
use super::small;
use crate::files::faults::FaultyDisk;
use crate::store::{Failure, Older};
use crate::{BackupError, Options, Store, SyncPolicy};
use node_core::backend::suite::Random;
use node_core::backend::{MemoryBackend, Record, RecordKind, RecordWrite, StateBackend};
use node_core::context::{Context, Interrupted};
use node_core::sources::Sources;
use proptest::prelude::*;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Returns a record that is written before each block, with the number of the block.
fn counter(number: u64) -> RecordWrite {
    RecordWrite::Put(RecordKind::Filter, Record { key: b"next".to_vec(), value: number.to_be_bytes().to_vec() })
}

fn count(store: &Store) -> u64 {
    let records = store.records(RecordKind::Filter).unwrap();
    u64::from_be_bytes(records[0].value.clone().try_into().unwrap())
}

#[test]
fn a_copy_is_consistent_while_others_write() {
    copies_while_others_write(3, backed_up);
}

#[test]
fn a_snapshot_is_consistent_while_others_write() {
    copies_while_others_write(8, |store, folder, _| {
        let copy = Store::open_snapshot(folder.join("data"), small(4, SyncPolicy::Always)).unwrap();
        let head = copy.view().unwrap().head().number;
        // The log may have a block already that the store is about to show.
        assert!(store.view().unwrap().head().number + 1 >= head);
        (head, copy)
    });
}

/// Copies a store to a folder, and opens the copy. Returns the reported head, too.
fn backed_up(store: &Store, folder: &Path, name: &str) -> (u64, Store) {
    let mut last = None;
    let backup = store.backup(&folder.join(name), &Context::unbounded(), |progress| {
        assert!(progress.rows <= progress.of);
        last = Some(progress);
    });
    let backup = backup.unwrap();
    assert!(backup.rows > 0 && last.is_some_and(|last| last.rows <= backup.rows), "{backup:?}");
    assert!(!folder.join(format!("{name}.part")).exists());
    (backup.head.number, Store::open_existing(folder.join(name), small(4, SyncPolicy::Always)).unwrap())
}

/// Ends a thread when it is dropped, also by a failed assertion.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copies_while_others_write(times: u64, copy: impl Fn(&Store, &Path, &str) -> (u64, Store)) {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let mut chain = random.chain(0);
    let options = small(4, SyncPolicy::Always);
    let store = Store::open(folder.path().join("data"), chain.blocks()[0].clone(), options).unwrap();
    store.write_records(&[counter(0)]).unwrap();
    let done = AtomicBool::new(false);
    let mut copies = Vec::new();
    let chain = thread::scope(|scope| {
        let _ending = Ending(&done);
        let writer = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                random.extend(&mut chain, 1);
                let block = chain.head().clone();
                store.write_records(&[counter(block.header.header.number)]).unwrap();
                store.append(block).unwrap();
            }
            chain
        });
        for number in 0..times {
            let before = store.view().unwrap().head().number;
            copies.push((before, copy(&store, folder.path(), &format!("copy-{number}"))));
            while store.view().unwrap().head().number < before + 120 / times {
                thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    for (before, (reported, copy)) in copies {
        assert!(reported >= before, "{reported} after {before}");
        let view = copy.view().unwrap();
        let head = view.head().number;
        // The copy also has the changes between the moment of the head and the last entry.
        assert!(head >= reported, "{head} after {reported}");
        assert!((head..=head + 1).contains(&count(&copy)), "{head} and {}", count(&copy));
        let reference = MemoryBackend::new(chain.blocks()[0].clone()).unwrap();
        chain.up_to(head).above(0).into_iter().for_each(|block| reference.append(block).unwrap());
        assert_eq!(ask(&*view, &*reference.view().unwrap(), 0, 7).refused, 0);
        // The copy accepts the same changes as the original.
        copy.append(chain.above(head).remove(0)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn a_copy_has_everything(seed: u64, blocks_in_memory in 1u64..20) {
        let mut runs = Runs::new(seed, blocks_in_memory);
        let store = runs.open().unwrap();
        prop_assert!(runs.work(&store, 50).is_none());
        let copy = FaultyDisk::new();
        store.backup_in(copy.folder(), &Older::default(), &Context::unbounded(), |_| {}).unwrap();
        // Acknowledged changes are durable.
        copy.crash(seed);
        let copy = Store::open_in(copy.folder(), runs.genesis.clone(), runs.options).unwrap();
        check(&copy, &[&runs.expected]);
    }
}

#[test]
fn reports_a_full_disk() {
    let mut runs = Runs::new(3, 4);
    let store = runs.open().unwrap();
    assert!(runs.work(&store, 60).is_none());
    let mut refused = 0;
    for room in (0..).map(|step| step * 4_000) {
        let disk = FaultyDisk::new();
        disk.set_capacity(Some(room));
        match store.backup_in(disk.folder(), &Older::default(), &Context::unbounded(), |_| {}) {
            Ok(_) => break,
            Err(Failure::Write(error)) => {
                assert_eq!(error.io().map(io::Error::kind), Some(io::ErrorKind::StorageFull), "{error:?}");
                refused += 1;
            }
            Err(_) => panic!("with room for {room} bytes"),
        }
    }
    assert!(refused > 3, "{refused}");
    // The original still works.
    assert!(runs.work(&store, 10).is_none());
}

/// Returns a store in a subfolder, beside which copies can be stored.
fn disk_store(folder: &Path) -> Store {
    let chain = Random(1).chain(400);
    let options = small(4, SyncPolicy::OnDemand);
    let store = Store::open(folder.join("data"), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store
}

fn backup(store: &Store, dest: &Path) -> Result<(), BackupError> {
    store.backup(dest, &Context::unbounded(), |_| {}).map(drop)
}

#[test]
fn does_not_overwrite_folders_or_copy_a_folder_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let store = disk_store(path);
    fs::create_dir_all(path.join("full")).unwrap();
    fs::write(path.join("full/file"), "x").unwrap();
    for taken in ["full", "full/file", "data", "data/.."] {
        let refused = backup(&store, &path.join(taken)).unwrap_err();
        assert!(matches!(refused, BackupError::Exists { .. } | BackupError::Inside { .. }), "{taken}: {refused}");
    }
    std::os::unix::fs::symlink(path.join("data"), path.join("link")).unwrap();
    for inside in ["data/copy", "data/a/b", "link/copy", "full/../data/copy"] {
        let refused = backup(&store, &path.join(inside)).unwrap_err();
        assert!(matches!(refused, BackupError::Inside { .. }), "{inside}: {refused}");
    }
    assert!(!path.join("data/a").exists());
    fs::create_dir_all(path.join("other.part")).unwrap();
    fs::write(path.join("other.part/letter"), "x").unwrap();
    let refused = backup(&store, &path.join("other")).unwrap_err();
    assert!(matches!(&refused, BackupError::Foreign { file, .. } if file == "letter"), "{refused}");
    assert!(path.join("other.part/letter").exists());

    // An empty folder, a missing one, and one that a killed process left.
    fs::create_dir_all(path.join("empty")).unwrap();
    fs::create_dir_all(path.join("killed.part")).unwrap();
    fs::write(path.join("killed.part/run-000000000001.rows"), "half").unwrap();
    for free in ["empty", "a/b/c", "killed"] {
        backup(&store, &path.join(free)).unwrap();
        let copy = Store::open_existing(path.join(free), small(4, SyncPolicy::Always)).unwrap();
        assert_eq!(copy.view().unwrap().head().number, 400);
        assert!(!path.join(format!("{free}.part")).exists());
    }
}

#[test]
fn removes_a_cancelled_copy() {
    let folder = tempfile::tempdir().unwrap();
    let store = disk_store(folder.path());
    let dest = folder.path().join("copy");
    let context = Context::unbounded();
    let stopped = store.backup(&dest, &context, |_| context.cancel());
    assert!(matches!(stopped, Err(BackupError::Interrupted(Interrupted::Cancelled))), "{stopped:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // While a copy is made, a second one to the same destination fails, and the first is not affected.
    let mut second = None;
    store
        .backup(&dest, &Context::unbounded(), |_| {
            second.get_or_insert_with(|| backup(&store, &dest));
        })
        .unwrap();
    assert!(matches!(second, Some(Err(BackupError::Running { .. }))), "{second:?}");
    Store::open_existing(dest, small(4, SyncPolicy::Always)).unwrap();
}

/// Creates a store with 20 blocks, and returns its longest run.
fn longest_run(data: &Path, seed: u64) -> PathBuf {
    let chain = Random(seed).chain(20);
    let store = Store::open(data, chain.blocks()[0].clone(), small(4, SyncPolicy::Always)).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    store.flush().unwrap();
    store.wait_for_merges();
    let runs = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let runs = runs.filter(|path| path.extension().is_some_and(|end| end == "rows"));
    runs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn a_damaged_run_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (data, dest) = (folder.path().join("data"), folder.path().join("copy"));
    let run = longest_run(&data, 5);
    let mut bytes = fs::read(&run).unwrap();
    bytes[100] ^= 1;
    fs::write(&run, &bytes).unwrap();
    let store = Store::open_existing(&data, small(4, SyncPolicy::Always)).unwrap();
    let copied = store.backup(&dest, &Context::unbounded(), |_| {});
    assert!(matches!(copied, Err(BackupError::Read(_))), "{copied:?}");
    assert!(!dest.exists());
}

#[test]
fn a_run_of_another_store_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let run = longest_run(&data, 5);
    longest_run(&other, 6);
    fs::copy(other.join(run.file_name().unwrap()), &run).unwrap();
    let opened = Store::open_existing(&data, small(4, SyncPolicy::Always));
    let error = Sources(&opened.err().unwrap()).to_string();
    assert!(error.contains("but the manifest lists"), "{error}");
}

/// The number of names of each run in a folder.
fn names_of_runs(folder: &Path) -> Vec<(String, u64)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let mut runs: Vec<_> = files
        .map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().nlink()))
        .filter(|(name, _)| name.starts_with("run-"))
        .collect();
    runs.sort();
    runs
}

#[test]
fn a_copy_shares_unchanged_files_with_an_older_one() {
    let root = tempfile::tempdir().unwrap();
    let [data, first, second, third] = ["data", "copies/1", "copies/2", "copies/3"].map(|name| root.path().join(name));
    let mut chain = Random(21).chain(40);
    // Merging would replace files at any time.
    let options = Options { merge: false, ..small(4, SyncPolicy::Always) };
    let store = Store::open(&data, chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    let copy = |dest: &Path| store.backup(dest, &Context::unbounded(), |_| {}).unwrap();
    let open = |dest: &Path| Store::open_existing(dest, options).unwrap();
    assert_eq!(copy(&first).shared_bytes, 0);
    // Something else beside the backups.
    fs::write(root.path().join("copies/notes.txt"), "").unwrap();
    Random(22).extend(&mut chain, 1);
    store.append(chain.head().clone()).unwrap();
    let shared = copy(&second).shared_bytes;
    assert!(shared > 0);
    let links: Vec<_> = names_of_runs(&second).into_iter().map(|(_, names)| names).collect();
    assert!(links.contains(&2) && links.contains(&1), "{links:?}");
    assert!(names_of_runs(&data).iter().all(|(_, names)| *names == 1), "the chain itself shares nothing");

    // A file of an older copy that is damaged is not taken over.
    let (name, _) = names_of_runs(&second).swap_remove(0);
    let path = second.join(&name);
    let mut content = fs::read(&path).unwrap();
    content[10] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, content).unwrap();
    fs::remove_file(first.join(&name)).unwrap();
    copy(&third);
    assert_eq!(fs::read(third.join(&name)).unwrap(), fs::read(data.join(&name)).unwrap());
    // Each of them is complete without the others.
    fs::remove_dir_all(&first).unwrap();
    fs::remove_dir_all(&second).unwrap();
    let copied = open(&third);
    assert_eq!(copied.view().unwrap().head(), chain.head().header.block_ref());
    copied.flush().unwrap();
}
