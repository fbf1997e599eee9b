//! Start and end of the server.

#![allow(clippy::unwrap_used)]

use node_tests::generator::{Generator, Shape};
use node_tests::server::{Server, conformance_chain, end_while_starting, run_to_end};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

const NONE: [&str; 0] = [];

#[test]
fn signals_end_the_server_with_success() {
    for signal in ["TERM", "INT"] {
        let server = Server::start(NONE);
        // An idle connection must not delay the end.
        assert_eq!(server.get("/health").status, 200);
        assert_eq!(server.end(signal).code(), Some(0), "{signal}");
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

#[test]
fn a_running_request_is_finished() {
    let server = Server::start(NONE);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // JUMPDEST PUSH1 0 JUMP: runs until the gas is used up.
    let body = r#"{"Transaction":{"Data":"0x5b600056","Gas":"0x2faf080"}}"#;
    let head = "POST /call/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert_eq!(server.end("TERM").code(), Some(0));
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 422"), "{response}");
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
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
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

/// Cuts the chain file in half, and flips a bit in its middle. `genesis` holds the arguments that choose the genesis.
fn check_damaged_chain(genesis: &[String], file: &[u8]) {
    let half = file.len() / 2;
    let mut flipped = file.to_vec();
    flipped[half] ^= 1;
    check_blocks_before_a_fault(genesis, "cut", &file[..half]);
    check_blocks_before_a_fault(genesis, "flipped", &flipped);
}

/// Imports a damaged chain file: with `--strict` the server fails to start, without it the blocks before the damage are
/// served.
fn check_blocks_before_a_fault(genesis: &[String], name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let path = path.display().to_string();
    let arguments = || genesis.iter().map(String::as_str).chain(["--import", &path]);

    let failed = run_to_end(arguments().chain(["--strict"]));
    let text = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{name}: {text}");
    let kept = text.split("up to block ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();

    let server = Server::start(arguments());
    let head = server.get("/blockNumber/");
    assert_eq!(head.field("BlockNumber"), kept, "{name}: {text}");
    assert_ne!(kept, "0", "{name}");
}
