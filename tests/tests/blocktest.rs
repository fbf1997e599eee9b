//! The runner of block tests, on the tests that are given and on spoilt ones.

#![allow(clippy::unwrap_used)]

use node_tests::blocktest::{Keep, Summary, run};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::{env, fs};

/// The folder of the block tests; none, with a message, where it is not there.
fn vectors() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let root = env::var_os("NODE_SHARED").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join("vectors/ethereum-tests/BlockchainTests");
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn all_given_tests_pass() {
    let Some(folder) = vectors() else { return };
    for keep in [Keep::InMemory, Keep::InFolders] {
        let summary = run(std::slice::from_ref(&folder), keep).unwrap();
        assert_eq!(summary.failures, [], "{keep:?}");
        assert_eq!(summary.passed, 453, "{keep:?}");
    }
}

#[test]
fn spoilt_tests_fail() {
    let Some(folder) = vectors() else { return };
    let file = folder.join("TransitionTests/bcArrowGlacierToParis/difficultyFormula.json");
    let good: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let name = good.as_object().unwrap().keys().next().unwrap().clone();
    // What is spoilt, with what; the beginning of the reason.
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
        let file = folder.path().join("spoilt.json");
        fs::write(&file, json!({"good": good[&name], "spoilt": test}).to_string()).unwrap();
        let Summary { passed, failures } = run(&[file], Keep::InMemory).unwrap();
        assert_eq!((passed, failures.len()), (1, 1), "{path}: {failures:?}");
        assert!(failures[0].1.starts_with(expected), "{path}\n got: {}\nwant: {expected}", failures[0].1);
    }
    let file = folder.path().join("broken.json");
    fs::write(&file, "{").unwrap();
    let summary = run(&[file], Keep::InMemory).unwrap();
    assert_eq!((summary.passed, summary.failures.len()), (0, 1), "a file that is no JSON");
    assert!(run(&[folder.path().join("missing.json")], Keep::InMemory).is_err());
}
