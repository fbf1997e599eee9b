//! Control of forks: what tools ask, resets, edits, impersonation, reorganizations.

use super::*;
use crate::e2e::in_process::serve;
use crate::e2e::upstream::serve_messages;
use node_core::context::Context;
use node_core::node::TransactionRequest;
use node_dev::DevNode;
use node_http::HttpConfig;
use node_types::{BlockId, U256};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// 10,000 ether.
const RICH: &str = "0x21e19e0c9bab2400000";

fn balance(server: &Server, address: &str) -> Value {
    result(server, "eth_getBalance", json!([address, "latest"]))
}

#[test]
fn tools_see_the_other_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, ["--fork-retry-backoff", "250"]);
    result(&fork, "anvil_mine", json!(["0x2"]));
    let info = result(&fork, "anvil_nodeInfo", json!([]));
    let expected =
        json!({"forkUrl": upstream.url(), "forkBlockNumber": first, "forkRetryBackoff": 250, "verified": true});
    assert_eq!(info["forkConfig"], expected);
    assert_eq!(number(&info["currentBlockNumber"]), first + 2);
    let metadata = result(&fork, "anvil_metadata", json!([]));
    let block = result(&upstream, "eth_getBlockByNumber", json!([format!("{first:#x}"), false]));
    let expected = json!({"chainId": 31337, "forkBlockNumber": first, "forkBlockHash": block["hash"]});
    assert_eq!(metadata["forkedNetwork"], expected);
    let plain = result(&upstream, "anvil_nodeInfo", json!([]));
    assert_eq!(plain["forkConfig"]["forkUrl"], Value::Null);
    assert!(rpc(&upstream, "anvil_setRpcUrl", json!([fork.url()])).get("error").is_some());
    let (_, text) = failure(&fork, "anvil_setRpcUrl", json!([format!("{}@1", upstream.url())]));
    assert!(text.contains(&format!("the fork begins with block {first}")), "{text}");
    result(&fork, "anvil_setRpcUrl", json!([format!("{}@{first}", upstream.url())]));
    let wrong = Server::dev(["--chain-id", "7"]);
    let (_, text) = failure(&fork, "anvil_setRpcUrl", json!([wrong.url()]));
    assert!(text.contains("the server has the chain 7"), "{text}");
    let (_, text) = failure(&fork, "anvil_setRpcUrl", json!([Server::dev(["--timestamp", "5"]).url()]));
    assert!(text.contains("block"), "{text}");
    assert_eq!(result(&fork, "anvil_nodeInfo", json!([]))["forkConfig"]["forkUrl"], upstream.url());
}

#[test]
fn resets_begin_at_the_first_block_or_at_another() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, mut world) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, []);
    // The upstream has spent some of it.
    assert_eq!(balance(&fork, &account(7)), RICH);
    let contract = world.contracts[1].clone();
    let slot = |block: &str| result(&fork, "eth_getStorageAt", json!([contract, "0x1", block]));
    let old = slot("latest");
    result(&fork, "anvil_setStorageAt", json!([contract, word(1), word(99)]));
    result(&fork, "anvil_mine", json!(["0x3"]));
    assert_eq!(slot("latest"), word(99));
    result(&fork, "anvil_reset", json!([]));
    assert_eq!((head(&fork), slot("latest")), (first, old.clone()));
    assert_eq!(balance(&fork, &account(7)), RICH);

    // Later blocks of the upstream are seen only after a reset.
    world.send(&upstream, json!({"to": contract, "data": input(&[(1, 55)]), "gas": "0x4c4b40"}));
    assert_eq!((head(&fork), slot("latest")), (first, old));
    result(&fork, "anvil_reset", json!([{"forking": {"jsonRpcUrl": upstream.url()}}]));
    assert_eq!((head(&fork), slot("latest")), (first + 1, json!(word(55))));
    assert_eq!(balance(&fork, &account(7)), RICH);
    result(&fork, "hardhat_reset", json!([{"forking": {"blockNumber": 4}}]));
    assert_eq!(head(&fork), 4);
    assert_eq!(result(&fork, "anvil_nodeInfo", json!([]))["forkConfig"]["forkBlockNumber"], 4);
    assert_eq!(balance(&fork, &account(7)), RICH);
    result(&fork, "anvil_mine", json!(["0x2"]));
    let parent = |number: u64| result(&fork, "eth_getBlockByNumber", json!([format!("{number:#x}"), false]));
    assert_eq!(parent(5)["parentHash"], parent(4)["hash"]);

    // What cannot be done changes nothing.
    let dead = "http://127.0.0.1:9";
    for options in [
        json!({"forking": {"blockNumber": 1_000_000}}),
        json!({"forking": {"jsonRpcUrl": "nowhere"}}),
        json!({"forking": {"jsonRpcUrl": Server::dev(["--chain-id", "7"]).url()}}),
    ] {
        failure(&fork, "anvil_reset", json!([options]));
        assert_eq!(head(&fork), 6, "{options}");
    }
    assert!(failure(&upstream, "anvil_reset", json!([{"forking": {"jsonRpcUrl": dead}}])).1.contains("fork"));
}

/// Adds blocks to a fork, resets it with this parameter, and returns the number of its head.
fn reset(fork: &Server, options: &Value) -> u64 {
    result(fork, "anvil_mine", json!(["0x3"]));
    result(fork, "anvil_reset", json!([options]));
    assert_eq!(balance(fork, &account(7)), RICH, "{options}");
    head(fork)
}

#[test]
fn no_block_comes_between_a_reset_and_its_ether() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, []);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    result(&fork, "evm_mine", json!([]));
                }
            });
        }
        let resets: Vec<_> = (0..30)
            .filter(|_| {
                reset(&fork, &json!({}));
                let own = format!("{:#x}", first + 1);
                // Null if there is no block yet.
                let balance = rpc(&fork, "eth_getBalance", json!([account(0), own]));
                balance.get("result").is_some_and(|balance| balance != RICH)
            })
            .collect();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(resets, [0; 0]);
    });
}

#[test]
fn a_reset_that_cannot_read_the_accounts_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let data = folder.path().join("fork").display().to_string();
    let fork = fork(&upstream, ["--data-dir", &data, "--accounts", "0"]);
    let first = head(&fork);
    result(&fork, "anvil_mine", json!(["0x5"]));
    assert!(fork.end("TERM").success());
    // It has accounts now, which were never read.
    let offline = Server::dev(["--offline", "--data-dir", &data]);
    for options in [json!([]), json!([{"forking": {"blockNumber": first}}])] {
        let (code, text) = failure(&offline, "anvil_reset", options);
        assert!(code == -32002 && text.contains(&account(0)), "{code} {text}");
        assert_eq!(head(&offline), first + 5);
    }
}

#[test]
fn a_reset_onto_the_same_block_needs_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let (first, url) = (head(&upstream), upstream.url().to_owned());
    let hash = result(&upstream, "eth_getBlockByNumber", json!(["latest", false]))["hash"].clone();
    let data = folder.path().join("fork").display().to_string();
    let (memory, durable) = (fork(&upstream, []), fork(&upstream, ["--data-dir", &data]));
    let same = [
        json!({"forking": {"jsonRpcUrl": url, "blockNumber": first}}),
        json!({"forking": {"jsonRpcUrl": format!("{url}/"), "blockNumber": hash}}),
        json!({"forking": {"jsonRpcUrl": format!("{url}@{first}"), "blockNumber": format!("{first:#x}")}}),
        json!({"blockNumber": first}),
    ];
    // Of a tag, the server says which block it is.
    for options in [json!({"forking": {"blockNumber": "latest"}}), json!({"forking": {"jsonRpcUrl": url}})] {
        assert_eq!([reset(&memory, &options), reset(&durable, &options)], [first; 2], "{options}");
    }
    let again = Server::dev(["--fork-url", &url]);
    assert_eq!(reset(&memory, &json!({"forking": {"jsonRpcUrl": again.url(), "blockNumber": first}})), first);
    assert_eq!(result(&memory, "anvil_nodeInfo", json!([]))["forkConfig"]["forkUrl"], again.url());
    result(&memory, "anvil_setRpcUrl", json!([url]));
    result(&upstream, "anvil_mine", json!([]));
    for other in [json!({"forking": {"blockNumber": 4}}), json!({"forking": {"blockNumber": "latest"}})] {
        let (_, text) = failure(&durable, "anvil_reset", json!([other]));
        let expected = format!("keeps the block that it begins with, block {first}");
        assert!(text.contains(&expected), "{other}: {text}");
    }
    drop(upstream);
    for options in &same {
        assert_eq!([reset(&memory, options), reset(&durable, options)], [first; 2], "{options}");
    }
    assert!(durable.end("TERM").success());
    let offline = Server::dev(["--offline", "--data-dir", &data]);
    for options in &same {
        assert_eq!(reset(&offline, options), first, "{options}");
    }
    let (_, text) = failure(&offline, "anvil_reset", json!([{"forking": {"blockNumber": 4}}]));
    assert!(text.contains("keeps the block"), "{text}");
    let (_, text) = failure(&offline, "anvil_reset", json!([{"forking": {"blockNumber": "latest"}}]));
    assert!(text.contains("the fork is offline"), "{text}");
}

#[test]
fn a_reset_accepts_blocks_as_the_option_does_and_nothing_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let (first, url) = (head(&upstream), upstream.url());
    let of_four = result(&upstream, "eth_getBlockByNumber", json!(["0x4", false]))["hash"].clone();
    let fork = fork(&upstream, []);
    for (options, expected) in [
        (json!({"forking": {"jsonRpcUrl": format!("{url}@4")}}), 4),
        (json!({"forking": {"jsonRpcUrl": url, "blockNumber": "0x5"}}), 5),
        (json!({"forking": {"blockNumber": of_four}}), 4),
        (json!({"forking": {"blockNumber": "-2"}}), first - 2),
        (json!({"forking": {"blockNumber": -3}}), first - 3),
        (json!({"forking": {"blockNumber": "earliest"}}), 0),
        // As anvil and viem do.
        (json!({"jsonRpcUrl": url, "blockNumber": "6"}), 6),
        (json!({"forking": {}}), 6),
        (json!({"forking": null}), 6),
        (json!({}), 6),
        (Value::Null, 6),
    ] {
        assert_eq!(reset(&fork, &options), expected, "{options}");
    }
    for (options, code, reason) in [
        (json!({"forkng": {}}), -32602, "unknown field `forkng`"),
        (json!({"forking": {"block": 3}}), -32602, "unknown field `block`"),
        (json!({"forking": 7}), -32602, "expected an object"),
        (json!({"forking": {"blockNumber": 1_000_000}}), -32000, "the upstream does not have"),
        (json!({"forking": {"jsonRpcUrl": "http://127.0.0.1:99999"}}), -32000, "the port of the URL is not a number"),
        (json!({"forking": {"blockNumber": "newest"}}), -32602, "expected the number or hash of a block"),
        (json!({"forking": {"blockNumber": 3}, "jsonRpcUrl": url}), -32602, "either in forking or beside it"),
        (json!({"forking": {"jsonRpcUrl": format!("{url}@4"), "blockNumber": 5}}), -32000, "two are given: 5, and 4"),
    ] {
        let (found, text) = failure(&fork, "anvil_reset", json!([options]));
        assert!(found == code && text.contains(reason), "{options}: {found} {text}");
        assert_eq!(head(&fork), 6, "{options}");
    }
}

#[test]
fn servers_that_do_not_respond_are_named_within_the_time_of_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    // It does not respond to requests about this account until it may.
    let (slow, (allow, allowed)) = (format!("0x{:040x}", 0xabcd), mpsc::channel::<()>());
    let (inner, waits, allowed) = (Server::at(upstream.address().parse().unwrap()), slow.clone(), Mutex::new(allowed));
    let url = serve_messages(move |message| {
        if message.to_string().contains(&waits) {
            let _ = allowed.lock().unwrap().recv();
        }
        inner.post("/", message.to_string()).body
    });
    let fork = Server::dev(["--fork-url", &url, "--call-timeout", "2s"]);
    let before = head(&fork);
    let name = &url["http://".len()..];
    let to_slow = json!([{"from": account(0), "to": slow, "value": "0x1", "gas": "0x100000"}]);
    for (method, parameters) in [
        ("eth_getBalance", json!([slow, "latest"])),
        ("eth_sendTransaction", to_slow.clone()),
        ("anvil_setBalance", json!([slow, "0x1"])),
    ] {
        let (code, text) = failure(&fork, method, parameters);
        let expected = format!("did not respond in time: no response from {name}; needed: account {slow}");
        assert!(code == -32002 && text.contains(&expected), "{method}: {code} {text}");
    }
    let response = fork.get(&format!("/getBalance/{slow}/"));
    assert_eq!(problem(&response), (503, "upstream-unavailable"), "{}", response.text);
    assert_eq!(head(&fork), before);
    drop(allow);
    assert_eq!(balance(&fork, &slow), "0x0");
    result(&fork, "eth_sendTransaction", to_slow);
    assert_eq!(head(&fork), before + 1);

    // One that cannot be reached.
    let nobody = format!("127.0.0.1:{}", crate::server::free_port());
    let url = format!("http://{nobody}");
    let (code, text) = failure(&fork, "anvil_reset", json!([{"forking": {"jsonRpcUrl": url}}]));
    assert!(code == -32002 && text.contains(&format!("unavailable: {nobody}: ")), "{code} {text}");
    let response = fork.post("/dev/setForkUrl/", json!({"Url": url}).to_string());
    assert_eq!(problem(&response), (503, "upstream-unavailable"), "{}", response.text);
    assert!(response.text.contains(&nobody), "{}", response.text);
    assert_eq!(head(&fork), before + 1);
}

#[test]
fn requests_that_wait_for_a_silent_server_do_not_delay_others() {
    // More than any pool has threads.
    const WAITING: u64 = 20;
    let unread = |index: u64| format!("0x{:040x}", 0xabcd00 + index);
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    // It does not respond to requests about these accounts until it may.
    let (asked, (allow, allowed)) = (Arc::new(Mutex::new(BTreeSet::new())), mpsc::channel::<()>());
    let inner = Server::at(upstream.address().parse().unwrap());
    let url = serve_messages({
        let (asked, allowed) = (Arc::clone(&asked), Mutex::new(allowed));
        move |message| {
            let text = message.to_string();
            let found: Vec<_> = (0..WAITING).filter(|index| text.contains(&unread(*index)[2..])).collect();
            let waits = !found.is_empty();
            asked.lock().unwrap().extend(found);
            if waits {
                let _ = allowed.lock().unwrap().recv();
            }
            inner.post("/", text).body
        }
    });
    let fork = Server::dev(["--fork-url", &url]);
    let before = head(&fork);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..WAITING)
            .map(|index| {
                let (fork, address) = (&fork, unread(index));
                scope.spawn(move || result(fork, "anvil_setBalance", json!([address, "0x1"])))
            })
            .collect();
        while asked.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        for _ in 0..20 {
            assert_eq!(fork.get("/ready").status, 200);
            result(&fork, "anvil_setBalance", json!([account(0), "0x1"]));
            result(&fork, "evm_increaseTime", json!([1]));
            result(&fork, "txpool_status", json!([]));
            assert_eq!(balance(&fork, &account(0)), "0x1");
        }
        assert!(!waiting.iter().any(|edit| edit.is_finished()));
        drop(allow);
    });
    assert!((0..WAITING).all(|index| balance(&fork, &unread(index)) == "0x1"));
    assert_eq!(head(&fork), before);
}

#[test]
fn a_fork_does_not_read_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    // All begin with the same block, which edits would change.
    let first = fork(&upstream, ["--accounts", "0"]);
    let second = fork(&first, ["--accounts", "0"]);
    let third = fork(&second, ["--accounts", "0"]);
    for reader in [&first, &second, &third] {
        let (_, text) = failure(&first, "anvil_setRpcUrl", json!([reader.url()]));
        assert!(text.contains("the server reads this fork"), "{text}");
        let forking = json!([{"forking": {"jsonRpcUrl": reader.url(), "blockNumber": 4}}]);
        let (_, text) = failure(&first, "anvil_reset", forking);
        assert!(text.contains("the server reads this fork"), "{text}");
    }
    result(&third, "anvil_setRpcUrl", json!([first.url()]));
    result(&first, "anvil_setRpcUrl", json!([upstream.url()]));
    assert_eq!(balance(&third, &format!("0x{:040x}", 0xabcd)), "0x0");
}

#[test]
fn rest_reports_and_controls_a_fork() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let first = head(&upstream);
    let port = crate::server::free_port();
    let fork = fork(&upstream, ["--metrics-addr", &format!("127.0.0.1:{port}")]);
    let of = |server: &Server| server.get("/dev/fork/").body["Fork"].clone();
    let found = of(&fork);
    let hash = result(&upstream, "eth_getBlockByNumber", json!([format!("{first:#x}"), false]))["hash"].clone();
    assert_eq!(found["BlockNumber"], json!(first.to_string()));
    assert_eq!((&found["BlockHash"], &found["ChainId"]), (&hash, &json!("31337")));
    let endpoint = &found["Endpoints"][0];
    assert_eq!((&endpoint["Name"], &endpoint["LastFailure"]), (&json!(upstream.address()), &Value::Null));
    let count = |endpoint: &Value, name: &str| endpoint[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(count(endpoint, "Requests") > 3 && count(endpoint, "Bytes") > 1_000, "{endpoint}");
    assert_eq!(fork.get("/ready").body["Fork"]["BlockHash"], hash);
    let metrics = || Server::at(([127, 0, 0, 1], port).into()).get("/metrics").text;
    let line = |name: &str, value: u64| format!("ethnode_{name}{{endpoint=\"{}\"}} {value}\n", upstream.address());
    let text = metrics();
    assert!(text.contains(&format!("ethnode_fork_block {first}\n")), "{text}");
    for expected in [line("upstream_failures_total", 0), line("upstream_failing", 0)] {
        assert!(text.contains(&expected), "{expected} in {text}");
    }

    // Over WebSocket from now on.
    let socket = format!("ws://{}/ws", upstream.address());
    assert_eq!(fork.post("/dev/setForkUrl/", json!({"Url": socket}).to_string()).body["Result"], true);
    assert_eq!(of(&fork)["Endpoints"][0]["Name"], upstream.address());
    let wrong = Server::dev(["--chain-id", "7"]);
    for (url, reason) in
        [(wrong.url(), "the server has the chain 7"), ("http://nowhere:1@here", "nowhere:1: expected a block")]
    {
        let refused = fork.post("/dev/setForkUrl/", json!({"Url": url}).to_string());
        assert_eq!(refused.status, 422);
        assert!(refused.text.contains(reason), "{}", refused.text);
    }
    for (body, expected) in [(json!({"BlockNumber": "4"}), 4), (json!({}), 4), (json!({"Url": socket}), first)] {
        result(&fork, "anvil_mine", json!(["0x3"]));
        let reset = fork.post("/dev/reset/", body.to_string());
        assert_eq!((reset.status, &reset.body["BlockNumber"]), (200, &json!(expected.to_string())), "{}", reset.text);
        assert_eq!((head(&fork), of(&fork)["BlockNumber"].clone()), (expected, json!(expected.to_string())));
        assert_eq!(balance(&fork, &account(7)), RICH);
    }

    // A failure is reported until the next success, and the fork is ready all the same.
    drop(upstream);
    let (code, _) = failure(&fork, "eth_getBalance", json!([format!("0x{:040x}", 0xabcd), "0x1"]));
    assert_eq!(code, -32002);
    let found = of(&fork);
    let failure = found["Endpoints"][0]["LastFailure"].as_str().unwrap();
    let name = found["Endpoints"][0]["Name"].as_str().unwrap();
    assert!(failure.starts_with(&format!("{name}: ")), "{found}");
    let ready = fork.get("/ready");
    assert_eq!((ready.status, &ready.body["Fork"]["Endpoints"][0]["LastFailure"]), (200, &json!(failure)));
    assert!(metrics().contains("\"} 1\n"), "{}", metrics());

    let refused = wrong.post("/dev/setForkUrl/", json!({"Url": fork.url()}).to_string());
    assert_eq!((refused.status, of(&wrong)), (422, Value::Null));
    assert_eq!(wrong.get("/ready").body["Fork"], Value::Null);
}

#[test]
fn the_other_chain_can_be_read_over_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let url = format!("ws://{}/ws", upstream.address());
    let fork = Server::dev(["--fork-url", &url, "--retries", "1"]);
    for contract in &world.contracts {
        assert_eq!(proof(&fork, contract, first), proof(&upstream, contract, first));
    }
    for number in 0..=first {
        let block = json!([format!("{number:#x}"), true]);
        assert_eq!(
            result(&fork, "eth_getBlockByNumber", block.clone()),
            result(&upstream, "eth_getBlockByNumber", block)
        );
    }
}

#[test]
fn everything_of_the_other_chain_can_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let first = head(&upstream);
    let fork = fork(&upstream, ["--accounts", "2"]);
    // An account of the other chain, whose key this one does not have.
    let whale = account(9);
    let send = json!([{"from": whale, "to": format!("0x{:040x}", 0x77), "value": "0xde0b6b3a7640000"}]);
    failure(&fork, "eth_sendTransaction", send.clone());
    result(&fork, "anvil_impersonateAccount", json!([whale]));
    let hash = result(&fork, "eth_sendTransaction", send);
    assert_eq!(result(&fork, "eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
    let nonce = result(&upstream, "eth_getTransactionCount", json!([whale, "latest"]));
    let expected = format!("{:#x}", number(&nonce) + 1);
    assert_eq!(result(&fork, "eth_getTransactionCount", json!([whale, "latest"])), expected);

    let contract = &world.contracts[6];
    let of_first = proof(&fork, contract, first);
    assert_eq!(of_first, proof(&upstream, contract, first));
    let snapshot = result(&fork, "evm_snapshot", json!([]));
    for slot in 0..SLOTS {
        result(&fork, "anvil_setStorageAt", json!([contract, word(slot), word(slot % 3)]));
    }
    result(&fork, "anvil_setCode", json!([contract, "0x5f"]));
    result(&fork, "anvil_setBalance", json!([contract, "0x9"]));
    result(&fork, "anvil_mine", json!(["0x2"]));
    assert_eq!(result(&fork, "eth_getCode", json!([contract, "latest"])), "0x5f");
    let edited = proof(&fork, contract, first + 3);
    assert_eq!(edited["balance"], "0x9");
    assert_eq!(edited["storageProof"][5]["value"], "0x2");
    assert_eq!(proof(&fork, contract, first), of_first);
    assert_eq!(result(&fork, "evm_revert", json!([snapshot])), true);
    assert_eq!(head(&fork), first + 1);
    assert_eq!(proof(&fork, contract, first + 1)["storageProof"], of_first["storageProof"]);

    // Down to the first block, and no further.
    result(&fork, "anvil_mine", json!(["0x3"]));
    failure(&fork, "anvil_reorg", json!([5, []]));
    assert_eq!(head(&fork), first + 4);
    result(&fork, "anvil_reorg", json!([4, []]));
    assert_eq!(head(&fork), first + 4);
    assert_eq!(result(&fork, "eth_getTransactionReceipt", json!([hash])), Value::Null);
    result(&fork, "anvil_rollback", json!([4]));
    assert_eq!(head(&fork), first);
    assert_eq!(proof(&fork, contract, first), of_first);
}

#[test]
fn a_fork_in_a_test_needs_one_line() {
    let context = Context::unbounded();
    let original = DevNode::spawn().unwrap();
    let [alice, bob] = [0, 1].map(|index| original.accounts()[index].address());
    let send = |chain: &DevNode, wei: u64| {
        let request = TransactionRequest { from: alice, to: Some(bob), value: wei.into(), ..Default::default() };
        chain.send_transaction(&context, request).unwrap();
    };
    send(&original, 5);
    send(&original, 7);
    let server = serve(Arc::clone(original.node()), HttpConfig::default());
    let rich = U256::exp10(22);
    let of_bob = |chain: &DevNode, block| chain.get_balance(&context, bob, block).unwrap();
    let fork = DevNode::builder().fork(server.url()).at(BlockId::number(1)).spawn().unwrap();
    // It is funded again.
    assert_eq!(of_bob(&fork, BlockId::latest()), rich);
    send(&fork, 9);
    assert_eq!(of_bob(&fork, BlockId::latest()), rich + 9);
    assert_eq!(of_bob(&fork, BlockId::number(1)), rich + 5);
    assert_eq!(of_bob(&original, BlockId::latest()), rich + 12);
    let newest = DevNode::builder().fork(server.url()).spawn().unwrap();
    assert_eq!(newest.backend().view().unwrap().head().number, 2);
}
