//! Folders that cannot be opened.

use super::small;
use crate::files::faults::FaultyDisk;
use crate::journal;
use crate::store::seal_manifest;
use crate::wal::WalOptions;
use crate::{BASE_FOLDER, Options, Store, StoreError, SyncPolicy};
use node_core::backend::suite::{Random, TestChain, check_view};
use node_core::backend::{BackendError, StateBackend};
use node_core::sources::Sources;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

fn store_error(result: Result<Store, BackendError>) -> StoreError {
    match result.err() {
        Some(BackendError::Storage(error)) => *error.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_can_be_opened_by_one_process_only() {
    let folder = tempfile::tempdir().unwrap();
    let genesis = Random(1).chain(0).head().clone();
    let open = || Store::open(folder.path(), genesis.clone(), Options::default());
    let first = open().unwrap();
    let Some(BackendError::Locked { path }) = open().err() else { panic!("it is opened twice") };
    assert_eq!(path, folder.path().canonicalize().unwrap());
    drop(first);
    open().unwrap();
}

#[test]
fn a_chain_is_not_created_among_other_files() {
    let root = tempfile::tempdir().unwrap();
    let genesis = Random(1).chain(0).head().clone();
    let open = |path: &Path| Store::open(path, genesis.clone(), Options::default());
    let names = |path: &Path| fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    for other in ["notes.txt", ".profile", "a\u{301}"] {
        let path = root.path().join("folder");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(other), "").unwrap();
        let refused = store_error(open(&path));
        assert!(matches!(&refused, StoreError::OtherFiles { file } if file == other), "{refused:?}");
        assert!(refused.to_string().contains(other), "{refused}");
        assert!(matches!(store_error(Store::open_existing(&path, Options::default())), StoreError::OtherFiles { .. }));
        assert_eq!(names(&path), [other], "nothing was created");
        fs::remove_dir_all(&path).unwrap();
    }
    // A new volume, what an interrupted start leaves, and where the base of a fork is kept.
    for name in ["lost+found", "lock", "room", BASE_FOLDER] {
        let path = root.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::create_dir_all(path.join("lost+found")).unwrap();
        fs::write(path.join("lock"), "").unwrap();
        drop(open(&path).unwrap());
        // The chain stays usable if somebody adds a file.
        fs::write(path.join("notes.txt"), "").unwrap();
        drop(open(&path).unwrap());
    }
    // Runs whose manifest and log were not copied.
    let path = root.path().join("runs");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("run-000000000001.rows"), "rows").unwrap();
    assert!(matches!(store_error(open(&path)), StoreError::NoManifest));
    assert_eq!(fs::read(path.join("run-000000000001.rows")).unwrap(), b"rows");
}

#[test]
fn a_folder_that_cannot_be_read_is_not_one_without_a_chain() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| store_error(Store::open_snapshot(path, Options::default()));
    assert!(matches!(open(folder.path()), StoreError::NoChain));
    assert!(matches!(open(&folder.path().join("none")), StoreError::NoFolder));
    let run = folder.path().join("run-000000000001.rows");
    fs::write(&run, "").unwrap();
    assert!(matches!(open(folder.path()), StoreError::NoManifest));
    fs::remove_file(&run).unwrap();
    let store = Store::open(folder.path(), Random(1).chain(0).head().clone(), Options::default()).unwrap();
    store.flush().unwrap();
    drop(store);
    fs::remove_file(&run).unwrap();
    fs::create_dir(&run).unwrap();
    let error = open(folder.path());
    assert!(matches!(&error, StoreError::File(error) if error.to_string().contains("not a file")), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file);
    assert!(matches!(error, StoreError::File(_)), "{error:?}");
}

#[test]
fn says_what_to_do_if_files_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let genesis = Random(1).chain(0).head().clone();
    drop(Store::open(folder.path(), genesis, Options::default()).unwrap());
    let expected = [
        ("run-000000000001.rows", "run-000000000001.rows is missing; "),
        ("manifest-000000000001", "the folder has runs, but no manifest, which lists them; "),
        ("wal-00000000000000000001.log", "the log is missing: no file wal-….log is in the folder; "),
    ];
    for (name, expected) in expected {
        let path = folder.path().join(name);
        let content = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let text = Sources(&store_error(Store::open_existing(folder.path(), Options::default()))).to_string();
        assert!(text.ends_with(&format!("{expected}restore a backup or import the chain again")), "{text}");
        fs::write(&path, content).unwrap();
    }
    Store::open_existing(folder.path(), Options::default()).unwrap();
}

#[test]
fn rejects_another_genesis() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = [1, 2].map(|seed| Random(seed).chain(0).head().clone());
    drop(Store::open(folder.path(), ours.clone(), Options::default()).unwrap());
    match store_error(Store::open(folder.path(), theirs.clone(), Options::default())) {
        StoreError::OtherGenesis { found, expected } => {
            assert_eq!((found, expected), (ours.header.hash, theirs.header.hash));
        }
        other => panic!("{other:?}"),
    }
    let later = Random(1).chain(1).head().clone();
    let refused = Store::open(folder.path(), later, Options::default()).err();
    assert!(matches!(refused, Some(BackendError::NotGenesis(_))), "{refused:?}");
    Store::open(folder.path(), ours, Options::default()).unwrap();
}

#[test]
fn rejects_another_layout() {
    let folder = tempfile::tempdir().unwrap();
    let genesis = Random(1).chain(0).head().clone();
    drop(Store::open(folder.path(), genesis.clone(), Options::default()).unwrap());
    // The magic number, and the layout as a varint.
    let content = [&b"NODE-MAN"[..], &[3]].concat();
    fs::write(folder.path().join("manifest-000000000099"), seal_manifest(99, content)).unwrap();
    let files = || -> BTreeMap<_, _> {
        let paths = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = files();
    for refused in [
        Store::open(folder.path(), genesis, Options::default()),
        Store::open_existing(folder.path(), Options::default()),
        Store::open_snapshot(folder.path(), Options::default()),
    ] {
        let refused = store_error(refused);
        assert!(matches!(refused, StoreError::UnsupportedLayout { found: 3, supported: 1 }), "{refused:?}");
        let text = refused.to_string();
        assert!(
            text.starts_with("the folder has storage layout 3, but this version supports only layout 1;"),
            "{text}"
        );
    }
    assert_eq!(files(), before);
}

#[test]
fn opening_can_be_repeated_after_a_genesis_with_a_wrong_root() {
    let disk = FaultyDisk::new();
    let chain = Random(3).chain(2);
    let mut wrong = chain.blocks()[0].clone();
    let mut sealed = (*wrong.header).clone();
    sealed.header.state_root = Default::default();
    wrong.header = sealed.into();
    let refused = Store::open_in(disk.folder(), wrong, Options::default()).err();
    assert!(matches!(refused, Some(BackendError::StateRootMismatch { block: 0, .. })), "{refused:?}");
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), Options::default()).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    check_view(&*store.view().unwrap(), &chain);
}

#[test]
fn closing_a_store_leaves_no_entries_in_the_log() {
    let disk = FaultyDisk::new();
    let chain: TestChain = Random(4).chain(50);
    let options = small(1000, SyncPolicy::Always);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), options).unwrap();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    drop(store);
    // A segment without entries is only a header.
    let folder = disk.folder();
    let is_segment = |name: &String| name.starts_with("wal-") && name.ends_with(".log");
    for name in folder.list().unwrap().iter().filter(|name| is_segment(name)) {
        assert!(folder.open(name).unwrap().size().unwrap() < 100, "{name}");
    }
    let store = Store::open_in(folder, chain.blocks()[0].clone(), options).unwrap();
    check_view(&*store.view().unwrap(), &chain);
    drop(store);

    let folder = disk.folder();
    folder.list().unwrap().iter().filter(|name| is_segment(name)).for_each(|name| folder.remove(name).unwrap());
    let refused = Store::open_in(folder, chain.blocks()[0].clone(), options).err().unwrap();
    assert_eq!(refused.source().unwrap().to_string(), "the write-ahead log failed");
}

#[test]
fn changing_the_policy_makes_earlier_changes_durable() {
    let disk = FaultyDisk::new();
    let chain: TestChain = Random(5).chain(30);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(1000, SyncPolicy::OnDemand)).unwrap();
    chain.above(0)[..20].iter().for_each(|block| store.append(block.clone()).unwrap());
    store.set_sync_policy(SyncPolicy::Always).unwrap();
    chain.above(20).into_iter().for_each(|block| store.append(block).unwrap());
    disk.crash(1);
    drop(store);
    let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), small(1000, SyncPolicy::Always)).unwrap();
    check_view(&*store.view().unwrap(), &chain);
}

#[test]
fn a_branch_too_large_for_an_entry_of_the_log_can_win() {
    let random = &mut Random(3);
    let chain = random.chain(4);
    let mut branch = chain.up_to(1);
    random.extend(&mut branch, 30);
    let disk = FaultyDisk::new();
    let options = small(100, SyncPolicy::Always);
    let blocks = chain.above(0).into_iter().chain(branch.above(1));
    let largest = blocks.map(|block| journal::side_block(&block).len()).max().unwrap();
    let log = WalOptions { payload_bytes: largest, ..options.log };
    let open = || Store::open_in(disk.folder(), chain.blocks()[0].clone(), Options { log, ..options }).unwrap();
    let store = open();
    chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
    let change = store.switch(1, branch.above(1)).unwrap();
    assert_eq!((change.removed.len(), change.added.len()), (3, 30));
    check_view(&*store.view().unwrap(), &branch);
    assert_eq!(store.health().failed_writes, 0);
    disk.crash(1);
    drop(store);
    check_view(&*open().view().unwrap(), &branch);
}
