//! States that endpoints do not have any longer.

use super::server::Server;
use super::{context, options, upstream};
use crate::{ClaimedState, HashedHeader, ProvenState, UpstreamError};
use node_types::consensus::Header;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

fn refusal(message: &str) -> Value {
    json!({"code": -32000, "message": message})
}

/// An endpoint that says `of_block` about the state of the block, given how often it was asked, and `newest` about its newest
/// one.
fn endpoint(
    of_block: impl Fn(usize) -> Result<Value, Value> + Send + Sync + 'static,
    newest: Result<Value, Value>,
) -> Server {
    let count = AtomicUsize::new(0);
    Server::of(move |request| {
        let block = request["params"].as_array().unwrap().last().unwrap();
        if block == "latest" { newest.clone() } else { of_block(count.fetch_add(1, Ordering::SeqCst)) }
    })
}

#[test]
fn a_state_is_gone_if_every_endpoint_says_so_and_has_its_newest_one() {
    let block = HashedHeader::new(Header { number: 9, ..Header::default() });
    let pruned = || endpoint(|_| Err(refusal("missing trie node 00ab (path )")), Ok(json!("0x1")));
    let is_gone = |servers: &[&Server]| {
        let upstream = upstream(servers, options());
        let proven = ProvenState::new(upstream.clone(), block.clone()).is_gone(&context());
        assert_eq!(ClaimedState::new(upstream, block.clone()).is_gone(&context()), proven);
        proven
    };
    let first = pruned();
    assert!(is_gone(&[&first]));
    let methods: Vec<_> = first.messages().iter().map(|message| message[0]["method"].clone()).collect();
    assert_eq!(methods, [["eth_getProof"; 3], ["eth_getBalance"; 3]].concat());
    assert!(is_gone(&[&pruned(), &pruned(), &pruned()]));
    for (what, other) in [
        ("an archive", endpoint(|_| Ok(json!("0x1")), Ok(json!("0x1")))),
        ("one that is behind", endpoint(|_| Err(refusal("header not found")), Ok(json!("0x1")))),
        ("one that is out of order", {
            endpoint(|_| Err(refusal("missing trie node 00ab")), Err(refusal("missing trie node 00cd")))
        }),
        ("one that lacks the method", endpoint(|_| Err(refusal("no such method")), Err(refusal("no such method")))),
        (
            "one with too many requests",
            endpoint(|_| Err(json!({"code": 429, "message": "slow down"})), Ok(json!("0x1"))),
        ),
        ("several, of which one is an archive", {
            let third = |count| if count == 2 { Ok(json!("0x1")) } else { Err(refusal("missing trie node 00ab")) };
            endpoint(third, Ok(json!("0x1")))
        }),
    ] {
        assert!(!ProvenState::new(upstream(&[&other], options()), block.clone()).is_gone(&context()), "{what}");
    }
    let archive = endpoint(|_| Ok(json!("0x1")), Ok(json!("0x1")));
    assert!(!is_gone(&[&pruned(), &archive]));
}

#[test]
fn an_error_says_whether_the_state_is_gone() {
    let block = HashedHeader::new(Header { number: 9, ..Header::default() });
    for (message, is_gone) in [("state at block #9 is pruned", true), ("header not found", false)] {
        let server = endpoint(move |_| Err(refusal(message)), Ok(json!("0x1")));
        let error = ProvenState::new(upstream(&[&server], options()), block.clone());
        let error = error.accounts(&context(), &[Default::default()]).unwrap_err();
        assert!(matches!(error, UpstreamError::Refused { .. }), "{error:?}");
        assert_eq!(error.says_that_the_state_is_gone(), is_gone, "{message}");
    }
}
