//! Requests that a server which only reads a chain passes on to the one that writes it, and clients that demand a head.

use crate::server::{Response, Server};
use crate::websocket::Socket;
use serde_json::{Value, json};
use std::path::Path;

const ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

fn call(server: &Server, method: &str, params: Value) -> Value {
    server.post("/", message(method, params)).body
}

fn call_of(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn message(method: &str, params: Value) -> String {
    call_of(method, params).to_string()
}

/// Starts a development chain in `folder`, and a server that reads it and passes changes on.
fn writer_and_reader(folder: &Path, more: &[&str]) -> (Server, Server) {
    let data = folder.display().to_string();
    let arguments = ["--data-dir", &data, "--trusted-proxies", "127.0.0.1"];
    let writer = Server::dev(arguments.iter().chain(more));
    let reader = reader(&data, writer.url());
    (writer, reader)
}

fn reader(data: &str, writer: &str) -> Server {
    let api = "eth,net,web3,dev";
    Server::start(["--data-dir", data, "--read-only", "--writer", writer, "--head-wait", "200ms", "--api", api])
}

/// Reads the balance of an account once the head has the number `head`.
fn balance_at(server: &Server, head: &str, account: &str) -> Response {
    let body = message("eth_getBalance", json!([account, "latest"]));
    server.send("POST", "/", &[("content-type", "application/json"), ("x-min-head", head)], &body)
}

#[test]
fn changes_filters_and_control_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    // Requests that another server passes on are not those of a client on the same machine.
    let (writer, reader) = writer_and_reader(folder.path(), &["--force-control"]);
    let filter = reader.post("/newBlockFilter/", "{}").field("FilterId").as_str().unwrap().to_owned();

    // A transaction over each interface, and then what it has changed, on the reader.
    let transfer = |to: &str| json!([{"from": ACCOUNT, "to": to, "value": "0x5"}]);
    let to = |digit: u8| format!("0x{}", char::from(digit).to_string().repeat(40));
    let mut socket = Socket::connect(reader.address(), &[]).unwrap();
    assert!(call(&reader, "eth_sendTransaction", transfer(&to(b'1')))["result"].is_string());
    let invalid = json!([{"from": ACCOUNT, "value": "no"}]);
    assert!(call(&reader, "eth_sendTransaction", invalid)["error"].is_object(), "errors are passed back");
    assert!(socket.call("eth_sendTransaction", transfer(&to(b'2'))).is_string());
    for (head, digit) in [("1", b'1'), ("2", b'2')] {
        assert_eq!(balance_at(&reader, head, &to(digit)).body["result"], "0x5");
    }
    let mined = reader.post("/dev/mine/", json!({"Blocks": 2}).to_string());
    assert_eq!(mined.status, 200, "{}", mined.text);
    assert_eq!(balance_at(&reader, "4", &to(b'1')).status, 200);

    // A filter lives on the writer, so any reader can poll it.
    let polled = reader.get(&format!("/getFilterChanges/{filter}/"));
    let hashes = polled.body.to_string().matches("0x").count();
    assert!(hashes >= 4, "{}", polled.text);
    assert_eq!(writer.get(&format!("/getFilterChanges/{filter}/")).status, 200);
    let unknown = reader.get("/getFilterChanges/0x77/");
    assert_eq!((unknown.status, unknown.header("content-type")), (404, Some("application/problem+json")));
    // Its links lead to the reader.
    assert_eq!(unknown.field("type"), &json!(format!("{}/problems/filter-not-found", reader.url())));

    // Without the writer, reads go on.
    drop(writer);
    let batch = json!([call_of("eth_newBlockFilter", json!([])), call_of("eth_blockNumber", json!([]))]);
    let answers = reader.post("/", batch.to_string()).body;
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{answers}");
    assert_eq!(answers[1]["result"], "0x4");
    let refused = reader.post("/sendRawTransaction/", json!({"Data": "0x02"}).to_string());
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.text);
    let error = call(&reader, "eth_sendTransaction", transfer(&to(b'3')));
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    socket.send(message("eth_sendTransaction", transfer(&to(b'3'))));
    assert!(socket.receive().to_string().contains("cannot be reached"));
    assert_eq!(balance_at(&reader, "4", &to(b'1')).body["result"], "0x5");
}

#[test]
fn the_writer_decides_who_may_control_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let data = folder.path().join("data");
    std::fs::write(&tokens, "0123456789abcdef0123456789abcdef control\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n").unwrap();
    let (_writer, reader) = writer_and_reader(&data, &["--token-file", &tokens.display().to_string()]);
    let mine = |token: &str| {
        let headers = [("content-type", "application/json"), ("authorization", token)];
        reader.send("POST", "/dev/mine/", &headers, "{}").status
    };
    assert_eq!(mine("Bearer 0123456789abcdef0123456789abcdef"), 200);
    assert_eq!(mine("Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 403);
    assert_eq!(mine("Bearer bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"), 401);
}

#[test]
fn a_head_that_does_not_come_is_reported_and_circles_end() {
    let folder = tempfile::tempdir().unwrap();
    let (_writer, reader) = writer_and_reader(folder.path(), &[]);
    let behind = balance_at(&reader, "7", ACCOUNT);
    assert_eq!((behind.status, behind.header("retry-after")), (503, Some("1")), "{}", behind.text);
    assert!(behind.text.contains("the head is block 0, and the header X-Min-Head demands block 7"), "{}", behind.text);
    for invalid in ["-1", "+1", "0x1", "1.0", "", "latest", "99999999999999999999"] {
        let refused = balance_at(&reader, invalid, ACCOUNT);
        assert_eq!(refused.status, 400, "{invalid}");
        assert!(refused.text.contains("the header X-Min-Head must be a decimal block number"), "{}", refused.text);
    }
    assert_eq!(balance_at(&reader, "0", ACCOUNT).status, 200);

    let another = self::reader(&folder.path().display().to_string(), reader.url());
    let circle = another.post("/sendRawTransaction/", json!({"Data": "0x02"}).to_string());
    assert_eq!(circle.status, 508, "{}", circle.text);
}

#[test]
fn what_is_in_the_pool_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_writer, reader) = writer_and_reader(folder.path(), &["--force-control", "--no-mining"]);
    let sent = call(&reader, "eth_sendTransaction", json!([{"from": ACCOUNT, "to": ACCOUNT}]))["result"].clone();
    let count = |block: &str| call(&reader, "eth_getTransactionCount", json!([ACCOUNT, block]))["result"].clone();
    assert_eq!([count("latest"), count("pending")], ["0x0", "0x1"]);
    assert_eq!(call(&reader, "eth_getTransactionByHash", json!([sent]))["result"]["hash"], sent);
    assert_ne!(call(&reader, "eth_getRawTransactionByHash", json!([sent]))["result"], "0x");
    assert_eq!(
        call(&reader, "eth_getTransactionByHash", json!([format!("0x{}", "7".repeat(64))]))["result"],
        Value::Null
    );
    let status = reader.get(&format!("/getTransactionStatus/{}/", sent.as_str().unwrap()));
    assert_eq!(status.field("Status"), "pending", "{}", status.text);
}

#[test]
fn a_batch_does_not_get_around_what_the_reader_switches_off() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader) = writer_and_reader(folder.path(), &["--force-control"]);
    let methods = [("eth_newBlockFilter", json!([])), ("evm_mine", json!([])), ("debug_getRawHeader", json!(["0x0"]))];
    let batch: Value = methods.into_iter().map(|(method, params)| call_of(method, params)).collect();
    let answers = reader.post("/", batch.to_string()).body;
    assert!(answers[0]["result"].is_string(), "{answers}");
    assert_eq!([&answers[1]["error"]["code"], &answers[2]["error"]["code"]], [-32601, -32601], "{answers}");
    assert_eq!(writer.get("/blockNumber/").field("BlockNumber"), "0");
}

#[test]
fn a_writer_that_does_not_respond_holds_nobody_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let writer = Server::dev(["--data-dir", &data]);
    let reader = Server::start(["--data-dir", &data, "--read-only", "--writer", writer.url(), "--call-timeout", "1s"]);
    writer.signal("STOP");
    let response = call(&reader, "eth_newBlockFilter", json!([]));
    assert!(response.to_string().contains("cannot be reached"), "{response}");
    assert_eq!(reader.post("/newBlockFilter/", "{}").status, 503);
    assert_eq!(call(&reader, "eth_blockNumber", json!([]))["result"], "0x0");
    writer.signal("CONT");
}
