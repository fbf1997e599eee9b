//! The chain before the fork is that of the other server.

use super::*;

/// Fields that nothing proves, and that name the server.
const OTHER: [&str; 2] = ["totalDifficulty", "$schema"];

fn without_other(mut value: Value) -> Value {
    match &mut value {
        Value::Object(object) => {
            OTHER.iter().for_each(|field| drop(object.remove(*field)));
            object.values_mut().for_each(|value| *value = without_other(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_other(value.take())),
        _ => {}
    }
    value
}

#[test]
fn it_is_the_same_through_all_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, []);
    result(&fork, "anvil_mine", json!(["0x3"]));
    let same = |method: &str, parameters: Value| {
        let of_fork = without_other(result(&fork, method, parameters.clone()));
        assert_eq!(of_fork, without_other(result(&upstream, method, parameters.clone())), "{method} {parameters}");
    };
    let hex = |number: u64| format!("{number:#x}");
    for block in [0, 1, 2, 3, first / 2, first - 1, first] {
        let number = hex(block);
        let hash = result(&upstream, "eth_getBlockByNumber", json!([number, false]))["hash"].clone();
        for full in [false, true] {
            same("eth_getBlockByNumber", json!([number, full]));
            same("eth_getBlockByHash", json!([hash, full]));
        }
        same("eth_getBlockReceipts", json!([number]));
        same("eth_getBlockTransactionCountByHash", json!([hash]));
        same("debug_getRawBlock", json!([number]));
        same("debug_getRawHeader", json!([number]));
        same("debug_getRawReceipts", json!([number]));
        same("eth_feeHistory", json!(["0x5", number, [10, 50]]));
        same("eth_getTransactionByBlockNumberAndIndex", json!([number, "0x0"]));
        same("eth_getLogs", json!([{"blockHash": hash}]));
        for contract in world.contracts.iter().take(3) {
            same("eth_getCode", json!([contract, number]));
            same("eth_getBalance", json!([contract, number]));
            same("eth_getStorageAt", json!([contract, "0x1", number]));
            same("eth_getProof", json!([contract, ["0x0", "0x1", "0x9"], number]));
            same("eth_call", json!([{"to": contract, "data": input(&[(3, 0)])}, number]));
            same("eth_estimateGas", json!([{"to": contract, "data": input(&[(3, 0)])}, number]));
            same("eth_createAccessList", json!([{"to": contract, "data": input(&[(3, 0)])}, number]));
        }
        for path in [
            format!("/getBlockByNumber/{block}/true/"),
            format!("/getHeader/{block}/"),
            format!("/getRawBlock/{block}/"),
            format!("/getBlockReceipts/{block}/"),
            format!("/getRawReceipts/{block}/"),
            format!("/getAccount/{}/{block}/", world.contracts[0]),
            format!("/getTransactionCount/{}/{block}/", account(7)),
        ] {
            let (of_fork, expected) = (fork.get(&path), upstream.get(&path));
            assert_eq!(expected.status, 200, "{path}");
            assert_eq!(without_other(of_fork.body), without_other(expected.body), "{path}");
        }
        let transactions = result(&upstream, "eth_getBlockByNumber", json!([number, false]))["transactions"].clone();
        for hash in transactions.as_array().unwrap() {
            same("eth_getTransactionByHash", json!([hash]));
            same("eth_getTransactionReceipt", json!([hash]));
            same("debug_getRawTransaction", json!([hash]));
            same(
                "debug_traceTransaction",
                json!([hash, {"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}]),
            );
            same("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}]));
            same("trace_transaction", json!([hash]));
        }
    }
    // Also those that no transaction has used, and those of contracts.
    for sender in (5..10).map(account).chain([account(0), world.contracts[0].clone(), word(3)[..42].to_owned()]) {
        let nonces = number(&result(&upstream, "eth_getTransactionCount", json!([sender, "latest"])));
        for nonce in (0..=nonces).map(hex) {
            same("eth_getTransactionBySenderAndNonce", json!([sender, nonce]));
        }
    }
    let range = |from: u64, to: u64| json!([{"fromBlock": hex(from), "toBlock": hex(to)}]);
    same("eth_getLogs", range(0, first));
    same("eth_getLogs", range(first / 2, first));
    same("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": hex(first), "address": world.contracts[2]}]));
    let topics = json!([[format!("0x{:064x}", 0), format!("0x{:064x}", 1)]]);
    same("eth_getLogs", json!([{"fromBlock": "earliest", "toBlock": hex(first), "topics": topics}]));
    // The blocks after the fork have no logs.
    let across = result(&fork, "eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}]));
    assert_eq!(across, result(&upstream, "eth_getLogs", range(0, first)));
    let search = json!({"FromBlock": "0", "ToBlock": first.to_string()}).to_string();
    let (of_fork, expected) = (fork.post("/getLogs/", &search), upstream.post("/getLogs/", &search));
    assert_eq!(of_fork.status, 200, "{}", of_fork.text);
    assert_eq!(without_other(of_fork.body), without_other(expected.body));
    let unknown = format!("0x{:064x}", 5);
    same("eth_getBlockByHash", json!([unknown, false]));
    same("eth_getTransactionByHash", json!([unknown]));
    same("eth_getTransactionReceipt", json!([unknown]));
}
