//! Where a fork begins, and how its server is reached.

use super::*;
use crate::e2e::upstream::serve_messages;
use crate::server::{free_port, node_server};

/// Starts a fork that must not start, and returns its status and what it says.
pub(super) fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = node_server().args(["dev", "--bare", "--port", "0"]).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn hash(server: &Server, block: u64) -> String {
    result(server, "eth_getBlockByNumber", json!([format!("{block:#x}"), false]))["hash"].as_str().unwrap().to_owned()
}

#[test]
fn a_fork_begins_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Server::dev(genesis(folder.path()));
    result(&upstream, "anvil_mine", json!(["0x9"]));
    let (url, of_seven) = (upstream.url(), hash(&upstream, 7));
    let at = |block: &str| format!("{url}@{block}");
    for (arguments, expected) in [
        (vec!["--fork-url".to_owned(), at("7")], 7),
        (vec!["--fork-url".to_owned(), at("0x6")], 6),
        (vec!["--fork-url".to_owned(), at(&of_seven)], 7),
        (vec!["--fork-url".to_owned(), at("-4")], 5),
        (vec!["--fork-url".to_owned(), at("earliest")], 0),
        (vec!["-f".to_owned(), url.to_owned(), "--fork-block-number".to_owned(), "8".to_owned()], 8),
        (vec!["-f".to_owned(), url.to_owned(), "--fork-block-number=-9".to_owned()], 0),
        // The same block twice.
        (vec!["-f".to_owned(), at("7"), "-f".to_owned(), at("0x7"), "--fork-block-number=7".to_owned()], 7),
        (vec!["-f".to_owned(), url.to_owned()], 9),
    ] {
        let fork = Server::dev(&arguments);
        assert_eq!(head(&fork), expected, "{arguments:?}");
        assert_eq!(hash(&fork, expected), hash(&upstream, expected), "{arguments:?}");
        assert_eq!(result(&fork, "eth_chainId", json!([])), "0x7a69");
    }
    let other = Server::dev(["--fork-url", url, "--chain-id", "5"]);
    assert_eq!(result(&other, "eth_chainId", json!([])), "0x5");
    assert_eq!(result(&other, "eth_getBalance", json!([account(0), "latest"])), "0x21e19e0c9bab2400000");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Server::dev(genesis(folder.path()));
    result(&upstream, "anvil_mine", json!(["0x9"]));
    let url = upstream.url();
    let data = folder.path().join("fork").display().to_string();
    drop(Server::dev(["--fork-url", url, "--fork-block-number", "7", "--data-dir", &data]));
    let empty = folder.path().join("empty").display().to_string();
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let without_proofs = serve_without_proofs(url);
    let [junk, at_3, at_4] = ["s3cret", "3", "4"].map(|block| format!("{url}@{block}"));
    let expected_of_junk = format!("`fork-url`: {}: expected a block after the @", upstream.address());
    for (arguments, status, text) in [
        (vec!["-f", url, "--fork-block-number", "pending"], 2, "the pending block has no hash"),
        (vec!["-f", url, "--fork-block-number", "new"], 2, "expected the number or hash of a block"),
        (vec!["-f", "127.0.0.1:8545"], 2, "`fork-url`: 127.0.0.1:8545: expected a URL that starts with http://"),
        (
            vec!["-f", "ftp://s3cret@127.0.0.1/s3cret"],
            2,
            "`fork-url`: 127.0.0.1: expected a URL that starts with http://",
        ),
        (vec!["-f", &junk], 2, &expected_of_junk),
        (vec!["-f", &at_3, "--fork-block-number", "4"], 2, "two are given: 4, and 3"),
        (vec!["-f", &at_3, "-f", &at_4], 2, "two are given: 3, and 4"),
        (vec!["-f", &at_3, "--fork-transaction-hash", &hash(&upstream, 1)], 2, "two are given: the one before"),
        (vec!["-f", url, "--chain-id", "0"], 2, "the chain id must be from 1 to"),
        (vec!["-f", url, "--fork-chain-id", "0"], 2, "the chain id must be from 1 to"),
        (vec!["--offline", "-f", url], 2, "offline, only a fork in a folder can be continued"),
        (vec!["--offline"], 2, "--fork-url"),
        (vec!["--fork-block-number", "7"], 2, "--fork-url"),
        (vec!["--offline", "-f", url, "--data-dir", &empty], 2, "there is no fork in the folder yet"),
        (vec!["-f", url, "--fork-block-number", "8", "--data-dir", &data], 2, "begins with block 7"),
        (vec!["-f", url, "--chain-id", "5", "--data-dir", &data], 2, "another chain id"),
        (vec!["-f", url, "--hardfork", "london", "--data-dir", &data], 2, "other rules"),
        // That may be otherwise later.
        (vec!["-f", url, "--fork-block-number", "-10"], 1, "the newest block is 9, there is none 10 blocks before it"),
        (vec!["-f", url, "--fork-block-number", "10"], 1, "block 10"),
        (vec!["-f", &nobody, "--retries", "0", "--fork-retry-backoff", "1"], 1, &nobody["http://".len()..]),
        (vec!["-f", &without_proofs, "--retries", "0"], 1, "eth_getProof"),
    ] {
        let (code, output) = refused(&arguments);
        assert_eq!(code, Some(status), "{arguments:?}: {output}");
        assert!(output.contains(text) && !output.contains("s3cret"), "{arguments:?}: {output}");
    }
    // A failed start leaves nothing that is in the way.
    drop(Server::dev(["-f", url, "--data-dir", &empty]));
    // The block may be named again.
    drop(Server::dev(["-f", &format!("{url}@7"), "--data-dir", &data]));
    drop(Server::dev(["-f", url, "--data-dir", &data]));
}

#[test]
fn chain_ids_that_differ_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Server::dev(genesis(folder.path()));
    let rules = DevGenesis { chain_id: 99, ..DevGenesis::default() }.build([]).unwrap();
    let path = folder.path().join("rules.json");
    fs::write(&path, rules.to_json()).unwrap();
    let path = path.display().to_string();
    let fork = ["-f", upstream.url(), "--genesis", &path];
    let (of_rules, of_signatures) =
        ("the genesis file is that of a chain with another id", "are not valid on the other");
    for (more, id, rules, signatures) in [
        (&[] as &[&str], "0x7a69", true, false),
        (&["--chain-id", "31337"], "0x7a69", false, false),
        (&["--chain-id", "99"], "0x63", false, true),
    ] {
        let server = Server::dev([&fork[..], more].concat());
        assert_eq!(result(&server, "eth_chainId", json!([])), id, "{more:?}");
        // They come before the server listens.
        let log = server.log();
        assert_eq!((log.contains(of_rules), log.contains(of_signatures)), (rules, signatures), "{more:?}: {log}");
    }
    let own = Server::dev(["--genesis", &path, "--chain-id", "7"]);
    assert_eq!(result(&own, "eth_chainId", json!([])), "0x7");
    assert_eq!(result(&Server::dev(["--genesis", &path]), "eth_chainId", json!([])), "0x63");
}

/// Serves the chain of the server at `url` without proofs, and returns its URL.
pub(super) fn serve_without_proofs(url: &str) -> String {
    let server = Server::at(url["http://".len()..].parse().unwrap());
    let one = move |request: &Value| match request["method"].as_str() {
        Some("eth_getProof") => {
            let error = json!({"code": -32601, "message": "the method eth_getProof does not exist/is not available"});
            json!({"jsonrpc": "2.0", "id": request["id"], "error": error})
        }
        _ => server.post("/", request.to_string()).body,
    };
    serve_messages(move |message| match message {
        Value::Array(requests) => requests.iter().map(&one).collect(),
        request => one(request),
    })
}
