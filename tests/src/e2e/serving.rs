//! What HTTP clients and caches rely on: validators, freshness, compression, the head of the view, HTTP versions.

use crate::generator::{Generator, Shape};
use crate::server::{Response, Server};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::time::UNIX_EPOCH;
use tempfile::TempDir;

const NONE: [&str; 0] = [];
const FOREVER: &str = "public, max-age=31536000, immutable";

/// A server with an imported chain of ten blocks with transactions, which cannot be reverted.
fn imported(options: &[&str]) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.rlp");
    let mut blocks = Vec::new();
    Generator::new(Shape::default()).write(10, &mut blocks).unwrap();
    fs::write(&path, blocks).unwrap();
    let path = path.display().to_string();
    (Server::start(["--import", &path].iter().chain(options)), folder)
}

fn block(server: &Server, number: u64) -> Value {
    server.get(&format!("/getBlockByNumber/{number}/true/")).body["Block"].take()
}

#[test]
fn only_blocks_requested_by_hash_are_immutable() {
    let (server, _folder) = imported(&[]);
    let block = block(&server, 3);
    let hash = block["Hash"].as_str().unwrap();
    let transaction = block["Transactions"][0]["Hash"].as_str().unwrap();
    let sender = block["Transactions"][0]["From"].as_str().unwrap();
    let cases = [
        ("/getBlockByNumber/3/false/".to_owned(), "no-cache"),
        ("/getBlockByNumber/0x3/true/".to_owned(), "no-cache"),
        ("/getBlockByNumber/latest/false/".to_owned(), "no-cache"),
        ("/getBlockByNumber/earliest/".to_owned(), "no-cache"),
        ("/getBlockByNumber/pending/".to_owned(), "no-cache"),
        ("/getBlockByNumber/11/false/".to_owned(), "no-cache"),
        (format!("/getBlockByHash/{hash}/true/"), FOREVER),
        (format!("/getBlockByHash/0x{}/true/", "01".repeat(32)), "no-cache"),
        (format!("/getTransactionByHash/{transaction}/"), "no-cache"),
        (format!("/getTransactionByHash/0x{}/", "01".repeat(32)), "no-cache"),
        (format!("/getTransactionByBlockHashAndIndex/{hash}/0/"), "no-cache"),
        ("/getTransactionByBlockNumberAndIndex/latest/0/".to_owned(), "no-cache"),
        (format!("/getTransactionReceipt/{transaction}/"), "no-cache"),
        ("/getBlockReceipts/3/".to_owned(), "no-cache"),
        ("/getBlockReceipts/latest/".to_owned(), "no-cache"),
        (format!("/getBlockTransactionCountByHash/{hash}/"), FOREVER),
        ("/getUncleCountByBlockNumber/3/".to_owned(), "no-cache"),
        (format!("/getBalance/{sender}/?BlockNumber=3"), "no-cache"),
        (format!("/getBalance/{sender}/"), "no-cache"),
        (format!("/getAccount/{sender}/3/"), "no-cache"),
        (format!("/getTransactionCount/{sender}/{hash}/"), "no-cache"),
        (format!("/getTransactionStatus/{transaction}/"), "no-cache"),
        ("/chainId/".to_owned(), "no-cache"),
        ("/schemas/ErrorModel.json".to_owned(), "no-cache"),
        ("/newBlockFilter/".to_owned(), "no-store"),
        ("/health".to_owned(), "no-store"),
        ("/nothing/".to_owned(), "no-store"),
    ];
    for (path, expected) in cases {
        let response = server.get(&path);
        assert_eq!(response.header("cache-control"), Some(expected), "{path}: {}", response.text);
        assert_eq!(response.header("etag").is_some(), expected != "no-store", "{path}");
    }
    let posted = server.post("/getLogs/", "{}");
    assert_eq!((posted.header("cache-control"), posted.header("etag")), (None, None), "a POST");
}

#[test]
fn responses_are_private_if_tokens_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    fs::write(&path, "0123456789abcdef\n").unwrap();
    let (server, _folder) = imported(&["--token-file", path.to_str().unwrap()]);
    let get = |path: &str| server.send("GET", path, &[("Authorization", "Bearer 0123456789abcdef")], "");
    let hash = get("/getBlockByNumber/3/").field("Block")["Hash"].as_str().unwrap().to_owned();
    let by_hash = get(&format!("/getBlockByHash/{hash}/"));
    assert_eq!(by_hash.header("cache-control"), Some("private, max-age=31536000, immutable"));
    assert_eq!(get("/getBlockByNumber/").header("cache-control"), Some("private, no-cache"));
}

#[test]
fn responds_304_if_the_body_is_unchanged() {
    let (server, _folder) = imported(&[]);
    for path in ["/getBlockByNumber/3/true/", "/blockNumber/", "/schemas/ErrorModel.json", "/problems/state-pruned"] {
        let first = server.get(path);
        let tag = first.header("etag").unwrap().to_owned();
        for method in ["GET", "HEAD"] {
            let again = server.send(method, path, &[("If-None-Match", &tag)], "");
            assert_eq!((again.status, again.text.as_str()), (304, ""), "{method} {path}");
            for name in ["etag", "cache-control", "x-head-number", "vary"] {
                assert_eq!(again.header(name), first.header(name), "{method} {path} {name}");
            }
            assert!(again.header("x-request-id").is_some() && again.header("content-type").is_none());
        }
        let other = server.send("GET", path, &[("If-None-Match", "W/\"0\", \"1\"")], "");
        assert_eq!((other.status, &other.text), (200, &first.text), "{path}");
    }
    // Another host changes `$schema`, and so the tag.
    let here = server.get("/blockNumber/");
    let there = server.send("GET", "/blockNumber/", &[("Host", "localhost:1")], "");
    assert_ne!(here.header("etag"), there.header("etag"));
}

#[test]
fn cached_blocks_equal_uncached_ones() {
    let (server, _folder) = imported(&[]);
    for path in ["/getBlockByNumber/3/true/", "/getBlockByNumber/3/false/"] {
        let first = server.get(path);
        assert_eq!(server.get(path).text, first.text, "{path}");
        let other = server.send("GET", path, &[("Host", "localhost:1")], "");
        assert_eq!(other.field("Block"), first.field("Block"), "{path}");
        assert_eq!(other.field("$schema"), "http://localhost:1/schemas/Output_getBlockByNumber.json", "{path}");
        let hash = first.field("Block")["Hash"].as_str().unwrap();
        let flag = path.contains("true");
        let named = server.get(&format!("/getBlockByHash/{hash}/{flag}/"));
        assert_eq!(named.field("Block"), first.field("Block"), "{path}");
        assert_eq!(server.get(&format!("{path}?x=1")).status, 422, "a query is refused here, too");
    }
}

#[test]
fn responses_have_the_head_of_their_view() {
    let server = Server::dev(["--no-mining"]);
    let head = |response: &Response| {
        (response.header("x-head-number").map(str::to_owned), response.header("x-head-hash").map(str::to_owned))
    };
    for number in 0..3 {
        let latest = server.get("/getBlockByNumber/");
        let hash = latest.field("Block")["Hash"].as_str().unwrap().to_owned();
        let expected = (Some(number.to_string()), Some(hash));
        let account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
        let logs = server.post("/getLogs/", "{}");
        let call = server.post("/call/", json!({"Transaction": {}, "BlockNumber": "0"}).to_string());
        let pending = server.get("/getBlockByNumber/pending/");
        let missing = server.get("/getBlockReceipts/99/");
        assert_eq!((call.status, pending.status, missing.status), (200, 200, 404));
        for response in [latest, server.get(&format!("/getBalance/{account}/")), logs, call, pending, missing] {
            assert_eq!(head(&response), expected, "{}", response.text);
        }
        assert_eq!(server.post("/dev/mine/", "{}").status, 200);
    }
    assert_eq!(head(&server.get("/chainId/")), (None, None), "the chain was not read");
}

#[test]
fn compresses_long_responses_as_the_client_prefers() {
    let (server, _folder) = imported(&[]);
    let magic: [(&str, &str, &[u8]); 3] = [
        ("gzip", "gzip", &[0x1f, 0x8b]),
        ("zstd, gzip;q=0.5", "zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("gzip;q=0.5, br", "br", &[]),
    ];
    let path = "/getBlockByNumber/3/true/";
    // The host is part of the response.
    let plain = server.send("GET", path, &[("Host", "localhost")], "");
    for (accepted, encoding, magic) in magic {
        let (head, body) = raw(&server, path, accepted);
        assert!(head.contains(&format!("content-encoding: {encoding}\r\n")), "{accepted}: {head}");
        assert!(
            head.contains("vary: accept-encoding") && head.contains(&plain.header("etag").unwrap().to_lowercase()),
            "{head}"
        );
        assert!(body.starts_with(magic) && body.len() < plain.text.len(), "{accepted}: {} bytes", body.len());
    }
    for (path, accepted) in [(path, "identity"), (path, "br;q=0"), ("/chainId/", "gzip")] {
        let (head, _) = raw(&server, path, accepted);
        assert!(!head.contains("content-encoding"), "{path} {accepted}: {head}");
    }
    let (server, _folder) = imported(&["--no-compression"]);
    assert!(!raw(&server, path, "gzip").0.contains("content-encoding"));
    // Events are sent at once, without waiting for more to compress.
    let mut stream = server.connect();
    write!(stream, "GET /events/ HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n").unwrap();
    let mut start = [0; 1_024];
    let length = stream.read(&mut start).unwrap();
    let start = String::from_utf8_lossy(&start[..length]).to_ascii_lowercase();
    assert!(start.starts_with("http/1.1 200") && !start.contains("content-encoding"), "{start}");
}

/// Returns the head in lower case, and the body as bytes, chunked or not.
fn raw(server: &Server, path: &str, accepted: &str) -> (String, Vec<u8>) {
    let mut stream = server.connect();
    let head = "Host: localhost\r\nConnection: close";
    write!(stream, "GET {path} HTTP/1.1\r\n{head}\r\nAccept-Encoding: {accepted}\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let mut body = bytes.split_off(end);
    if head.contains("transfer-encoding: chunked") {
        let first = body.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        body.drain(..first);
    }
    (head, body)
}

#[test]
fn other_origins_cannot_read_responses_unless_listed() {
    let origin = ("Origin", "https://wallet.example");
    let closed = Server::dev(NONE);
    let response = closed.send("GET", "/chainId/", &[origin], "");
    assert_eq!((response.status, response.header("access-control-allow-origin")), (200, None));
    let asks = [origin, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type")];
    assert_eq!(closed.send("OPTIONS", "/getLogs/", &asks, "").header("access-control-allow-origin"), None);

    let open = Server::dev(["--cors-origins", "https://wallet.example,http://localhost:3000"]);
    let response = open.send("GET", "/blockNumber/", &[origin], "");
    assert_eq!(response.header("access-control-allow-origin"), Some(origin.1));
    assert!(response.header("access-control-expose-headers").unwrap().to_lowercase().contains("x-head-number"));
    let asked = open.send("OPTIONS", "/getLogs/", &asks, "");
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (200, Some(origin.1)));
    assert!(asked.header("access-control-allow-headers").unwrap().contains("content-type"));
    let other = open.send("GET", "/chainId/", &[("Origin", "https://evil.example")], "");
    assert_eq!(other.header("access-control-allow-origin"), None);
    // Listed origins may control the chain, others may not.
    let json = ("Content-Type", "application/json");
    assert_eq!(open.send("POST", "/dev/mine/", &[origin, json], "{}").status, 200);
    assert_eq!(open.send("POST", "/dev/mine/", &[("Origin", "https://evil.example"), json], "{}").status, 403);

    let any = Server::dev(["--cors-origins", "*"]);
    assert_eq!(any.send("GET", "/chainId/", &[origin], "").header("access-control-allow-origin"), Some("*"));
    assert_eq!(any.send("POST", "/dev/mine/", &[origin, json], "{}").status, 403, "reading is allowed");
}

#[test]
fn ready_reports_a_head_that_is_too_old() {
    let first = 1_700_000_000;
    let server = Server::dev(["--max-head-age", "1h", "--timestamp", &first.to_string()]);
    assert_eq!(server.get("/ready").problem_faults(503), NONE, "the genesis block is too old");
    let seconds = UNIX_EPOCH.elapsed().unwrap().as_secs() - first;
    let later = json!({"Seconds": seconds.to_string()});
    assert_eq!(server.post("/dev/increaseTime/", later.to_string()).status, 200);
    assert_eq!(server.post("/dev/mine/", "{}").status, 200);
    let ready = server.get("/ready/");
    assert_eq!((ready.status, ready.field("Status"), ready.field("BlockNumber")), (200, &json!("ok"), &json!("1")));
    let (server, _folder) = imported(&[]);
    assert_eq!(server.get("/ready").field("BlockNumber"), "10", "any age is accepted");
    assert_eq!(server.get("/health").field("Status"), "ok");
}
