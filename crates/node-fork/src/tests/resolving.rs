//! Trie nodes to which no known key leads.

use super::reading::{memory, world};
use super::server::Server;
use crate::{Base, ForkError, ForkOptions};
use node_core::backend::{BackendError, BaseState, StateBackend};
use node_core::context::{Context, Interrupted};
use node_core::remote;
use node_core::trie::DecodedNode;
use node_types::consensus::EMPTY_ROOT;
use node_types::trie::NibblePath;
use node_types::{Address, Bytes, H256, keccak256};
use std::collections::BTreeMap;
use std::time::Duration;

/// The nodes of a trie that hashes refer to, with their positions.
fn nodes(root: H256, all: &BTreeMap<H256, Bytes>) -> Vec<(NibblePath, H256)> {
    let mut found = Vec::new();
    let mut open = if root == EMPTY_ROOT { Vec::new() } else { vec![(NibblePath::ROOT, root)] };
    while let Some((position, hash)) = open.pop() {
        found.push((position, hash));
        match DecodedNode::decode(&position, &all[&hash]).unwrap() {
            DecodedNode::Leaf { .. } => {}
            DecodedNode::Extension { path, child } => open.extend(child.hash().map(|hash| (path, hash))),
            DecodedNode::Branch(children) => {
                let children = (0..).zip(children.iter());
                open.extend(children.filter_map(|(nibble, child)| Some((position.child(nibble), child.hash()?))));
            }
        }
    }
    found
}

#[test]
fn nodes_are_found_by_their_positions() {
    let world = world(3);
    let server = Server::of(&world.chain, |_, _| {});
    let header = world.header(30);
    let state = world.chain.view().unwrap();
    let state = state.state(30).unwrap();
    let mut all = BTreeMap::new();
    let mut roots = vec![(None, header.header().state_root)];
    for read in &world.reads {
        let proof = state.proof(read.address, &read.slots).unwrap();
        let storage = proof.storage.iter().flat_map(|slot| slot.proof.clone());
        all.extend(proof.proof.iter().cloned().chain(storage).map(|node| (keccak256(&node), node)));
        roots.extend(proof.account.map(|account| (Some(read.address), account.storage_root)));
    }
    let open = |upstream| Base::open(memory(), upstream, header.clone(), ForkOptions::default()).unwrap();
    let mut count = 0;
    for (account, root) in roots {
        for (position, hash) in nodes(root, &all).into_iter().filter(|(position, _)| position.len() < 4) {
            let base = open(Some(server.upstream()));
            assert_eq!(base.node(hash).unwrap(), None);
            assert_eq!(base.resolve(account, &position, hash).unwrap(), all[&hash]);
            assert_eq!(base.node(hash).unwrap().as_ref(), Some(&all[&hash]));
            count += 1;
        }
    }
    assert!(count > 10, "{count} nodes");

    // A hash that is not there, and an offline fork.
    let (position, missing) = (NibblePath::ROOT.child(3), H256::repeat_byte(7));
    let error = |base: Base| match base.resolve(Some(world.reads[0].address), &position, missing).unwrap_err() {
        BackendError::Upstream(error) | BackendError::Unobtainable(error) => *error.downcast::<ForkError>().unwrap(),
        error => panic!("{error:?}"),
    };
    let not_there = error(open(Some(server.upstream()))).to_string();
    let node = format!("the trie node {missing:#x} at 3 in the storage of account {:#x}", world.reads[0].address);
    assert_eq!(not_there, format!("{node} is not in the trie"));
    assert_eq!(error(open(None)).to_string(), format!("the fork is offline; needed: {node}"));
}

#[test]
fn deep_nodes_are_found_by_keys_that_the_upstream_lists() {
    let world = world(3);
    let (address, slot) = (Address::repeat_byte(9), H256::repeat_byte(8));
    let position = NibblePath::from(keccak256(address)).prefix(20);
    let listing = Server::start(move |request| match request["method"].as_str().unwrap() {
        "debug_accountRange" => Ok(serde_json::json!({"accounts": {format!("{address:#x}"): {}, "0x01": {}}})),
        "debug_storageRangeAt" => {
            Ok(serde_json::json!({"storage": {"0x00": {"key": null}, "0x01": {"key": format!("{slot:#x}")}}}))
        }
        // What it returns is not the state of the block.
        method => Err(serde_json::json!({"code": 1, "message": format!("{method} was called")})),
    });
    let options = ForkOptions { search_timeout: Duration::ZERO, ..ForkOptions::default() };
    let open =
        |server: &Server| Base::open(memory(), Some(server.upstream()), world.header(30), options.clone()).unwrap();
    let error = |base: Base, account, position| match base.resolve(account, &position, H256::repeat_byte(7)) {
        Err(BackendError::Upstream(error)) => error.to_string(),
        resolved => panic!("{resolved:?}"),
    };
    let no_key = |base: &Base, position| match base.resolve(None, &position, H256::repeat_byte(7)) {
        Err(BackendError::Unobtainable(error)) => error.to_string(),
        resolved => panic!("{resolved:?}"),
    };
    assert!(error(open(&listing), None, position).contains("eth_getProof was called"));
    let of_slot = NibblePath::from(keccak256(slot)).prefix(20);
    assert!(error(open(&listing), Some(address), of_slot).contains("eth_getProof was called"));
    // It lists keys that are elsewhere, or none.
    for server in [listing, Server::of(&world.chain, |_, _| {})] {
        let elsewhere = NibblePath::from(H256::repeat_byte(0x11)).prefix(20);
        assert!(no_key(&open(&server), elsewhere).contains("too deep for a search"));
        let short = elsewhere.prefix(7);
        let base = open(&server);
        let (found, reads) = remote::reads_of(|| no_key(&base, short));
        assert!(found.contains("the search took too long") && reads.steps == 1, "{found} {reads:?}");
        // Nobody searches again, unless another endpoint may list keys.
        let (again, reads) = remote::reads_of(|| no_key(&base, short));
        assert_eq!((again, reads.steps), (found, 0));
        base.set_upstream(server.upstream());
        assert_eq!(remote::reads_of(|| no_key(&base, short)).1.steps, 1);
    }
}

#[test]
fn a_search_ends_with_the_request_that_needs_it() {
    let world = world(3);
    let server = Server::of(&world.chain, |_, _| {});
    let base = Base::open(memory(), Some(server.upstream()), world.header(30), ForkOptions::default()).unwrap();
    let over = Context::unbounded().with_timeout(Duration::ZERO);
    let deep = NibblePath::from(H256::repeat_byte(0x11)).prefix(7);
    for hash in [1, 2, 1].map(H256::repeat_byte) {
        let error = over.run(|| base.resolve(None, &deep, hash)).unwrap_err();
        assert!(matches!(error, BackendError::Interrupted(Interrupted::DeadlineExceeded)), "{error:?}");
    }
    let cancelled = Context::unbounded();
    cancelled.cancel();
    let error = cancelled.run(|| base.resolve(None, &deep, H256::repeat_byte(1))).unwrap_err();
    assert!(matches!(error, BackendError::Interrupted(Interrupted::Cancelled)), "{error:?}");
    // One after the other, requests come to the end of a search.
    let near = deep.prefix(4);
    for _ in 0..100 {
        let error = over.run(|| base.resolve(None, &near, H256::repeat_byte(3))).unwrap_err();
        assert!(matches!(error, BackendError::Interrupted(_)), "nor is there time for a proof: {error:?}");
    }
    let error = base.resolve(None, &near, H256::repeat_byte(3)).unwrap_err();
    assert!(matches!(error, BackendError::Upstream(_)), "its proof was fetched: {error:?}");
    // All of them together have the time of one search.
    let options = ForkOptions { search_timeout: Duration::from_nanos(1), ..ForkOptions::default() };
    let base = Base::open(memory(), Some(server.upstream()), world.header(30), options).unwrap();
    let error = over.run(|| base.resolve(None, &deep, H256::repeat_byte(1))).unwrap_err();
    assert!(matches!(error, BackendError::Unobtainable(_)), "{error:?}");
}
