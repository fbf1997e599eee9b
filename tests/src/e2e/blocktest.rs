//! The block-test runner, on valid tests and on corrupted ones.

use crate::blocktest::{Storage, Summary, run};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::{env, fs};

/// The folder of Ethereum's block tests: in `../shared` beside the workspace, or in the folder in `NODE_SHARED`.
fn vectors() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let root = env::var_os("NODE_SHARED").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    root.join("vectors/ethereum-tests/BlockchainTests")
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn all_given_tests_pass() {
    let folder = vectors();
    for storage in [Storage::Memory, Storage::Folders] {
        let summary = run(std::slice::from_ref(&folder), storage).unwrap();
        assert_eq!(summary.failures, [], "{storage:?}");
        assert_eq!(summary.passed, 453, "{storage:?}");
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn corrupted_tests_fail() {
    let file = vectors().join("TransitionTests/bcArrowGlacierToParis/difficultyFormula.json");
    let good: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let name = good.as_object().unwrap().keys().next().unwrap().clone();
    // The JSON pointer to replace, its new value, and how the reason of the failure begins.
    let cases = [
        ("/network", json!("Amsterdam"), "unknown network Amsterdam"),
        ("/lastblockhash", json!("0x01"), "the head is 8 ("),
        ("/genesisBlockHeader/hash", json!("0x01"), "genesis: hash 0x"),
        ("/genesisRLP", json!("0xc0"), "genesisRLP: "),
        ("/pre", json!({}), "genesis: hash 0x"),
        ("/postState", json!({}), "state root 0x"),
        ("/blocks/5/expectException", json!("BlockException.NO_SUCH"), "block 5 of the list: unknown exception"),
        (
            "/blocks/5/expectException",
            json!("BlockException.INVALID_GASLIMIT"),
            "block 5 of the list: was refused, expected",
        ),
        ("/blocks/4/expectException", json!("BlockException.INVALID_GASLIMIT"), "block 4 of the list: was imported"),
        ("/blocks/0/rlp", json!("0xc0"), "block 0 of the list: the block cannot be decoded"),
        ("/blocks", json!([]), "the head is 0 ("),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (path, value, expected) in cases {
        let mut test = good[&name].clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = test.pointer_mut(parent).unwrap();
        match key.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[key] = value,
        }
        let file = folder.path().join("corrupted.json");
        fs::write(&file, json!({"good": good[&name], "corrupted": test}).to_string()).unwrap();
        let Summary { passed, failures } = run(&[file], Storage::Memory).unwrap();
        assert_eq!((passed, failures.len()), (1, 1), "{path}: {failures:?}");
        assert!(failures[0].1.starts_with(expected), "{path}\n got: {}\nwant: {expected}", failures[0].1);
    }
    let file = folder.path().join("broken.json");
    fs::write(&file, "{").unwrap();
    let summary = run(&[file], Storage::Memory).unwrap();
    assert_eq!((summary.passed, summary.failures.len()), (0, 1), "a file that is not JSON");
    assert!(run(&[folder.path().join("missing.json")], Storage::Memory).is_err());
}
