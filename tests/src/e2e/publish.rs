//! A writer that publishes to a shared store, and servers that replace it: `--publish` and `--restore`.

use crate::generator::{Generator, Shape};
use crate::server::{Server, free_port, node_server};
use node_chain::BlockStream;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const FROM: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const TO: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// A folder for the shared store and the data folders.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn url(&self) -> String {
        format!("file://{}", self.path("store"))
    }

    /// Starts a development chain in the folder `data`, which publishes with the option `how`.
    fn dev(&self, data: &str, how: &str, more: &[&str]) -> Server {
        let (data, url) = (self.path(data), self.url());
        Server::dev(["--data-dir", &data, how, &url].into_iter().chain(more.iter().copied()))
    }
}

fn call(server: &Server, method: &str, params: Value) -> Value {
    server.post("/", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()).body
}

fn send(server: &Server) -> Value {
    call(server, "eth_sendTransaction", json!([{"from": FROM, "to": TO, "value": "0x1"}]))
}

fn head(server: &Server) -> u64 {
    server.get("/blockNumber/").field("BlockNumber").as_str().unwrap().parse().unwrap()
}

fn run(arguments: &[&str]) -> Output {
    node_server().args(arguments).output().unwrap()
}

fn wait(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The blocks of a chain, and a proof of each state.
fn content(server: &Server) -> Vec<Value> {
    let at = |number: u64| {
        let number = format!("{number:#x}");
        [
            call(server, "eth_getBlockByNumber", json!([number, true])),
            call(server, "eth_getProof", json!([FROM, [], number])),
        ]
    };
    (0..=head(server)).flat_map(at).collect()
}

#[test]
fn a_killed_writer_is_replaced_and_nothing_acknowledged_is_lost() {
    let place = Place::new();
    let metrics = free_port();
    let address = format!("127.0.0.1:{metrics}");
    let first = place.dev("first", "--publish", &["--publish-sync", "--metrics-addr", &address]);
    for _ in 0..30 {
        assert!(send(&first)["result"].is_string());
    }
    assert_eq!(first.get("/ready").status, 200);
    let expected = content(&first);
    let measured = Server::at(([127, 0, 0, 1], metrics).into()).get("/metrics").text;
    let value = |name: &str| -> f64 {
        let line = measured.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).expect(name);
        line.parse().unwrap()
    };
    assert_eq!((value("ethnode_publish_epoch"), value("ethnode_publish_failing")), (1.0, 0.0));
    assert!(value("ethnode_publish_entries_total") >= 30.0);
    first.end("KILL");

    // The folder is lost.
    let second = place.dev("second", "--restore", &["--publish-sync"]);
    assert_eq!(head(&second), 30);
    assert_eq!(content(&second), expected);
    assert!(send(&second)["result"].is_string());

    // A third one takes over while the second is alive.
    let third = place.dev("third", "--restore", &["--publish-sync"]);
    assert_eq!(content(&third), content(&second));
    assert!(send(&third)["result"].is_string());
    let taken_over = "another server has become the writer of the shared store (epoch 3)";
    let refused = send(&second);
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains(taken_over), "{refused}");
    assert_eq!(head(&second), 31);
    let refused = second.post("/dev/mine/", "{}");
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(refused.text.contains(taken_over), "{}", refused.text);
    wait("the old writer is not ready", || second.get("/ready").status == 503);
    assert!(second.get("/ready").text.contains(taken_over));
    wait("it is logged once", || second.logged("changes cannot be stored, and are refused") == 1);
    drop(second);

    // What it refused is forgotten, so it can become the writer again.
    let expected = content(&third);
    let second = place.dev("second", "--publish", &["--publish-sync"]);
    assert_eq!(content(&second), expected);
    assert!(send(&third)["error"].is_object());
    assert!(send(&second)["result"].is_string());
    // The first one catches up.
    let expected = content(&second);
    drop((second, third));
    let first = place.dev("first", "--restore", &[]);
    assert_eq!(content(&first), expected);
}

#[test]
fn a_writer_and_a_reader_whose_store_was_removed_say_so() {
    let place = Place::new();
    let writer = place.dev("data", "--publish", &["--publish-sync"]);
    assert!(send(&writer)["result"].is_string());
    let reader = Server::serve(["--store", &place.url()]);
    wait("the reader", || head(&reader) == 1);
    fs::remove_dir_all(place.path("store")).unwrap();
    let lost = "the shared store no longer has object 1 of the log";
    let refused = send(&writer);
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains(lost), "{refused}");
    assert!(send(&writer)["error"].is_object());
    assert!(!Path::new(&place.path("store")).exists());
    wait("the writer is not ready", || writer.get("/ready").status == 503);
    assert!(writer.get("/ready").text.contains(lost));
    wait("it is logged once", || writer.logged(lost) > 0);
    assert_eq!(writer.logged("changes cannot be stored, and are refused"), 1);
    wait("the reader is not ready", || reader.get("/ready").status == 503);
    assert!(reader.get("/ready").text.contains(lost), "{}", reader.get("/ready").text);
    // Both serve what they have.
    assert_eq!((head(&writer), head(&reader)), (1, 1));
    // The store is created again by the next start, with everything.
    drop(writer);
    let writer = place.dev("data", "--publish", &["--publish-sync"]);
    assert!(send(&writer)["result"].is_string());
    assert_eq!(content(&place.dev("other", "--restore", &[])), content(&writer));
}

#[test]
fn runs_that_are_missing_are_named_and_uploaded_again() {
    let place = Place::new();
    let (data, url) = (place.path("data"), place.url());
    let (chain, restored) = (place.path("chain.rlp"), place.path("restored"));
    Generator::new(Shape::default()).write(200, &mut fs::File::create(&chain).unwrap()).unwrap();
    let imported = run(&["import", "--data-dir", &data, &chain, "--publish", &url]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let files = fs::read_dir(place.path("store/runs")).unwrap();
    let runs: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    let names: Vec<_> = runs.iter().map(|run| format!("runs/{}", run.file_name().unwrap().display())).collect();
    assert!(runs.len() >= 2);
    fs::remove_file(&runs[0]).unwrap();
    fs::File::options().write(true).open(&runs[1]).unwrap().set_len(100).unwrap();
    let faults = [format!("{} is missing", names[0]), format!("{} has 100 bytes instead of", names[1])];
    for arguments in [&["verify", "--store", &url][..], &["run", "--data-dir", &restored, "--restore", &url]] {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && faults.iter().all(|fault| error.contains(fault)), "{error}");
    }
    let published = run(&["import", "--data-dir", &data, &chain, "--publish", &url]);
    let error = String::from_utf8_lossy(&published.stderr);
    assert!(published.status.success() && faults.iter().all(|fault| error.contains(fault)), "{error}");
    let verified = run(&["verify", "--store", &url]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn a_writer_that_follows_a_file_is_killed_again_and_again() {
    let place = Place::new();
    let mut file = Vec::new();
    Generator::new(Shape::default()).write(400, &mut file).unwrap();
    let blocks: Vec<_> = BlockStream::new(&file[..]).map(|block| block.unwrap().bytes).collect();
    let (chain, url) = (place.path("chain.rlp"), place.url());
    for round in 1..=4 {
        fs::write(&chain, blocks[..100 * round].concat()).unwrap();
        let data = place.path(&format!("data-{round}"));
        let how = if round == 1 { "--publish" } else { "--restore" };
        let options = ["--data-dir", &data, "--follow", &chain, how, &url, "--publish-interval", "20"];
        let server = Server::start(options);
        let last = 100 * round as u64;
        wait("the head", || head(&server) == last);
        // Before that, there is nothing to take over.
        wait("the runs", || fs::read_dir(place.path("store/runs")).is_ok_and(|runs| runs.count() > 0));
        wait("the manifest", || fs::read_dir(place.path("store/manifests")).is_ok_and(|all| all.count() > 1));
        if round == 4 {
            let expected = {
                let data = place.path("alone");
                let alone = Server::start(["--data-dir", &data, "--import", &chain]);
                content(&alone)
            };
            assert_eq!(content(&server), expected);
        }
        server.end("KILL");
    }
}

#[test]
fn an_import_is_published_when_it_ends() {
    let place = Place::new();
    let (chain, data, url) = (place.path("chain.rlp"), place.path("data"), place.url());
    let mut file = fs::File::create(&chain).unwrap();
    Generator::new(Shape::default()).write(200, &mut file).unwrap();
    // The folder exists before it is published.
    let imported = run(&["import", "--data-dir", &data, &chain]);
    assert!(imported.status.success());
    let imported = run(&["import", "--data-dir", &data, &chain, "--publish", &url]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let server = Server::start(["--data-dir", &data]);
    let restored = Server::start(["--data-dir", &place.path("restored"), "--restore", &url]);
    assert_eq!(head(&restored), 200);
    assert_eq!(content(&restored), content(&server));
    drop(restored);
    let verified = run(&["verify", "--data-dir", &place.path("restored")]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn what_cannot_be_published_or_restored_is_refused() {
    let place = Place::new();
    let (data, url) = (place.path("data"), place.url());
    let refused = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = refused(&["dev", "--port", "0", "--publish", &url]);
    assert!(error.contains("--publish needs --data-dir"), "{error}");
    let error = refused(&["run", "--port", "0", "--restore", &url]);
    assert!(error.contains("--restore needs --data-dir"), "{error}");
    let error = refused(&["run", "--port", "0", "--data-dir", &data, "--restore", &url]);
    assert!(error.contains("there is no chain in the shared store"), "{error}");
    let error = refused(&["dev", "--port", "0", "--data-dir", &data, "--publish", "ftp://server/store"]);
    assert!(error.contains("shared store ftp://server/store"), "{error}");
    let error = refused(&["run", "--port", "0", "--data-dir", &data, "--publish-sync"]);
    assert!(error.contains("--publish"), "{error}");
    let error = refused(&["run", "--read-only", "--data-dir", &data, "--publish", &url]);
    assert!(error.contains("cannot be used with"), "{error}");
    let server = place.dev("data", "--publish", &["--publish-sync", "--timestamp", "1"]);
    assert!(send(&server)["result"].is_string());
    drop(server);
    let error = refused(&[
        "dev",
        "--bare",
        "--timestamp",
        "1",
        "--port",
        "0",
        "--data-dir",
        &place.path("other"),
        "--publish",
        &url,
    ]);
    assert!(error.contains("was not published from this folder"), "{error}");
    assert!(Path::new(&place.path("store/log")).is_dir());
}

impl Place {
    /// Makes the shared store unavailable: its path leads to itself.
    fn break_store(&self) {
        fs::rename(self.path("store"), self.path("away")).unwrap();
        symlink("store", self.path("store")).unwrap();
    }

    fn heal_store(&self) {
        fs::remove_file(self.path("store")).unwrap();
        fs::rename(self.path("away"), self.path("store")).unwrap();
    }
}

#[test]
fn what_waits_for_a_store_ends_on_a_signal() {
    let place = Place::new();
    let url = place.url();
    let waiting = place.dev("data", "--publish", &["--publish-sync"]);
    assert!(send(&waiting)["result"].is_string());
    place.break_store();
    let [other, empty, imported] = ["other", "empty", "imported"].map(|name| place.path(name));
    let starts: [(&[&str], i32); 6] = [
        (&["dev", "--port", "0", "--data-dir", &other, "--publish", &url], 0),
        (&["run", "--port", "0", "--data-dir", &empty, "--restore", &url], 0),
        (&["serve", "--port", "0", "--store", &url], 0),
        (&["verify", "--store", &url], 1),
        (&["export", "--store", &url, "-"], 1),
        (&["import", "--data-dir", &imported, "--publish", &url, "/dev/null"], 1),
    ];
    thread::scope(|scope| {
        // A change waits for the store, and so does whoever sent it.
        let address = waiting.address().to_owned();
        let change = scope.spawn(move || {
            let body = r#"{"jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": []}"#;
            let head = format!(
                "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}",
                body.len()
            );
            let mut connection = TcpStream::connect(address).unwrap();
            write!(connection, "{head}\r\nConnection: close\r\n\r\n{body}").unwrap();
            // The response, if there is one, says that the change was refused.
            let _ = connection.read_to_end(&mut Vec::new());
        });
        let started = starts.map(|(arguments, status)| {
            let mut command = node_server();
            (arguments, command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), status)
        });
        thread::sleep(Duration::from_secs(3));
        assert!(!change.is_finished());
        let begun = Instant::now();
        for (arguments, mut process, status) in started {
            assert_eq!(process.try_wait().unwrap(), None, "{arguments:?}");
            let kill = Command::new("kill").args(["-s", "TERM", &process.id().to_string()]).status();
            assert!(kill.unwrap().success());
            assert_eq!(process.wait().unwrap().code(), Some(status), "{arguments:?}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let begun = Instant::now();
        waiting.end("TERM");
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    });
    // Nothing is lost, and a start waits until the store is there.
    let healing = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            place.heal_store();
        });
        place.dev("data", "--publish", &["--publish-sync"])
    });
    assert!(send(&healing)["result"].is_string());
}

#[test]
fn a_store_within_a_folder_of_the_server_is_refused() {
    let place = Place::new();
    let path = |name: &str| place.path(name);
    let first = place.dev("data", "--publish", &["--publish-sync"]);
    assert!(send(&first)["result"].is_string());
    first.end("TERM");
    symlink(path("data"), path("link")).unwrap();
    let inside = |name: &str| format!("file://{}", path(name));
    let (data, other, url) = (path("data"), path("other"), place.url());
    let cases: [(&[&str], &str); 9] = [
        (
            &["dev", "--port", "0", "--data-dir", &data, "--publish", &inside("data/store")],
            "must not contain each other",
        ),
        (
            &["run", "--port", "0", "--data-dir", &data, "--publish", &inside("link/a/store")],
            "must not contain each other",
        ),
        (&["run", "--port", "0", "--data-dir", &path("store/data"), "--restore", &url], "must not contain each other"),
        (&["dev", "--port", "0", "--data-dir", &other, "--publish", &inside("other")], "must not contain each other"),
        (
            &["serve", "--port", "0", "--store", &url, "--cache-dir", &path("store/cache")],
            "must not contain each other",
        ),
        (
            &["serve", "--port", "0", "--store", &inside("cache/store"), "--cache-dir", &path("cache")],
            "must not contain",
        ),
        (&["serve", "--port", "0", "--store", &inside("data")], "not a shared store but the data folder of a chain"),
        (&["serve", "--port", "0", "--store", "file:///a?x=1"], "query"),
        (&["serve", "--port", "0", "--store", "x"], "none of s3://"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let output = run(&["backup", "--store", &url, &path("store/copy")]);
    assert!(!output.status.success() && !Path::new(&path("store/copy")).exists());
    assert!(!Path::new(&path("other")).exists() && !Path::new(&path("store/cache")).exists());
    let verified = run(&["verify", "--store", &url]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}
