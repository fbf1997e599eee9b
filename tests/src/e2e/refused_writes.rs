//! A transaction that is refused with an error, because it cannot be stored, is never mined.

use node_chain::Genesis;
use node_core::context::Context;
use node_core::node::TransactionRequest;
use node_core::pool::PoolStatus;
use node_core::producer::Mining;
use node_dev::DevNode;
use node_store::files::faults::FaultyDisk;
use node_store::{Options, Store};
use node_types::{BlockId, H256, U256};
use std::sync::Arc;

struct World {
    disk: FaultyDisk,
    genesis: Genesis,
    mining: Mining,
}

impl World {
    fn new(mining: Mining) -> Self {
        let genesis = DevNode::spawn().unwrap().genesis().clone();
        Self { disk: FaultyDisk::new(), genesis, mining }
    }

    fn open(&self) -> DevNode {
        let store = Store::open_in(self.disk.folder(), self.genesis.block(), Options::default()).unwrap();
        let builder = DevNode::builder().genesis(self.genesis.clone()).mining(self.mining);
        builder.backend(Arc::new(store)).spawn().unwrap()
    }
}

/// Sends a transfer from the account `from`. Returns its hash, or `None` if it is refused.
fn send(chain: &DevNode, from: usize) -> Option<H256> {
    let from = chain.accounts()[from].address();
    let request = TransactionRequest { from, to: Some(from), value: U256::one(), ..TransactionRequest::default() };
    chain.send_transaction(&Context::unbounded(), request).ok()
}

fn nonce(chain: &DevNode, account: usize) -> u64 {
    let address = chain.accounts()[account].address();
    chain.get_transaction_count(&Context::unbounded(), address, BlockId::latest()).unwrap()
}

fn mine(chain: &DevNode) {
    chain.producer().unwrap().mine(1, None, Vec::new()).unwrap();
}

#[test]
fn a_refused_transaction_is_never_mined() {
    for mining in [Mining::Instant, Mining::Manual] {
        let mut refusals = 0;
        for operation in 0.. {
            let world = World::new(mining);
            let chain = world.open();
            let first = send(&chain, 0).unwrap();
            world.disk.fail_operation(operation);
            let sent = send(&chain, 1);
            if world.disk.fail_nothing() {
                break;
            }
            refusals += u64::from(sent.is_none());
            let expected = u64::from(sent.is_some());
            if sent.is_none() {
                let waiting = chain.pool().content();
                let address = chain.accounts()[1].address();
                assert!(!waiting.pending.contains_key(&address), "{mining:?}, operation {operation}");
            }
            let arrived =
                chain.pool().arrivals(0, 10).transactions.iter().map(|arrival| arrival.hash).collect::<Vec<_>>();
            let expected_arrivals: Vec<_> = [first].into_iter().chain(sent).collect();
            assert_eq!(arrived, expected_arrivals, "{mining:?}, operation {operation}");
            mine(&chain);
            assert_eq!((nonce(&chain, 0), nonce(&chain, 1)), (1, expected), "{mining:?}, operation {operation}");
            assert!(matches!(chain.pool().status(first), PoolStatus::Unknown | PoolStatus::Dropped(_)));

            world.disk.crash(operation);
            drop(chain);
            let chain = world.open();
            mine(&chain);
            assert_eq!((nonce(&chain, 0), nonce(&chain, 1)), (1, expected), "{mining:?}, operation {operation}");
            send(&chain, 1).unwrap();
            mine(&chain);
            assert_eq!(nonce(&chain, 1), expected + 1);
        }
        assert!(refusals > 0);
    }
}

#[test]
fn what_a_refused_transaction_had_replaced_returns() {
    let world = World::new(Mining::Manual);
    let chain = world.open();
    let from = chain.accounts()[0].address();
    let request = |price: u64| TransactionRequest {
        from,
        to: Some(from),
        nonce: Some(0),
        gas: Some(21_000),
        gas_price: Some(price.into()),
        ..TransactionRequest::default()
    };
    let send = |price| chain.send_transaction(&Context::unbounded(), request(price));
    let kept = send(10_000_000_000).unwrap();
    world.disk.fail_operation(0);
    send(20_000_000_000).unwrap_err();
    assert_eq!(chain.pool().status(kept), PoolStatus::Pending);
    mine(&chain);
    assert!(chain.backend().view().unwrap().transaction_position(kept).unwrap().is_some());
}
