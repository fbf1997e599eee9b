//! A chain in a folder survives the server: responses before and after a restart are equal, however the server ended.

use crate::generator::{CONTRACT, EVENT, Generator, Shape, slot_key};
use crate::server::{Server, free_port, node_server, run_to_end, spawn};
use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_chain::genesis::DEV_GENESIS;
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const BLOCKS: u64 = 60;

/// A folder with a chain file, and space for a data folder.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::of(BLOCKS)
    }

    fn of(blocks: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { transactions_per_block: 4, ..Shape::default() };
        let mut file = File::create(folder.path().join("chain.rlp")).unwrap();
        Generator::new(shape).write(blocks, &mut file).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn data_dir(&self) -> [String; 2] {
        ["--data-dir".to_owned(), self.path("data")]
    }

    fn import(&self) -> impl Iterator<Item = String> {
        self.data_dir().into_iter().chain(["--strict".to_owned(), "--import".to_owned(), self.path("chain.rlp")])
    }
}

/// The server's responses about the head, an old state with its proof, all logs and the pool.
fn responses(server: &Server) -> Vec<(&'static str, Value)> {
    let contract = hex(CONTRACT.as_bytes());
    let keys: Vec<_> = (0..4).map(|slot| hex(slot_key(slot).as_bytes())).collect();
    let requests = [
        ("getProof", json!({"Address": contract, "StorageKeys": keys, "BlockNumber": "20"})),
        ("getProof", json!({"Address": ALICE, "BlockNumber": BLOCKS.to_string()})),
        ("getLogs", json!({"Address": contract, "Topics": [[hex(EVENT.as_bytes())]], "FromBlock": "0"})),
        ("getStorageAt", json!({"Address": contract, "Position": keys[0], "BlockNumber": "5"})),
        ("feeHistory", json!({"BlockCount": "30", "RewardPercentiles": [10, 90]})),
    ];
    let posted = requests.into_iter().map(|(name, body)| (name, server.post(&format!("/{name}/"), body.to_string())));
    let paths = [
        "/getBlockByNumber/latest/true/",
        "/getBlockByNumber/finalized/",
        "/getBlockReceipts/7/",
        "/getTransactionCount/0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/pending/",
    ];
    let got = paths.into_iter().map(|path| (path, server.get(path)));
    let comparable = |(name, mut response): (_, crate::server::Response)| {
        assert_eq!(response.status, 200, "{name}: {}", response.body);
        // It occupies the port.
        response.body.as_object_mut().unwrap().remove("$schema");
        (name, response.body)
    };
    posted.chain(got).map(comparable).collect()
}

/// Sends a transaction that waits in the pool. Returns its hash.
fn send(server: &Server) -> String {
    let count = server.get(&format!("/getTransactionCount/{ALICE}/pending/"));
    let nonce = count.field("TransactionCount").as_str().unwrap().parse().unwrap();
    let transaction = sign(TransactionBody::Legacy(transfer(nonce)));
    let sent = server.post("/sendRawTransaction/", json!({"Data": hex(&transaction.encode())}).to_string());
    assert_eq!(sent.status, 200, "{}", sent.body);
    hex(transaction.hash().as_bytes())
}

fn assert_same(before: &[(&str, Value)], after: &[(&str, Value)], when: &str) {
    for ((name, before), (_, after)) in before.iter().zip(after) {
        assert_eq!(before, after, "{name}, {when}");
    }
}

#[test]
fn a_restart_changes_no_response() {
    let fixture = Fixture::new();
    let in_memory = Server::start(["--strict".to_owned(), "--import".to_owned(), fixture.path("chain.rlp")]);
    let mut server = Server::start(fixture.import());
    assert_same(&responses(&in_memory), &responses(&server), "against memory");
    // Before each end another transaction is added to the pool. The first restart has no genesis file or chain file.
    let mut sent = Vec::new();
    for end in ["TERM", "KILL", "KILL", "INT"] {
        sent.push(send(&server));
        let before = responses(&server);
        let status = server.end(end);
        assert_eq!(status.success(), end != "KILL", "{end}: {status}");
        server = Server::start(fixture.data_dir());
        assert_same(&before, &responses(&server), end);
        for hash in &sent {
            let known = server.get(&format!("/getTransactionStatus/{hash}/"));
            assert_eq!(known.field("Status"), "pending", "{end}: {hash}");
        }
    }
    // Existing blocks are skipped.
    let before = responses(&server);
    drop(server);
    assert_same(&before, &responses(&Server::start(fixture.import())), "imported again");
}

#[test]
fn a_chain_in_memory_moves_to_runs_and_makes_no_file() {
    let fixture = Fixture::of(400);
    let empty = tempfile::tempdir().unwrap();
    let import = ["--strict".to_owned(), "--import".to_owned(), fixture.path("chain.rlp")];
    let metrics = ["--metrics-addr".to_owned(), format!("127.0.0.1:{}", free_port())];
    let server = Server::start_in(empty.path(), import.into_iter().chain(metrics.clone()));
    assert_same(&responses(&server), &responses(&Server::start(fixture.import())), "against a folder");
    let metrics = Server::at(metrics[1].parse().unwrap()).get("/metrics").text;
    let runs = metrics.lines().find_map(|line| line.strip_prefix("ethnode_storage_files "));
    assert!(runs.unwrap().parse::<u64>().unwrap() > 2, "more than the genesis block is in runs: {runs:?}");

    assert_eq!(server.open_files(), Vec::<PathBuf>::new());
    assert!(server.end("TERM").success());
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn continues_a_killed_import() {
    let fixture = Fixture::new();
    let mut heads = Vec::new();
    for milliseconds in [20, 60, 120, 240] {
        let mut import = spawn(fixture.import());
        thread::sleep(Duration::from_millis(milliseconds));
        import.kill().unwrap();
        import.wait().unwrap();
        let server = Server::start(fixture.data_dir());
        let head: u64 = server.get("/blockNumber/").field("BlockNumber").as_str().unwrap().parse().unwrap();
        // Proofs are verified before they are returned.
        let proof = server.post("/getProof/", json!({"Address": ALICE}).to_string());
        assert_eq!(proof.status, 200, "at {head}: {}", proof.body);
        heads.push(head);
    }
    assert!(heads.is_sorted(), "{heads:?}");
    let server = Server::start(fixture.import());
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), &json!(BLOCKS.to_string()), "after {heads:?}");
}

#[test]
fn refuses_unusable_folders_with_one_line() {
    let fixture = Fixture::new();
    let data = fixture.path("data");
    let server = Server::start(fixture.import());
    refused(&fixture, &[], "is in use by another process", 1);
    // Nor does it help to remove the lock file.
    fs::remove_file(format!("{data}/lock")).unwrap();
    refused(&fixture, &[], "is in use by another process", 1);
    server.end("TERM");

    let genesis = fixture.path("other.json");
    let mut other: Value = serde_json::from_str(DEV_GENESIS).unwrap();
    other["extraData"] = json!("0x01");
    fs::write(&genesis, other.to_string()).unwrap();
    refused(&fixture, &["--genesis", &genesis], "the folder holds a chain with genesis 0x", 2);

    // A write-ahead log with a damaged entry that was acknowledged.
    let server = Server::start(fixture.data_dir());
    for _ in 0..3 {
        send(&server);
    }
    server.end("KILL");
    let log = files(&data).find(|name| name.ends_with(".log")).unwrap();
    let log = Path::new(&data).join(log);
    let good = fs::read(&log).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 1;
    fs::write(&log, flipped).unwrap();
    refused(&fixture, &[], "is damaged at byte", 2);
    fs::write(&log, good).unwrap();
    assert_eq!(Server::start(fixture.data_dir()).get("/health").status, 200, "the log is repaired");

    let manifest = files(&data).find(|name| name.starts_with("manifest-")).unwrap();
    fs::write(Path::new(&data).join(&manifest), b"no manifest").unwrap();
    refused(&fixture, &[], &format!("{manifest} is damaged"), 2);
}

#[test]
fn a_folder_is_bound_to_its_fork_schedule() {
    let fixture = Fixture::new();
    let file = |osaka: Value, blobs: bool| {
        let mut genesis: Value = serde_json::from_str(DEV_GENESIS).unwrap();
        genesis["extraData"] = json!("0x01");
        genesis["config"]["osakaTime"] = osaka;
        if !blobs {
            for key in ["bpo1Time", "bpo2Time"] {
                genesis["config"][key] = Value::Null;
            }
        }
        let path = fixture.path("genesis.json");
        fs::write(&path, genesis.to_string()).unwrap();
        path
    };
    let later = 4_000_000_000_u64;
    let genesis = file(json!(later), false);
    let data = fixture.path("data");
    let arguments = ["--data-dir", &data, "--genesis", &genesis];
    Server::start(arguments).end("TERM");
    // Without a genesis file, the folder determines the chain.
    let server = Server::start(fixture.data_dir());
    assert_eq!(server.get("/getBlockByNumber/0/").field("Block")["ExtraData"], "0x01");
    server.end("TERM");
    // A change after the head is adopted, and recorded.
    file(json!(later + 5), false);
    Server::start(arguments).end("TERM");
    file(json!(0), true);
    refused(&fixture, &["--genesis", &genesis], "the fork schedules differ at or below the head, block 0 at time ", 2);
    refused(
        &fixture,
        &["--genesis", &genesis],
        &format!("osaka is active from time {} in the folder, is active from time 0 in the given genesis", later + 5),
        2,
    );
    Server::start(fixture.data_dir()).end("TERM");
}

#[test]
fn a_schedule_that_concerns_side_blocks_is_refused() {
    let fixture = Fixture::new();
    let genesis = |osaka: u64| {
        let mut genesis: Value = serde_json::from_str(DEV_GENESIS).unwrap();
        genesis["config"]["osakaTime"] = json!(osaka);
        for key in ["bpo1Time", "bpo2Time"] {
            genesis["config"][key] = Value::Null;
        }
        let path = fixture.path("genesis.json");
        fs::write(&path, genesis.to_string()).unwrap();
        path
    };
    let path = genesis(5_000_000_000);
    let [option, data] = &fixture.data_dir();
    let server = Server::dev([option, data, "--genesis", &path, "--no-mining"]);
    let control = |operation: &str, body: Value| {
        let response = server.post(&format!("/dev/{operation}/"), body.to_string());
        assert_eq!(response.status, 200, "{}", response.text);
        response.body
    };
    let snapshot = control("snapshot", json!({}));
    control("setNextBlockTimestamp", json!({"Timestamp": "4000000000"}));
    control("mine", json!({}));
    control("revert", snapshot);
    server.end("TERM");
    genesis(4_500_000_000);
    Server::start([option, data, "--genesis", &path]).end("TERM");
    genesis(3_900_000_000);
    refused(
        &fixture,
        &["--genesis", &path],
        "the fork schedules differ at or below the side block 1 at time 4000000000: ",
        2,
    );
    Server::start(fixture.data_dir()).end("TERM");
}

#[test]
fn a_dump_that_is_impossible_is_refused_at_startup() {
    let fixture = Fixture::new();
    let [option, data] = &fixture.data_dir();
    let server = Server::dev([option, data]);
    assert_eq!(server.post("/dev/mine/", json!({"Blocks": "3"}).to_string()).status, 200);
    server.end("TERM");
    assert!(node_server().args(["prune", option, data, "--before", "2"]).status().unwrap().success());
    let dump = fixture.path("state.json");
    let refused = node_server().args(["dev", "--port", "0", option, data, "--dump-state", &dump]).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text.contains("the state as of block 0 is not kept; the earliest kept is that of block 2"), "{text}");
}

/// A dump may be older than the folder, if the server was killed.
#[test]
fn a_dump_does_not_replace_the_accounts_of_a_chain() {
    let fixture = Fixture::new();
    let dump = fixture.path("state.json");
    let [option, data] = &fixture.data_dir();
    let start = || Server::dev([option, data, "--state", &dump, "--coinbase", BOB]);
    let send = |server: &Server, nonce| {
        let raw = hex(&sign(TransactionBody::Legacy(transfer(nonce))).encode());
        assert_eq!(server.post("/sendRawTransaction/", json!({"Data": raw}).to_string()).status, 200);
    };
    let nonce =
        |server: &Server| server.get(&format!("/getTransactionCount/{ALICE}/")).field("TransactionCount").clone();
    let server = start();
    send(&server, 0);
    let set = json!({"jsonrpc": "2.0", "id": 1, "method": "anvil_setCoinbase", "params": [ALICE]});
    assert!(server.post("/", set.to_string()).field("error").is_null());
    send(&server, 1);
    server.end("TERM");
    let server = start();
    send(&server, 2);
    let miner = server.get("/getBlockByNumber/latest/").field("Block")["Miner"].clone();
    assert_eq!(miner.as_str().map(str::to_lowercase), Some(BOB.to_lowercase()), "the option, not the last block");
    server.end("KILL");
    let server = start();
    assert_eq!(nonce(&server), json!("3"));
    server.end("TERM");
    // The dump is for new chains.
    let other = fixture.path("other");
    let server = Server::dev(["--data-dir", &other, "--state", &dump]);
    assert_eq!(nonce(&server), json!("3"));
}

/// Status 1 means that the fault may be over by the next start.
fn refused(fixture: &Fixture, more: &[&str], reason: &str, status: i32) {
    let output = run_to_end(fixture.data_dir().iter().map(String::as_str).chain(more.iter().copied()));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{reason}: {text}");
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error: data folder ")).collect();
    assert!(matches!(errors[..], [line] if line.contains(reason)), "{reason}: {text}");
    assert_eq!(output.stdout, b"", "{reason}");
}

fn files(folder: &str) -> impl Iterator<Item = String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap())
}
