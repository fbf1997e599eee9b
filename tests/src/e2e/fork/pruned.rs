//! Forks of servers that keep only their newest states.

use super::*;
use crate::e2e::upstream::serve_messages;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How a server responds to requests for the state that the fork begins with.
const WITH_IT: u8 = 0;
const BEHIND: u8 = 1;
const TOO_MANY: u8 = 2;
const PRUNED: u8 = 3;

/// Serves the chain of `upstream`, with the states as of earlier blocks as `state` says.
fn serve(upstream: &Server, state: &Arc<AtomicU8>) -> String {
    let (server, state) = (Server::at(upstream.url()["http://".len()..].parse().unwrap()), Arc::clone(state));
    let one = move |request: &Value| {
        let is_newest = request["params"].as_array().unwrap().contains(&json!("latest"));
        let reads_state = ["eth_getProof", "eth_getCode"].iter().any(|method| request["method"] == *method);
        let (code, message) = match state.load(Ordering::SeqCst) {
            BEHIND => (-32000, "header not found"),
            TOO_MANY => (-32005, "rate limit exceeded"),
            PRUNED => (-32000, "missing trie node 00ab (path ) state 0x00ab is not available"),
            _ => return server.post("/", request.to_string()).body,
        };
        if is_newest || !reads_state {
            return server.post("/", request.to_string()).body;
        }
        json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})
    };
    serve_messages(move |message| match message {
        Value::Array(requests) => requests.iter().map(&one).collect(),
        request => one(request),
    })
}

#[test]
fn blocks_are_made_of_what_was_read_before_the_server_pruned_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let (first, state) = (head(&upstream), Arc::new(AtomicU8::new(WITH_IT)));
    let url = serve(&upstream, &state);
    let fork = Server::dev(["--fork-url", &url, "--retries", "0"]);
    let contract = world.contracts[2].as_str();
    let transaction =
        |pairs: &[(u64, u64)]| json!([{"from": account(0), "to": contract, "data": input(pairs), "gas": "0x4c4b40"}]);
    let touched = transaction(&[(1, 7), (5, 0)]);
    result(&fork, "eth_call", json!([touched[0], "latest"]));
    result(&fork, "eth_getProof", json!([contract, ["0x1"], "latest"]));
    let snapshot = result(&fork, "evm_snapshot", json!([]));
    // A passing refusal leaves no block behind, as its root would be missing for ever.
    let gone = || fork.get("/ready").body["Fork"]["StateGone"].clone();
    for passing in [BEHIND, TOO_MANY] {
        state.store(passing, Ordering::SeqCst);
        let (code, text) = failure(&fork, "eth_sendTransaction", touched.clone());
        assert!(code == -32002, "{passing}: {text}");
        assert_eq!((head(&fork), gone()), (first, Value::Null));
    }
    state.store(PRUNED, Ordering::SeqCst);
    let root = |number: u64| {
        result(&fork, "eth_getBlockByNumber", json!([format!("{number:#x}"), false]))["stateRoot"].clone()
    };
    for value in 1..4 {
        let hash = result(&fork, "eth_sendTransaction", transaction(&[(1, value), (5, 0)]));
        assert_eq!(result(&fork, "eth_getTransactionReceipt", json!([hash]))["status"], "0x1");
        assert_eq!(result(&fork, "eth_getStorageAt", json!([contract, word(1), "latest"])), word(value));
        assert_eq!(root(first + value), word(0));
    }
    assert_ne!(root(first), word(0));
    let (code, text) = failure(&fork, "eth_getProof", json!([contract, ["0x1"], "latest"]));
    assert!(code == -32000 && text.contains("have no state root") && text.contains("missing trie node"), "{text}");
    result(&fork, "eth_getProof", json!([contract, ["0x1"], format!("{first:#x}")]));
    // What was not read is still refused.
    let unknown = format!("{:#x}", Address::from(keccak256(99u32.to_be_bytes())));
    let untouched =
        json!([{"from": account(0), "to": world.contracts[3], "data": input(&[(5, 5)]), "gas": "0x4c4b40"}]);
    for (method, parameters) in [
        ("eth_getBalance", json!([unknown, "latest"])),
        ("eth_call", json!([untouched[0], "latest"])),
        ("eth_sendTransaction", untouched.clone()),
    ] {
        let (code, text) = failure(&fork, method, parameters);
        assert!(code == -32002 && text.contains("is not available any longer"), "{method}: {code} {text}");
    }
    assert_eq!(head(&fork), first + 3);
    assert!(gone().as_str().unwrap().ends_with("missing trie node 00ab (path ) state 0x00ab is not available"));
    assert_eq!(fork.get("/ready").status, 200);
    // With a server that has it, blocks on top of a state with tries have roots.
    result(&fork, "anvil_setRpcUrl", json!([upstream.url()]));
    result(&fork, "evm_revert", json!([snapshot]));
    result(&fork, "eth_sendTransaction", untouched);
    assert_eq!((head(&fork), gone()), (first + 1, Value::Null));
    assert_ne!(root(first + 1), word(0));
    result(&fork, "eth_getProof", json!([world.contracts[3], ["0x5"], "latest"]));
}
