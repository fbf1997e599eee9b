//! Commands on the folder of a fork.

use super::*;
use crate::server::node_server;
use crate::wallet::{hex, sign, transfer};
use node_types::consensus::TransactionBody;

/// Runs a command, and returns whether it succeeded and what it said.
fn run(arguments: &[&str]) -> (bool, String) {
    let output = node_server().args(arguments).output().unwrap();
    (output.status.success(), [output.stdout, output.stderr].map(|out| String::from_utf8(out).unwrap()).concat())
}

#[test]
fn blocks_without_edits_can_be_exported_to_the_other_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (original, own, funded, file) = (path("original"), path("own"), path("funded"), path("blocks.rlp"));
    let [option, genesis] = genesis(folder.path());
    let start = || Server::dev([option.as_str(), &genesis, "--data-dir", &original]);
    let upstream = start();
    result(&upstream, "anvil_mine", json!(["0x3"]));
    let hash = |server: &Server| result(server, "eth_getBlockByNumber", json!(["latest", false]))["hash"].clone();

    // Nobody is given ether.
    let fork = fork(&upstream, ["--accounts", "0", "--data-dir", &own]);
    let (done, said) = run(&["export", &file, "--data-dir", &own]);
    assert!(!done && said.contains("no block after its first one"), "{said}");
    let transaction = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let sent = result(&fork, "eth_sendRawTransaction", json!([transaction]));
    result(&fork, "evm_mine", json!([]));
    assert_eq!(result(&fork, "eth_getTransactionReceipt", json!([sent]))["status"], "0x1");
    let last = hash(&fork);
    let (done, said) = run(&["export", &file, "--data-dir", &own]);
    assert!(done && said.contains("exported blocks 4 to 5"), "{said}");
    let (done, said) = run(&["export", &file, "--force", "--from", "2", "--data-dir", &own]);
    assert!(!done && said.contains("begins with block 3"), "{said}");

    let with_ether = Server::dev(["--fork-url", upstream.url(), "--data-dir", &funded]);
    result(&with_ether, "evm_mine", json!([]));
    let (done, said) = run(&["export", &file, "--force", "--data-dir", &funded]);
    assert!(!done && said.contains("the ether of the fork's accounts") && said.contains("--accounts 0"), "{said}");
    assert!(said.contains("block 4 ") && said.contains("there are no blocks before it to export"), "{said}");

    // The other chain accepts the blocks.
    assert!(upstream.end("TERM").success());
    let (done, said) = run(&["import", &file, "--data-dir", &original]);
    assert!(done, "{said}");
    let upstream = start();
    assert_eq!((head(&upstream), hash(&upstream)), (5, last));
}

#[test]
fn commands_say_what_they_find_of_the_other_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, _) = World::upstream(folder.path());
    let data = folder.path().join("fork").display().to_string();
    let fork = fork(&upstream, ["--data-dir", &data]);
    result(&fork, "evm_mine", json!([]));
    assert!(fork.end("TERM").success());
    let number = |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{text}")) };
    let (done, said) = run(&["verify", "--data-dir", &data]);
    assert!(done, "{said}");
    let (_, read) =
        said.split_once("what was read of the other chain is correct, ").unwrap_or_else(|| panic!("{said}"));
    let (entries, _) = read.split_once(" entries of ").unwrap();
    assert!(number(entries) > 10, "{said}");
    let (done, said) = run(&["stats", "--data-dir", &data]);
    let (_, read) = said.split_once("read of the other chain: ").unwrap_or_else(|| panic!("{said}"));
    assert!(done && number(read.split_once(" entries").unwrap().0) == number(entries), "{said}");
    let (_, said) = run(&["stats", "--json", "--data-dir", &data]);
    let stats: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(stats["fetched"]["entries"], number(entries));

    for more in [&[] as &[&str], &["--read-only"]] {
        let output = node_server().args(["run", "--port", "0", "--data-dir", &data]).args(more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("ethnode dev --data-dir {data}")), "{said}");
    }
}
