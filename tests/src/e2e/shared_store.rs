//! Servers that read a chain which another server publishes: `serve --store`.

use crate::server::{Server, free_port, node_server};
use crate::websocket::Socket;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const OTHER: &str = "0x00000000000000000000000000000000000000aa";
const ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

fn call(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    server.post("/", body.to_string()).body
}

fn url(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

fn writer(data: &Path, store: &Path) -> Server {
    let (data, url) = (data.display().to_string(), url(store));
    Server::dev(["--data-dir", &data, "--publish", &url, "--publish-interval", "10"])
}

fn wait_for_head(server: &Server, expected: &Value) {
    let head = || call(server, "eth_getBlockByNumber", json!(["latest", false]))["result"]["hash"].clone();
    let deadline = Instant::now() + Duration::from_secs(60);
    while head() != *expected {
        assert!(Instant::now() < deadline, "{} instead of {expected}", head());
        thread::sleep(Duration::from_millis(10));
    }
}

fn mine(server: &Server, count: u64) -> Value {
    call(server, "anvil_mine", json!([count]));
    call(server, "eth_getBlockByNumber", json!(["latest", false]))["result"]["hash"].clone()
}

/// The responses of both servers to reads at some heights are equal.
fn compare(first: &Server, second: &Server, heights: &[u64]) {
    for height in heights.iter().map(|height| format!("{height:#x}")) {
        let requests = [
            ("eth_getBlockByNumber", json!([height, true])),
            ("eth_getProof", json!([ACCOUNT, ["0x0"], height])),
            ("eth_getBalance", json!([ACCOUNT, height])),
            ("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": height}])),
            ("eth_call", json!([{"to": ACCOUNT}, height])),
        ];
        for (method, params) in requests {
            let responses = [first, second].map(|server| call(server, method, params.clone()));
            assert!(responses[0]["error"].is_null(), "{method}: {}", responses[0]);
            assert_eq!(responses[0], responses[1], "{method} at {height}");
        }
    }
}

#[test]
fn readers_follow_a_published_chain_through_reorganizations() {
    let root = tempfile::tempdir().unwrap();
    let [data, store, cache] = ["data", "store", "cache"].map(|name| root.path().join(name));
    let first = writer(&data, &store);
    mine(&first, 5);
    let (metrics, cache_dir) = (free_port(), cache.display().to_string());
    let address = format!("127.0.0.1:{metrics}");
    let url = url(&store);
    let with_cache = ["--store", &url, "--cache-dir", &cache_dir, "--cache-disk-mb", "64"];
    let reader = Server::serve(with_cache.into_iter().chain(["--metrics-addr", &address]));
    let another = Server::serve(["--store", &url, "--max-lag", "60s", "--writer", first.url()]);

    let mut socket = Socket::connect(reader.address(), &[]).unwrap();
    let heads = socket.call("eth_subscribe", json!(["newHeads"]));
    let send = json!([{"from": ACCOUNT, "to": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8", "value": "0x1"}]);
    call(&first, "eth_sendTransaction", send);
    let head = mine(&first, 300);
    for server in [&reader, &another] {
        wait_for_head(server, &head);
        assert_eq!(server.get("/ready").status, 200, "{}", server.get("/ready").text);
        compare(&first, server, &[0, 5, 6, 7, 150, 306]);
    }
    let mut notified = Value::Null;
    while notified["hash"] != head {
        notified = socket.notification(&heads);
    }

    // A reorganization is one step, and subscribers are told.
    call(&first, "anvil_reorg", json!([4, []]));
    let head = mine(&first, 1);
    for server in [&reader, &another] {
        wait_for_head(server, &head);
        compare(&first, server, &[300, 303, 307]);
    }
    while notified["hash"] != head {
        notified = socket.notification(&heads);
    }

    // Changes belong to the writer.
    let error = call(&reader, "eth_sendRawTransaction", json!(["0x02f8"]))["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("only reads the chain"), "{error}");
    let [passed_on, expected] =
        [&another, &first].map(|server| call(server, "eth_sendRawTransaction", json!(["0x02f8"])));
    assert_eq!(passed_on, expected);

    let measured = Server::at(([127, 0, 0, 1], metrics).into()).get("/metrics").text;
    let value = |name: &str| {
        let line = measured.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim().parse::<f64>().unwrap()
    };
    assert!(value("ethnode_replica_lag_seconds ") < 30.0);
    assert!(value("ethnode_store_requests_total{operation=\"read\"} ") > 0.0);
    assert_eq!(value("ethnode_store_requests_total{operation=\"write\"} "), 0.0);

    // The writer is killed and started again; a reader starts with what it cached.
    first.end("KILL");
    assert_eq!(reader.end("TERM").code(), Some(0));
    assert!(fs::metadata(cache.join("chunks")).unwrap().len() > 0);
    let second = writer(&data, &store);
    let head = mine(&second, 3);
    let reader = Server::serve(with_cache);
    for server in [&reader, &another] {
        wait_for_head(server, &head);
        compare(&second, server, &[0, 306, 310]);
    }
    // The folder of a cache belongs to one server.
    let other = node_server().args(["serve", "--port", "0"]).args(with_cache).output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&other.stderr).contains("in use by another process"));
}

fn output<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> String {
    let output = node_server().args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn commands_read_a_shared_store_as_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let [data, store, copy] = ["data", "store", "copy"].map(|name| root.path().join(name));
    let first = writer(&data, &store);
    mine(&first, 20);
    let file = |name: &str| root.path().join(name).display().to_string();
    let (data, url) = (data.display().to_string(), url(&store));
    let reader = Server::serve(["--store", &url]);
    wait_for_head(&reader, &call(&first, "eth_getBlockByNumber", json!(["latest", false]))["result"]["hash"]);

    let verified = output(["verify", "--store", &url]);
    assert!(verified.starts_with("verified 21 blocks"), "{verified}");
    let head = |text: &str| text.lines().find(|line| line.starts_with("head ")).map(str::to_owned);
    let [local, shared] =
        [["--data-dir", &data], ["--store", &url]].map(|place| head(&output(["stats"].iter().chain(&place))));
    assert!(local.is_some());
    assert_eq!(local, shared);
    for (name, place) in [("local", ["--data-dir", &*data]), ("shared", ["--store", &*url])] {
        output(["export", &file(name)].iter().chain(&place));
    }
    assert_eq!(fs::read(file("local")).unwrap(), fs::read(file("shared")).unwrap());
    output(["backup", &copy.display().to_string(), "--store", &url]);
    assert!(output(["verify", "--data-dir", &copy.display().to_string()]).starts_with("verified 21 blocks"));
}

#[test]
fn a_reader_waits_until_there_is_a_chain() {
    let root = tempfile::tempdir().unwrap();
    let [data, store] = ["data", "store"].map(|name| root.path().join(name));
    let address = url(&store);
    let waiting = thread::spawn(move || Server::serve(["--store", &address]));
    thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished());
    let writer = writer(&data, &store);
    let reader = waiting.join().unwrap();
    wait_for_head(&reader, &mine(&writer, 2));
    let refused = node_server().args(["serve", "--port", "0", "--store", "file://relative"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

/// Whether a writer shows its chain to readers of the folder and of the shared store, edits of its state included.
#[test]
fn readers_show_edits_that_no_block_includes_yet() {
    let root = tempfile::tempdir().unwrap();
    let [data, store] = ["data", "store"].map(|name| root.path().join(name));
    let (folder, url) = (data.display().to_string(), url(&store));
    let code = "0x10";
    let state = |server: &Server| {
        let balance = |at: &str| call(server, "eth_getBalance", json!([OTHER, at]))["result"].clone();
        let at_head = |method: &str| call(server, method, json!([OTHER, "latest"]))["result"].clone();
        let slot = call(server, "eth_getStorageAt", json!([OTHER, "0x0", "latest"]))["result"].clone();
        let rest = server.get(&format!("/getBalance/{OTHER}/?BlockNumber=latest")).field("Balance").clone();
        let code = at_head("eth_getCode");
        [balance("latest"), balance("pending"), balance("0x1"), slot, code, at_head("eth_getTransactionCount"), rest]
    };
    let wait = |writer: &Server, reader: &Server, what: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while state(reader) != state(writer) {
            assert!(Instant::now() < deadline, "{what}: {:?} instead of {:?}", state(reader), state(writer));
            thread::sleep(Duration::from_millis(10));
        }
    };
    let first = writer(&data, &store);
    mine(&first, 1);
    let start = || [Server::serve(["--store", &url]), Server::start(["--data-dir", &folder, "--read-only"])];
    let readers = start();
    let all = |writer: &Server, what: &str| readers.iter().for_each(|reader| wait(writer, reader, what));
    let untouched = state(&first);
    call(&first, "anvil_setBalance", json!([OTHER, "0x7"]));
    call(&first, "anvil_setNonce", json!([OTHER, "0x9"]));
    call(&first, "anvil_setStorageAt", json!([OTHER, "0x0", format!("0x{:064x}", 5)]));
    let snapshot = call(&first, "evm_snapshot", json!([]))["result"].clone();
    let edited = state(&first);
    assert_eq!((&edited[0], &edited[5], &untouched[0]), (&json!("0x7"), &json!("0x9"), &json!("0x0")));
    all(&first, "edits");
    call(&first, "anvil_setCode", json!([OTHER, code]));
    call(&first, "anvil_setBalance", json!([OTHER, "0x8"]));
    all(&first, "more edits");
    for reader in start() {
        wait(&first, &reader, "a reader that starts");
    }
    assert_eq!(call(&first, "evm_revert", json!([snapshot]))["result"], true);
    assert_eq!(state(&first), edited);
    all(&first, "a snapshot of the same block");

    let snapshot = call(&first, "evm_snapshot", json!([]))["result"].clone();
    mine(&first, 1);
    assert_eq!(call(&first, "eth_getBalance", json!([OTHER, "0x1"]))["result"], "0x0");
    all(&first, "a block that includes the edits");
    assert_eq!(call(&first, "evm_revert", json!([snapshot]))["result"], true);
    assert_eq!(state(&first), edited);
    all(&first, "a snapshot below the head");

    first.end("TERM");
    let second = writer(&data, &store);
    assert_eq!(state(&second), edited);
    all(&second, "a writer that was started again");
    call(&second, "anvil_setBalance", json!([OTHER, "0x6"]));
    all(&second, "an edit after it");
}

#[test]
fn a_reader_has_no_stream_of_pending_transactions_and_asks_the_writer_for_accounts() {
    let root = tempfile::tempdir().unwrap();
    let [data, store] = ["data", "store"].map(|name| root.path().join(name));
    let first = writer(&data, &store);
    mine(&first, 1);
    let reader = Server::serve(["--store", &url(&store)]);
    let with_writer = Server::serve(["--store", &url(&store), "--writer", first.url()]);
    for server in [&reader, &with_writer] {
        let mut socket = Socket::connect(server.address(), &[]).unwrap();
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newPendingTransactions"]});
        socket.send(request);
        let refused = socket.receive();
        assert!(refused["error"]["message"].as_str().unwrap().contains("has no pool"), "{refused}");
        let refused = server.get("/events/?Stream=pendingTransactions");
        assert!(refused.text.contains("has no pool"), "{}: {}", refused.status, refused.text);
    }
    assert!(call(&reader, "eth_newPendingTransactionFilter", json!([]))["error"].is_object());
    assert!(call(&with_writer, "eth_newPendingTransactionFilter", json!([]))["result"].is_string());
    assert_eq!(call(&reader, "eth_accounts", json!([]))["result"], json!([]));
    assert_eq!(call(&with_writer, "eth_accounts", json!([])), call(&first, "eth_accounts", json!([])));
}
