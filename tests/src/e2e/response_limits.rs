//! Memory that clients may take: for responses, which are refused while they are written, and for what they have the
//! server keep.

use super::in_process::serve_dev;
use crate::events::Events;
use crate::server::{Response, Server};
use crate::wallet::{BOB, hex, sign, transfer};
use crate::websocket::Socket;
use node_http::{HttpConfig, RequestLimits};
use node_types::consensus::{LegacyTransaction, TransactionBody};
use node_types::keccak256;
use serde_json::{Value, json};

const NONE: [&str; 0] = [];

/// Length of the data of each log in bytes.
const LOG: usize = 0x10000;

fn with_response(max_response: usize) -> HttpConfig {
    HttpConfig { requests: RequestLimits { max_response, ..Default::default() }, ..HttpConfig::default() }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn call(server: &Server, method: &str, params: Value) -> Value {
    server.post("/", request(1, method, params).to_string()).body
}

/// Mines a block with `count` logs of [`LOG`] bytes. The nonce of the first transaction is `nonce`.
fn mine_logs(server: &Server, nonce: u64, count: u64) {
    call(server, "evm_setAutomine", json!([false]));
    for nonce in nonce..nonce + count {
        // PUSH3 LOG, PUSH1 0, LOG0, STOP.
        let code = [0x62, 0x01, 0, 0, 0x60, 0, 0xa0, 0];
        let body = LegacyTransaction {
            to: None,
            value: 0.into(),
            gas_limit: 2_000_000,
            input: code.to_vec().into(),
            ..transfer(nonce)
        };
        let sent = call(server, "eth_sendRawTransaction", json!([hex(&sign(TransactionBody::Legacy(body)).encode())]));
        assert!(sent["error"].is_null(), "{sent}");
    }
    assert_eq!(call(server, "evm_mine", json!([]))["result"], "0x0");
}

fn slug(response: &Response) -> &str {
    response.field("type").as_str().and_then(|uri| uri.rsplit('/').next()).unwrap_or_default()
}

#[test]
fn logs_that_do_not_fit_are_refused_with_the_last_block_that_fits() {
    let (_chain, server) = serve_dev(with_response(6 * LOG));
    for block in 0..3 {
        mine_logs(&server, block, 1);
    }
    let from_one = |to: u64| json!([{"fromBlock": "0x1", "toBlock": format!("{to:#x}")}]);
    assert_eq!(call(&server, "eth_getLogs", from_one(2))["result"].as_array().map(Vec::len), Some(2));
    let refused = call(&server, "eth_getLogs", from_one(3));
    assert_eq!(refused["error"]["code"], -32005, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("(`max-response`)") && message.ends_with("the logs up to block 2 would fit"), "{message}");

    let rest = |from: u64, to: u64| {
        server.post("/getLogs/", json!({"FromBlock": from.to_string(), "ToBlock": to.to_string()}).to_string())
    };
    assert_eq!(rest(1, 2).status, 200);
    let refused = rest(1, 3);
    assert_eq!(refused.problem_faults(422), NONE, "{}", refused.text);
    assert_eq!(slug(&refused), "limit-exceeded");
    assert_eq!(refused.field("errors")[0]["message"], "the logs up to ToBlock 2 would fit", "{}", refused.text);
    assert_eq!(refused.field("errors")[0]["location"], "body.ToBlock");

    // The first block alone has too many.
    mine_logs(&server, 3, 4);
    let refused = call(&server, "eth_getLogs", json!([{"fromBlock": "0x4"}]));
    assert_eq!(refused["error"]["code"], -32005, "{refused}");
    assert!(!refused["error"]["message"].as_str().unwrap().contains("would fit"), "{refused}");
    let filter = call(&server, "eth_newFilter", json!([{"fromBlock": "0x1"}]))["result"].clone();
    assert_eq!(call(&server, "eth_getFilterLogs", json!([filter]))["error"]["code"], -32005);
}

#[test]
fn a_request_of_a_batch_that_does_not_fit_loses_nothing() {
    let (_chain, server) = serve_dev(with_response(6 * LOG));
    let filter = call(&server, "eth_newFilter", json!([{}]))["result"].clone();
    mine_logs(&server, 0, 2);
    let poll = |id| request(id, "eth_getFilterChanges", json!([filter]));
    let logs = request(1, "eth_getLogs", json!([{"fromBlock": "0x1"}]));
    let batch = server.post("/", json!([logs, poll(2), request(3, "eth_chainId", json!([]))]).to_string());
    let [logs, changes, chain] = [0, 1, 2].map(|index| &batch.body[index]);
    assert_eq!(logs["result"].as_array().map(Vec::len), Some(2));
    assert_eq!((&changes["error"]["code"], &changes["id"]), (&json!(-32005), &json!(2)), "{changes}");
    assert_eq!(chain["result"], "0x7a69");
    // The next poll reports what the client has not received.
    assert_eq!(server.post("/", poll(1).to_string()).body["result"].as_array().map(Vec::len), Some(2));
}

#[test]
fn every_kind_of_long_response_is_refused() {
    let (_chain, server) = serve_dev(with_response(100_000));
    call(&server, "evm_setAutomine", json!([false]));
    let long = |nonce| {
        let input = vec![1; 60_000].into();
        let body = LegacyTransaction { gas_limit: 5_000_000, input, ..transfer(nonce) };
        hex(&sign(TransactionBody::Legacy(body)).encode())
    };
    assert!(call(&server, "eth_sendRawTransaction", json!([long(0)]))["error"].is_null());
    for method in ["txpool_content", "txpool_contentFrom"] {
        let sender = format!("{:#x}", crate::wallet::address(crate::wallet::ALICE));
        let params = if method == "txpool_content" { json!([]) } else { json!([sender]) };
        let refused = call(&server, method, params);
        assert_eq!(refused["error"]["code"], -32005, "{method}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("`max-response`"), "{refused}");
    }
    assert_eq!(
        call(&server, "txpool_inspect", json!([]))["result"]["pending"].as_object().map(|all| all.len()),
        Some(1)
    );
    assert_eq!(call(&server, "evm_mine", json!([]))["result"], "0x0");
    // PUSH3 60,000, PUSH1 0, RETURN
    let code = "0x6200ea606000f3";
    assert_eq!(server.post("/dev/setCode/", json!({"Address": BOB, "Code": code}).to_string()).status, 200);
    for (method, params) in [
        ("eth_getBlockByNumber", json!(["0x1", true])),
        ("debug_getRawBlock", json!(["0x1"])),
        ("debug_traceBlockByNumber", json!(["0x1", {"tracer": "callTracer"}])),
        ("eth_call", json!([{"to": BOB}])),
    ] {
        assert_eq!(call(&server, method, params.clone())["error"]["code"], -32005, "{method}");
    }
    for response in [
        server.get("/getBlockByNumber/1/true/"),
        server.post("/call/", json!({"Transaction": {"To": BOB}}).to_string()),
    ] {
        assert_eq!(response.problem_faults(422), NONE, "{}", response.text);
        assert_eq!((slug(&response), response.header("retry-after")), ("limit-exceeded", None));
    }
}

#[test]
fn an_error_that_does_not_fit_is_replaced_with_one_that_says_so() {
    let (_chain, server) = serve_dev(with_response(100_000));
    // PUSH3 60,000, PUSH1 0, REVERT
    let code = "0x6200ea606000fd";
    assert!(call(&server, "anvil_setCode", json!([BOB, code]))["error"].is_null());
    let reverting = |id| request(id, "eth_call", json!([{"to": BOB}]));
    let single = server.post("/", reverting(1).to_string()).body;
    let batch =
        server.post("/", json!([reverting(1), request(2, "eth_chainId", json!([])), reverting(3)]).to_string()).body;
    for refused in [&single, &batch[0], &batch[2]] {
        assert_eq!(refused["error"]["code"], -32005, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("`max-response`"), "{refused}");
    }
    assert_eq!((&batch[1]["result"], &batch[2]["id"]), (&json!("0x7a69"), &json!(3)));
}

#[test]
fn a_dump_needs_memory_for_names_and_for_what_it_is_compressed_to() {
    let (_chain, server) = serve_dev(with_response(200_000));
    let dump = |method: &str| call(&server, method, json!([]));
    let key = json!([hex(&[7; 32])]);
    let set_code = |account: u64, code: &[u8]| {
        let set = call(&server, "anvil_setCode", json!([format!("{account:#042x}"), hex(code)]));
        assert!(set["error"].is_null(), "{set}");
    };
    // Compressed, they take a few bytes, and only one is read at a time.
    (1..=16).for_each(|account| set_code(account, &[account as u8; 24_000]));
    for method in ["anvil_dumpState", "hardhat_dumpState"] {
        assert!(dump(method)["result"].as_str().unwrap().starts_with("0x1f8b"));
    }
    // No header commits to edits that no block includes.
    call(&server, "evm_mine", json!([]));
    assert!(call(&server, "debug_dbGet", key.clone())["error"]["message"].as_str().unwrap().contains("not found"));
    // These cannot be compressed.
    let random = |seed: u64| (0..750u64).flat_map(|n| keccak256((seed << 32 | n).to_be_bytes()).0).collect::<Vec<_>>();
    (1..=8).for_each(|account| set_code(account, &random(account)));
    // These have many names.
    let refused = |response: Value| {
        assert_eq!(response["error"]["code"], -32005, "{response}");
        assert!(response["error"]["message"].as_str().unwrap().contains("`max-response`"), "{response}");
    };
    ["anvil_dumpState", "hardhat_dumpState"].map(dump).into_iter().for_each(refused);
    let accounts = (0..2_500u64).map(|n| (format!("{:#042x}", 99 + n), json!({"nonce": 0, "balance": "0x1"})));
    let many = json!({"accounts": accounts.collect::<serde_json::Map<_, _>>()}).to_string();
    assert_eq!(call(&server, "anvil_loadState", json!([hex(many.as_bytes())]))["result"], true);
    refused(call(&server, "debug_dbGet", key));
}

#[test]
fn subscriptions_filters_and_streams_share_memory() {
    let server = Server::dev(["--max-filter-bytes", "110000", "--max-filters", "1000"]);
    let topics: Vec<_> = (0..500).map(|topic| format!("0x{topic:064x}")).collect();
    let filter = json!({"topics": [topics]});
    let mut socket = Socket::connect(server.address(), &[]).unwrap();
    let refused = |response: &Value| {
        let message = response["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("(`max-filter-bytes`)"), "{response}");
        assert_eq!(response["error"]["code"], -32005);
    };
    // One client may have half of the memory, in which three filters fit.
    let first = socket.call("eth_subscribe", json!(["logs", filter]));
    assert!(call(&server, "eth_newFilter", json!([filter]))["error"].is_null());
    let url = format!("{}/events/?Topic0={}", server.url(), topics[..60].join(","));
    let stream = Events::listen(&url, None);
    let second = socket.call("eth_subscribe", json!(["logs", filter]));
    refused(&call(&server, "eth_newFilter", json!([filter])));
    socket.send(request(9, "eth_subscribe", json!(["logs", filter])));
    refused(&socket.receive());
    let rest = json!({"FilterObject": {"FromBlock": "", "ToBlock": "", "Address": "", "Topics": [topics.join(",")]}});
    let over_rest = server.post("/newFilter/", rest.to_string());
    assert_eq!(over_rest.problem_faults(422), NONE, "{}", over_rest.text);
    assert_eq!(slug(&over_rest), "limit-exceeded");
    assert!(over_rest.text.contains("`max-filter-bytes`"), "{}", over_rest.text);

    // What ends leaves its memory to others.
    for subscription in [first, second] {
        assert_eq!(socket.call("eth_unsubscribe", json!([subscription])), true);
    }
    drop((socket, stream));
    assert!(call(&server, "eth_newFilter", json!([filter]))["error"].is_null());
}
