//! Whatever is sent, the response is a problem with the right status, and the server continues to work.

use crate::server::{Response, Server};
use crate::wallet::{ALICE, CHAIN_ID, hex, sign, transfer, with_high_s};
use node_http::{HttpConfig, RequestLimits};
use node_types::U256;
use node_types::consensus::{LegacyTransaction, TransactionBody};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const NONE: [&str; 0] = [];

/// Checks a problem, and that the server still responds.
fn check(server: &Server, name: &str, response: &Response, status: u16, locations: &[&str]) {
    assert_eq!(response.problem_faults(status), NONE, "{name}: {} {}", response.status, response.body);
    assert_eq!(response.locations(), locations, "{name}: {}", response.body);
    assert_eq!(server.get("/chainId/").field("ChainId"), &json!("31337"), "after {name}");
}

#[test]
fn invalid_bodies() {
    let server = Server::start(NONE);
    let nested = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let deep = |open: &str, close: &str| format!("{{\"Topics\":{}}}", nested(open, close));
    let digits = "9".repeat(300);
    let storage = |fields: &str| format!("{{\"Address\":\"{ALICE}\",\"Position\":\"0\"{fields}}}");
    let cases: Vec<(&str, &str, String, u16, &[&str])> = vec![
        ("empty", "getLogs", String::new(), 400, &[]),
        ("cut off", "getLogs", "{\"Address\":".to_owned(), 400, &[]),
        ("two values", "getLogs", "{} {}".to_owned(), 400, &[]),
        ("bare words", "getLogs", "{Address: none}".to_owned(), 400, &[]),
        ("100,000 arrays", "getLogs", nested("[", "]"), 422, &["body"]),
        ("100,000 arrays inside", "getLogs", deep("[", "]"), 422, &["body.Topics[0][0]"]),
        ("100,000 arrays in an unknown field", "call", deep("[", "]"), 422, &["body.Topics", "body"]),
        ("100,000 arrays, cut off", "getLogs", "[".repeat(100_000), 400, &[]),
        ("100,000 objects", "getLogs", deep("{\"a\":", "}"), 400, &[]),
        ("an array", "getLogs", "[]".to_owned(), 422, &["body"]),
        ("a string", "getLogs", "\"{}\"".to_owned(), 422, &["body"]),
        ("null", "getLogs", "null".to_owned(), 422, &["body"]),
        ("wrong type", "getLogs", "{\"Address\":5}".to_owned(), 422, &["body.Address"]),
        ("wrong type inside", "getLogs", "{\"Topics\":[null,7]}".to_owned(), 422, &["body.Topics[1]"]),
        ("unknown field", "getLogs", "{\"address\":\"\"}".to_owned(), 422, &["body.address"]),
        ("unknown block", "getStorageAt", storage(",\"BlockNumber\":\"7\""), 404, &["body.BlockNumber"]),
        ("negative", "getStorageAt", storage(",\"BlockNumber\":\"-1\""), 422, &["body.BlockNumber"]),
        ("negative number", "getStorageAt", storage(",\"BlockNumber\":-1"), 422, &["body.BlockNumber"]),
        ("300 digits", "getStorageAt", storage(&format!(",\"BlockNumber\":\"{digits}\"")), 422, &["body.BlockNumber"]),
        (
            "300-digit number",
            "getStorageAt",
            storage(&format!(",\"BlockNumber\":{digits}")),
            422,
            &["body.BlockNumber"],
        ),
        ("missing both", "getStorageAt", "{}".to_owned(), 422, &["body", "body"]),
        ("odd hex", "getStorageAt", storage("").replace("0xf", "0x"), 422, &["body.Address"]),
        ("missing filter", "newFilter", "{}".to_owned(), 422, &["body"]),
        ("missing fields", "newFilter", "{\"FilterObject\":{}}".to_owned(), 422, &["body.FilterObject"; 4]),
        ("cut off", "newBlockFilter", "{".to_owned(), 400, &[]),
        ("unknown field", "newBlockFilter", "{\"Address\":\"\"}".to_owned(), 422, &["body.Address"]),
        ("an array", "newPendingTransactionFilter", "[]".to_owned(), 422, &["body"]),
        ("no blocks", "feeHistory", "{\"BlockCount\":\"0\"}".to_owned(), 422, &["body.BlockCount"]),
        ("falling", "feeHistory", "{\"RewardPercentiles\":[5,4]}".to_owned(), 422, &["body.RewardPercentiles[1]"]),
        ("missing transaction", "call", "{}".to_owned(), 422, &["body"]),
        (
            "an access list without keys",
            "call",
            format!("{{\"Transaction\":{{\"AccessList\":[{{\"Address\":\"{ALICE}\"}}]}}}}"),
            422,
            &["body.Transaction.AccessList[0]"],
        ),
        ("not hex", "sendRawTransaction", "{\"Data\":\"hello\"}".to_owned(), 422, &["body.Data"]),
    ];
    for (name, operation, body, status, locations) in cases {
        check(&server, name, &server.post(&format!("/{operation}/"), body), status, locations);
    }
}

#[test]
fn fees_beyond_128_bits_are_reported_with_their_value() {
    let server = Server::start(NONE);
    let beyond = "340282366920938463463374607431768211456";
    for name in ["GasPrice", "MaxFeePerGas", "MaxFeePerBlobGas"] {
        let response = server.post("/call/", json!({"Transaction": {name: beyond}}).to_string());
        check(&server, name, &response, 422, &[&format!("body.Transaction.{name}")]);
        assert_eq!(response.body["errors"][0]["value"], beyond, "{}", response.body);
    }
}

#[test]
fn bodies_that_are_not_utf_8() {
    let server = Server::start(NONE);
    for (name, body) in
        [("invalid UTF-8", &b"{\"Address\":\"\xff\"}"[..]), ("zeroes", &[0; 64]), ("a mark", b"\xef\xbb\xbf{}")]
    {
        check(&server, name, &server.post("/getLogs/", body), 400, &[]);
    }
}

#[test]
fn bodies_over_the_limit() {
    let server = Server::start(["--max-body", "1000000"]);
    let long = format!("{{\"Data\":\"0x{}\"}}", "00".repeat(5_000_000));
    check(&server, "10 MB", &server.post("/sendRawTransaction/", long), 413, &[]);
    let fits = format!("{{\"Data\":\"0x{}\"}}", "00".repeat(400_000));
    check(&server, "0.8 MB", &server.post("/sendRawTransaction/", fits), 422, &["body.Data"]);
}

#[test]
fn invalid_paths_and_methods() {
    let server = Server::start(NONE);
    let cases: [(&str, u16, &[&str]); 10] = [
        ("/getlogs/", 404, &[]),
        ("/getBlockByNumber/0/false/more/", 404, &[]),
        ("/getBlockByNumber/%FF/false/", 400, &[]),
        ("/getBlockByNumber/%zz/false/", 400, &[]),
        ("/getBlockByNumber/-1/false/", 422, &["path.BlockNumber"]),
        ("/getBlockByNumber/x/y/", 422, &["path.BlockNumber", "path.TransactionDetailFlag"]),
        ("/getBlockByHash/0x12/false/", 422, &["path.Hash"]),
        ("/getLogs/", 405, &[]),
        ("/chainId/?foo=1", 422, &["query.foo"]),
        ("/getBlockByNumber/x/false/?foo=1", 422, &["path.BlockNumber", "query.foo"]),
    ];
    for (path, status, locations) in cases {
        check(&server, path, &server.get(path), status, locations);
    }
    let wrong = server.post("/chainId/", "{}");
    check(&server, "POST /chainId/", &wrong, 405, &[]);
    assert_eq!(wrong.header("allow"), Some("GET, HEAD, OPTIONS"));
}

#[test]
fn media_types() {
    let server = Server::start(NONE);
    for (media_type, status) in
        [("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/json; charset=utf-8", 200)]
    {
        let head = format!(
            "POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media_type}\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        assert_eq!(status_of(&server, head.as_bytes()), Some(status), "{media_type}");
    }
}

#[test]
fn requests_that_are_not_http() {
    let body_timeout = Duration::from_millis(200);
    let (_chain, server) = super::in_process::serve_dev(HttpConfig {
        requests: RequestLimits { body_timeout, ..Default::default() },
        ..HttpConfig::default()
    });
    let slow =
        b"POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    let cases: [(&str, &[u8], Option<u16>); 4] = [
        ("noise", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", Some(400)),
        ("a broken length", b"POST /getLogs/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", Some(400)),
        ("a slow body", slow, Some(408)),
        ("a hostile host", b"GET /chainId/ HTTP/1.1\r\nHost: a\"<b>\r\nConnection: close\r\n\r\n", Some(400)),
    ];
    for (name, bytes, status) in cases {
        assert_eq!(status_of(&server, bytes), status, "{name}");
        assert_eq!(server.get("/health").status, 200, "after {name}");
    }
}

/// Sends bytes and reads the status line.
fn status_of(server: &Server, bytes: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(server.address()).expect("the server listens");
    stream.write_all(bytes).expect("the server reads");
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head).ok()?.strip_prefix("HTTP/1.1 ")?.parse().ok()
}

#[test]
fn invalid_transactions() {
    let server = Server::start(NONE);
    let send = |data: &[u8]| server.post("/sendRawTransaction/", json!({"Data": hex(data)}).to_string());
    let legacy = |transaction: LegacyTransaction| sign(TransactionBody::Legacy(transaction)).encode();
    let good = legacy(transfer(0));
    let mut bad_signature = sign(TransactionBody::Legacy(transfer(0)));
    bad_signature.signature.r = U256::MAX;
    let too_much = U256::exp10(30);
    let cases = [
        ("nothing", Vec::new()),
        ("truncated", good[..good.len() - 1].to_vec()),
        ("over-long", [&good[..], &[0]].concat()),
        ("an unknown type", [&[0x7f], &good[..]].concat()),
        ("a list that claims 2^64 bytes", [&[0xff; 9][..], &good[..]].concat()),
        ("nested lists", vec![0xc1; 100_000]),
        ("a bad signature", bad_signature.encode()),
        ("a high s", with_high_s(sign(TransactionBody::Legacy(transfer(0)))).encode()),
        ("another chain", legacy(LegacyTransaction { chain_id: Some(CHAIN_ID + 1), ..transfer(0) })),
        ("too little gas", legacy(LegacyTransaction { gas_limit: 20_999, ..transfer(0) })),
        ("too much value", legacy(LegacyTransaction { value: too_much, ..transfer(0) })),
    ];
    for (name, data) in cases {
        let response = send(&data);
        assert_eq!(response.problem_faults(422), NONE, "{name}: {} {}", response.status, response.body);
        assert!(response.locations().iter().all(|location| *location == "body.Data"), "{name}: {}", response.body);
        assert!(!response.locations().is_empty(), "{name}: {}", response.body);
        assert_eq!(server.get("/health").status, 200, "after {name}");
    }
    let two_reasons = legacy(LegacyTransaction { gas_limit: 20_999, value: too_much, ..transfer(0) });
    assert!(send(&two_reasons).locations().len() >= 2, "{}", send(&two_reasons).body);
    assert_eq!(send(&good).status, 200);
}
