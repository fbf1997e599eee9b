//! Forks whose other server is not there.

use super::*;

/// The result of a request that was made before, by its method and parameters.
type Known = Vec<(&'static str, Value, Value)>;

/// Asks for things of all kinds.
fn touch(fork: &Server, world: &World, first: u64) -> Known {
    let contract = &world.contracts[2];
    let first = format!("{first:#x}");
    let asked = [
        ("eth_getBalance", json!([account(8), "latest"])),
        ("eth_getTransactionCount", json!([account(8), "latest"])),
        ("eth_getBalance", json!([format!("0x{:040x}", 77), "latest"])),
        ("eth_getCode", json!([contract, "latest"])),
        ("eth_getStorageAt", json!([contract, "0x2", "latest"])),
        ("eth_getProof", json!([contract, ["0x1", "0x9"], "latest"])),
        ("eth_getBlockByNumber", json!(["0x3", true])),
        ("eth_getBlockReceipts", json!(["0x3"])),
        ("eth_getBlockByNumber", json!([first, true])),
        ("eth_call", json!([{"to": contract, "data": input(&[(1, 0), (7, 7)])}, "latest"])),
    ];
    asked
        .map(|(method, parameters)| {
            let answer = result(fork, method, parameters.clone());
            (method, parameters, answer)
        })
        .into()
}

fn assert_known(fork: &Server, known: &Known) {
    for (method, parameters, expected) in known {
        assert_eq!(result(fork, method, parameters.clone()), *expected, "{method} {parameters}");
    }
}

/// What changes that fail must not change.
fn position(fork: &Server) -> Value {
    json!([
        result(fork, "eth_getBlockByNumber", json!(["latest", true])),
        result(fork, "txpool_content", json!([])),
        result(fork, "eth_getTransactionCount", json!([account(0), "pending"])),
    ])
}

/// Asks for what was never asked for, and changes it.
fn assert_refused(fork: &Server, world: &World, whole: &str) {
    let before = position(fork);
    let contract = &world.contracts[3];
    // One of the genesis.
    let unknown = format!("{:#x}", Address::from(keccak256(99u32.to_be_bytes())));
    let last = format!("{:#x}", head(fork));
    // What was requested, if there is a server, and otherwise what for.
    let logs = if whole.is_empty() { "eth_getLogs" } else { "the logs of blocks 0 to" };
    let send = |to: &str, data: String| json!([{"from": account(0), "to": to, "data": data, "gas": "0x4c4b40"}]);
    let named = |address: &str| format!("account {address}");
    for (method, parameters, needed) in [
        ("eth_getBalance", json!([unknown, "latest"]), named(&unknown)),
        ("eth_getStorageAt", json!([contract, "0x5", "latest"]), named(contract)),
        ("eth_getProof", json!([contract, ["0x5"], last]), named(contract)),
        ("eth_call", json!([{"to": contract, "data": input(&[(5, 5)])}, "latest"]), named(contract)),
        ("eth_estimateGas", json!([{"to": contract, "data": input(&[(5, 5)])}]), named(contract)),
        ("eth_getBlockByNumber", json!(["0x5", false]), "block ".to_owned()),
        ("eth_getLogs", json!([{"fromBlock": "0x0", "toBlock": "latest"}]), logs.to_owned()),
        // Its block needs slots of system contracts, too, which depend on the time.
        ("eth_sendTransaction", send(contract, input(&[(5, 5)])), "account 0x".to_owned()),
        ("eth_sendTransaction", send(&unknown, "0x".to_owned()), "account 0x".to_owned()),
        ("anvil_setBalance", json!([unknown, "0x5"]), named(&unknown)),
        ("anvil_setStorageAt", json!([contract, format!("0x{:064x}", 5), format!("0x{:064x}", 5)]), named(contract)),
        ("anvil_impersonateAccount", json!([unknown]), String::new()),
    ] {
        if needed.is_empty() {
            // Needs nothing of the account.
            result(fork, method, parameters);
            continue;
        }
        let (code, text) = failure(fork, method, parameters.clone());
        assert_eq!(code, -32002, "{method} {parameters}: {text}");
        assert!(text.contains(&needed) && text.contains(whole), "{method} {parameters}: {text}");
        assert_eq!(position(fork), before, "{method} {parameters}");
    }
    let response = fork.get(&format!("/getBalance/{unknown}/"));
    assert_eq!(response.problem_faults(503), Vec::<String>::new(), "{}", response.text);
    assert_eq!(problem(&response), (503, "upstream-unavailable"), "{}", response.text);
    assert!(response.text.contains(&unknown), "{}", response.text);
    assert_eq!(fork.get("/ready").status, 200);
}

#[test]
fn a_folder_has_what_was_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let data = folder.path().join("fork").display().to_string();
    let online = fork(&upstream, ["--data-dir", &data]);
    let pairs = input(&[(1, 0), (3, 9), (20, 1)]);
    let to_touched = json!([{"from": account(0), "to": world.contracts[1], "data": pairs, "gas": "0x4c4b40"}]);
    result(&online, "eth_sendTransaction", to_touched);
    let known = touch(&online, &world, first);
    let place = position(&online);
    assert!(online.end("TERM").success());
    drop(upstream);

    let offline = Server::dev(["--data-dir", &data, "--offline"]);
    assert_eq!(position(&offline), place);
    assert_known(&offline, &known);
    assert_refused(&offline, &world, "the fork is offline");
    // Whether there is such a transaction is not known, but nothing waits for it.
    assert_eq!(result(&offline, "eth_getTransactionByHash", json!([word(9)])), Value::Null);
    // A block needs slots of system contracts that depend on its time and its number.
    let (code, text) = failure(&offline, "evm_mine", json!([]));
    assert!(code == -32002 && text.contains("of account 0x000"), "{code} {text}");
    result(&offline, "anvil_setBalance", json!([account(8), "0x5"]));
    assert_eq!(result(&offline, "eth_getBalance", json!([account(8), "latest"])), "0x5");
    assert!(offline.end("TERM").success());

    // Killed, too, it has what it had.
    let again = Server::dev(["--data-dir", &data, "--offline"]);
    assert_eq!(head(&again), first + 1);
    again.end("KILL");
    let again = Server::dev(["--data-dir", &data, "--offline"]);
    assert_eq!(head(&again), first + 1);
    assert_known(&again, &known[2..7].to_vec());
}

#[test]
fn a_server_that_ends_is_needed_only_for_what_was_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("upstream").display().to_string();
    let [option, genesis] = genesis(folder.path());
    let start = || Server::dev([option.as_str(), &genesis, "--data-dir", &data]);
    let upstream = start();
    let world = World::begin(&upstream);
    let first = head(&upstream);
    let fork = fork(&upstream, ["--retries", "0", "--fork-retry-backoff", "1"]);
    let sender = json!([{"from": account(0), "to": account(1), "value": "0x1"}]);
    result(&fork, "eth_sendTransaction", sender);
    let known = touch(&fork, &world, first);
    assert!(upstream.end("TERM").success());
    assert_known(&fork, &known);
    assert_refused(&fork, &world, "");
    let (code, text) = failure(&fork, "eth_getTransactionByHash", json!([word(9)]));
    assert!(code == -32002 && text.contains("eth_getTransactionByHash"), "{code} {text}");
    // It listens on another port afterwards.
    let upstream = start();
    result(&fork, "anvil_setRpcUrl", json!([upstream.url()]));
    assert_known(&fork, &known);
    let contract = &world.contracts[3];
    let last = format!("{:#x}", head(&fork));
    let slots = json!([contract, ["0x5"], last]);
    let expected = result(&upstream, "eth_getProof", json!([contract, ["0x5"], "latest"]))["storageProof"].clone();
    assert_eq!(result(&fork, "eth_getProof", slots)["storageProof"], expected);
}
