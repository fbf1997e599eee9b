//! Too long and too much work.

use crate::server::{Response, Server};
use crate::wallet::ALICE;
use node_http::{ClientLimits, HttpConfig, RequestLimits};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const NONE: [&str; 0] = [];

/// More gas than any loop can use up within the time limit.
const NO_CAP: [&str; 2] = ["--gas-cap", "18446744073709551615"];

/// A call that runs `code` as init code, with all gas.
fn creation(code: &str) -> String {
    json!({"Transaction": {"Data": code, "Gas": u64::MAX.to_string()}}).to_string()
}

/// JUMPDEST, PUSH1 0, JUMP.
fn endless() -> String {
    creation("0x5b600056")
}

fn slug(response: &Response) -> &str {
    response.field("type").as_str().and_then(|uri| uri.rsplit('/').next()).unwrap_or_default()
}

/// Sends an endless call, without waiting for the response.
fn start_endless(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    let body = endless();
    let head = "POST /call/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

#[test]
fn endless_calls_end_at_the_time_limit() {
    let server = Server::start(NO_CAP.into_iter().chain(["--call-timeout", "2s"]));
    let response = thread::scope(|scope| {
        let call = scope.spawn(|| server.post("/call/", endless()));
        let mut meanwhile = 0;
        while !call.is_finished() {
            assert_eq!(server.get("/chainId/").status, 200);
            assert_eq!(server.post("/call/", creation("0x")).status, 200);
            meanwhile += 1;
        }
        assert_ne!(meanwhile, 0, "the server responds meanwhile");
        call.join().unwrap()
    });
    assert_eq!(response.problem_faults(422), NONE, "{}", response.text);
    assert_eq!(slug(&response), "execution-failed");
    assert!(response.field("detail").as_str().unwrap().contains("timeout = 2s"), "{}", response.text);
    let all = server.post("/estimateGas/", endless());
    assert_eq!((all.status, slug(&all)), (422, "execution-failed"), "{}", all.text);
}

#[test]
fn a_full_queue_refuses_until_clients_disconnect() {
    let limits = ["--call-threads", "1", "--call-timeout", "10m"];
    let server = Server::start(NO_CAP.into_iter().chain(limits));
    // One runs, 64 wait, and one is refused.
    let mut streams: Vec<_> = (0..66).map(|_| start_endless(&server)).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        assert!(Instant::now() < deadline, "none of 66 endless calls was refused");
        let heads: Vec<_> = streams.iter_mut().filter_map(received_so_far).collect();
        match heads.first() {
            Some(head) => break head.clone(),
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.to_ascii_lowercase().contains("\r\nretry-after: 1\r\n"), "{refused}");
    let refused = server.post("/call/", creation("0x"));
    assert_eq!(refused.problem_faults(503), NONE, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Short reads are not delayed.
    let storage = json!({"Address": ALICE, "Position": "0"}).to_string();
    assert_eq!(server.post("/getStorageAt/", storage).status, 200);
    assert_eq!(server.get("/health").status, 200);

    // The time limit is too long to be what ends the work.
    drop(streams);
    let deadline = Instant::now() + Duration::from_secs(120);
    while server.post("/call/", creation("0x")).status != 200 {
        assert!(Instant::now() < deadline, "the work of disconnected clients continues");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns what has been received, or `None` if nothing has.
fn received_so_far(stream: &mut TcpStream) -> Option<String> {
    stream.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes) {
        Ok(length) => Some(String::from_utf8_lossy(&bytes[..length]).into_owned()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn gas_is_capped() {
    let server = Server::start(["--gas-cap", "100000"]);
    // GAS, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN
    let left = server.post("/call/", creation("0x5a60005260206000f3"));
    let word = left.field("Data").as_str().unwrap_or_default().to_owned();
    let left = u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    assert!(left < 100_000, "{left}");
    let out_of_gas = server.post("/call/", endless());
    assert_eq!((out_of_gas.status, slug(&out_of_gas)), (422, "execution-failed"), "{}", out_of_gas.text);
    let estimate = server.post("/estimateGas/", endless());
    assert_eq!(estimate.problem_faults(422), NONE, "{}", estimate.text);
    assert!(estimate.field("detail").as_str().unwrap().contains("100000"), "{}", estimate.text);
}

#[test]
fn expensive_code_gets_a_response() {
    let server = Server::start(NONE);
    let receiver = format!("0x{:040x}", 0x1234);
    let slots: Value =
        (0..20_000).map(|slot| (format!("{slot:#x}"), json!("1"))).collect::<serde_json::Map<_, _>>().into();
    let with =
        |change: Value| json!({"Transaction": {"To": receiver}, "Object": {receiver.as_str(): change}}).to_string();
    let precompile = |number: u8, length: u32| {
        // PUSH1 0, PUSH1 0, PUSH4 length, PUSH1 0, PUSH1 number, GAS, STATICCALL
        creation(&format!("0x6000600063{length:08x}600060{number:02x}5afa"))
    };
    let cases = [
        ("calls 1,024 deep", "estimateGas", with(json!({"Code": "0x60006000600060006000305af1"})), 200),
        ("creations in creations", "call", creation("0x3860006000393860006000f000"), 200),
        ("2 GiB of memory", "call", creation("0x60ff637fffffff52"), 422),
        ("2^255 bytes of memory", "call", creation("0x6001600160ff1b52"), 422),
        ("a revert with 1 MiB", "call", creation("0x621000006000fd"), 422),
        ("a result of 1 MiB", "call", creation("0x621000006000f3"), 422),
        ("modular powers", "call", precompile(5, 4096), 200),
        ("pairings", "call", precompile(8, 192 * 400), 200),
        ("no point of a curve", "call", precompile(12, 160), 200),
        ("creation code of 100,000 bytes", "call", creation(&format!("0x{}", "00".repeat(100_000))), 422),
        ("20,000 slots", "estimateGas", with(json!({"StateDiff": slots})), 200),
        (
            "a balance that overflows",
            "estimateGas",
            json!({
                "Transaction": {"From": ALICE, "To": receiver, "Value": "1"},
                "Object": {receiver.as_str(): {"Balance": format!("0x{}", "f".repeat(64))}}
            })
            .to_string(),
            422,
        ),
        (
            "the last nonce",
            "estimateGas",
            json!({
                "Transaction": {"From": ALICE, "Data": "0x00"}, "Object": {ALICE: {"Nonce": u64::MAX}}
            })
            .to_string(),
            200,
        ),
        ("a delegation to itself", "estimateGas", with(json!({"Code": receiver.replace("0x", "0xef0100")})), 422),
        ("a broken delegation", "estimateGas", with(json!({"Code": "0xef0100"})), 422),
    ];
    for (name, operation, body, status) in cases {
        let response = server.post(&format!("/{operation}/"), body);
        let short: String = response.text.chars().take(300).collect();
        assert_eq!(response.status, status, "{name}: {short}");
        if status == 422 {
            assert_eq!(response.problem_faults(422), NONE, "{name}: {short}");
            assert!(slug(&response).starts_with("execution-"), "{name}: {short}");
        }
    }
    assert_eq!(server.get("/chainId/").status, 200);
}

#[test]
fn endless_bodies_use_bounded_memory() {
    let limits = HttpConfig {
        requests: RequestLimits { max_body: 100_000, body_timeout: Duration::from_mins(10), ..Default::default() },
        clients: ClientLimits { transfer_memory: 2_000_000, ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(limits);
    let head = "POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
    let piece = format!("{head}{}", " ".repeat(90_000));
    let mut streams: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for stream in &mut streams {
        // The server need not read refused bodies completely.
        let _ = stream.write_all(piece.as_bytes());
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        assert!(Instant::now() < deadline, "none of 100 bodies was refused");
        match streams.iter_mut().find_map(received_so_far) {
            Some(head) => break head,
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert_eq!(server.post("/getLogs/", "{}").status, 200, "short bodies are still accepted");
}

#[test]
fn filters_expire_and_are_limited() {
    let server = Server::start(["--filter-ttl", "1ms", "--max-filters", "2"]);
    let create = || server.get("/newBlockFilter/").field("FilterId").as_str().unwrap_or_default().to_owned();
    let id = create();
    thread::sleep(Duration::from_millis(50));
    let gone = server.get(&format!("/getFilterChanges/{id}/"));
    assert_eq!(gone.problem_faults(404), NONE, "{}", gone.text);
    // Streams that have ended do not count.
    for _ in 0..3 {
        assert_ne!(create(), "");
        thread::sleep(Duration::from_millis(50));
    }

    // One client may have half of them.
    let server = Server::start(["--max-filters", "4"]);
    let ids = [(); 2].map(|()| server.get("/newBlockFilter/").field("FilterId").as_str().unwrap().to_owned());
    let refused = server.post("/newPendingTransactionFilter/", "");
    assert_eq!(refused.problem_faults(429), NONE, "{}", refused.text);
    assert_eq!(server.get(&format!("/uninstallFilter/{}/", ids[0])).field("Result"), &json!(true));
    assert_eq!(server.get("/newPendingTransactionFilter/").status, 200);
    let logs = server.get(&format!("/getFilterLogs/{}/", ids[1]));
    assert_eq!(logs.problem_faults(422), NONE, "a block filter has no logs: {}", logs.text);
}
