//! JSON-RPC over HTTP: messages, limits, and what of HTTP belongs to it.

#![allow(clippy::unwrap_used)]

use node_tests::server::{Answer, Server};
use node_tests::wallet::{hex, sign, transfer};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::fs;

const NONE: [&str; 0] = [];

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn ask(server: &Server, message: impl ToString) -> Answer {
    let answer = server.post("/", message.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

/// The result of a method.
fn call(server: &Server, method: &str, params: Value) -> Value {
    let answer = ask(server, request(1, method, params)).body;
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn every_path_and_form_of_a_message() {
    let server = Server::dev(NONE);
    for path in ["/", "/rpc", "/rpc/"] {
        let answer = server.post(path, request(1, "eth_chainId", json!([])).to_string());
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, json!({"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-request-id").map(str::len), Some(36));
    }
    let head = ask(&server, request(1, "eth_blockNumber", json!([])));
    assert_eq!(head.header("x-head-number"), Some("0"));
    for id in [json!(0), json!(-1), json!(1.5), json!(1e300), json!("text"), json!(""), Value::Null] {
        let answer = ask(&server, request(id.clone(), "net_version", json!([]))).body;
        assert_eq!((&answer["id"], &answer["result"]), (&id, &json!("31337")));
    }
    for id in [json!(true), json!([1]), json!({"a": 1})] {
        let answer = ask(&server, request(id, "net_version", json!([]))).body;
        assert_eq!((code(&answer), &answer["id"]), (-32600, &Value::Null));
    }
    // Parameters may be left out where there are none, and a notification is not answered.
    for message in [json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}), request(1, "eth_chainId", Value::Null)]
    {
        assert_eq!(ask(&server, message).body["result"], "0x7a69");
    }
    for message in [json!({"jsonrpc": "2.0", "method": "eth_chainId"}), json!([{"jsonrpc": "2.0", "method": "x_y"}])] {
        let answer = server.post("/", message.to_string());
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{message}");
    }
}

#[test]
fn what_is_no_request() {
    let server = Server::dev(NONE);
    let cases = [
        ("{", -32700),
        ("", -32700),
        ("nonsense", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"} x"#, -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},"#, -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("1", -32600),
        ("null", -32600),
        (r#""eth_chainId""#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#, -32600),
        (r#"{"id":1,"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":{"a":1}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x1"]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_CHAINID"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#, -32601),
    ];
    for (message, expected) in cases {
        let answer = server.post("/", message);
        assert_eq!((answer.status, code(&answer.body)), (200, expected), "{message}");
    }
    let mixed = ask(&server, json!([1, {}, request(7, "eth_chainId", json!([])), [[]]])).body;
    let codes: Vec<_> = mixed.as_array().unwrap().iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32600), Some(-32600), None, Some(-32600)]);
    // Names that are known from other servers are told as such.
    let answer = ask(&server, request(1, "engine_newPayloadV4", json!([]))).body;
    assert!(answer["error"]["message"].as_str().unwrap().contains("consensus layer"), "{answer}");
}

#[test]
fn the_limits_of_http_hold() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").display().to_string();
    fs::write(&tokens, "a-token-of-the-tests\n").unwrap();
    let chain_id = request(1, "eth_chainId", json!([])).to_string();
    let guarded = Server::dev(["--token-file", &tokens]);
    assert_eq!(guarded.post("/", &chain_id).status, 401);
    assert_eq!(guarded.get("/").status, 200, "the page tells nothing");
    let json_type = ("content-type", "application/json");
    let shown = guarded.send("POST", "/", &[json_type, ("authorization", "Bearer a-token-of-the-tests")], &chain_id);
    assert_eq!(shown.status, 200);

    let server =
        Server::dev(["--max-body", "1000", "--max-depth", "5", "--max-batch", "4", "--max-batch-bytes", "3000"]);
    assert_eq!(server.send("POST", "/", &[("content-type", "text/plain")], &chain_id).status, 415);
    assert_eq!(server.send("POST", "/", &[json_type, ("host", "foe.example")], &chain_id).status, 403);
    assert_eq!(server.post("/", " ".repeat(1_001)).status, 413);
    let deep = ask(&server, "[".repeat(6) + &"]".repeat(6)).body;
    assert_eq!(code(&deep), -32600);
    assert!(deep["error"]["message"].as_str().unwrap().contains("`max-depth`"));
    let long = ask(&server, Value::from(vec![1; 5])).body;
    assert_eq!(code(&long), -32600);
    assert!(long["error"]["message"].as_str().unwrap().contains("`max-batch`"));
    // The answers of two blocks are what fits.
    let block = |id: u64| request(id, "eth_getBlockByNumber", json!(["0x0", false]));
    let batch = ask(&server, json!([block(1), block(2), block(3), block(4)])).body;
    let codes: Vec<_> = batch.as_array().unwrap().iter().map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [None, None, Some(-32003), Some(-32003)]);

    // Each request of a batch counts.
    let slow = Server::dev(["--rate-limit", "10"]);
    let answer = slow.post("/", Value::from(vec![request(1, "eth_chainId", json!([])); 11]).to_string());
    assert_eq!(answer.status, 429);
    assert!(answer.header("retry-after").is_some());
}

#[test]
fn a_batch_sees_one_head_until_it_changes_something() {
    let server = Server::dev(NONE);
    let raw = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let number = |id: u64| request(id, "eth_blockNumber", json!([]));
    let batch =
        ask(&server, json!([number(1), number(2), request(3, "eth_sendRawTransaction", json!([raw])), number(4)]));
    let results: Vec<_> = batch.body.as_array().unwrap().iter().map(|answer| answer["result"].clone()).collect();
    assert_eq!([&results[0], &results[1], &results[3]], ["0x0", "0x0", "0x1"]);
    assert_eq!(batch.header("x-head-number"), Some("1"));
    let receipt = call(&server, "eth_getTransactionReceipt", json!([results[2]]));
    assert_eq!(receipt["status"], "0x1");
    assert_eq!(call(&server, "eth_getTransactionByHash", json!([results[2]]))["blockNumber"], "0x1");
}

#[test]
fn a_receipt_is_waited_for() {
    let server = Server::dev(NONE);
    let raw = |nonce| hex(&sign(TransactionBody::Legacy(transfer(nonce))).encode());
    let receipt = call(&server, "eth_sendRawTransactionSync", json!([raw(0)]));
    assert_eq!((&receipt["blockNumber"], &receipt["status"]), (&json!("0x1"), &json!("0x1")));
    // This one waits for the nonce before it.
    let answer = ask(&server, request(1, "eth_sendRawTransactionSync", json!([raw(2), "0x32"]))).body;
    assert_eq!(code(&answer), 4);
    let hash = answer["error"]["data"].as_str().unwrap();
    let status = call(&server, "txpool_status", json!([]));
    assert_eq!(status, json!({"pending": "0x0", "queued": "0x1"}));
    let content = call(&server, "txpool_content", json!([]));
    let (_, queued) = content["queued"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(queued["2"]["hash"], hash);
}

#[test]
fn modules_are_those_of_the_table() {
    let server = Server::start(NONE);
    let modules = call(&server, "rpc_modules", json!([]));
    assert_eq!(modules.get("anvil"), None, "{modules}");
    assert_eq!(call(&Server::dev(NONE), "rpc_modules", json!([]))["anvil"], "1.0");
    for family in ["eth", "net", "web3", "txpool", "debug", "rpc"] {
        assert_eq!(modules[family], "1.0", "{modules}");
    }
}
