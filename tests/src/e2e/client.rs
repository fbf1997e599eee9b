//! The example client of node-types, against a server.

use crate::server::Server;
use crate::wallet::{hex, log_writer, sign};
use example::{Client, ClientError, show};
use node_types::consensus::TransactionBody;
use node_types::wire::ChainIdOutput;

#[path = "../../../crates/node-types/examples/client.rs"]
#[allow(dead_code, reason = "only the example has a command line")]
mod example;

#[test]
fn the_example_client_reads_and_sends() {
    let server = Server::dev(["--data-dir", ":memory:", "--base-path", "/v1"]);
    let client = Client::new(&format!("{}/v1/", server.url()));
    let shown = |raw: Option<&str>| {
        let mut out = Vec::new();
        show(&client, raw, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let transaction = sign(TransactionBody::Legacy(log_writer(0, 2)));
    let text = shown(Some(&hex(&transaction.encode())));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["head 0: 0 of 30000000 gas", "0 logs in the last 100 blocks", "the call returned 0x68656c6c6f"]
    );
    assert!(lines[3].starts_with("no such block: "), "{text}");
    assert_eq!(lines[4..], [format!("{} is in block 1", hex(transaction.hash().as_bytes()))]);

    let text = shown(None);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("head 1: "), "{text}");
    assert_eq!(lines[1], "2 logs in the last 100 blocks");
    assert!(lines[2].starts_with("  0x") && lines[2].ends_with(" with 1 topics"), "{text}");
}

#[test]
fn the_example_client_distinguishes_problems_from_connection_errors() {
    let server = Server::dev(["--data-dir", ":memory:"]);
    let client = Client::new(server.url());
    match client.get::<ChainIdOutput>("nothing/") {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.status, 404, "{problem:?}"),
        other => panic!("{other:?}"),
    }
    drop(server);
    assert!(matches!(client.get::<ChainIdOutput>("chainId/"), Err(ClientError::Transport(_))));
}
