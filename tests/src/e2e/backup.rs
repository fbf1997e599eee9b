//! Backups of a folder that a server has open, made with the command.

use crate::generator::{Generator, Shape};
use crate::server::{Server, node_server};
use crate::wallet::{hex, sign, transfer};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;
use tempfile::TempDir;

fn command(words: &str, data: &Path) -> Command {
    let mut command = node_server();
    command.args(words.split(' ')).arg("--json").arg("--data-dir").arg(data);
    command
}

/// Runs a command. Returns its result, or the error message.
fn run(command: &mut Command) -> Result<Value, String> {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap_or("null")).unwrap();
    assert_eq!(output.status.success(), last["event"] == "result", "{last}");
    if output.status.success() { Ok(last) } else { Err(last["message"].as_str().unwrap_or_default().to_owned()) }
}

fn backup(data: &Path, dest: &Path) -> Result<Value, String> {
    run(command("backup", data).arg(dest))
}

fn dev(data: &Path, more: &[&str]) -> Server {
    Server::dev(["--data-dir", data.to_str().unwrap()].iter().chain(more))
}

fn head(server: &Server) -> u64 {
    server.get("/blockNumber/").field("BlockNumber").as_str().unwrap().parse().unwrap()
}

/// Ends a thread when it is dropped, also by a failed assertion.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_backup_under_load_contains_every_acknowledged_transaction() {
    let folder = TempDir::new().unwrap();
    let (data, dest) = (folder.path().join("data"), folder.path().join("copy"));
    let server = dev(&data, &[]);
    let filter = server.get("/newBlockFilter/").field("FilterId").as_str().unwrap().to_owned();
    let done = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let _ending = Ending(&done);
        let sender = scope.spawn(|| {
            let mut hashes: Vec<String> = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let body = TransactionBody::Legacy(transfer(hashes.len() as u64));
                let response =
                    server.post("/sendRawTransaction/", json!({"Data": hex(&sign(body).encode())}).to_string());
                assert_eq!(response.status, 200, "{}", response.text);
                hashes.push(response.field("TransactionHash").as_str().unwrap().to_owned());
            }
            hashes
        });
        while head(&server) < 30 {
            thread::yield_now();
        }
        let before = head(&server);
        let result = backup(&data, &dest).unwrap();
        assert!(result["head"]["number"].as_u64().unwrap() >= before, "{result} of {before}");
        let after = head(&server);
        while head(&server) < after + 5 {
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        (before, sender.join().unwrap())
    });
    let (before, hashes) = sent;
    let verified = run(&mut command("verify", &dest)).unwrap();
    assert!(verified["ok"] == true && verified["head"]["number"].as_u64().unwrap() >= before, "{verified}");
    // The original continues beside the copy, which has everything sent before the backup started.
    let copy = dev(&dest, &[]);
    for hash in &hashes[..usize::try_from(before).unwrap()] {
        assert!(copy.get(&format!("/getTransactionReceipt/{hash}/")).field("TransactionReceipt").is_object(), "{hash}");
    }
    assert_eq!(copy.get(&format!("/getFilterChanges/{filter}/")).status, 200);
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn a_backup_contains_the_pool() {
    let folder = TempDir::new().unwrap();
    let (data, dest) = (folder.path().join("data"), folder.path().join("copy"));
    let server = dev(&data, &["--no-mining"]);
    let transaction = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let sent = server.post("/sendRawTransaction/", json!({"Data": transaction}).to_string());
    let hash = sent.field("TransactionHash").as_str().unwrap();
    backup(&data, &dest).unwrap();
    let copy = dev(&dest, &["--no-mining"]);
    assert_eq!(copy.get(&format!("/getTransactionStatus/{hash}/")).field("Status"), "pending");
}

/// Creates a folder with a chain of `blocks` blocks on the built-in genesis.
fn import_chain(folder: &TempDir, blocks: u64) -> PathBuf {
    let (data, chain) = (folder.path().join("data"), folder.path().join("chain.rlp"));
    let mut file = Vec::new();
    Generator::new(Shape { transactions_per_block: 20, ..Shape::default() }).write(blocks, &mut file).unwrap();
    fs::write(&chain, file).unwrap();
    run(command("import", &data).arg(&chain)).unwrap();
    data
}

#[test]
fn an_exported_chain_can_be_imported_into_a_new_folder() {
    let folder = TempDir::new().unwrap();
    let data = import_chain(&folder, 40);
    let [before, chain, new] = ["before", "moved.rlp", "new"].map(|name| folder.path().join(name));
    let server = Server::start(["--data-dir", data.to_str().unwrap()]);
    backup(&data, &before).unwrap();
    run(command("export", &before).arg(&chain)).unwrap();
    let imported = run(command("import", &new).arg(&chain)).unwrap();
    assert_eq!(imported["head"]["hash"], run(&mut command("verify", &new)).unwrap()["head"]["hash"]);
    let served = server.get("/getBlockByNumber/latest/");
    assert_eq!(imported["head"]["hash"], served.field("Block")["Hash"]);
}

#[test]
fn a_killed_backup_leaves_no_copy_that_looks_complete() {
    let folder = TempDir::new().unwrap();
    let (data, dest) = (import_chain(&folder, 150), folder.path().join("copy"));
    let part = folder.path().join("copy.part");
    let mut in_the_middle = 0;
    for _ in 0..20 {
        let mut backup =
            command("backup", &data).arg(&dest).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !part.join("wal-synced").exists() && !dest.exists() {
            thread::yield_now();
        }
        backup.kill().unwrap();
        backup.wait().unwrap();
        if dest.exists() {
            // The kill came too late.
            assert!(run(&mut command("verify", &dest)).is_ok());
            fs::remove_dir_all(&dest).unwrap();
            continue;
        }
        assert!(run(&mut command("verify", &part)).is_err());
        in_the_middle += 1;
        if in_the_middle == 3 {
            break;
        }
    }
    assert!(in_the_middle > 0, "no backup was interrupted");
    // Incomplete copies do not affect later backups, and the folder itself is unchanged.
    let result = backup(&data, &dest).unwrap();
    assert_eq!(result["head"]["number"], 150);
    assert!(!part.exists());
    for whole in [&dest, &data] {
        assert_eq!(run(&mut command("verify", whole)).unwrap()["head"]["number"], 150);
    }
}

#[test]
fn refuses_destinations_that_have_something_to_lose() {
    let folder = TempDir::new().unwrap();
    let (data, dest) = (folder.path().join("data"), folder.path().join("copy"));
    let server = dev(&data, &[]);
    let refused = backup(&data, &data.join("inside")).unwrap_err();
    assert!(refused.contains("is inside the folder"), "{refused}");
    fs::create_dir(&dest).unwrap();
    fs::write(dest.join("letter"), "x").unwrap();
    let refused = backup(&data, &dest).unwrap_err();
    assert!(
        refused.contains("exists and is not an empty folder; choose a new folder, beside older copies"),
        "{refused}"
    );
    assert!(server.end("TERM").success());
}

/// The name, the length and the time of the last change of each file in a folder.
fn files(folder: &Path) -> Vec<(String, u64, SystemTime)> {
    let file = |entry: DirEntry| {
        let metadata = entry.metadata().unwrap();
        (entry.file_name().into_string().unwrap(), metadata.len(), metadata.modified().unwrap())
    };
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| file(entry.unwrap())).collect();
    files.sort();
    files
}

#[test]
fn commands_that_read_change_nothing_and_need_no_lock() {
    let folder = TempDir::new().unwrap();
    let (data, chain) = (import_chain(&folder, 30), folder.path().join("copy.rlp"));
    // A log that is not in runs yet, as a killed server leaves it.
    let server = dev(&data, &[]);
    server.post("/dev/mine/", json!({"Blocks": 5}).to_string());
    server.end("KILL");
    let before = files(&data);
    let lock = fs::File::open(data.join("lock")).unwrap();
    lock.try_lock().unwrap();
    for words in ["verify", "stats"] {
        assert_eq!(run(&mut command(words, &data)).unwrap()["head"]["number"], 35, "{words}");
    }
    let stats = run(&mut command("stats", &data)).unwrap();
    let sizes = |end: &str| -> u64 { before.iter().filter(|file| file.0.ends_with(end)).map(|file| file.1).sum() };
    assert_eq!(stats["run_bytes"], sizes(".rows"), "{stats}");
    // Opening the snapshot adds an empty segment to its copy of the log.
    assert!((0..=64).contains(&(stats["log_file_bytes"].as_u64().unwrap() - sizes(".log"))), "{stats}");
    assert_eq!(run(command("export", &data).arg(&chain)).unwrap()["to"], 35);
    backup(&data, &folder.path().join("copy")).unwrap();
    assert_eq!(files(&data), before);
    let refused = run(&mut command("prune --before 3", &data)).unwrap_err();
    assert!(refused.contains("in use by another process"), "{refused}");
}

#[test]
fn a_folder_can_be_read_at_any_moment_while_a_server_writes() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = dev(&data, &[]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ending = Ending(&done);
        scope.spawn(|| {
            // Not endlessly, since a longer chain takes longer to verify.
            for _ in 0..100 {
                if !done.load(Ordering::Relaxed) {
                    assert_eq!(server.post("/dev/mine/", json!({"Blocks": 20}).to_string()).status, 200);
                }
            }
        });
        let mut last = 0;
        for round in 0..8 {
            let before = head(&server);
            let words = ["verify", "stats"][round % 2];
            let read = run(&mut command(words, &data)).unwrap();
            let found = read["head"]["number"].as_u64().unwrap();
            assert!(found >= before.max(last), "{words}: {found}, {before}, {last}");
            last = found;
        }
        done.store(true, Ordering::Relaxed);
    });
}
