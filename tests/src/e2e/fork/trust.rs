//! Forks of servers without proofs.

use super::options::{refused, serve_without_proofs};
use super::*;
use crate::server::node_server;

#[test]
fn servers_without_proofs_are_read_if_they_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, mut world) = World::upstream(folder.path());
    let (first, url) = (head(&upstream), serve_without_proofs(upstream.url()));
    let data = folder.path().join("fork").display().to_string();
    let fork = Server::dev(["-f", &url, "--fork-trust", "--data-dir", &data]);
    assert_eq!(fork.get("/ready").body["Fork"]["Verified"], false);
    assert_eq!(result(&fork, "anvil_nodeInfo", json!([]))["forkConfig"]["verified"], false);

    // The state of the block, and of one before it.
    for at in [first, first - 1].map(|number| format!("{number:#x}")) {
        let stranger = format!("0x{:040x}", 0xabcd);
        for address in world.contracts.iter().chain([&stranger]) {
            for (method, params) in [
                ("eth_getBalance", json!([address, at])),
                ("eth_getTransactionCount", json!([address, at])),
                ("eth_getCode", json!([address, at])),
                ("eth_getStorageAt", json!([address, word(3), at])),
            ] {
                assert_eq!(result(&fork, method, params.clone()), result(&upstream, method, params), "{method}");
            }
            for (method, parameters) in
                [("eth_getProof", json!([address, [], at])), ("eth_getAccount", json!([address, at]))]
            {
                let (code, text) = failure(&fork, method, parameters);
                assert!(code == -32000 && text.contains("read without them (`fork-trust`)"), "{method}: {code} {text}");
            }
            let input = json!({"Address": address, "BlockNumber": number(&json!(at)).to_string(), "StorageKeys": []});
            let response = fork.post("/getProof/", input.to_string());
            assert_eq!(problem(&response), (404, "no-state-root"), "{}", response.text);
        }
    }
    assert_eq!(
        result(&fork, "eth_getBlockByNumber", json!(["0x1", true])),
        result(&upstream, "eth_getBlockByNumber", json!(["0x1", true]))
    );

    // The same transactions have the same results, and no block commits to the state.
    let contract = world.contracts[0].clone();
    let mine = |server: &Server, pairs: &[(u64, u64)]| {
        let transaction = json!({"from": account(0), "to": contract, "data": input(pairs), "gas": "0x4c4b40"});
        let hash = result(server, "eth_sendTransaction", json!([transaction]));
        result(server, "eth_getTransactionReceipt", json!([hash]))
    };
    for pairs in [[(1, 0), (2, 77)], [(2, 0), (1_000, 5)]] {
        let (got, expected) = (mine(&fork, &pairs), mine(&upstream, &pairs));
        for field in ["status", "gasUsed", "blockNumber"] {
            assert_eq!(got[field], expected[field], "{field}");
        }
    }
    let created = world.create(&fork, 4);
    for slot in [1, 2, 3, 1_000] {
        let slot_of =
            |server: &Server, block: &str| result(server, "eth_getStorageAt", json!([contract, word(slot), block]));
        assert_eq!(slot_of(&fork, "latest"), slot_of(&upstream, "latest"));
        let before = format!("{first:#x}");
        assert_eq!(slot_of(&fork, &before), slot_of(&upstream, &before));
    }
    assert_eq!(result(&fork, "eth_getStorageAt", json!([created, word(3), "latest"])), word(4));
    let block = result(&fork, "eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(block["stateRoot"], word(0));
    let (code, text) = failure(&fork, "eth_getProof", json!([contract, [], "latest"]));
    assert!(code == -32000 && text.contains("have no state root") && text.contains("without proofs"), "{text}");
    let last = head(&fork);
    assert!(fork.end("INT").success());

    // A folder keeps the choice, and needs no server for what was read.
    let fork = Server::dev(["--offline", "--data-dir", &data]);
    assert_eq!((head(&fork), fork.get("/ready").body["Fork"]["Verified"].clone()), (last, json!(false)));
    let spent = json!([contract, word(3), format!("{first:#x}")]);
    assert_eq!(result(&fork, "eth_getStorageAt", spent.clone()), result(&upstream, "eth_getStorageAt", spent));
    let unread = json!([format!("0x{:040x}", 0xdead), format!("{first:#x}")]);
    assert_eq!(failure(&fork, "eth_getBalance", unread).0, -32002);
    drop(fork);
    let verified = node_server().args(["verify", "--data-dir", &data]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let fork = Server::dev(["-f", &url, "--data-dir", &data]);
    result(&fork, "anvil_reset", json!([]));
    assert_eq!(mine(&fork, &[(1, 9)])["status"], "0x1");
}

#[test]
fn servers_without_proofs_are_refused_unless_they_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Server::dev(genesis(folder.path()));
    let url = serve_without_proofs(upstream.url());
    let (code, output) = refused(&["-f", &url, "--retries", "0"]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("fork-trust") && output.contains("eth_getProof"), "{output}");
    // What was proven cannot become somebody's word.
    let data = folder.path().join("fork").display().to_string();
    drop(Server::dev(["-f", upstream.url(), "--data-dir", &data]));
    let (code, output) = refused(&["-f", &url, "--fork-trust", "--data-dir", &data]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("was begun with proofs"), "{output}");
    let (code, output) = refused(&["--fork-trust"]);
    assert!(code == Some(2) && output.contains("--fork-url starts one"), "{output}");
}
