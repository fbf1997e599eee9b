//! Dumps of forks, which other chains load without the other server.

use super::*;

/// A chain with a fork that has read and changed a part of it.
struct Dumped {
    folder: tempfile::TempDir,
    upstream: Server,
    world: World,
    fork: Server,
    data: String,
}

impl Dumped {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (upstream, world) = World::upstream(folder.path());
        let data = folder.path().join("fork").display().to_string();
        let fork = fork(&upstream, ["--data-dir", &data]);
        // Read, changed by a transaction, cleared, and edited.
        result(&fork, "eth_call", json!([{"to": world.contracts[5], "data": input(&[(3, 9), (4, 1)])}, "latest"]));
        result(&fork, "eth_getStorageAt", json!([world.contracts[6], "0x7", "latest"]));
        result(&fork, "eth_getBalance", json!([account(8), "latest"]));
        let pairs = input(&[(1, 70), (2, 0), (9, 5)]);
        let sent = json!([{"from": account(0), "to": world.contracts[4], "data": pairs, "gas": "0x4c4b40"}]);
        result(&fork, "eth_sendTransaction", sent);
        result(&fork, "anvil_setStorageAt", json!([world.contracts[3], word(2), word(77)]));
        result(&fork, "anvil_setBalance", json!([account(9), "0x5"]));
        Self { folder, upstream, world, fork, data }
    }

    /// What `server` says about everything that the fork has read or changed.
    fn facts(&self, server: &Server) -> Vec<Value> {
        let slots = [(3, "0x2"), (4, "0x1"), (4, "0x2"), (4, "0x9"), (5, "0x3"), (5, "0x4"), (6, "0x7")];
        let slots = slots.map(|(contract, slot)| {
            result(server, "eth_getStorageAt", json!([self.world.contracts[contract], slot, "latest"]))
        });
        let contracts = &self.world.contracts[3..=6];
        let codes = contracts.iter().map(|contract| result(server, "eth_getCode", json!([contract, "latest"])));
        let others = [account(0), account(8), account(9)];
        let accounts = contracts.iter().chain(&others).flat_map(|address| {
            ["eth_getBalance", "eth_getTransactionCount"]
                .map(|method| result(server, method, json!([address, "latest"])))
        });
        let call = json!([{"to": self.world.contracts[5], "data": input(&[(3, 1), (4, 1)])}, "latest"]);
        slots.into_iter().chain(codes).chain(accounts).chain([result(server, "eth_call", call)]).collect()
    }
}

/// Returns the least number whose hash begins with the same `bytes` bytes, as a word or as an address of `width` bytes.
fn neighbor(hash: H256, bytes: usize, width: usize) -> String {
    let named = |n: u64| format!("0x{n:0width$x}", width = 2 * width);
    let hash_of = |name: &str| keccak256(const_hex::decode(name).unwrap());
    let is_near = |name: &String| hash_of(name)[..bytes] == hash[..bytes] && hash_of(name) != hash;
    (1_000..).map(named).find(is_near).unwrap()
}

/// What is new in a trie moves its neighbor, which was not read by that.
#[test]
fn neighbors_of_what_is_new_have_their_code_and_are_dumped_if_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let [contract, other] = [2, 6].map(|index| world.contracts[index].clone());
    let data = folder.path().join("fork").display().to_string();
    let fork = fork(&upstream, ["--data-dir", &data]);
    let beside = neighbor(keccak256(const_hex::decode(&contract).unwrap()), 2, 20);
    let slot = neighbor(keccak256(const_hex::decode(word(5)).unwrap()), 1, 32);
    let stores = format!("{slot}{:064x}", 7);
    let sender = account(0);
    let creates = json!({"from": sender, "to": beside, "value": "0x1"});
    let sets = json!({"from": sender, "to": other, "data": stores, "gas": "0x4c4b40"});
    for transaction in [creates, sets] {
        result(&fork, "eth_sendTransaction", json!([transaction]));
    }
    let facts = |server: &Server| {
        // It is executed before its code is read in any other way.
        let gas = result(server, "eth_estimateGas", json!([{"to": contract, "data": input(&[(1, 9)])}, "latest"]));
        let code = result(server, "eth_getCode", json!([contract, "latest"]));
        let slot = result(server, "eth_getStorageAt", json!([other, "0x5", "latest"]));
        [gas, code, slot]
    };
    let expected = facts(&upstream);
    assert!(expected[1].as_str().unwrap().len() > 2 && expected[2] != word(0), "{expected:?}");
    assert_eq!(facts(&fork), expected);
    let dump = result(&fork, "anvil_dumpState", json!([]));
    let plain = Server::dev(["--accounts", "1"]);
    assert_eq!(result(&plain, "anvil_loadState", json!([dump])), true);
    assert_eq!(facts(&plain), expected);
    fork.end("TERM");
    assert_eq!(facts(&Server::dev(["--data-dir", &data, "--offline"])), expected);
}

#[test]
fn a_dump_has_what_was_read_or_changed() {
    let dumped = Dumped::new();
    let expected = dumped.facts(&dumped.fork);
    assert_ne!(expected[2], expected[1]);
    let dump = result(&dumped.fork, "anvil_dumpState", json!([]));
    // What was not read is not in it, and nothing was fetched for it.
    let plain = Server::dev(["--accounts", "1"]);
    assert_eq!(result(&plain, "anvil_loadState", json!([dump])), true);
    assert_eq!(dumped.facts(&plain), expected);
    let unread = json!([dumped.world.contracts[6], "0x2", "latest"]);
    assert_eq!(result(&plain, "eth_getStorageAt", unread.clone()), word(0));
    assert_ne!(result(&dumped.upstream, "eth_getStorageAt", unread.clone()), word(0));
    assert_eq!(plain.logged("block 1 is missing"), 1, "{}", plain.log());

    // In a fork of the same block, it replaces only what it has.
    let again = fork(&dumped.upstream, []);
    assert_eq!(result(&again, "anvil_loadState", json!([dump])), true);
    assert_eq!(dumped.facts(&again), expected);
    assert_eq!(
        result(&again, "eth_getStorageAt", unread.clone()),
        result(&dumped.upstream, "eth_getStorageAt", unread.clone())
    );
    result(&again, "evm_mine", json!([]));
    assert_eq!(dumped.facts(&again), expected);
    drop(again);

    // Also at its start, and from a file that a fork wrote at its end.
    let file = dumped.folder.path().join("state.json");
    let file = file.to_str().unwrap();
    let state = fork(&dumped.upstream, ["--state", file]);
    result(&state, "anvil_loadState", json!([dump]));
    assert!(state.end("TERM").success());
    let state = fork(&dumped.upstream, ["--state", file]);
    assert_eq!(dumped.facts(&state), expected);
    assert!(state.end("TERM").success());
    let plain = Server::dev(["--load-state", file]);
    assert_eq!(dumped.facts(&plain), expected);

    // Without the other server, all names are still known.
    let Dumped { upstream, fork, data, .. } = dumped;
    assert!(fork.end("TERM").success());
    drop(upstream);
    let offline = Server::dev(["--data-dir", &data, "--offline"]);
    assert_eq!(result(&offline, "anvil_dumpState", json!([])), dump);
}

#[test]
fn a_dump_is_refused_if_not_all_names_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, world) = World::upstream(folder.path());
    let fork = fork(&upstream, ["--fork-cache-mb", "0"]);
    result(&fork, "eth_getStorageAt", json!([world.contracts[6], "0x7", "latest"]));
    let (code, text) = failure(&fork, "anvil_dumpState", json!([]));
    assert!(code == -32002 && text.contains("`fork-cache-mb`"), "{code} {text}");
}

#[test]
fn what_has_only_a_hash_is_right_or_refused() {
    let dumped = Dumped::new();
    let (upstream, fork) = (&dumped.upstream, &dumped.fork);
    // No header commits to edits that no block includes.
    result(fork, "evm_mine", json!([]));
    let hash = |address: &str| result(upstream, "eth_getProof", json!([address, [], "latest"]))["codeHash"].clone();
    let code_hash = hash(&dumped.world.contracts[5]);
    let code = result(upstream, "eth_getCode", json!([dumped.world.contracts[5], "latest"]));
    assert_eq!(result(fork, "debug_codeByHash", json!([code_hash])), code);
    let key = format!("0x63{}", &code_hash.as_str().unwrap()[2..]);
    assert_eq!(result(fork, "debug_dbGet", json!([key])), code);
    let root = result(fork, "eth_getBlockByNumber", json!(["latest", false]))["stateRoot"].clone();
    result(fork, "debug_dbGet", json!([root]));
    for (method, parameters) in [
        ("debug_codeByHash", json!([word(7)])),
        ("debug_dbGet", json!([format!("0x63{:064x}", 7)])),
        ("debug_dbGet", json!([word(7)])),
    ] {
        let (code, text) = failure(fork, method, parameters.clone());
        assert!(code == -32002 && text.contains("may have it"), "{method} {parameters}: {code} {text}");
    }
    for method in
        ["debug_accountRange", "debug_storageRangeAt", "debug_dumpBlock", "eth_getMultiProof", "debug_executionWitness"]
    {
        assert_eq!(failure(fork, method, json!([])).0, -32601, "{method}");
    }
}
