//! Servers that read a folder which another process writes: `run --read-only`.

use crate::generator::{Generator, Shape};
use crate::server::{Server, free_port, node_server, run_to_end};
use crate::websocket::Socket;
use node_chain::BlockStream;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

fn blocks(count: u64) -> Vec<Vec<u8>> {
    let mut file = Vec::new();
    Generator::new(Shape::default()).write(count, &mut file).unwrap();
    BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn head(server: &Server) -> u64 {
    server.get("/blockNumber/").field("BlockNumber").as_str().unwrap().parse().unwrap()
}

fn wait_for_head(server: &Server, number: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while head(server) != number {
        assert!(Instant::now() < deadline, "{} instead of {number}", head(server));
        thread::sleep(Duration::from_millis(10));
    }
}

fn call(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    server.post("/", body.to_string()).body
}

/// The names and contents of the files of a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (text(&path), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn readers_see_the_blocks_of_a_writer() {
    let root = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "chain.rlp"].map(|name| root.path().join(name));
    let blocks = blocks(300);
    fs::write(&file, blocks[..5].concat()).unwrap();
    let writer = |more: &[&str]| {
        let arguments = ["--data-dir".to_owned(), text(&data), "--follow".to_owned(), text(&file)];
        Server::start(arguments.into_iter().chain(more.iter().map(|text| (*text).to_owned())))
    };
    let first = writer(&[]);
    wait_for_head(&first, 5);
    let metrics = free_port();
    let address = format!("127.0.0.1:{metrics}");
    let path = text(&data);
    let reader = Server::start(["--data-dir", &path, "--read-only", "--metrics-addr", &address]);
    let another = Server::start(["--data-dir", &path, "--read-only"]);
    assert_eq!((head(&reader), reader.get("/ready").status), (5, 200));

    // What comes is seen block by block.
    let mut socket = Socket::connect(reader.address(), &[]).unwrap();
    let heads = socket.call("eth_subscribe", json!(["newHeads"]));
    let filter = call(&reader, "eth_newBlockFilter", json!([]))["result"].clone();
    OpenOptions::new().append(true).open(&file).unwrap().write_all(&blocks[5..].concat()).unwrap();
    for number in 6..=300u64 {
        assert_eq!(socket.notification(&heads)["number"], json!(format!("{number:#x}")));
    }
    wait_for_head(&another, 300);
    assert_eq!(call(&reader, "eth_getFilterChanges", json!([filter]))["result"].as_array().unwrap().len(), 295);
    for number in [0u64, 5, 6, 150, 300] {
        let ask = |server: &Server| call(server, "eth_getBlockByNumber", json!([format!("{number:#x}"), true]));
        assert_eq!(ask(&reader), ask(&first));
        let proof = |server: &Server| {
            let address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
            call(server, "eth_getProof", json!([address, [], format!("{number:#x}")]))
        };
        assert_eq!(proof(&reader), proof(&first));
    }
    let measured = Server::at(([127, 0, 0, 1], metrics).into()).get("/metrics").text;
    let lag = measured.lines().find_map(|line| line.strip_prefix("ethnode_replica_lag_seconds ")).unwrap();
    assert!(lag.parse::<f64>().unwrap() < 5.0, "{lag}");

    // Transactions belong to the writer.
    let raw = "0x02f8";
    let error = call(&reader, "eth_sendRawTransaction", json!([raw]))["error"].clone();
    assert_eq!(error["code"], -32000);
    assert!(error["message"].as_str().unwrap().contains("only reads the chain"), "{error}");
    let problem = reader.post("/sendRawTransaction/", json!({"Data": raw}).to_string());
    assert_eq!((problem.status, problem.text.contains("only reads the chain")), (422, true), "{}", problem.text);

    // The writer ends and another one begins.
    first.end("KILL");
    assert_eq!((head(&reader), reader.get("/ready").status), (300, 200));
    let second = writer(&[]);
    wait_for_head(&second, 300);
    drop(second);
    assert_eq!(head(&reader), 300);
    assert_eq!(reader.end("TERM").code(), Some(0));
}

#[test]
fn a_folder_is_read_while_an_import_writes_it() {
    let root = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "chain.rlp"].map(|name| root.path().join(name));
    let blocks = blocks(3_000);
    let import = |count: usize| {
        fs::write(&file, blocks[..count].concat()).unwrap();
        let mut command = node_server();
        command.arg("import").arg(&file).arg("--data-dir").arg(&data).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    assert!(import(10).status().unwrap().success());
    let reader = Server::start(["--data-dir", &text(&data), "--read-only"]);
    let mut child = import(3_000).spawn().unwrap();
    let mut heads = vec![head(&reader)];
    while child.try_wait().unwrap().is_none() {
        heads.push(head(&reader));
        let block = call(&reader, "eth_getBlockByNumber", json!(["latest", false]));
        assert!(block["result"]["hash"].is_string(), "{block}");
        assert_eq!(reader.get("/ready").status, 200);
    }
    assert!(heads.is_sorted(), "{heads:?}");
    wait_for_head(&reader, 3_000);
}

#[test]
fn a_folder_without_permission_to_write_stays_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "chain.rlp"].map(|name| root.path().join(name));
    fs::write(&file, blocks(20).concat()).unwrap();
    let path = text(&data);
    let writer = Server::start(["--data-dir", &path, "--import", &text(&file)]);
    writer.end("KILL");
    fs::remove_file(data.join("lock")).unwrap();
    for file in fs::read_dir(&data).unwrap() {
        fs::set_permissions(file.unwrap().path(), Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(&data, Permissions::from_mode(0o555)).unwrap();
    let before = files(&data);
    let reader = Server::start(["--data-dir", &path, "--read-only"]);
    assert_eq!((head(&reader), reader.get("/ready").status), (20, 200));
    assert!(call(&reader, "eth_newBlockFilter", json!([]))["result"].is_string());
    reader.end("TERM");
    assert!(files(&data) == before);
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_reader_reports_that_its_folder_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let [data, moved] = ["data", "moved"].map(|name| root.path().join(name));
    let path = text(&data);
    Server::start(["--data-dir", &path]).end("TERM");
    let reader = Server::start(["--data-dir", &path, "--read-only"]);
    fs::rename(&data, &moved).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while reader.get("/ready").status == 200 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(reader.get("/ready").text.contains("the newest blocks were read"), "{}", reader.get("/ready").text);
    assert_eq!(head(&reader), 0);
    fs::rename(&moved, &data).unwrap();
    while reader.get("/ready").status != 200 {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(100));
    }
    for (arguments, status, named) in [
        (vec!["--data-dir", "/nowhere", "--read-only"], 1, "the folder does not exist"),
        (vec!["--read-only"], 2, "--read-only needs a folder"),
        (vec!["--data-dir", &*path, "--read-only", "--follow", "-"], 2, "--follow"),
        (vec!["--data-dir", &*path, "--read-only", "--import", "chain.rlp"], 2, "--import"),
    ] {
        let output = run_to_end(&arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && text.contains(named), "{arguments:?}: {text}");
    }
}

#[test]
fn transactions_of_removed_blocks_do_not_return_to_a_reader() {
    let root = tempfile::tempdir().unwrap();
    let path = text(&root.path().join("data"));
    let writer = Server::dev(["--data-dir", &path]);
    let reader = Server::start(["--data-dir", &path, "--read-only"]);
    let sender = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    let sent = call(&writer, "eth_sendTransaction", json!([{"from": sender, "to": sender}]));
    let hash = sent["result"].as_str().unwrap();
    wait_for_head(&reader, 1);
    assert!(call(&reader, "eth_getTransactionByHash", json!([hash]))["result"].is_object());
    call(&writer, "anvil_rollback", json!([1]));
    wait_for_head(&reader, 0);
    assert_eq!(call(&writer, "eth_getTransactionByHash", json!([hash]))["result"], Value::Null);
    assert_eq!(call(&reader, "eth_getTransactionByHash", json!([hash]))["result"], Value::Null);
    assert_eq!(call(&reader, "eth_getTransactionCount", json!([sender, "pending"]))["result"], "0x0");
}
