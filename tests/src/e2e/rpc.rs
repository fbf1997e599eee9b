//! JSON-RPC over HTTP: messages, limits, and HTTP headers.

use crate::server::{Response, Server};
use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_http::{HttpConfig, RequestLimits};
use node_types::consensus::{PooledTransaction, TransactionBody};
use node_types::wire::BytesData;
use serde_json::{Value, json};
use std::fs;

const NONE: [&str; 0] = [];

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn ask(server: &Server, message: impl ToString) -> Response {
    let response = server.post("/", message.to_string());
    assert_eq!(response.status, 200, "{}", response.text);
    response
}

/// Returns the result of a method.
fn call(server: &Server, method: &str, params: Value) -> Value {
    let response = ask(server, request(1, method, params)).body;
    assert!(response.get("error").is_none(), "{method}: {response}");
    response["result"].clone()
}

fn code(response: &Value) -> i64 {
    response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{response}"))
}

#[test]
fn accepts_every_path_and_form_of_a_message() {
    let server = Server::dev(NONE);
    for path in ["/", "/rpc", "/rpc/"] {
        let response = server.post(path, request(1, "eth_chainId", json!([])).to_string());
        assert_eq!(response.status, 200);
        assert_eq!(response.body, json!({"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}), "{path}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert_eq!(response.header("x-request-id").map(str::len), Some(36));
    }
    let head = ask(&server, request(1, "eth_blockNumber", json!([])));
    assert_eq!(head.header("x-head-number"), Some("0"));
    for id in [json!(0), json!(-1), json!(1.5), json!(1e300), json!("text"), json!(""), Value::Null] {
        let response = ask(&server, request(id.clone(), "net_version", json!([]))).body;
        assert_eq!((&response["id"], &response["result"]), (&id, &json!("31337")));
    }
    for id in [json!(true), json!([1]), json!({"a": 1})] {
        let response = ask(&server, request(id, "net_version", json!([]))).body;
        assert_eq!((code(&response), &response["id"]), (-32600, &Value::Null));
    }
    // Parameters may be omitted if there are none, and a notification gets no response.
    for message in [json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}), request(1, "eth_chainId", Value::Null)]
    {
        assert_eq!(ask(&server, message).body["result"], "0x7a69");
    }
    for message in [json!({"jsonrpc": "2.0", "method": "eth_chainId"}), json!([{"jsonrpc": "2.0", "method": "x_y"}])] {
        let response = server.post("/", message.to_string());
        assert_eq!((response.status, response.text.as_str()), (204, ""), "{message}");
    }
}

#[test]
fn invalid_requests() {
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
        let response = server.post("/", message);
        assert_eq!((response.status, code(&response.body)), (200, expected), "{message}");
    }
    let mixed = ask(&server, json!([1, {}, request(7, "eth_chainId", json!([])), [[]]])).body;
    let codes: Vec<_> = mixed.as_array().unwrap().iter().map(|response| response["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32600), Some(-32600), None, Some(-32600)]);
    let unknown = ask(&server, request(1, "engine_newPayloadV4", json!([]))).body;
    let message = "the method engine_newPayloadV4 does not exist/is not available";
    assert_eq!(unknown["error"], json!({ "code": -32601, "message": message }));
}

#[test]
fn limits_of_http_apply() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens").display().to_string();
    fs::write(&tokens, "a-token-of-the-tests\n").unwrap();
    let chain_id = request(1, "eth_chainId", json!([])).to_string();
    let guarded = Server::dev(["--token-file", &tokens]);
    assert_eq!(guarded.post("/", &chain_id).status, 401);
    assert_eq!(guarded.get("/").status, 200, "the page needs no token");
    let json_type = ("content-type", "application/json");
    let shown = guarded.send("POST", "/", &[json_type, ("authorization", "Bearer a-token-of-the-tests")], &chain_id);
    assert_eq!(shown.status, 200);

    let limits = HttpConfig {
        requests: RequestLimits { max_body: 1_000, max_batch: 4, max_batch_bytes: 3_000, ..Default::default() },
        ..HttpConfig::default()
    };
    let (_chain, server) = super::in_process::serve_dev(limits);
    assert_eq!(server.send("POST", "/", &[("content-type", "text/plain")], &chain_id).status, 415);
    assert_eq!(server.send("POST", "/", &[json_type, ("host", "foe.example")], &chain_id).status, 403);
    assert_eq!(server.post("/", " ".repeat(1_001)).status, 413);
    let long = ask(&server, Value::from(vec![1; 5])).body;
    assert_eq!(code(&long), -32600);
    assert!(long["error"]["message"].as_str().unwrap().contains("`max-batch`"));
    // The responses for two blocks fit.
    let block = |id: u64| request(id, "eth_getBlockByNumber", json!(["0x0", false]));
    let batch = ask(&server, json!([block(1), block(2), block(3), block(4)])).body;
    let codes: Vec<_> = batch.as_array().unwrap().iter().map(|response| response["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [None, None, Some(-32003), Some(-32003)]);

    // Each request of a batch counts.
    let slow = Server::dev(["--rate-limit", "10"]);
    let response = slow.post("/", Value::from(vec![request(1, "eth_chainId", json!([])); 11]).to_string());
    assert_eq!(response.status, 429);
    assert!(response.header("retry-after").is_some());
}

#[test]
fn a_batch_reads_one_view_until_it_changes_something() {
    let server = Server::dev(NONE);
    let raw = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let number = |id: u64| request(id, "eth_blockNumber", json!([]));
    let batch =
        ask(&server, json!([number(1), number(2), request(3, "eth_sendRawTransaction", json!([raw])), number(4)]));
    let results: Vec<_> = batch.body.as_array().unwrap().iter().map(|response| response["result"].clone()).collect();
    assert_eq!([&results[0], &results[1], &results[3]], ["0x0", "0x0", "0x1"]);
    assert_eq!(batch.header("x-head-number"), Some("1"));
    let receipt = call(&server, "eth_getTransactionReceipt", json!([results[2]]));
    assert_eq!(receipt["status"], "0x1");
    assert_eq!(call(&server, "eth_getTransactionByHash", json!([results[2]]))["blockNumber"], "0x1");
}

/// Reading a full block takes longer than the time for which a request may occupy the thread that received it.
#[test]
fn blocks_with_much_gas_are_read_by_single_requests() {
    let server = Server::dev(NONE);
    // JUMPDEST, PUSH1 0, JUMP.
    let endless = json!({"from": ALICE, "data": "0x5b600056", "gas": "0xf42400"});
    let hash = call(&server, "eth_sendTransaction", json!([endless]));
    let block = call(&server, "eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!((&block["gasUsed"], &block["transactions"]), (&json!("0xf42400"), &json!([hash])));
    let by_hash = call(&server, "eth_getBlockByHash", json!([block["hash"], false]));
    assert_eq!(by_hash, block);
    let receipts = call(&server, "eth_getBlockReceipts", json!(["latest"]));
    assert_eq!(receipts[0]["transactionHash"], hash);
    for method in ["debug_getRawBlock", "debug_getRawReceipts"] {
        assert!(!call(&server, method, json!(["latest"])).is_null(), "{method}");
    }
    assert_eq!(server.get("/getBlockByNumber/latest/false/").status, 200);
}

#[test]
fn the_fee_history_of_no_blocks_is_empty() {
    let server = Server::dev(NONE);
    let history = call(&server, "eth_feeHistory", json!(["0x0", "latest", [50]]));
    let empty = json!({
        "oldestBlock": "0x0", "baseFeePerGas": [], "gasUsedRatio": [], "baseFeePerBlobGas": [], "blobGasUsedRatio": []
    });
    assert_eq!(history, empty);
}

#[test]
fn a_simulation_names_the_option_that_limits_its_gas() {
    let server = Server::dev(["--gas-cap", "100000"]);
    // JUMPDEST, PUSH1 0, JUMP.
    let endless = json!({"data": "0x5b600056"});
    let simulation = |calls: &[&Value]| json!([{"blockStateCalls": [{"calls": calls}]}, "latest"]);
    let blocks = call(&server, "eth_simulateV1", simulation(&[&endless]));
    let error = &blocks[0]["calls"][0]["error"];
    assert_eq!(error["code"], -32015, "{error}");
    assert!(error["message"].as_str().unwrap().contains("`gas-cap`"), "{error}");
    let refused = ask(&server, request(1, "eth_simulateV1", simulation(&[&endless, &endless]))).body;
    assert_eq!(code(&refused), -38013, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("`gas-cap`"), "{refused}");
}

#[test]
fn transactions_of_accounts_follow_the_fork() {
    for fork in ["frontier", "homestead", "tangerine", "spuriousdragon", "berlin"] {
        let server = Server::dev(["--hardfork", fork]);
        let hash = call(&server, "eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": "0x1"}]));
        let mined = call(&server, "eth_getTransactionByHash", json!([hash]));
        let is_protected = !["0x1b", "0x1c"].contains(&mined["v"].as_str().unwrap());
        assert_eq!(
            (&mined["blockNumber"], is_protected),
            (&json!("0x1"), ["spuriousdragon", "berlin"].contains(&fork))
        );
        let fees = json!([{"from": ALICE, "to": BOB, "maxFeePerGas": "0xe8d4a51000", "maxPriorityFeePerGas": "0x1"}]);
        let refused = ask(&server, request(1, "eth_sendTransaction", fees)).body;
        assert!(refused["error"]["message"].as_str().unwrap().contains("before London"), "{fork}: {refused}");
    }
}

#[test]
fn access_lists_are_created_since_berlin() {
    let arguments = json!([{"from": ALICE, "to": BOB}, "latest"]);
    for fork in ["frontier", "istanbul", "muirglacier"] {
        let server = Server::dev(["--hardfork", fork]);
        let refused = ask(&server, request(1, "eth_createAccessList", arguments.clone())).body;
        let text = "blockNumber: access lists exist since Berlin (EIP-2930), block 0 is before it";
        assert_eq!((code(&refused), &refused["error"]["message"]), (-32602, &json!(text)), "{fork}");
    }
    let server = Server::dev(["--hardfork", "berlin"]);
    assert_eq!(call(&server, "eth_createAccessList", arguments)["accessList"], json!([]));
}

#[test]
fn the_blob_base_fee_can_be_overridden() {
    let server = Server::dev(NONE);
    // BLOBBASEFEE, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
    let code = json!({BOB: {"code": "0x4a60005260206000f3"}});
    let read = |call: Value| self::call(&server, "eth_call", json!([call, "latest", code, {"blobBaseFee": "0x99"}]));
    let expected = format!("0x{:064x}", 0x99);
    assert_eq!(read(json!({"to": BOB})), expected);
    assert_eq!(read(json!({"from": ALICE, "to": BOB, "gasPrice": "0x2540be400"})), expected);
    let without = call(&server, "eth_call", json!([{"to": BOB}, "latest", code]));
    assert_eq!(without, format!("0x{:064x}", 1));
}

#[test]
fn errors_of_steps_have_the_texts_of_geth() {
    let server = Server::dev(NONE);
    for (code, expected) in [
        ("0xfe", "invalid opcode: INVALID"),
        ("0x50", "stack underflow (0 <=> 1)"),
        ("0x600056", "invalid jump destination"),
    ] {
        let overrides = json!({"stateOverrides": {BOB: {"code": code}}});
        let trace = call(&server, "debug_traceCall", json!([{"to": BOB}, "latest", overrides]));
        assert_eq!(trace["structLogs"].as_array().unwrap().last().unwrap()["error"], expected, "{trace}");
    }
}

#[test]
fn waits_for_a_receipt() {
    let server = Server::dev(NONE);
    let raw = |nonce| hex(&sign(TransactionBody::Legacy(transfer(nonce))).encode());
    let receipt = call(&server, "eth_sendRawTransactionSync", json!([raw(0)]));
    assert_eq!((&receipt["blockNumber"], &receipt["status"]), (&json!("0x1"), &json!("0x1")));
    // This one waits for an earlier nonce.
    let response = ask(&server, request(1, "eth_sendRawTransactionSync", json!([raw(2), "0x32"]))).body;
    assert_eq!(code(&response), 4);
    let hash = response["error"]["data"].as_str().unwrap();
    let status = call(&server, "txpool_status", json!([]));
    assert_eq!(status, json!({"pending": "0x0", "queued": "0x1"}));
    let content = call(&server, "txpool_content", json!([]));
    let (_, queued) = content["queued"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(queued["2"]["hash"], hash);
}

#[test]
fn fills_in_a_transaction_for_another_signer() {
    let server = Server::dev(NONE);
    let asked = json!({"from": ALICE, "to": BOB, "value": "0x1"});
    let filled = call(&server, "eth_fillTransaction", json!([asked]));
    let tx = &filled["tx"];
    assert_eq!(
        (&tx["nonce"], &tx["gas"], &tx["type"], &tx["r"]),
        (&json!("0x0"), &json!("0x5208"), &json!("0x2"), &json!("0x0"))
    );
    assert_eq!((&tx["chainId"], &tx["blockHash"], &tx["from"]), (&json!("0x7a69"), &Value::Null, &json!(ALICE)));
    let raw = filled["raw"].as_str().unwrap().parse::<BytesData>().unwrap();
    let PooledTransaction { transaction, .. } = PooledTransaction::decode(&raw.0).unwrap();
    let signed = hex(&sign(transaction.body).encode());
    let hash = call(&server, "eth_sendRawTransaction", json!([signed]));
    assert_eq!(call(&server, "eth_getTransactionReceipt", json!([hash]))["status"], "0x1");

    // The zero address has no balance, but may make calls; a call that reverts has no gas estimate.
    assert_eq!(
        call(&server, "eth_fillTransaction", json!([{"to": BOB}]))["tx"]["from"],
        format!("0x{}", "00".repeat(20))
    );
    let reverting = json!({"from": ALICE, "data": "0x60006000fd"});
    assert_eq!(code(&ask(&server, request(1, "eth_fillTransaction", json!([reverting]))).body), 3);
    for impossible in [
        json!({"chainId": "0x1"}),
        json!({"to": BOB, "gas": "0x5208", "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}),
        json!({"to": BOB, "gas": "0x5208", "type": "0x3"}),
        json!({"to": BOB, "gas": "0x5208", "authorizationList": []}),
    ] {
        assert_eq!(
            code(&ask(&server, request(1, "eth_fillTransaction", json!([impossible]))).body),
            -32003,
            "{impossible}"
        );
    }
}

#[test]
fn coinbase_is_the_beneficiary_of_the_next_block() {
    let server = Server::dev(NONE);
    let mine = || {
        call(&server, "evm_mine", json!([]));
        call(&server, "eth_getBlockByNumber", json!(["latest", false]))["miner"].clone()
    };
    let first = call(&server, "eth_coinbase", json!([]));
    assert_eq!(mine(), first);
    call(&server, "anvil_setCoinbase", json!([BOB]));
    assert_eq!((call(&server, "eth_coinbase", json!([])), mine()), (json!(BOB), json!(BOB)));
    let plain = Server::start(NONE);
    assert_eq!(call(&plain, "eth_coinbase", json!([])), format!("0x{}", "00".repeat(20)));
}

#[test]
fn headers_accounts_and_raw_transactions() {
    let server = Server::dev(NONE);
    let raw = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    call(&server, "eth_sendRawTransaction", json!([raw]));
    let block = call(&server, "eth_getBlockByNumber", json!(["latest", false]));
    let header = call(&server, "eth_getHeaderByNumber", json!(["latest"]));
    assert_eq!(call(&server, "eth_getHeaderByHash", json!([block["hash"]])), header);
    let (header, block) = (header.as_object().unwrap(), block.as_object().unwrap());
    let beyond: Vec<_> = block.keys().filter(|key| !header.contains_key(*key)).collect();
    assert_eq!(beyond, ["size", "transactions", "uncles", "withdrawals"]);
    assert!(header.iter().all(|(key, value)| block[key] == *value));
    assert_eq!(call(&server, "eth_getHeaderByNumber", json!(["0x7"])), Value::Null);

    for (method, which) in [("ByBlockNumberAndIndex", json!("0x1")), ("ByBlockHashAndIndex", block["hash"].clone())] {
        let method = format!("eth_getRawTransaction{method}");
        assert_eq!(call(&server, &method, json!([which, "0x0"])), raw);
        assert_eq!(call(&server, &method, json!([which, "0x1"])), "0x");
    }

    let info = call(&server, "eth_getAccountInfo", json!([ALICE, "latest"]));
    let account = call(&server, "eth_getAccount", json!([ALICE, "latest"]));
    let proof = call(&server, "eth_getProof", json!([ALICE, [], "latest"]));
    assert_eq!(info, json!({"balance": proof["balance"], "nonce": "0x1", "code": "0x"}));
    let whole = json!({
        "balance": proof["balance"], "nonce": "0x1", "codeHash": proof["codeHash"], "storageRoot": proof["storageHash"],
    });
    assert_eq!(account, whole);
}

/// Init code of a token that stores balances at the hash of the two words in its call data, and returns them. It first
/// reads slot 1, and reverts if it is set.
const TOKEN: &str =
    concat!("0x601b8060095f395ff3", "600154601757", "604060045f37", "60405f20545f5260205ff3", "5b5f5ffd");

#[test]
fn deals_tokens() {
    let server = Server::dev(NONE);
    let deploy = json!({"from": ALICE, "data": TOKEN, "gas": "0x100000"});
    let hash = call(&server, "eth_sendTransaction", json!([deploy]));
    let token = call(&server, "eth_getTransactionReceipt", json!([hash]))["contractAddress"].clone();
    let word = |address: &str| format!("{:0>64}", &address[2..]);
    let balance = || call(&server, "eth_call", json!([{"to": token, "data": format!("0x70a08231{}", word(BOB))}]));
    let number = |value: u64| json!(format!("{value:#066x}"));
    assert_eq!(balance(), number(0));
    for (method, amount) in [("anvil_dealERC20", 5), ("anvil_setERC20Balance", 0), ("anvil_dealERC20", 1)] {
        assert_eq!(call(&server, method, json!([BOB, token, format!("{amount:#x}")])), Value::Null);
        assert_eq!(balance(), number(amount), "{method}");
        // Nothing else has changed.
        assert_eq!(call(&server, "eth_getStorageAt", json!([token, "0x1", "latest"])), number(0));
    }
    call(&server, "anvil_setERC20Allowance", json!([ALICE, BOB, token, "0x2a"]));
    let allowance = json!([{"to": token, "data": format!("0xdd62ed3e{}{}", word(ALICE), word(BOB))}]);
    assert_eq!(call(&server, "eth_call", allowance), number(42));
    assert_eq!(balance(), number(1));
    // The edit remains after the next block.
    call(&server, "evm_mine", json!([]));
    assert_eq!(balance(), number(1));

    // Not a token; a contract that always returns the same; one that multiplies a global rate by each account's shares;
    // and one whose balance is in the upper bits.
    let other = "0x00000000000000000000000000000000000000aa";
    let slot = |slot: &str| call(&server, "eth_getStorageAt", json!([other, slot, "latest"]));
    let refused = [
        "0x",
        "0x60075f5260205ff3",
        "0x6001546004355f525f60205260405f2054025f5260205ff3",
        "0x60043560801b5460801c5f5260205ff3",
    ];
    for refused in refused {
        call(&server, "anvil_setCode", json!([other, refused]));
        call(&server, "anvil_setStorageAt", json!([other, "0x1", "0x3"]));
        let response = ask(&server, request(1, "anvil_dealERC20", json!([ALICE, other, "0x9"]))).body;
        assert_eq!((code(&response), slot("0x1")), (-32000, number(3)), "{refused}: {response}");
    }
    // Other values in the slot above the balance are preserved.
    call(
        &server,
        "anvil_setCode",
        json!([other, "0x600435547f00000000000000000000000000000000ffffffffffffffffffffffffffffffff165f5260205ff3"]),
    );
    let key = format!("0x{}", word(ALICE));
    call(&server, "anvil_setStorageAt", json!([other, key, format!("0x{}", "ab".repeat(32))]));
    call(&server, "anvil_dealERC20", json!([ALICE, other, "0x5"]));
    assert_eq!(slot(&key), format!("0x{}{:032x}", "ab".repeat(16), 5));
    let beyond =
        ask(&server, request(1, "anvil_dealERC20", json!([ALICE, other, format!("0x1{}", "0".repeat(32))]))).body;
    assert_eq!((code(&beyond), slot(&key)), (-32000, json!(format!("0x{}{:032x}", "ab".repeat(16), 5))));
    let plain = Server::start(NONE);
    assert_eq!(code(&ask(&plain, request(1, "anvil_dealERC20", json!([ALICE, token, "0x9"]))).body), -32601);
}

#[test]
fn lists_the_modules_of_the_method_table() {
    let server = Server::start(NONE);
    let modules = call(&server, "rpc_modules", json!([]));
    assert_eq!(modules.get("anvil"), None, "{modules}");
    assert_eq!(call(&Server::dev(NONE), "rpc_modules", json!([]))["anvil"], "1.0");
    for family in ["eth", "net", "web3", "rpc"] {
        assert_eq!(modules[family], "1.0", "{modules}");
    }
}

#[test]
fn traces_have_the_format_of_openethereum() {
    let server = Server::dev(NONE);
    let hash = call(&server, "eth_sendTransaction", json!([{"from": ALICE, "data": "0x5f5ff3"}]));
    let traces = call(&server, "trace_transaction", json!([hash]));
    let [trace] = &traces.as_array().unwrap()[..] else { panic!("{traces}") };
    assert_eq!((&trace["type"], &trace["transactionHash"]), (&json!("create"), &hash), "{trace}");
    assert_eq!((&trace["traceAddress"], &trace["blockNumber"]), (&json!([]), &json!(1)), "{trace}");
    // The outermost call has its own gas: what the transaction pays before it begins is not part of it.
    assert_eq!(trace["result"]["gasUsed"], "0x4", "{trace}");
    assert_eq!(call(&server, "trace_block", json!(["latest"])), traces);
    assert_eq!(call(&server, "trace_block", json!(["0x0"])), json!([]));
    assert_eq!(call(&server, "trace_block", json!(["0x9"])), Value::Null);
    assert_eq!(call(&server, "trace_transaction", json!([format!("0x{}", "01".repeat(32))])), Value::Null);
}

#[test]
fn traces_of_blocks_before_the_merge_end_with_the_reward() {
    let server = Server::dev(["--hardfork", "london"]);
    call(&server, "eth_sendTransaction", json!([{"from": ALICE, "to": BOB}]));
    let traces = call(&server, "trace_block", json!(["latest"]));
    let [_, reward] = &traces.as_array().unwrap()[..] else { panic!("{traces}") };
    assert_eq!((&reward["type"], &reward["action"]["rewardType"]), (&json!("reward"), &json!("block")), "{reward}");
    assert_eq!(reward["action"]["value"], "0x1bc16d674ec80000", "{reward}");
    assert_eq!((&reward["traceAddress"], &reward["transactionHash"]), (&json!([]), &Value::Null), "{reward}");
}

#[test]
fn methods_have_the_names_of_other_servers() {
    let server = Server::dev(NONE);
    call(&server, "evm_setAccountBalance", json!([BOB, "0x5"]));
    assert_eq!(call(&server, "eth_getBalance", json!([BOB, "latest"])), "0x5");
    call(&server, "evm_setAccountCode", json!([BOB, "0x6001"]));
    assert_eq!(call(&server, "eth_getCode", json!([BOB, "latest"])), "0x6001");
    for automine in [true, false] {
        call(&server, "evm_setAutomine", json!([automine]));
        assert_eq!(call(&server, "eth_mining", json!([])), automine);
    }
    assert_eq!(call(&server, "eth_networkId", json!([])), call(&server, "net_version", json!([])));
    call(&server, "evm_setAutomine", json!([true]));
    let receipt = call(&server, "eth_sendTransactionSync", json!([{"from": ALICE, "to": ALICE}]));
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    let header = call(&server, "eth_getHeaderByNumber", json!(["latest"]));
    assert_eq!(call(&server, "erigon_getHeaderByNumber", json!(["latest"])), header);
}
