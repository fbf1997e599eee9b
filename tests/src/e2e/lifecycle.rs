//! Start and end of the server.

use crate::events::Events;
use crate::generator::{Generator, Shape};
use crate::server::{Server, conformance_chain, end_while_starting, free_port, listening_on, node_server, run_to_end};
use crate::tls::Identity;
use crate::websocket::Socket;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;

const NONE: [&str; 0] = [];

#[test]
fn signals_end_the_server_with_success() {
    for signal in ["TERM", "INT"] {
        let server = Server::start(NONE);
        // An idle connection must not delay the end, not even by a second.
        let mut idle = server.connect();
        idle.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        assert_ne!(idle.read(&mut [0; 1_024]).unwrap(), 0);
        server.signal(signal);
        let started = Instant::now();
        while idle.read(&mut [0; 1_024]).is_ok_and(|length| length > 0) {}
        assert_eq!(server.ended().code(), Some(0), "{signal}");
        assert!(started.elapsed() < Duration::from_millis(900), "{signal}: {:?}", started.elapsed());
    }
}

#[test]
fn signals_end_an_import_with_success() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.rlp");
    let mut blocks = Vec::new();
    Generator::new(Shape::default()).write(10, &mut blocks).unwrap();
    // Known blocks are imported again, which takes longer than delivering a signal.
    fs::write(&path, blocks.repeat(5_000)).unwrap();
    let path = path.display().to_string();
    for signal in ["TERM", "INT"] {
        let (status, log) = end_while_starting(["--import", &path], "importing", signal);
        assert_eq!(status.code(), Some(0), "{signal}: {log}");
        assert!(log.contains("a signal ended the import at block "), "{signal}: {log}");
    }
}

/// Sends a call that runs until its gas is used up, and waits until it does. `metrics` is the port of the server's
/// metrics.
fn begin_endless_call(server: &Server, metrics: u16) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // JUMPDEST PUSH1 0 JUMP.
    let body = r#"{"Transaction":{"Data":"0x5b600056","Gas":"0x2faf080"}}"#;
    let head = "POST /call/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    let metrics = Server::at(([127, 0, 0, 1], metrics).into());
    while !metrics.get("/metrics").text.contains("ethnode_executor_busy{pool=\"call\"} 1") {
        thread::sleep(Duration::from_millis(1));
    }
    stream
}

#[test]
fn a_running_request_is_finished() {
    let metrics = free_port();
    let server = Server::start(["--metrics-addr", &format!("127.0.0.1:{metrics}")]);
    let mut stream = begin_endless_call(&server, metrics);
    assert_eq!(server.end("TERM").code(), Some(0));
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 422"), "{response}");
}

#[test]
fn health_and_progress_are_served_during_an_import() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.rlp");
    let mut blocks = Vec::new();
    Generator::new(Shape::default()).write(10, &mut blocks).unwrap();
    // Known blocks are imported again.
    fs::write(&path, blocks.repeat(200_000)).unwrap();
    let (port, metrics) = (free_port(), free_port());
    let mut child = node_server()
        .args(["run", "--data-dir", ":memory:", "--log", "off", "--import"])
        .arg(&path)
        .args(["--port", &port.to_string(), "--metrics-addr", &format!("127.0.0.1:{metrics}")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let at = |port: u16| Server::at(([127, 0, 0, 1], port).into());
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(5));
    }
    let server = at(port);
    assert_eq!(server.get("/health").status, 200);
    let progress = || {
        let ready = server.get("/ready");
        assert_eq!(ready.problem_faults(503), NONE, "{}", ready.text);
        ready.body["detail"].as_str().unwrap().to_owned()
    };
    while !progress().contains("%, ") {
        thread::sleep(Duration::from_millis(5));
    }
    let text = progress();
    assert!(text.contains("importing ") && text.contains(" left, block ") && text.contains("blocks/s"), "{text}");
    let refused = server.get("/chainId/");
    assert_eq!(refused.problem_faults(503), NONE, "{}", refused.text);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.post("/", r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#).status, 503);
    let measured = at(metrics).get("/metrics").text;
    assert!(measured.contains("ethnode_import_blocks_total"), "{measured}");
    let share = measured.lines().find_map(|line| line.strip_prefix("ethnode_import_progress_ratio ")).unwrap();
    assert!((f64::MIN_POSITIVE..1.0).contains(&share.parse::<f64>().unwrap()), "{share}");
    let kill = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "", "it was never ready");
}

/// Two parts of 64 blocks, which is what the import reads at once.
fn two_batches() -> [Vec<u8>; 2] {
    let mut generator = Generator::new(Shape::default());
    [(); 2].map(|()| {
        let mut blocks = Vec::new();
        generator.write(64, &mut blocks).unwrap();
        blocks
    })
}

/// Starts a server that reads its chain file from the returned pipe, and serves what has arrived.
fn import_from_a_pipe(arguments: &[&str]) -> (Child, Server) {
    let port = free_port();
    let mut child = node_server()
        .args(["run", "--data-dir", ":memory:", "--serve-while-importing", "--import", "/dev/stdin"])
        .args(["--port", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(5));
    }
    (child, Server::at(([127, 0, 0, 1], port).into()))
}

/// Waits until the head has this number.
fn wait_for_head(server: &Server, number: u64) {
    while server.get("/blockNumber/").field("BlockNumber") != &json!(number.to_string()) {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_last_block_of_the_files_is_the_highest_one_from_the_beginning() {
    let [first, second] = two_batches();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("second.rlp");
    fs::write(&path, &second).unwrap();
    // The pipe is imported first, and its blocks are not known before.
    let (mut child, server) = import_from_a_pipe(&["--log", "warn", "--import", path.to_str().unwrap()]);
    let status = || server.get("/syncing/").field("SyncStatus").clone();
    while status()["HighestBlock"] != json!("128") {
        assert_eq!(status()["CurrentBlock"], json!("0"));
        thread::sleep(Duration::from_millis(5));
    }
    child.stdin.take().unwrap().write_all(&first).unwrap();
    wait_for_head(&server, 128);
    while status() != Value::Null {
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_imported_is_served_during_the_import_if_asked() {
    let [first, second] = two_batches();
    let (mut child, server) = import_from_a_pipe(&["--log", "warn"]);
    let mut file = child.stdin.take().unwrap();
    let rpc = |method: &str, parameters: Value| {
        server.post("/", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).to_string()).body
    };
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), "0");
    file.write_all(&first).unwrap();
    wait_for_head(&server, 64);

    // Reads, over both interfaces.
    let block = server.get("/getBlockByNumber/latest/true/");
    assert_eq!(
        (block.status, &block.field("Block")["Number"], block.header("x-head-number")),
        (200, &json!("64"), Some("64"))
    );
    let transaction = block.field("Block")["Transactions"][0].clone();
    let sender = transaction["From"].as_str().unwrap();
    for (path, body) in [
        ("/getProof/", json!({"Address": sender, "StorageKeys": [], "BlockNumber": "7"})),
        ("/getStorageAt/", json!({"Address": sender, "Position": "0", "BlockNumber": "64"})),
        ("/call/", json!({"Transaction": {"To": sender}, "BlockNumber": "latest"})),
        ("/estimateGas/", json!({"Transaction": {"From": sender, "To": sender}})),
        ("/feeHistory/", json!({"BlockCount": "3"})),
        ("/getLogs/", json!({"Address": "", "Topics": [], "FromBlock": "1", "ToBlock": "latest"})),
    ] {
        let response = server.post(path, body.to_string());
        assert_eq!(response.status, 200, "{path}: {}", response.text);
    }
    assert_eq!(rpc("eth_getTransactionCount", json!([sender, "pending"]))["error"], Value::Null);
    let progress = json!({"startingBlock": "0x0", "currentBlock": "0x40", "highestBlock": "0x40"});
    assert_eq!(rpc("eth_syncing", json!([]))["result"], progress);
    let status = json!({"StartingBlock": "0", "CurrentBlock": "64", "HighestBlock": "64"});
    assert_eq!(server.get("/syncing/").field("SyncStatus"), &status);
    assert_eq!((server.get("/health").status, server.get("/ready").status), (200, 503));
    assert!(server.get("/ready").text.contains("importing "));

    // Filters, subscriptions and streams follow the import.
    let filter = server.post("/newBlockFilter/", "{}");
    let changes = format!("/getFilterChanges/{}/", filter.field("FilterId").as_str().unwrap());
    let mut socket = Socket::connect(server.address(), &[]).unwrap();
    socket.call("eth_subscribe", json!(["newHeads"]));
    let mut events = Events::listen(&format!("{}/events/?Stream=blocks", server.url()), None);

    // Transactions are refused.
    let raw = server.get(&format!("/getRawTransaction/{}/", transaction["Hash"].as_str().unwrap()));
    let raw = raw.field("Data").as_str().unwrap();
    let refused = server.post("/sendRawTransaction/", json!({"Data": raw}).to_string());
    assert_eq!(refused.problem_faults(503), NONE, "{}", refused.text);
    assert!(refused.header("retry-after") == Some("5") && refused.text.contains("being imported"), "{}", refused.text);
    for method in ["eth_sendRawTransaction", "eth_sendRawTransactionSync"] {
        let error = &rpc(method, json!([raw]))["error"];
        assert_eq!(
            (&error["code"], error["message"].as_str().unwrap().contains("being imported")),
            (&json!(-32002), true)
        );
    }
    assert_eq!(rpc("evm_mine", json!([]))["error"]["code"], -32601);

    file.write_all(&second).unwrap();
    wait_for_head(&server, 128);
    let numbers = (0..64).map(|_| socket.receive()["params"]["result"]["number"].clone()).collect::<Vec<_>>();
    assert_eq!((&numbers[0], &numbers[63]), (&json!("0x41"), &json!("0x80")));
    let changes = server.get(&changes).field("Result").as_array().unwrap().clone();
    let newest = server.get("/getBlockByNumber/latest/false/").field("Block")["Hash"].clone();
    assert_eq!((changes.len(), &changes[63]), (64, &newest));
    while events.next_event().unwrap().data != newest {}

    // It ends, and everything is served.
    drop(file);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.find_map(|line| listening_on(&line)).is_some());
    assert_eq!(server.get("/ready").status, 200);
    assert_eq!(rpc("eth_syncing", json!([]))["result"], false);
    assert_eq!(server.get("/syncing/").field("SyncStatus"), &Value::Null);
    assert_eq!(server.post("/sendRawTransaction/", json!({"Data": raw}).to_string()).status, 200);
    assert_eq!(terminate(&mut child), Some(0));
}

#[test]
fn an_import_that_fails_ends_a_server_that_serves_meanwhile() {
    let [first, second] = two_batches();
    let (mut child, server) = import_from_a_pipe(&["--strict", "--log", "off"]);
    let mut file = child.stdin.take().unwrap();
    file.write_all(&first).unwrap();
    wait_for_head(&server, 64);
    file.write_all(&second[..second.len() - 1]).unwrap();
    drop(file);
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{text}");
    assert!(
        text.starts_with("error: chain file /dev/stdin was not imported completely; the head is block 127: "),
        "{text}"
    );
}

#[test]
fn a_signal_during_an_import_waits_for_requests() {
    let [first, _] = two_batches();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.rlp");
    // Known blocks are imported again.
    fs::write(&path, first.repeat(20_000)).unwrap();
    let (port, metrics) = (free_port(), free_port());
    let mut child = node_server()
        .args(["run", "--data-dir", ":memory:", "--log", "off", "--serve-while-importing", "--import"])
        .arg(&path)
        .args(["--port", &port.to_string(), "--metrics-addr", &format!("127.0.0.1:{metrics}")])
        .spawn()
        .unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert_eq!(child.try_wait().unwrap(), None);
        thread::sleep(Duration::from_millis(5));
    }
    let server = Server::at(([127, 0, 0, 1], port).into());
    let mut stream = begin_endless_call(&server, metrics);
    assert_eq!(server.get("/ready").status, 503);
    assert_eq!(terminate(&mut child), Some(0));
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 422"), "{response}");
}

#[test]
fn systemd_hears_of_the_start_and_that_the_server_responds() {
    watch(&[]);
}

#[test]
fn the_watchdog_of_a_server_with_tls_makes_no_failed_requests() {
    let log = watch(&Identity::new().options());
    assert!(!log.contains(" request: ") && !log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

/// Runs a server with a watchdog for a moment, and returns its log.
fn watch(options: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut child = node_server()
        .args(["run", "--data-dir", ":memory:", "--port", "0", "--log", "debug"])
        .args(options)
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "300000")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let message = || {
        let mut bytes = [0; 1_024];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert!(message().starts_with("READY=1\nSTATUS=listening on 127.0.0.1:"));
    assert_eq!([message(), message()].map(|text| text.trim_end().to_owned()), ["WATCHDOG=1"; 2]);
    let kill = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    while !message().starts_with("STOPPING=1") {}
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    log
}

#[test]
fn man_pages_describe_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = node_server().arg("man").arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("ethnode.1").contains("ethnode\\-backup(1)"), "{}", page("ethnode.1"));
    assert!(page("ethnode-run.1").contains("\\-\\-shutdown\\-delay"));
    let missing = node_server().args(["man", "/nowhere"]).output().unwrap();
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("/nowhere"));
}

#[test]
fn the_end_is_announced_before_the_listener_closes() {
    let server = Server::dev(["--shutdown-delay", "3s"]);
    let mut events = Events::listen(&format!("{}/events/?Stream=blocks", server.url()), None);
    assert!(events.next_event().is_some());
    let mut socket = Socket::connect(server.address(), &[]).unwrap();
    assert_eq!(socket.call("eth_chainId", json!([])), "0x7a69");
    assert_eq!((server.get("/ready").status, server.get("/chainId/").header("connection")), (200, None));

    server.signal("TERM");
    assert_eq!(server.logged("requests are served for 3000 ms more"), 1);
    let ready = server.get("/ready");
    assert_eq!((ready.status, &ready.body["detail"]), (503, &json!("not ready: the server is shutting down")));
    let served = server.get("/chainId/");
    assert_eq!((served.status, served.header("connection")), (200, Some("close")));

    let last = events.next_event().unwrap();
    assert_eq!((last.name.as_str(), &last.data["status"], last.id), ("problem", &json!(503), None));
    assert_eq!(events.next_event(), None);
    let close = socket.inner().read().unwrap();
    assert!(matches!(&close, Message::Close(Some(frame)) if frame.code == CloseCode::Away), "{close:?}");
    // All this comes while the listener is open. Who connects nevertheless is served until it closes.
    let mut late = Events::listen(&format!("{}/events/?Stream=blocks", server.url()), None);
    assert!(late.next_event().is_some());
    assert!(!server.log().contains("waiting for requests in progress"), "{}", server.log());
    assert_eq!(late.next_event().unwrap().name, "problem");
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn signals_reload_tokens_and_the_level_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (tokens, config) = (file("tokens"), file("config.toml"));
    fs::write(&tokens, "0123456789abcdef").unwrap();
    fs::write(&config, format!("[run]\nlog = \"warn,ethnode=info\"\ntoken-file = {tokens:?}\n")).unwrap();
    let server = Server::start(["--config", &config]);
    let status = |token: &str| {
        let header = format!("Bearer {token}");
        server.send("GET", "/chainId/", &[("Authorization", &header)], "").status
    };
    assert_eq!((status("0123456789abcdef"), status("fedcba9876543210")), (200, 401));

    server.signal("USR1");
    assert_eq!(server.logged("SIGUSR1: the level of the log is debug"), 1);
    assert!(!server.log().contains("operation=\"chainId\""), "{}", server.log());
    assert_eq!(status("0123456789abcdef"), 200);
    assert_eq!(server.logged("operation=\"chainId\""), 1);
    server.signal("USR1");
    assert_eq!(server.logged("the level of the log is that of --log"), 1);
    assert_eq!(status("0123456789abcdef"), 200);

    fs::write(&tokens, "fedcba9876543210").unwrap();
    fs::write(&config, format!("[run]\nlog = \"info\"\ntoken-file = {tokens:?}\n")).unwrap();
    server.signal("HUP");
    assert_eq!(server.logged("SIGHUP: reloaded"), 1, "{}", server.log());
    assert_eq!(server.log().matches("operation=\"chainId\"").count(), 1);
    assert_eq!((status("0123456789abcdef"), status("fedcba9876543210")), (401, 200));
    assert_eq!(server.logged("error=\"the header Authorization"), 1);

    fs::write(&config, "[run]\nnonsense = 1\n").unwrap();
    server.signal("HUP");
    assert_eq!(server.logged("SIGHUP: nothing was reloaded: "), 1, "{}", server.log());
    assert_eq!(status("fedcba9876543210"), 200);
    assert_eq!(server.end("TERM").code(), Some(0));
}

#[test]
fn a_reload_ends_streams_whose_tokens_lose_rights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    fs::write(&path, "removed-0123456789\nreduced-0123456789 send\nstaying-0123456789\n").unwrap();
    let server = Server::dev(["--token-file", path.to_str().unwrap()]);
    let header = |name: &str| format!("Bearer {name}-0123456789");
    let connect = |name: &str| {
        let mut socket = Socket::connect(server.address(), &[("Authorization", &header(name))]).unwrap();
        assert_eq!(socket.call("eth_chainId", json!([])), "0x7a69");
        socket
    };
    let listen = |name: &str| {
        let mut stream = server.connect();
        let header = header(name);
        write!(stream, "GET /events/?Stream=blocks HTTP/1.1\r\nHost: localhost\r\nAuthorization: {header}\r\n\r\n")
            .unwrap();
        // The stream is open.
        assert!(stream.peek(&mut [0]).unwrap() > 0);
        stream
    };
    let (mut removed, mut reduced, mut staying) = (connect("removed"), connect("reduced"), connect("staying"));
    let (mut ended, mut open) = (listen("removed"), listen("reduced"));
    fs::write(&path, "reduced-0123456789 read\nstaying-0123456789\n").unwrap();
    server.signal("HUP");
    assert_eq!(server.logged("SIGHUP: reloaded"), 1, "{}", server.log());
    for socket in [&mut removed, &mut reduced] {
        match socket.inner().read() {
            Ok(Message::Close(Some(frame))) => assert_eq!(frame.code, CloseCode::Policy),
            other => panic!("{other:?}"),
        }
    }
    let mut text = String::new();
    ended.read_to_string(&mut text).unwrap();
    assert!(text.contains("event: problem\ndata: {") && text.contains("\"status\":401"), "{text}");
    staying.call("evm_mine", json!([]));
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("event: block") {
        let mut piece = [0; 1_024];
        let length = open.read(&mut piece).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn a_log_reader_that_stops_reading_delays_nothing() {
    // The pipe stays open, and nobody reads it.
    let (_reader, writer) = pipe().unwrap();
    let port = free_port();
    let mut command = node_server();
    command.args([
        "dev",
        "--bare",
        "--port",
        "0",
        "--log-format",
        "json",
        "--metrics-addr",
        &format!("127.0.0.1:{port}"),
    ]);
    let mut child = command.stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| listening_on(&line)).unwrap();
    let server = Server::at(address.trim_start_matches("http://").parse().unwrap());

    // Each call has a line. The queue takes 65,536 of them.
    let batch = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#; 1_000].join(","));
    let metrics = Server::at(([127, 0, 0, 1], port).into());
    let dropped = || {
        let text = metrics.get("/metrics").text;
        let count = text.lines().find_map(|line| line.strip_prefix("ethnode_log_lines_dropped_total ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    assert_eq!(dropped(), 0);
    let batches =
        (1..=100).take_while(|_| dropped() == 0).inspect(|_| assert_eq!(server.post("/", &batch).status, 200));
    let batches = batches.count();
    assert!((65..100).contains(&batches), "{batches}");

    assert_eq!(terminate(&mut child), Some(0));
}

/// Sends SIGTERM, and returns the exit status; `None` if the process does not end within 20 seconds.
fn terminate(child: &mut Child) -> Option<i32> {
    let kill = Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let ended = (0..2_000).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        child.try_wait().unwrap()
    });
    // If it does not end, the test must not leave it.
    let _ = child.kill();
    ended.and_then(|status| status.code())
}

#[test]
fn failed_starts_report_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let no_json = file("no.json", b"{");
    let no_fork = file(
        "fork.json",
        br#"{"config": {"chainId": 1, "atlantisTime": 0}, "gasLimit": "0x1", "difficulty": "0x0", "alloc": {}}"#,
    );
    let no_chain = file("chain.rlp", b"no chain");
    let cases: [(&[&str], &[&str]); 5] = [
        (&["--genesis", "/nowhere.json"], &["/nowhere.json"]),
        (&["--genesis", &no_json], &["no.json"]),
        (&["--genesis", &no_fork], &["fork.json", "atlantis"]),
        (&["--strict", "--import", &no_chain], &["chain.rlp"]),
        (&["--head", &format!("0x{:064x}", 7)], &["--head", "7"]),
    ];
    for (arguments, named) in cases {
        let output = run_to_end(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(named.iter().all(|name| text.contains(name)), "{arguments:?}: {text}");
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
}

#[test]
fn blocks_before_a_fault_of_a_generated_chain_are_served() {
    let mut generated = Vec::new();
    Generator::new(Shape::default()).write(30, &mut generated).unwrap();
    check_damaged_chain(&[], &generated);
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn blocks_before_a_fault_of_the_recorded_chain_are_served() {
    let [option, genesis, _, chain] = conformance_chain();
    check_damaged_chain(&[option, genesis], &fs::read(chain).unwrap());
}

#[test]
fn with_json_every_line_is_json() {
    let cases: [(&[&str], &str); 3] = [
        (&["--log-format", "json", "--genesis", "/nowhere.json"], "/nowhere.json"),
        (&["--log-format=json", "--port", "x"], "--port"),
        (&["--log-format", "json", "--config", "/nowhere.toml"], "/nowhere.toml"),
    ];
    for (arguments, named) in cases {
        let output = node_server().arg("run").args(arguments).env("ETHNODE_PROT", "1").output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"))).collect();
        assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()), "{text}");
        let last = lines.last().unwrap();
        assert!(last["level"] == "ERROR" && last["message"].as_str().unwrap().contains(named), "{text}");
        let warned = lines[0]["level"] == "WARN" && lines[0]["message"].as_str().unwrap().contains("ETHNODE_PORT");
        assert_eq!(warned, lines.len() > 1, "{text}");
    }
}

/// The lines of requests of a server that logs JSON, once there are `count` of them.
fn request_lines(server: &Server, count: usize) -> Vec<Value> {
    loop {
        let log = server.log();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
        let lines: Vec<_> = lines.filter(|line| line["target"] == "request").collect();
        if lines.len() >= count {
            return lines;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_response_has_a_line() {
    let server = Server::start(["--log-format", "json"]);
    assert_eq!(server.logged("\"chain_id\":31337"), 1, "{}", server.log());
    let long = format!("/{}", "x".repeat(300));
    server.get("/chainId/");
    server.send("DELETE", "/wp-login.php?password=secret", &[], "");
    server.get(&long);
    server.post("/", r#"{"jsonrpc":"2.0","id":1,"method":"eth_none"}"#);
    for text in ["\0garbage\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = server.connect();
        stream.write_all(text.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 400"), "{text}: {response}");
    }
    let lines = request_lines(&server, 7);
    assert!(lines.iter().all(|line| line["client"] == "127.0.0.1" && line["id"].is_string()), "{lines:?}");
    let seen =
        lines.iter().map(|line| ["method", "path", "operation", "status", "code"].map(|name| line[name].clone()));
    let refused = [json!(null), json!(null), json!("none"), json!(400), json!(400)];
    let expected = [
        [json!("GET"), json!("/chainId/"), json!("chainId"), json!(200), json!(null)],
        [json!("DELETE"), json!("/wp-login.php"), json!("none"), json!(404), json!(404)],
        [json!("GET"), json!(&long[..256]), json!("none"), json!(404), json!(404)],
        [json!("POST"), json!("/"), json!("eth_none"), json!(null), json!(-32601)],
        refused.clone(),
        refused.clone(),
        refused,
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[test]
fn a_second_signal_ends_the_delay() {
    let server = Server::start(["--shutdown-delay", "1h"]);
    server.signal("TERM");
    assert_eq!(server.logged("requests are served for"), 1);
    assert_eq!(server.get("/chainId/").status, 200);
    assert_eq!(server.end("INT").code(), Some(0));
}

/// Nobody reads standard output, which is full.
#[test]
fn a_full_standard_output_does_not_hang_the_start() {
    let (_reader, mut writer) = pipe().unwrap();
    let filler = writer.try_clone().unwrap();
    thread::spawn(move || while writer.write_all(&[0; 65_536]).is_ok() {});
    for command in ["dev", "run"] {
        let port = free_port().to_string();
        let mut program = node_server();
        program.args([command, "--data-dir", ":memory:", "--port", &port]);
        let mut child = program.stdout(filler.try_clone().unwrap()).stderr(Stdio::null()).spawn().unwrap();
        let served = (0..2_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_ok()
        });
        let server = Server::at(([127, 0, 0, 1], port.parse().unwrap()).into());
        assert!(served && server.get("/health").status == 200, "{command}");
        assert_eq!(terminate(&mut child), Some(0), "{command}");
    }
}

#[test]
fn a_full_standard_error_does_not_hang_a_refused_start() {
    let (_reader, mut writer) = pipe().unwrap();
    let filler = writer.try_clone().unwrap();
    thread::spawn(move || while writer.write_all(&[0; 65_536]).is_ok() {});
    for arguments in [["dev", "--nonsense"], ["run", "--genesis=/nonsense"]] {
        let mut child = node_server().args(arguments).stderr(filler.try_clone().unwrap()).spawn().unwrap();
        assert!(child.wait().unwrap().code().is_some_and(|code| code > 0), "{arguments:?}");
    }
}

/// A named pipe in `folder`.
fn named_pipe(folder: &Path) -> String {
    let path = folder.join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn a_signal_ends_the_wait_for_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, data) = (named_pipe(folder.path()), folder.path().join("data").display().to_string());
    let cases: [(&[&str], i32); 4] = [
        (&["run", "--port=0", "--genesis", &pipe], 0),
        (&["run", "--port=0", "--import", &pipe], 0),
        (&["dev", "--port=0", "--genesis", &pipe], 0),
        (&["import", &pipe], 1),
    ];
    for (arguments, status) in cases {
        let mut program = node_server();
        program.args(arguments).args(["--data-dir", &data]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = program.spawn().unwrap();
        // This returns when the program has opened the pipe. Nothing is written.
        let _writer = File::options().write(true).open(&pipe).unwrap();
        assert_eq!(terminate(&mut child), Some(status), "{arguments:?}");
    }
}

#[test]
fn a_hangup_does_not_end_a_server_that_reads_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = named_pipe(folder.path());
    let mut child = node_server()
        .args(["dev", "--port=0", "--config", &pipe])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // This returns when the program has opened the pipe.
    let writer = File::options().write(true).open(&pipe).unwrap();
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    thread::sleep(Duration::from_millis(100));
    drop(writer);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("listening on ")));
    assert_eq!(terminate(&mut child), Some(0));
}

/// Cuts the chain file in half, and flips a bit in its middle. `genesis` holds the arguments that choose the genesis.
fn check_damaged_chain(genesis: &[String], file: &[u8]) {
    let half = file.len() / 2;
    let mut flipped = file.to_vec();
    flipped[half] ^= 1;
    check_blocks_before_a_fault(genesis, "cut", &file[..half]);
    check_blocks_before_a_fault(genesis, "flipped", &flipped);
}

/// Imports a damaged chain file: the server fails to start. With `--strict=false` the blocks before the damage are
/// served, but the server is not ready.
fn check_blocks_before_a_fault(genesis: &[String], name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let path = path.display().to_string();
    let arguments = || genesis.iter().map(String::as_str).chain(["--import", &path]);

    let failed = run_to_end(arguments());
    let text = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{name}: {text}");
    let kept = text.split("the head is block ").nth(1).and_then(|rest| rest.split(':').next()).unwrap_or_default();

    let metrics = free_port();
    let address = format!("127.0.0.1:{metrics}");
    let server = Server::start(arguments().chain(["--strict=false", "--metrics-addr", &address]));
    let head = server.get("/blockNumber/");
    assert_eq!(head.field("BlockNumber"), kept, "{name}: {text}");
    assert_ne!(kept, "0", "{name}");
    let ready = server.get("/ready");
    assert_eq!(ready.status, 503, "{name}");
    assert!(ready.text.contains(&format!("the head is block {kept}")), "{name}: {}", ready.text);
    let measured = Server::at(([127, 0, 0, 1], metrics).into()).get("/metrics").text;
    assert!(measured.contains("\nethnode_chain_incomplete 1\n"), "{name}: {measured}");
}
