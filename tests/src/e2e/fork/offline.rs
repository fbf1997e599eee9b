//! Forks whose other server is not there.

use super::*;
use crate::server::node_server;
use std::thread;
use std::time::Duration;

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
    // Whether there is such a transaction or block is not known.
    for (method, parameters) in [
        ("eth_getTransactionByHash", json!([word(9)])),
        ("eth_getTransactionReceipt", json!([word(9)])),
        ("eth_getBlockByHash", json!([word(9), false])),
    ] {
        let (code, text) = failure(&offline, method, parameters);
        assert!(code == -32002 && text.contains(&word(9)), "{method}: {code} {text}");
    }
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

/// Asserts that nothing can be proven about the state as of `block`, because block `first` has no state root.
fn assert_unproven(fork: &Server, address: &str, block: u64, first: u64) {
    for method in ["eth_getProof", "eth_getAccount"] {
        let mut parameters = json!([address, [], format!("{block:#x}")]);
        if method == "eth_getAccount" {
            parameters.as_array_mut().unwrap().remove(1);
        }
        let (code, text) = failure(fork, method, parameters);
        let because = format!("the blocks from {first} on have no state root, because ");
        assert!(code == -32000 && text.contains(&because), "{method} {block}: {code} {text}");
        assert!(text.contains(" of account 0x") && text.contains("the fork is offline; needed: "), "{text}");
    }
    let input = json!({"Address": address, "BlockNumber": block.to_string(), "StorageKeys": []});
    let response = fork.post("/getProof/", input.to_string());
    assert_eq!(problem(&response), (404, "no-state-root"), "{}", response.text);
}

#[test]
fn blocks_are_made_of_what_was_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let data = folder.path().join("fork").display().to_string();
    let online = fork(&upstream, ["--data-dir", &data]);
    let contract = world.contracts[2].as_str();
    let transaction =
        |pairs: &[(u64, u64)]| json!([{"from": account(0), "to": contract, "data": input(pairs), "gas": "0x4c4b40"}]);
    result(&online, "eth_call", json!([transaction(&[(1, 7), (3, 9), (5, 0)])[0], "latest"]));
    assert!(online.end("TERM").success());

    // No block was made with the other server.
    let offline = Server::dev(["--data-dir", &data, "--offline"]);
    let snapshot = result(&offline, "evm_snapshot", json!([]));
    let hash = result(&offline, "eth_sendTransaction", transaction(&[(1, 7), (5, 0)]));
    let receipt = result(&offline, "eth_getTransactionReceipt", json!([hash]));
    assert_eq!((&receipt["status"], receipt["logs"].as_array().unwrap().len()), (&json!("0x1"), 1), "{receipt}");
    let more = result(&offline, "eth_sendTransaction", transaction(&[(3, 0), (1, 8)]));
    assert_eq!(result(&offline, "eth_getTransactionReceipt", json!([more]))["status"], "0x1");
    result(&offline, "evm_mine", json!([]));
    let (made, latest) = (first + 1, first + 3);
    let check = |fork: &Server| {
        assert_eq!(head(fork), latest);
        let block = |number: u64| result(fork, "eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
        assert_ne!(block(first)["stateRoot"], word(0));
        (made..=latest).for_each(|number| assert_eq!(block(number)["stateRoot"], word(0)));
        let slot = |address: &str, slot: u64, at: u64| {
            result(fork, "eth_getStorageAt", json!([address, word(slot), format!("{at:#x}")]))
        };
        for (at, expected) in [(made, [7, 0]), (latest, [8, 0])] {
            assert_eq!([1, 5].map(|number| slot(contract, number, at)), expected.map(word), "{at}");
        }
        assert_eq!(slot(contract, 3, latest), word(0));
        // What the system contracts have stored, although nobody knows what was there.
        let time = number(&block(latest)["timestamp"]);
        let beacon_roots = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
        assert_eq!(slot(beacon_roots, time % 8191, latest), word(time));
        assert_eq!(slot(beacon_roots, time % 8191 + 8191, latest), word(0));
        let history = "0x0000f90827f1c53a10cb7a02335b175320002935";
        assert_eq!(slot(history, (latest - 1) % 8191, latest), block(latest)["parentHash"]);
        let logs = json!([{"address": contract, "fromBlock": format!("{made:#x}"), "toBlock": "latest"}]);
        assert_eq!(result(fork, "eth_getLogs", logs).as_array().unwrap().len(), 2);
        let trace = result(fork, "debug_traceTransaction", json!([more, {"tracer": "callTracer"}]));
        assert_eq!(trace["to"], *contract);
        assert_unproven(fork, contract, made, made);
        assert_unproven(fork, contract, latest, made);
        result(fork, "eth_getProof", json!([contract, ["0x1"], format!("{first:#x}")]));
    };
    check(&offline);
    // What was not touched is still not there, and what fails leaves no block.
    let mut untouched = transaction(&[(6, 6)]);
    untouched[0]["to"] = world.contracts[3].as_str().into();
    let (code, text) = failure(&offline, "eth_sendTransaction", untouched);
    assert!(code == -32002 && text.contains(&world.contracts[3]), "{code} {text}");
    check(&offline);
    assert!(offline.end("TERM").success());

    let run = |command: &str, more: &[&str]| {
        let output = node_server().args([command, "--data-dir", &data]).args(more).output().unwrap();
        (output.status.success(), [output.stdout, output.stderr].map(|out| String::from_utf8(out).unwrap()).concat())
    };
    let (succeeded, said) = run("verify", &[]);
    assert!(succeeded && said.contains(&format!("3 blocks have no state root, the first one is {made}")), "{said}");
    let (succeeded, said) = run("export", &["/dev/null", "--force"]);
    assert!(!succeeded && said.contains("changes that no transaction made"), "{said}");
    let copy = folder.path().join("copy").display().to_string();
    let (succeeded, said) = run("backup", &[&copy]);
    assert!(succeeded, "{said}");
    check(&Server::dev(["--data-dir", &copy, "--offline"]));

    let again = Server::dev(["--data-dir", &data, "--offline"]);
    check(&again);
    // Before those blocks, everything is as before, and so it is without them.
    assert_eq!(result(&again, "evm_revert", json!([snapshot])), true);
    assert_eq!(head(&again), first);
    result(&again, "eth_getProof", json!([contract, ["0x1", "0x3"], "latest"]));
    result(&again, "evm_mine", json!([]));
    assert_unproven(&again, contract, first + 1, first + 1);
    assert!(again.end("TERM").success());
    // With a server, the next block has no root either, and blocks on the first one have theirs.
    let online = fork(&upstream, ["--data-dir", &data]);
    result(&online, "evm_mine", json!([]));
    let last = result(&online, "eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(last["stateRoot"], word(0));
    result(&online, "anvil_reset", json!([]));
    result(&online, "eth_sendTransaction", transaction(&[(1, 7), (6, 6)]));
    let last = result(&online, "eth_getBlockByNumber", json!(["latest", false]));
    assert_ne!(last["stateRoot"], word(0));
    proof(&online, contract, head(&online));
}

#[test]
fn a_fork_is_copied_and_checked_while_it_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, copies) = (path("fork"), [path("copy"), path("later")]);
    let run = |arguments: &[&str]| {
        let output = node_server().args(arguments).args(["--data-dir", &data]).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let online = fork(&upstream, ["--data-dir", &data]);
    let send = |slot| {
        let to_contract =
            json!([{"from": account(0), "to": world.contracts[1], "data": input(&[(slot, 9)]), "gas": "0x4c4b40"}]);
        result(&online, "eth_sendTransaction", to_contract)
    };
    send(1);
    let known = touch(&online, &world, first);
    run(&["verify"]);
    run(&["backup", &copies[0]]);
    // What comes later is in a later copy.
    send(2);
    let later = ("eth_getStorageAt", json!([world.contracts[4], "0x4", "latest"]));
    let value = result(&online, later.0, later.1.clone());
    run(&["backup", &copies[1]]);
    run(&["stats"]);
    run(&["verify"]);
    send(3);
    assert_eq!(head(&online), first + 3);
    drop((online, upstream));
    for (copy, blocks) in copies.iter().zip(1..) {
        let output = node_server().args(["verify", "--data-dir", copy]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let offline = Server::dev(["--data-dir", copy, "--offline"]);
        assert_eq!(head(&offline), first + blocks);
        if blocks == 1 {
            assert_known(&offline, &known);
            assert_eq!(failure(&offline, later.0, later.1.clone()).0, -32002);
        } else {
            assert_eq!(result(&offline, later.0, later.1.clone()), value);
        }
    }
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

#[test]
fn a_folder_says_that_a_server_has_another_chain() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("fork").display().to_string();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let durable = fork(&upstream, ["--data-dir", &data]);
    let known = touch(&durable, &world, first);
    assert!(durable.end("TERM").success());
    let other = Server::dev(["--timestamp", "5"]);
    let durable = fork(&other, ["--data-dir", &data]);
    while durable.logged("no server has the block that the fork in the folder begins with") == 0 {
        thread::sleep(Duration::from_millis(10));
    }
    assert_known(&durable, &known);
    assert!(durable.end("TERM").success());
    let durable = fork(&upstream, ["--data-dir", &data]);
    assert_known(&durable, &known);
    assert_eq!(durable.logged("no server has the block"), 0);
}

#[test]
fn contracts_without_which_no_block_is_valid_are_deployed() {
    let folder = tempfile::tempdir().unwrap();
    let funded = Accounts::derive(&AccountOptions::default()).unwrap();
    let cancun = DevGenesis { hardfork: "cancun".parse().unwrap(), ..DevGenesis::default() };
    let mut genesis = cancun.build(funded.addresses()).unwrap();
    let needed = ["0x00000961ef480eb55e80d19ad83579a64c007002", "0x0000bbddc7ce488642fb579f8b00f3a590007251"];
    needed.iter().for_each(|address| assert!(genesis.alloc.remove(&address.parse().unwrap()).is_some()));
    let path = folder.path().join("genesis.json");
    fs::write(&path, genesis.to_json()).unwrap();
    let upstream = Server::dev(["--genesis".as_ref(), path.as_os_str()]);
    result(&upstream, "evm_mine", json!([]));
    let data = folder.path().join("fork").display().to_string();
    let code = |server: &Server, address: &str| result(server, "eth_getCode", json!([address, "latest"]));
    let send = |fork: &Server| {
        let hash = result(fork, "eth_sendTransaction", json!([{"from": account(0), "to": account(1), "value": "0x1"}]));
        assert_eq!(result(fork, "eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
        needed.iter().for_each(|address| assert_ne!(code(fork, address), "0x"));
    };
    let online = fork(&upstream, ["--hardfork", "osaka", "--data-dir", &data]);
    send(&online);
    for address in needed {
        assert_eq!(code(&upstream, address), "0x");
        result(&online, "eth_getProof", json!([address, ["0x0"], "latest"]));
    }
    result(&online, "anvil_reset", json!([]));
    send(&online);
    result(&online, "anvil_reset", json!([]));
    assert!(online.end("TERM").success());
    let offline = Server::dev(["--data-dir", &data, "--offline"]);
    send(&offline);
    // Under rules without requests, nothing is missing.
    let older = fork(&upstream, ["--hardfork", "cancun"]);
    result(&older, "evm_mine", json!([]));
    assert_eq!(code(&older, needed[0]), "0x");
}

#[test]
fn a_block_of_which_only_the_hash_is_known_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let data = folder.path().join("fork").display().to_string();
    let online = fork(&upstream, ["--data-dir", &data]);
    // BLOCKHASH(5), as a result.
    let call = json!([{"to": account(0)}, "latest", {account(0): {"code": "0x6005405f5260205ff3"}}]);
    let hash = result(&upstream, "eth_getBlockByNumber", json!(["0x5", false]))["hash"].clone();
    assert_eq!(result(&online, "eth_call", call.clone()), hash);
    assert!(online.end("TERM").success());
    drop(upstream);

    let offline = Server::dev(["--data-dir", &data, "--offline"]);
    assert_eq!(result(&offline, "eth_call", call), hash);
    for whole in [false, true] {
        let (code, text) = failure(&offline, "eth_getBlockByNumber", json!(["0x5", whole]));
        assert_eq!(code, -32002, "{text}");
        assert!(text.contains(hash.as_str().unwrap()) && text.contains("the fork is offline"), "{text}");
        assert_eq!(problem(&offline.get(&format!("/getBlockByNumber/5/{whole}/"))), (503, "upstream-unavailable"));
    }
}
