//! `ethnode migrate`: from a folder that an earlier version wrote to one that this version serves.

use crate::server::{Server, node_server};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use twox_hash::XxHash3_64;

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
fn the_new_folder_can_be_written_with_a_slash_or_as_a_dot() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    // A missing folder, then an empty one, then the current one.
    for (exists, dest) in [(false, "new/"), (true, "new/"), (true, ".")] {
        if exists {
            fs::create_dir(&new).unwrap();
        }
        let current = if dest == "." { &new } else { folder.path() };
        let output =
            node_server().args(["migrate", dest, "--data-dir"]).arg(&old).current_dir(current).output().unwrap();
        assert!(output.status.success(), "{dest}: {}", String::from_utf8_lossy(&output.stderr));
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["data", "new"], "{dest}");
        assert_eq!(run(&["stats"], &new).unwrap()["head"]["number"], 86, "{dest}");
        fs::remove_dir_all(&new).unwrap();
    }
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

#[test]
fn a_folder_without_its_log_is_not_migrated() {
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    for name in contents(&old).keys().filter(|name| name.starts_with("wal-")) {
        fs::remove_file(old.join(name)).unwrap();
    }
    let message = migrate(&old, &new).unwrap_err();
    assert!(message.contains("the log is missing") && !new.exists(), "{message}");
}

/// A table of layout 1.
const STORAGE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("storage");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// Copies a folder of layout 1 to `to`, changes its database, and makes its checksums match.
fn edit(from: &Path, to: &Path, change: impl FnOnce(&WriteTransaction)) {
    fs::create_dir(to).unwrap();
    let mut files = contents(from);
    // The checksums begin with two copies of a sequence number, the length of the database and its header.
    let (sums, database) = (files.remove("chain.sums").unwrap(), files.get_mut("chain.redb").unwrap());
    let newest = [&sums[..528], &sums[4096..4624]].into_iter().max().unwrap();
    database[..512].copy_from_slice(&newest[16..]);
    files.iter().for_each(|(name, bytes)| fs::write(to.join(name), bytes).unwrap());
    let path = to.join("chain.redb");
    let opened = Database::open(&path).unwrap();
    let transaction = opened.begin_write().unwrap();
    change(&transaction);
    transaction.commit().unwrap();
    drop(opened);
    let bytes = fs::read(&path).unwrap();
    let mut copy = [&1_u64.to_be_bytes()[..], &(bytes.len() as u64).to_be_bytes(), &bytes[..512]].concat();
    copy.extend(XxHash3_64::oneshot_with_seed(0, &copy).to_be_bytes());
    copy.resize(4096, 0);
    let blocks = (0..).zip(bytes.chunks(4096));
    let sums = blocks.flat_map(|(number, block)| XxHash3_64::oneshot_with_seed(number, block).to_be_bytes());
    fs::write(to.join("chain.sums"), copy.repeat(2).into_iter().chain(sums).collect::<Vec<_>>()).unwrap();
}

/// Earlier versions deleted the newest of the versions that `prune` drops before the older ones. If it was killed
/// between them, an older value became visible again.
#[test]
fn a_folder_in_which_a_killed_prune_restored_an_old_value_is_refused() {
    const FLOOR: u64 = 50;
    let folder = TempDir::new().unwrap();
    let (old, new) = unpack(&folder);
    let hurt = folder.path().join("hurt");
    edit(&old, &hurt, |transaction| {
        let mut storage = transaction.open_table(STORAGE).unwrap();
        let keys: Vec<_> = storage.iter().unwrap().map(|row| row.unwrap().0.value().to_vec()).collect();
        // A key ends with the complement of its block, so newer versions come first.
        let block = |key: &[u8]| 0xff_ffff_ffff - key[key.len() - 5..].iter().fold(0, |n, b| n << 8 | u64::from(*b));
        let is_same_slot = |a: &[u8], b: &[u8]| a[..a.len() - 5] == b[..b.len() - 5];
        let newer = keys.iter().zip(&keys[1..]).find(|(a, b)| block(a) <= FLOOR && is_same_slot(a, b)).unwrap().0;
        storage.remove(&newer[..]).unwrap().unwrap();
        // The genesis hash, the number of the head, its hash, the earliest state.
        let mut meta = transaction.open_table(META).unwrap();
        let mut chain = meta.get("chain").unwrap().unwrap().value().to_vec();
        chain[32 + 1 + 32] = FLOOR as u8;
        meta.insert("chain", &chain[..]).unwrap();
    });
    let message = migrate(&hurt, &new).unwrap_err();
    assert!(message.starts_with("verification failed: block 50"), "{message}");
    assert!(!new.exists() && !folder.path().join("new.migrating").exists());

    // Without that change, the same copy is accepted.
    let whole = folder.path().join("whole");
    edit(&old, &whole, |_| {});
    assert_eq!(migrate(&whole, &new).unwrap()["head"]["hash"], HEAD);
}
