//! Forks that begin just before a transaction.

use super::options::refused;
use super::*;
use crate::e2e::in_process::serve;
use node_core::context::Context;
use node_core::node::TransactionRequest;
use node_core::producer::Mining;
use node_dev::fork::ForkPoint;
use node_dev::{DevNode, DevNodeError};
use node_http::HttpConfig;
use node_types::{Bytes, H256};
use std::sync::Arc;

/// A chain whose newest block has four transactions of account 0, one of which fails and one has much data, and a
/// withdrawal. Returns their hashes.
fn upstream() -> (DevNode, Vec<H256>) {
    let chain = DevNode::builder().mining(Mining::Manual).spawn().unwrap();
    let context = Context::unbounded();
    let producer = chain.producer().unwrap();
    producer.mine(2, Some(12), Vec::new()).unwrap();
    let [alice, bob] = [0, 1].map(|index| chain.accounts()[index].address());
    let plain = TransactionRequest { from: alice, to: Some(bob), value: 7.into(), ..Default::default() };
    let requests = [
        plain.clone(),
        // INVALID
        TransactionRequest { to: None, input: Bytes::from([0xfe]), gas: Some(100_000), ..plain.clone() },
        // Its data costs more from Prague on (EIP-7623).
        TransactionRequest { input: Bytes::from([1; 1_000]), gas: Some(100_000), ..plain.clone() },
        plain,
    ];
    let hashes = requests.map(|request| chain.send_transaction(&context, request).unwrap());
    producer.set_coinbase(Address::from_low_u64_be(0xc0));
    producer.set_prev_randao(H256::repeat_byte(0x77)).unwrap();
    let withdrawal = node_types::consensus::Withdrawal { index: 0, validator_index: 1, address: bob, amount: 5 };
    producer.mine(1, Some(1_000), vec![withdrawal]).unwrap();
    (chain, hashes.into())
}

fn option(hash: H256) -> [String; 2] {
    ["--fork-transaction-hash".to_owned(), format!("{hash:#x}")]
}

fn fork_before<const N: usize>(upstream: &Server, hash: H256, more: [&str; N]) -> Server {
    let url = ["--fork-url", upstream.url()].map(str::to_owned);
    Server::dev(url.into_iter().chain(option(hash)).chain(more.map(str::to_owned)))
}

#[test]
fn the_state_is_that_before_the_transaction() {
    let (chain, hashes) = upstream();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let original = result(&server, "eth_getBlockByNumber", json!(["latest", false]));
    let spender = account(0);
    for (index, hash) in hashes.iter().enumerate() {
        // Without accounts that have ether by themselves, the state is exactly that of the other chain.
        let fork = fork_before(&server, *hash, ["--accounts", "0"]);
        let block = result(&fork, "eth_getBlockByNumber", json!(["latest", false]));
        for field in ["number", "parentHash", "timestamp", "baseFeePerGas", "gasLimit", "miner", "mixHash"] {
            assert_eq!(block[field], original[field], "{field} before transaction {index}");
        }
        let before: Vec<_> = hashes[..index].iter().map(|hash| json!(hash)).collect();
        assert_eq!(block["transactions"], json!(before));
        assert_eq!(number(&result(&fork, "eth_getTransactionCount", json!([spender, "latest"]))), index as u64);
        let receipts = |server| result(server, "eth_getBlockReceipts", json!(["latest"]));
        let (got, expected) = (receipts(&fork), receipts(&server));
        for (got, expected) in got.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
            for field in ["status", "gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "transactionHash"] {
                assert_eq!(got[field], expected[field], "{field}");
            }
        }
        // The withdrawal comes after all transactions.
        let transferred = [0, 7, 7, 14][index];
        let balance = |block: &str| result(&fork, "eth_getBalance", json!([account(1), block]));
        let gained = u128::from_str_radix(&balance("latest").as_str().unwrap()[2..], 16).unwrap()
            - u128::from_str_radix(&balance("0x2").as_str().unwrap()[2..], 16).unwrap();
        assert_eq!(gained, transferred, "before transaction {index}");
        let head = number(&block["number"]);
        result(&fork, "anvil_mine", json!(["0x1"]));
        assert_eq!(number(&result(&fork, "eth_blockNumber", json!([]))), head + 1);
    }
}

#[test]
fn a_folder_continues_the_fork_and_a_reset_begins_it_again() {
    let (chain, hashes) = upstream();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("fork").display().to_string();
    let block = |fork: &Server| result(fork, "eth_getBlockByNumber", json!(["0x3", true]));
    let balance = |fork: &Server| result(fork, "eth_getBalance", json!([account(5), "latest"]));
    let rich = "0x21e19e0c9bab2400000";
    let fork = fork_before(&server, hashes[2], ["--data-dir", &data]);
    let repeated = block(&fork);
    assert_eq!(repeated["transactions"].as_array().unwrap().len(), 2);
    assert_eq!(balance(&fork), rich);
    assert!(fork.end("INT").success());
    let fork = fork_before(&server, hashes[2], ["--data-dir", &data]);
    assert_eq!((head(&fork), block(&fork), balance(&fork)), (3, repeated.clone(), json!(rich)));
    result(&fork, "anvil_setBalance", json!([account(5), "0x1"]));
    result(&fork, "anvil_mine", json!(["0x2"]));
    drop(fork);
    // With what was read before.
    let fork = Server::dev(["--offline", "--data-dir", &data]);
    assert_eq!((head(&fork), block(&fork), balance(&fork)), (5, repeated.clone(), json!("0x1")));
    drop(fork);
    let fork = Server::dev(["--fork-url", server.url(), "--data-dir", &data]);
    result(&fork, "anvil_reset", json!([]));
    assert_eq!((head(&fork), block(&fork), balance(&fork)), (3, repeated, json!(rich)));
    drop(fork);
    let url = ["--fork-url", server.url(), "--data-dir", &data, "--fork-transaction-hash"];
    let other = format!("{:#x}", hashes[1]);
    let (code, output) = refused(&[&url[..], &[&other]].concat());
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains(&format!("not with the one before transaction {other}")), "{output}");
}

#[test]
fn what_cannot_be_repeated_is_named() {
    let (chain, hashes) = upstream();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let [_, failing, long, last] = hashes[..] else { panic!("four transactions") };
    let unknown = H256::repeat_byte(9);
    for (hash, more, status, texts) in [
        (unknown, [].as_slice(), 1, ["no block contains transaction 0x0909".to_owned(), String::new()]),
        (last, &["--hardfork", "cancun"], 2, [format!("transaction {long:#x} of block 3"), "gas after it".to_owned()]),
        (failing, &["--chain-id", "5"], 2, [format!("transaction {:#x}", hashes[0]), "invalid chain id".to_owned()]),
        (last, &["--fork-block-number", "2"], 2, ["cannot be used with".to_owned(), String::new()]),
    ] {
        let [name, hash] = option(hash);
        let (code, output) = refused(&[&["--fork-url", server.url(), &name, &hash], more].concat());
        assert_eq!(code, Some(status), "{more:?}: {output}");
        assert!(texts.iter().all(|text| output.contains(text)), "{more:?}: {output}");
    }
    let (code, output) = refused(&["--fork-transaction-hash", &format!("{last:#x}")]);
    assert!(code == Some(2) && output.contains("--fork-url starts one"), "{output}");
}

#[test]
fn chains_in_a_program_begin_there_as_well() {
    let (chain, hashes) = upstream();
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    let fork = DevNode::builder().fork(server.url()).at(ForkPoint::Before(hashes[3])).spawn().unwrap();
    let head = fork.backend().view().unwrap().head();
    assert_eq!((head.number, fork.backend().view().unwrap().first()), (3, 2));
    let unknown = DevNode::builder().fork(server.url()).at(ForkPoint::Before(H256::zero())).spawn();
    assert!(matches!(unknown, Err(DevNodeError::Fork(error)) if error.to_string().starts_with("no block contains")));
}
