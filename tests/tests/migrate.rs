//! `node-server migrate`: from a folder that an earlier version wrote to one that this version serves.

#![allow(clippy::unwrap_used)]

use node_tests::server::{Server, node_server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A development chain of layout 1: 86 blocks, in which slot 1 of [`CONTRACT`] changes, one transaction in the pool,
/// and a block filter. The server was killed, so that the last blocks are only in the log.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/layout-1.tar.gz");
const CONTRACT: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
const HEAD: &str = "0x3929285a831afe5f72ab16076e8c3b32a59ec26d69766a652ea4b383680a0205";
const IN_POOL: &str = "0x6575917005bf0d740c19a6996c1107ca5c47a81a20882fc64746cdafa42cf461";

/// Unpacks the folder. Returns where it is, and the path for the new one.
fn unpack(folder: &TempDir) -> (PathBuf, PathBuf) {
    let status = Command::new("tar").arg("-xzf").arg(FIXTURE).arg("-C").arg(folder.path()).status().unwrap();
    assert!(status.success());
    (folder.path().join("data"), folder.path().join("new"))
}

/// Runs a command with `--json`. Returns its result, or the error message.
fn run(words: &[&str], data: &Path) -> Result<Value, String> {
    let output = node_server().args(words).arg("--json").arg("--data-dir").arg(data).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or("null")).unwrap();
    assert_eq!(output.status.success(), last["event"] == "result", "{last}");
    if output.status.success() { Ok(last) } else { Err(last["message"].as_str().unwrap_or_default().to_owned()) }
}

fn migrate(from: &Path, to: &Path) -> Result<Value, String> {
    run(&["migrate", to.to_str().unwrap()], from)
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

#[test]
fn a_migrated_folder_serves_the_same_chain() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    let before = contents(&old);
    let refused = run(&["stats"], &old).unwrap_err();
    assert!(refused.contains("storage layout 1") && refused.contains("docs/operations.md"), "{refused}");

    let migrated = migrate(&old, &new).unwrap();
    assert_eq!((&migrated["head"]["number"], &migrated["head"]["hash"]), (&json!(86), &json!(HEAD)));
    assert_eq!(migrated["blocks"], 87);
    assert!(migrated["rows"].as_u64().unwrap() > 1_000);
    assert_eq!(contents(&old), before);
    assert!(!folder.path().join("new.migrating").exists());
    assert_eq!(run(&["verify"], &new).unwrap()["ok"], true);

    let server = Server::dev(["--data-dir", new.to_str().unwrap(), "--no-mine"]);
    for (block, value) in [("1", 0), ("16", 3), ("86", 43)] {
        let slot = json!({"Address": CONTRACT, "Position": "0x1", "BlockNumber": block}).to_string();
        assert_eq!(
            server.post("/getStorageAt/", slot).field("Value"),
            &json!(format!("{value:#066x}")),
            "block {block}"
        );
        let account = json!({"Address": CONTRACT, "StorageKeys": ["0x1"], "BlockNumber": block}).to_string();
        let proof = server.post("/getProof/", account);
        assert_eq!(proof.status, 200, "{}", proof.text);
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionByHash", "params": [IN_POOL]});
    let waiting = server.post("/rpc", message.to_string()).body;
    assert_eq!((&waiting["result"]["hash"], &waiting["result"]["blockNumber"]), (&json!(IN_POOL), &Value::Null));
}

#[test]
fn only_a_folder_of_layout_1_is_migrated_to_a_new_folder() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    assert!(migrate(&other, &new).unwrap_err().contains("no chain in storage layout 1"));
    fs::write(other.join("file"), "x").unwrap();
    assert!(migrate(&old, &other).unwrap_err().contains("not an empty folder"));
    assert!(migrate(&old, &old.join("new")).unwrap_err().contains("is inside the folder"));
    assert!(!new.exists());
    migrate(&old, &new).unwrap();
    assert!(migrate(&old, &new).unwrap_err().contains("not an empty folder"));
    assert!(migrate(&new, &folder.path().join("newer")).unwrap_err().contains("no chain in storage layout 1"));
}

#[test]
fn an_interrupted_migration_continues() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    migrate(&old, &new).unwrap();
    let unfinished = folder.path().join("new.migrating");
    fs::rename(&new, &unfinished).unwrap();
    // A chain that no migration has written is not taken for the copy.
    let refused = migrate(&old, &new).unwrap_err();
    assert!(refused.contains("new.migrating: the folder is not empty"), "{refused}");
    // One that was written from another chain is replaced.
    fs::write(unfinished.join("source"), "another chain").unwrap();
    let result = migrate(&old, &new).unwrap();
    assert_eq!(result["head"]["hash"], HEAD);
    assert_ne!(result["rows"], 0);
    assert!(new.exists() && !new.join("source").exists());
}

#[test]
fn a_damaged_folder_is_not_migrated() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    let path = old.join("chain.redb");
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    // Pages of rows begin after the header.
    bytes[8192..length].iter_mut().step_by(4096).for_each(|byte| *byte ^= 1);
    fs::write(&path, bytes).unwrap();
    let message = migrate(&old, &new).unwrap_err();
    assert!(!message.is_empty() && !new.exists(), "{message}");
}
