//! The rules of development chains that other clients do not have, and the command `anvil`.

use crate::server::{Server, listening_on, node_server};
use crate::wallet::{CHAIN_ID, accounts};
use node_types::U256;
use node_types::consensus::{LegacyTransaction, PooledTransaction, Transaction, TransactionBody};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A day in seconds, far more than a test takes.
const DAY: u64 = 86_400;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn rpc(server: &Server, method: &str, parameters: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
    server.post("/", request.to_string()).body
}

/// The result of a request that succeeds.
fn result(server: &Server, method: &str, parameters: Value) -> Value {
    let mut response = rpc(server, method, parameters);
    assert!(response.get("error").is_none(), "{method}: {response}");
    response["result"].take()
}

/// The message of a request that fails.
fn failure(server: &Server, method: &str, parameters: Value) -> String {
    rpc(server, method, parameters)["error"]["message"].as_str().unwrap().to_owned()
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn timestamp(server: &Server, block: &str) -> u64 {
    number(&result(server, "eth_getBlockByNumber", json!([block, false]))["timestamp"])
}

fn raw(transaction: Transaction) -> Value {
    json!([format!("0x{}", const_hex::encode(PooledTransaction { transaction, sidecar: None }.encode()))])
}

/// Signs a transaction of the first account.
fn signed(nonce: u64, gas_limit: u64, input: Vec<u8>) -> Value {
    let to = input.is_empty().then(|| accounts()[1].address());
    raw(accounts()[0].sign(TransactionBody::Legacy(LegacyTransaction {
        chain_id: Some(CHAIN_ID),
        nonce,
        gas_price: U256::from(2_000_000_000),
        gas_limit,
        to,
        input: input.into(),
        ..Default::default()
    })))
}

/// Init code that deploys `length` zero bytes.
fn deploys(length: u32) -> Vec<u8> {
    let [_, a, b, c] = length.to_be_bytes();
    vec![0x62, a, b, c, 0x5f, 0xf3]
}

#[test]
fn the_genesis_block_is_as_old_as_the_server() {
    let before = now();
    let server = Server::dev_with_contracts();
    let first = timestamp(&server, "latest");
    assert!((before..before + DAY).contains(&first), "{first}");
    result(&server, "evm_increaseTime", json!([400 * DAY]));
    result(&server, "evm_mine", json!([]));
    assert!(timestamp(&server, "latest") > first + 399 * DAY);
    result(&server, "anvil_reset", json!([]));
    assert_eq!(timestamp(&server, "latest"), first);
    // The next block is not later than a contract that was written for it expects.
    result(&server, "evm_mine", json!([]));
    assert!(timestamp(&server, "latest") < first + DAY);

    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let server = Server::dev(["--data-dir", data, "--chain-id", "7"]);
    let hash = result(&server, "eth_getBlockByNumber", json!(["0x0", false]))["hash"].take();
    drop(server);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let server = Server::dev(["--data-dir", data, "--chain-id", "7"]);
    assert_eq!(
        result(&server, "eth_getBlockByNumber", json!(["0x0", false]))["hash"],
        hash,
        "the folder keeps the time"
    );

    let [one, other] = [(); 2].map(|()| Server::dev(["--timestamp", "1700000000"]));
    let genesis = |server| result(server, "eth_getBlockByNumber", json!(["0x0", false]));
    assert_eq!(genesis(&one), genesis(&other), "chains can be repeated");
    assert_eq!(number(&genesis(&one)["timestamp"]), 1_700_000_000);
}

#[test]
fn rules_that_other_clients_reject_are_kept_by_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let strict = Server::dev(["--data-dir", data]);
    assert!(failure(&strict, "eth_sendRawTransaction", signed(0, (1 << 24) + 1, Vec::new())).contains("EIP-7825"));
    let hash = result(&strict, "eth_sendRawTransaction", signed(0, 10_000_000, deploys(24_577)));
    assert_eq!(result(&strict, "eth_getTransactionReceipt", json!([hash]))["status"], "0x0");
    drop(strict);

    let options = ["--code-size-limit", "40000", "--disable-tx-gas-limit", "--allow-equal-timestamps"];
    let server = Server::dev([&["--data-dir", data], &options[..]].concat());
    let created = |server: &Server, nonce, length| {
        let hash = result(server, "eth_sendRawTransaction", signed(nonce, 20_000_000, deploys(length)));
        let receipt = result(server, "eth_getTransactionReceipt", json!([hash]));
        (hash, receipt["status"] == "0x1")
    };
    let (hash, succeeded) = created(&server, 1, 40_000);
    assert!(succeeded);
    assert!(!created(&server, 2, 40_001).1);
    // Blocks within a second, and one in the past.
    result(&server, "anvil_setBlockTimestampInterval", json!([0]));
    let before = timestamp(&server, "latest");
    result(&server, "anvil_mine", json!([5]));
    assert_eq!(timestamp(&server, "latest"), before);
    result(&server, "anvil_removeBlockTimestampInterval", json!([]));
    result(&server, "evm_setTime", json!([1_600_000_000]));
    result(&server, "evm_mine", json!([]));
    assert!((1_600_000_000..1_600_000_000 + DAY).contains(&timestamp(&server, "latest")));
    result(&server, "evm_increaseTime", json!([3 * DAY]));
    result(&server, "evm_mine", json!([]));
    assert!((1_600_000_000 + 3 * DAY..1_600_000_000 + 4 * DAY).contains(&timestamp(&server, "latest")));
    drop(server);

    // Without the options, the rules stay.
    let server = Server::dev(["--data-dir", data]);
    assert!(created(&server, 3, 30_000).1);
    let trace = result(&server, "debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
    assert!(trace.get("error").is_none(), "{trace}");
    drop(server);
    let run = Server::start(["--data-dir", data, "--api", "eth,debug"]);
    let trace = result(&run, "debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
    assert!(trace.get("error").is_none(), "{trace}");
    drop(run);
    let lower = node_server().args(["dev", "--data-dir", data, "--code-size-limit", "30000"]).output().unwrap();
    assert!(String::from_utf8_lossy(&lower.stderr).contains("40000"), "{lower:?}");
    let capped = node_server().args(["anvil", "--data-dir", data, "--enable-tx-gas-limit"]).output().unwrap();
    assert!(String::from_utf8_lossy(&capped.stderr).contains("--enable-tx-gas-limit has no effect"), "{capped:?}");
    assert_eq!(capped.status.code(), Some(2));
    let file = folder.path().join("chain.rlp");
    let export = node_server().args(["export", "--data-dir", data]).arg(&file).output().unwrap();
    let message = String::from_utf8_lossy(&export.stderr);
    assert!(!export.status.success() && !file.exists());
    for reason in ["other clients would reject the chain", "code of up to 40000 bytes", "EIP-7825", "not later"] {
        assert!(message.contains(reason), "{message}");
    }
    let verified = node_server().args(["verify", "--data-dir", data]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn export_refuses_weaker_rules_also_without_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    drop(Server::dev(["--data-dir", &data, "--allow-equal-timestamps"]));
    let export = node_server().args(["export", "--data-dir", &data, "-"]).output().unwrap();
    let message = String::from_utf8_lossy(&export.stderr);
    assert!(!export.status.success() && message.contains("other clients would reject the chain"), "{message}");
}

#[test]
fn without_the_options_the_rules_are_the_protocols() {
    let server = Server::dev(["--timestamp", "1700000000"]);
    for (method, value) in [("anvil_setBlockTimestampInterval", 0), ("evm_setTime", 1_600_000_000)] {
        let refused = failure(&server, method, json!([value]));
        assert!(refused.contains("`allow-equal-timestamps`"), "{refused}");
    }
    result(&server, "evm_setTime", json!([1_800_000_000_000_u64]));
    result(&server, "evm_mine", json!([]));
    assert!((1_800_000_000..1_800_000_000 + DAY).contains(&timestamp(&server, "latest")), "milliseconds");
    result(&server, "evm_setIntervalMining", json!([5_000]));
    assert_eq!(result(&server, "anvil_getIntervalMining", json!([])), 5);
    for (milliseconds, seconds) in [(500, 0.5), (1_500, 1.5)] {
        result(&server, "evm_setIntervalMining", json!([milliseconds]));
        assert_eq!(result(&server, "anvil_getIntervalMining", json!([])), seconds);
    }
    assert!(failure(&server, "eth_sendRawTransaction", signed(0, (1 << 24) + 1, Vec::new())).contains("EIP-7825"));
}

#[test]
fn anvil_behaves_as_anvil_does() {
    let server = Server::anvil(["--gas-price", "0", "--block-base-fee-per-gas", "0", "--steps-tracing"]);
    let before = now();
    for nonce in 0..40 {
        result(&server, "eth_sendRawTransaction", signed(nonce, 25_000_000, Vec::new()));
    }
    assert!(timestamp(&server, "latest") <= now() && timestamp(&server, "latest") + DAY > before);
    // A block that is more than half full, after which the base fee is still zero.
    let burn = vec![0x5b, 0x5f, 0x56];
    result(&server, "eth_sendRawTransaction", signed(40, 20_000_000, burn));
    let block = result(&server, "eth_getBlockByNumber", json!(["latest", false]));
    assert!(number(&block["gasUsed"]) > 15_000_000, "{block}");
    result(&server, "evm_mine", json!([]));
    assert_eq!(result(&server, "eth_getBlockByNumber", json!(["latest", false]))["baseFeePerGas"], "0x0");
    let page = [("Origin", "https://dapp.example"), ("Host", "anvil:8545"), ("Content-Type", "application/json")];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"evm_mine","params":[]}"#;
    let response = server.send("POST", "/", &page, body);
    assert_eq!((response.status, response.header("access-control-allow-origin")), (200, Some("*")));
    assert!(response.body.get("error").is_none(), "{}", response.text);
    assert_eq!(server.log(), "", "nothing on standard error");
    result(&server, "evm_setIntervalMining", json!([5_000]));
    assert_eq!(result(&server, "anvil_getIntervalMining", json!([])), 5_000);

    let server = Server::anvil(["--enable-tx-gas-limit"]);
    assert!(failure(&server, "eth_sendRawTransaction", signed(0, (1 << 24) + 1, Vec::new())).contains("EIP-7825"));
}
/// Init code that emits a log with the topic 0xaa, and deploys nothing.
const LOGS: [u8; 7] = [0x60, 0xaa, 0x60, 0x20, 0x5f, 0xa1, 0x00];

/// Returns a result without the members that hashes of blocks determine.
fn without_block_hashes(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.remove("blockHash");
        object.values_mut().for_each(|value| *value = without_block_hashes(value.take()));
    } else if let Some(array) = value.as_array_mut() {
        array.iter_mut().for_each(|value| *value = without_block_hashes(value.take()));
    }
    value
}

#[test]
fn a_chain_continues_from_a_dump() {
    let source = Server::dev(["--accounts", "2"]);
    let sent = [
        result(&source, "eth_sendRawTransaction", signed(0, 100_000, Vec::new())),
        result(&source, "eth_sendRawTransaction", signed(1, 100_000, LOGS.to_vec())),
    ];
    result(&source, "evm_increaseTime", json!([100 * DAY]));
    let sender = "0x00000000000000000000000000000000000000cc";
    result(&source, "anvil_setBalance", json!([sender, "0xde0b6b3a7640000"]));
    result(&source, "anvil_impersonateAccount", json!([sender]));
    result(&source, "eth_sendTransaction", json!([{"from": sender, "to": sender}]));
    result(&source, "anvil_mine", json!([2]));
    result(&source, "anvil_setBalance", json!(["0x00000000000000000000000000000000000000cc", "0x5"]));
    let dump = result(&source, "anvil_dumpState", json!([]));
    let facts = |server: &Server| {
        let of_transaction = |method: &str, hash: &Value| without_block_hashes(result(server, method, json!([hash])));
        let of_block = |number: u64| {
            let block = result(server, "eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
            ["number", "timestamp", "gasUsed", "baseFeePerGas", "transactions", "receiptsRoot", "logsBloom", "mixHash"]
                .map(|name| block[name].clone())
        };
        (
            result(server, "eth_blockNumber", json!([])),
            (1..=5).map(of_block).collect::<Vec<_>>(),
            sent.each_ref().map(|hash| of_transaction("eth_getTransactionReceipt", hash)),
            sent.each_ref().map(|hash| of_transaction("eth_getTransactionByHash", hash)),
            without_block_hashes(result(server, "eth_getLogs", json!([{"fromBlock": "0x0"}]))),
            result(server, "eth_getBalance", json!(["0x00000000000000000000000000000000000000cc", "latest"])),
            result(server, "eth_getTransactionCount", json!([format!("{:#x}", accounts()[0].address()), "latest"])),
        )
    };
    let expected = facts(&source);
    assert_eq!(expected.4.as_array().unwrap().len(), 1);

    let check = |server: &Server, next: u64| {
        let now = timestamp(server, "0x5");
        let early = failure(server, "eth_getBalance", json!(["0x00000000000000000000000000000000000000cc", "0x3"]));
        assert!(early.contains("state"), "{early}");
        failure(server, "debug_traceTransaction", json!([sent[1]]));
        result(server, "eth_sendRawTransaction", signed(next, 100_000, LOGS.to_vec()));
        assert!((now + 1..now + DAY).contains(&timestamp(server, "latest")));
        assert_eq!(result(server, "eth_getLogs", json!([{"fromBlock": "0x6"}])).as_array().unwrap().len(), 1);
    };
    let target = Server::dev_with_contracts();
    assert_eq!(result(&target, "anvil_loadState", json!([dump])), json!(true));
    assert_eq!(facts(&target), expected);
    check(&target, 2);
    let reason = failure(&target, "anvil_rollback", json!([3]));
    assert!(reason.contains("at most 1 can be replaced, because the states before block 5 are not kept"), "{reason}");
    // A chain with blocks of its own gets only the accounts.
    result(&target, "anvil_loadState", json!([dump]));
    assert_eq!(number(&result(&target, "eth_blockNumber", json!([]))), 6);
    result(&target, "anvil_reset", json!([]));
    assert_eq!(number(&result(&target, "eth_blockNumber", json!([]))), 0);
    result(&target, "anvil_loadState", json!([dump]));
    assert_eq!(facts(&target), expected);

    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("state.json"), folder.path().join("data"));
    std::fs::write(&file, const_hex::decode(dump.as_str().unwrap()).unwrap()).unwrap();
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
    let stored = Server::dev(["--load-state", file, "--data-dir", data]);
    assert_eq!(timestamp(&stored, "0x0"), timestamp(&source, "0x0"));
    assert_eq!(facts(&stored), expected);
    drop(stored);
    let again = Server::dev(["--load-state", file, "--data-dir", data]);
    assert_eq!(facts(&again), expected);
    assert_eq!(again.logged("the folder has a chain"), 1);
    check(&again, 2);
    drop(again);
    let run = Server::start(["--data-dir", data, "--api", "eth"]);
    assert!(failure(&run, "eth_getBalance", json!([format!("{:#x}", accounts()[0].address()), "0x3"])).len() > 1);
    drop(run);
    for (command, expected) in [("verify", "states from block 5 on"), ("stats", "states from block 5 on")] {
        let shown = node_server().args([command, "--data-dir", data]).output().unwrap();
        assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains(expected), "{shown:?}");
    }
    let export = node_server().args(["export", "--data-dir", data, "/dev/null", "--force"]).output().unwrap();
    assert!(!export.status.success(), "{export:?}");
}

/// Starts `dev`, whose output goes to a file.
fn printing_to(file: &Path) -> (Child, Server) {
    let output = File::create(file).unwrap();
    let child =
        node_server().args(["dev", "--bare", "--port", "0"]).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let url = loop {
        match fs::read_to_string(file).unwrap().lines().find_map(listening_on) {
            Some(url) => break url,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    (child, Server::at(url.strip_prefix("http://").unwrap().parse().unwrap()))
}

#[test]
fn the_terminal_shows_each_reason_once_and_what_was_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let source = Server::dev(["--accounts", "2"]);
    for nonce in 0..2 {
        result(&source, "eth_sendRawTransaction", signed(nonce, 100_000, Vec::new()));
    }
    let dump = result(&source, "anvil_dumpState", json!([]));
    let file = folder.path().join("output");
    let (mut child, server) = printing_to(&file);
    result(&server, "anvil_loadState", json!([dump]));
    result(&server, "eth_sendRawTransaction", signed(2, 100_000, Vec::new()));
    assert_eq!(failure(&server, "eth_call", json!([{"data": "0x5f5ffd"}])), "execution reverted");
    failure(&server, "eth_getBlockByNumber", json!(["newest", false]));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nblocks 1 to 2 were loaded\n"), "{text}");
    assert_eq!(text.matches("\ntransaction 0x").count(), 1, "{text}");
    assert_eq!(text.matches("execution reverted").count(), 1, "{text}");
    assert!(text.contains("\neth_call failed (3)\n"), "{text}");
    assert!(text.contains("\neth_getBlockByNumber failed: invalid argument 0"), "{text}");
}

#[test]
fn what_a_dump_has_and_is_not_loaded_is_in_one_line_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.json");
    let dump = json!({"accounts": {}, "block": {"number": "0x7", "timestamp": 9}, "chain": 1, "historical_states": {}});
    fs::write(&file, dump.to_string()).unwrap();
    let server = Server::dev(["--load-state", file.to_str().unwrap()]);
    assert_eq!(server.logged("not loaded from the dump: the states of earlier blocks"), 1, "{}", server.log());
    assert!(
        server.log().contains("; fields that are not known: chain; its block number 7 and its time"),
        "{}",
        server.log()
    );
    fs::write(&file, "0x1f8b").unwrap();
    let refused = node_server().args(["dev", "--load-state"]).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("not a state dump: expected a JSON object"), "{text}");
}
