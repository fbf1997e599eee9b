//! Transactions that make their block invalid when it is finished, and chains whose next block cannot be valid.

use crate::server::{Response, Server, node_server};
use crate::wallet::{accounts, hex, transfer};
use node_chain::genesis::DEV_GENESIS;
use node_types::Bytes;
use node_types::consensus::{LegacyTransaction, Transaction, TransactionBody};
use serde_json::{Value, json};
use std::fs;

/// The deposit contract of the development chain (EIP-6110).
const DEPOSITS: &str = "0x00000000219ab540356cbb839cbe05303d7705fa";

/// Logs a deposit event without data.
const EMPTY_DEPOSIT: &str = "0x7f649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c55f5fa1";

/// The contract of withdrawal requests (EIP-7002).
const WITHDRAWALS: &str = "0x00000961ef480eb55e80d19ad83579a64c007002";

const NONE: [&str; 0] = [];

fn ask(server: &Server, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    server.post("/", request.to_string()).body
}

fn call(server: &Server, method: &str, params: Value) -> Value {
    let response = ask(server, method, params);
    assert!(response.get("error").is_none(), "{method}: {response}");
    response["result"].clone()
}

/// Asserts that the method fails, and returns why.
fn failure(server: &Server, method: &str, params: Value) -> String {
    let response = ask(server, method, params);
    response["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {response}")).to_owned()
}

fn encoded(transaction: &Transaction) -> String {
    hex(&transaction.encode())
}

fn signed(from: usize, nonce: u64) -> Transaction {
    accounts()[from].sign(TransactionBody::Legacy(transfer(nonce)))
}

/// A call of the deposit contract.
fn deposit(from: usize, nonce: u64) -> Transaction {
    let to = Some(DEPOSITS.parse().unwrap());
    let call = LegacyTransaction { to, gas_limit: 100_000, input: Bytes::new(), ..transfer(nonce) };
    accounts()[from].sign(TransactionBody::Legacy(call))
}

fn status(server: &Server, transaction: &Transaction) -> Response {
    server.get(&format!("/getTransactionStatus/{}/", hex(transaction.hash().as_bytes())))
}

fn is_mined(server: &Server, transaction: &Transaction) -> bool {
    !call(server, "eth_getTransactionReceipt", json!([hex(transaction.hash().as_bytes())])).is_null()
}

#[test]
fn a_transaction_that_invalidates_its_block_is_dropped_and_others_are_mined() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir".to_owned(), folder.path().join("data").display().to_string()];
    let server = Server::dev(&arguments);
    call(&server, "anvil_setCode", json!([DEPOSITS, EMPTY_DEPOSIT]));
    let refused = failure(&server, "eth_sendRawTransaction", json!([encoded(&deposit(0, 0))]));
    assert!(refused.contains("was dropped") && refused.contains("a deposit event has 0 bytes"), "{refused}");
    let refused = server.post("/sendRawTransaction/", json!({"Data": encoded(&deposit(1, 0))}).to_string());
    assert!(refused.status >= 400 && refused.text.contains("a deposit event has 0 bytes"), "{}", refused.text);
    let sent = signed(0, 0);
    call(&server, "eth_sendRawTransaction", json!([encoded(&sent)]));
    assert!(is_mined(&server, &sent));

    // Many in one block, with others before, between and after them.
    call(&server, "evm_setAutomine", json!([false]));
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    for from in 0..8 {
        let nonce = u64::from(from == 0);
        let (transactions, transaction) =
            if from % 2 == 0 { (&mut bad, deposit(from, nonce)) } else { (&mut good, signed(from, nonce)) };
        call(&server, "eth_sendRawTransaction", json!([encoded(&transaction)]));
        transactions.push(transaction);
    }
    call(&server, "eth_getBlockByNumber", json!(["pending", false]));
    call(&server, "evm_mine", json!([]));
    for transaction in &bad {
        let dropped = status(&server, transaction);
        assert_eq!(dropped.field("Status"), "dropped");
        assert!(dropped.text.contains("a deposit event has 0 bytes"), "{}", dropped.text);
    }
    assert!(good.iter().all(|transaction| is_mined(&server, transaction)));
    let block = call(&server, "eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(block["transactions"].as_array().unwrap().len(), good.len(), "all of them are in one block");
    assert_eq!(server.get("/ready").status, 200);

    let waiting = deposit(2, 0);
    call(&server, "eth_sendRawTransaction", json!([encoded(&waiting)]));
    assert!(server.end("TERM").success());
    let server = Server::dev(&arguments);
    assert_eq!(status(&server, &waiting).field("Status"), "dropped", "mined at the start");
    let sent = signed(0, 1);
    call(&server, "eth_sendRawTransaction", json!([encoded(&sent)]));
    assert!(is_mined(&server, &sent));
}

#[test]
fn says_why_no_block_can_be_sealed_until_that_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data").display().to_string();
    // An unoptimized build takes seconds for an endless loop.
    let arguments = ["--data-dir", &data_dir, "--call-timeout", "60s"];
    let mut server = Server::dev(arguments);
    let code = call(&server, "eth_getCode", json!([WITHDRAWALS, "latest"]));
    let cases = [
        ("0x5f5ffd", "its call reverted"),
        ("0xfe", "its call failed"),
        ("0x5b5f56", "its call failed"),
        ("0x", "it has no code"),
    ];
    for (nonce, (broken, reason)) in (0..).zip(cases) {
        call(&server, "anvil_setCode", json!([WITHDRAWALS, broken]));
        let says = |server: &Server| {
            let ready = server.get("/ready");
            assert!(ready.status == 503 && ready.text.contains(reason), "{broken}: {}", ready.text);
        };
        says(&server);
        let sent = signed(0, nonce);
        let told = failure(&server, "eth_sendRawTransaction", json!([encoded(&sent)]));
        assert!(told.contains("is in the pool") && told.contains(reason), "{broken}: {told}");
        for (method, params) in [("evm_mine", json!([])), ("eth_getBlockByNumber", json!(["pending", false]))] {
            let told = failure(&server, method, params);
            assert!(told.contains(reason), "{broken}, {method}: {told}");
        }
        assert_eq!(server.logged("producer: no block can be sealed"), 1, "{broken}");
        assert!(server.end("TERM").success());
        server = Server::dev(arguments);
        says(&server);
        assert_eq!(status(&server, &sent).field("Status"), "pending");
        call(&server, "anvil_setCode", json!([WITHDRAWALS, code]));
        assert!(is_mined(&server, &sent), "{broken}");
        assert_eq!(server.get("/ready").status, 200);
        assert!(server.end("TERM").success());
        server = Server::dev(arguments);
    }
}

#[test]
fn a_snapshot_from_before_an_obstacle_ends_it() {
    let server = Server::dev(NONE);
    let snapshot = call(&server, "evm_snapshot", json!([]));
    call(&server, "anvil_setCode", json!([WITHDRAWALS, "0xfe"]));
    assert_eq!(server.get("/ready").status, 503);
    call(&server, "evm_revert", json!([snapshot]));
    assert_eq!(server.get("/ready").status, 200);
    call(&server, "evm_mine", json!([]));
}

#[test]
fn a_genesis_that_no_block_can_follow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut genesis: Value = serde_json::from_str(DEV_GENESIS).unwrap();
    let accounts = genesis["alloc"].as_object_mut().unwrap();
    accounts.retain(|address, _| !WITHDRAWALS.contains(&address.trim_start_matches("0x").to_lowercase()));
    let file = folder.path().join("genesis.json");
    fs::write(&file, genesis.to_string()).unwrap();
    let output =
        node_server().args(["dev", "--port", "0", "--data-dir", ":memory:", "--genesis"]).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    let reason = format!("no block can follow the genesis block: system contract {WITHDRAWALS}: it has no code");
    assert!(text.contains(&reason), "{text}");
}
