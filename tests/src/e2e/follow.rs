//! A server takes further blocks while it serves: `run --follow`.

use crate::generator::{Generator, Shape};
use crate::server::{Server, free_port, node_server};
use crate::websocket::Socket;
use node_chain::BlockStream;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Encoded blocks of a generated chain.
fn blocks(count: u64) -> Vec<Vec<u8>> {
    let mut file = Vec::new();
    Generator::new(Shape::default()).write(count, &mut file).unwrap();
    BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A server with a data folder that follows a path.
struct Setup {
    folder: TempDir,
    metrics: u16,
}

impl Setup {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), metrics: free_port() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, follow: &Path, more: &[&str]) -> Server {
        let arguments = ["--data-dir".to_owned(), text(&self.path("data")), "--follow".to_owned(), text(follow)];
        let metrics = ["--metrics-addr".to_owned(), format!("127.0.0.1:{}", self.metrics)];
        Server::start(arguments.into_iter().chain(metrics).chain(more.iter().map(|text| (*text).to_owned())))
    }

    fn has_failed(&self) -> bool {
        let measured = Server::at(([127, 0, 0, 1], self.metrics).into()).get("/metrics").text;
        measured.contains("\nethnode_follow_failed 1\n")
    }
}

fn head(server: &Server) -> u64 {
    server.get("/blockNumber/").field("BlockNumber").as_str().unwrap().parse().unwrap()
}

/// Waits until the head has this number, and checks that the server is ready all the time.
fn wait_for_head(server: &Server, number: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = head(server);
        assert_eq!(server.get("/ready").status, 200);
        if found == number {
            return;
        }
        assert!(found < number && Instant::now() < deadline, "{found} instead of {number}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_file_is_followed_as_it_grows() {
    let setup = Setup::new();
    let (blocks, file) = (blocks(12), setup.path("chain.rlp"));
    fs::write(&file, blocks[..3].concat()).unwrap();
    let server = setup.start(&file, &[]);
    wait_for_head(&server, 3);

    let mut client = Socket::connect(server.address(), &[]).unwrap();
    let heads = client.call("eth_subscribe", json!(["newHeads"]));
    let filter = server.post("/", json!({"jsonrpc": "2.0", "id": 1, "method": "eth_newBlockFilter"}).to_string());
    // Half a block is waited for.
    let (half, rest) = blocks[3].split_at(blocks[3].len() / 2);
    append(&file, half);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(head(&server), 3);
    append(&file, &[rest, &blocks[4..8].concat()].concat());
    wait_for_head(&server, 8);
    for number in 4..=8u64 {
        assert_eq!(client.notification(&heads)["number"], json!(format!("{number:#x}")));
    }
    let changes =
        json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getFilterChanges", "params": [filter.body["result"]]});
    assert_eq!(server.post("/", changes.to_string()).body["result"].as_array().unwrap().len(), 5);

    // What was visible is durable, and the file is not read again.
    server.end("KILL");
    append(&file, &blocks[8][..5]);
    let server = setup.start(&file, &[]);
    assert_eq!(head(&server), 8);
    append(&file, &blocks[8][5..]);
    wait_for_head(&server, 9);
    server.end("TERM");

    // A file that takes its place is read from its beginning.
    let server = setup.start(&file, &[]);
    let other = setup.path("other.rlp");
    fs::write(&other, blocks.concat()).unwrap();
    fs::rename(&other, &file).unwrap();
    wait_for_head(&server, 12);
    assert!(!setup.has_failed());
}

#[test]
fn a_server_does_not_import_a_file_again() {
    let setup = Setup::new();
    let (blocks, file) = (blocks(6), setup.path("chain.rlp"));
    fs::write(&file, blocks[..4].concat()).unwrap();
    let end = blocks[..4].concat().len();
    let import = ["--data-dir".to_owned(), text(&setup.path("data")), "--import".to_owned(), text(&file)];
    let again = format!("from byte {end} on");
    let server = Server::start(&import);
    assert!(!server.log().contains("from byte"));
    server.end("TERM");
    append(&file, &blocks[4..].concat());
    let server = Server::start(&import);
    assert_eq!((head(&server), server.logged(&again)), (6, 1));
    assert_eq!(server.logged("imported "), 1);
    assert!(server.log().contains("2 blocks"), "{}", server.log());
    server.end("TERM");
    // The same path with other content.
    fs::write(&file, blocks[..5].concat()).unwrap();
    let server = Server::start(&import);
    assert_eq!(head(&server), 6);
    assert!(!server.log().contains("from byte"), "{}", server.log());
}

#[test]
fn writers_to_a_fifo_come_and_go() {
    let setup = Setup::new();
    let (blocks, pipe) = (blocks(8), setup.path("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = setup.start(&pipe, &[]);
    let write = |bytes: &[u8]| OpenOptions::new().write(true).open(&pipe).unwrap().write_all(bytes).unwrap();
    write(&blocks[..2].concat());
    wait_for_head(&server, 2);
    thread::sleep(Duration::from_millis(300));
    // A writer that breaks off, and one that continues.
    write(&blocks[2][..100]);
    thread::sleep(Duration::from_millis(400));
    write(&[&blocks[2][100..], &blocks[3]].concat());
    wait_for_head(&server, 4);
    // A writer that breaks off, and one that begins again.
    write(&blocks[4][..100]);
    thread::sleep(Duration::from_millis(400));
    write(&blocks[..6].concat());
    wait_for_head(&server, 6);
    assert!(!setup.has_failed());
    // Writers that are not complete do not delay the end.
    write(&blocks[6][..100]);
    server.end("TERM");
}

#[test]
fn standard_input_is_followed_up_to_its_end() {
    let blocks = blocks(4);
    let port = free_port();
    let mut child = node_server()
        .args(["run", "--data-dir", ":memory:", "--follow", "-", "--port", &port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(5));
    }
    let server = Server::at(([127, 0, 0, 1], port).into());
    let mut input = child.stdin.take().unwrap();
    for (number, block) in (1..).zip(&blocks) {
        input.write_all(block).unwrap();
        wait_for_head(&server, number);
    }
    drop(input);
    thread::sleep(Duration::from_millis(300));
    assert_eq!((head(&server), server.get("/ready").status), (4, 200));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn standard_input_without_blocks_is_reported() {
    let server = Server::start(["--follow", "-"]);
    assert_eq!(server.logged("standard input has ended without a block"), 1, "{}", server.log());
}

#[test]
fn files_of_a_folder_are_taken_in_any_order() {
    let setup = Setup::new();
    let (blocks, folder) = (blocks(40), setup.path("blocks"));
    fs::create_dir(&folder).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    put("block-9.rlp", &blocks[1..9].concat());
    put("block-1.rlp", &blocks[0]);
    put(".block-10.rlp", b"not complete");
    put("block-10.rlp.tmp", b"not complete");
    put("README", b"not blocks");
    fs::create_dir(folder.join("older")).unwrap();
    let server = setup.start(&folder, &[]);
    wait_for_head(&server, 9);
    // The parent arrives later.
    put("block-11.rlp", &blocks[10]);
    thread::sleep(Duration::from_millis(300));
    put("block-10.rlp", &blocks[9]);
    wait_for_head(&server, 11);
    let (half, rest) = blocks[11].split_at(50);
    put("block-12.rlp", half);
    put("block-13.rlp", &blocks[12]);
    thread::sleep(Duration::from_millis(300));
    append(&folder.join("block-12.rlp"), rest);
    wait_for_head(&server, 13);
    for number in 14..=40 {
        put(&format!("block-{number}.rlp"), &blocks[number - 1]);
    }
    wait_for_head(&server, 40);
    server.end("TERM");
    let server = setup.start(&folder, &[]);
    assert_eq!(head(&server), 40);
    assert!(!setup.has_failed());
}

#[test]
fn a_fault_ends_following_but_not_the_server() {
    let blocks = blocks(6);
    let mut invalid = blocks[3].clone();
    // In the hash of the ommers.
    invalid[50] ^= 1;
    for (fault, named) in
        [(&invalid[..], "is invalid"), (&blocks[5], "its parent"), (b"garbage", "no block begins at byte")]
    {
        let setup = Setup::new();
        let file = setup.path("chain.rlp");
        fs::write(&file, blocks[..3].concat()).unwrap();
        let server = setup.start(&file, &[]);
        wait_for_head(&server, 3);
        append(&file, &[fault, &blocks[4]].concat());
        assert_eq!(server.logged(&format!("following {} ended; the head is block 3: ", text(&file))), 1);
        assert!(server.log().contains(named), "{named}: {}", server.log());
        assert!(setup.has_failed());
        assert_eq!((head(&server), server.get("/ready").status), (3, 200));
        let call: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"});
        assert_eq!(server.post("/", call.to_string()).body["result"], "0x3");
    }
    let refused = crate::server::run_to_end(["--follow", "/nowhere"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/nowhere"));
    File::open("/nowhere").unwrap_err();
}
