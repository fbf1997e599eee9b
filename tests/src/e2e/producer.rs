//! The content of blocks that the node produces: which transactions, in which order, and the other header fields.

use crate::model::{World, blob_hash, sidecar};
use crate::oracle::{Departures, check_blocks, import_again};
use crate::wallet::{CHAIN_ID, accounts};
use node_chain::dev_genesis;
use node_core::context::{Context, Interrupted};
use node_core::node::{FoundBlock, NodeError};
use node_core::pool::TransactionOrder;
use node_core::producer::{Mining, Producer};
use node_types::consensus::{
    BlobSidecar, BlobTransaction, DynamicFeeTransaction, EMPTY_REQUESTS_HASH, PooledTransaction, Transaction,
    TransactionBody, Withdrawal,
};
use node_types::{Address, BlockId, Bytes, H256, U256};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const NOW: u64 = 1_750_000_000;
const GWEI: u64 = 1_000_000_000;

/// A node on a new chain with this gas limit.
fn node(mining: Mining, order: TransactionOrder, gas_limit: u64) -> World {
    let mut genesis = dev_genesis();
    genesis.header.gas_limit = gas_limit;
    let mut world = World::new(genesis, NOW * 1_000, false, order, Address::from_low_u64_be(0xc0));
    world.open(mining);
    world
}

/// A transfer of the account `from`, with this tip in wei per gas.
fn transfer(from: usize, nonce: u64, tip: u64) -> Transaction {
    call(from, nonce, tip, Address::from_low_u64_be(0xdd), U256::one(), Bytes::new(), 21_000)
}

fn call(from: usize, nonce: u64, tip: u64, to: Address, value: U256, input: Bytes, gas_limit: u64) -> Transaction {
    accounts()[from].sign(TransactionBody::DynamicFee(DynamicFeeTransaction {
        chain_id: CHAIN_ID,
        nonce,
        max_priority_fee_per_gas: tip.into(),
        max_fee_per_gas: (100 * GWEI).into(),
        gas_limit,
        to: Some(to),
        value,
        input,
        access_list: Vec::new(),
    }))
}

fn send_with(world: &World, transaction: &Transaction, sidecar: Option<BlobSidecar>) -> H256 {
    let bytes = PooledTransaction { transaction: transaction.clone(), sidecar }.encode();
    world.node().send_transaction(&Context::unbounded(), Bytes::from(bytes)).unwrap()
}

fn send(world: &World, transaction: &Transaction) -> H256 {
    send_with(world, transaction, None)
}

fn mine(world: &World, blocks: u64) -> u64 {
    world.node().mine(&Context::unbounded(), blocks, None, Vec::new()).unwrap().number
}

/// The hashes of the transactions of each block, starting with block 1.
fn mined(world: &World) -> Vec<Vec<H256>> {
    let view = world.view();
    let hashes = |number: u64| {
        let body = view.body(number.into()).unwrap().unwrap();
        body.transactions.iter().map(|transaction| transaction.hash).collect()
    };
    (1..=view.head().number).map(hashes).collect()
}

/// Checks the chain with the oracle, and imports it again.
fn check(world: &World) {
    let view = world.view();
    check_blocks(&*view, 1..=view.head().number, &Departures::default());
    import_again(&world.genesis, &*view);
}

#[test]
fn mines_transactions_of_many_threads_without_loss() {
    const EACH: usize = 16;
    let world = node(Mining::Instant, TransactionOrder::Fees, 30_000_000);
    let transactions: Vec<_> = (0..10).flat_map(|from| (0..EACH as u64).map(move |nonce| (from, nonce))).collect();
    thread::scope(|scope| {
        for of_sender in transactions.chunks(EACH) {
            let world = &world;
            scope.spawn(move || {
                for (from, nonce) in of_sender {
                    send(world, &transfer(*from, *nonce, GWEI));
                }
            });
        }
    });
    let blocks = mined(&world);
    assert!(blocks.iter().all(|block| !block.is_empty()), "an empty block was made");
    let all: Vec<_> = blocks.into_iter().flatten().collect();
    let sent = transactions.iter().map(|(from, nonce)| transfer(*from, *nonce, GWEI).hash());
    assert_eq!(all.len(), transactions.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), sent.collect());
    assert_eq!(world.node().pool().hashes(), []);
    check(&world);
}

#[test]
fn mining_ends_at_its_deadline_and_keeps_its_blocks() {
    let world = node(Mining::Manual, TransactionOrder::Fees, 30_000_000);
    let context = Context::unbounded().with_timeout(Duration::from_millis(20));
    let error = world.node().mine(&context, 1 << 30, None, Vec::new()).unwrap_err();
    assert!(matches!(error, NodeError::Interrupted(Interrupted::DeadlineExceeded)), "{error:?}");
    let mined = world.view().head().number;
    assert!(mined > 0);
    assert_eq!(mine(&world, 1), mined + 1);
    let cancelled = Context::unbounded();
    cancelled.cancel();
    let error = world.node().mine(&cancelled, 1, None, Vec::new()).unwrap_err();
    assert!(matches!(error, NodeError::Interrupted(Interrupted::Cancelled)), "{error:?}");
}

#[test]
fn a_reorganization_that_runs_out_of_time_changes_nothing() {
    let world = node(Mining::Manual, TransactionOrder::Fees, 30_000_000);
    mine(&world, Producer::MAX_REORGANIZATION);
    let before = world.view().head();
    let mut interrupted = 0;
    for microseconds in (0..).map(|power| 1_u64 << power) {
        let context = Context::unbounded().with_timeout(Duration::from_micros(microseconds));
        match world
            .node()
            .control(&context)
            .and_then(|producer| Ok(producer.reorganize(&context, Producer::MAX_REORGANIZATION)?))
        {
            Err(NodeError::Interrupted(Interrupted::DeadlineExceeded)) => assert_eq!(world.view().head(), before),
            done => {
                assert_eq!(done.unwrap().removed.len() as u64, Producer::MAX_REORGANIZATION);
                break;
            }
        }
        interrupted += 1;
    }
    assert!(interrupted > 0);
    assert_ne!(world.view().head().hash, before.hash);
}

#[test]
fn mines_waiting_transactions_in_one_block() {
    let world = node(Mining::Instant, TransactionOrder::Fees, 30_000_000);
    let later: Vec<_> = (1..5).map(|nonce| send(&world, &transfer(0, nonce, GWEI))).collect();
    assert_eq!(mined(&world), Vec::<Vec<H256>>::new());
    let first = send(&world, &transfer(0, 0, GWEI));
    assert_eq!(mined(&world), [[vec![first], later].concat()]);
    check(&world);
}

#[test]
fn mines_at_intervals_even_if_empty() {
    let world = node(Mining::Interval(Duration::from_millis(5)), TransactionOrder::Fees, 30_000_000);
    let hash = send(&world, &transfer(0, 0, GWEI));
    while world.view().head().number < 3 || world.view().transaction_position(hash).unwrap().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    world.node().producer().unwrap().set_mining(Mining::Manual).unwrap();
    // A block may have been on its way. From then on there are no more.
    let head = mine(&world, 1);
    assert_eq!(mined(&world).concat(), [hash]);
    assert!(head > 3);
    check(&world);
}

#[test]
fn orders_by_tip_or_by_arrival() {
    // Sender, nonce and tip of the transactions, and the order of inclusion for each setting.
    let sent = [(0, 0, 1), (1, 0, 3), (2, 0, 2), (0, 1, 9), (1, 1, 1)];
    let orders = [(TransactionOrder::Fees, [1, 2, 0, 3, 4]), (TransactionOrder::Fifo, [0, 1, 2, 3, 4])];
    for (order, expected) in orders {
        let world = node(Mining::Manual, order, 30_000_000);
        let hashes: Vec<_> = sent.map(|(from, nonce, tip)| send(&world, &transfer(from, nonce, tip * GWEI))).into();
        mine(&world, 1);
        assert_eq!(mined(&world), [expected.map(|index: usize| hashes[index]).to_vec()], "{order:?}");
        check(&world);
    }
}

#[test]
fn a_full_block_leaves_the_rest_to_the_next() {
    // Space for four transfers.
    for (mining, blocks) in [(Mining::Manual, 1), (Mining::Instant, 0)] {
        let world = node(Mining::Manual, TransactionOrder::Fifo, 100_000);
        let hashes: Vec<_> = (0..10).map(|from| send(&world, &transfer(from, 0, GWEI))).collect();
        mine(&world, blocks);
        assert_eq!(mined(&world), hashes.chunks(4).take(blocks as usize).collect::<Vec<_>>());
        world.node().producer().unwrap().set_mining(mining).unwrap();
        if !mining.is_instant() {
            mine(&world, 2);
        }
        assert_eq!(mined(&world), hashes.chunks(4).collect::<Vec<_>>(), "{mining:?}");
        check(&world);
    }
}

#[test]
fn a_block_has_at_most_the_forks_blob_limit() {
    let world = node(Mining::Manual, TransactionOrder::Fifo, 30_000_000);
    let blob = |from: usize, count: usize| {
        let body = TransactionBody::Blob(BlobTransaction {
            chain_id: CHAIN_ID,
            nonce: 0,
            max_priority_fee_per_gas: GWEI.into(),
            max_fee_per_gas: (100 * GWEI).into(),
            gas_limit: 21_000,
            max_fee_per_blob_gas: GWEI.into(),
            blob_versioned_hashes: vec![blob_hash(); count],
            ..BlobTransaction::default()
        });
        send_with(&world, &accounts()[from].sign(body), Some(sidecar(count)))
    };
    // At most 21 per block: the fourth must wait, while the smaller one after it does not.
    let hashes: Vec<_> = [6, 6, 6, 6, 3].into_iter().enumerate().map(|(from, count)| blob(from, count)).collect();
    mine(&world, 2);
    assert_eq!(mined(&world), [[0, 1, 2, 4].map(|index: usize| hashes[index]).to_vec(), vec![hashes[3]]]);
    check(&world);
}

#[test]
fn withdrawals_are_paid_out() {
    let world = node(Mining::Manual, TransactionOrder::Fees, 30_000_000);
    let [rich, new] = [accounts()[0].address(), Address::from_low_u64_be(0xee)];
    let withdrawal = |index, address, amount| Withdrawal { index, validator_index: 9, address, amount };
    let withdrawals = vec![withdrawal(0, new, 3), withdrawal(1, rich, 5), withdrawal(2, new, 4)];
    world.node().mine(&Context::unbounded(), 2, None, withdrawals).unwrap();
    let view = world.view();
    let balance = |address, at| {
        view.state(at).unwrap().account(address).unwrap().map(|account| account.balance).unwrap_or_default()
    };
    assert_eq!(balance(rich, 2) - balance(rich, 0), U256::from(5 * GWEI));
    assert_eq!((balance(new, 0), balance(new, 1), balance(new, 2)), (0.into(), (7 * GWEI).into(), (7 * GWEI).into()));
    check(&world);
}

#[test]
fn the_header_commits_to_requests() {
    let world = node(Mining::Instant, TransactionOrder::Fees, 30_000_000);
    // Public key and amount in gwei (EIP-7002).
    let contract = "0x00000961ef480eb55e80d19ad83579a64c007002".parse().unwrap();
    let input = [&[7; 48][..], &5u64.to_be_bytes()].concat();
    send(&world, &call(0, 0, GWEI, contract, U256::one(), input.into(), 200_000));
    send(&world, &transfer(0, 1, GWEI));
    let view = world.view();
    let hash = |number: u64| view.header(number.into()).unwrap().unwrap().header.requests_hash.unwrap();
    assert_ne!(hash(1), EMPTY_REQUESTS_HASH);
    assert_eq!(hash(2), EMPTY_REQUESTS_HASH);
    check(&world);
}

fn block(world: &World, id: BlockId) -> FoundBlock {
    world.node().get_block(&Context::unbounded(), id).unwrap().unwrap()
}

fn hashes(block: &FoundBlock) -> Vec<H256> {
    block.body.transactions.iter().map(|transaction| transaction.hash).collect()
}

#[test]
fn the_pending_block_is_mined_next() {
    let world = node(Mining::Manual, TransactionOrder::Fees, 100_000);
    let context = Context::unbounded();
    for from in 0..6 {
        send(&world, &transfer(from, 0, (1 + from as u64 % 3) * GWEI));
    }
    send(&world, &transfer(6, 1, GWEI));
    // No settings, a timestamp, a base fee, and a base fee that no transaction pays.
    let steps: [(Option<u64>, Option<u64>, usize); 4] =
        [(None, None, 4), (Some(NOW + 99), None, 2), (None, Some(7), 1), (None, Some(101 * GWEI), 0)];
    for (step, (timestamp, base_fee, count)) in steps.into_iter().enumerate() {
        if let Some(timestamp) = timestamp {
            world.node().control(&context).unwrap().set_next_timestamp(timestamp).unwrap();
        }
        if let Some(base_fee) = base_fee {
            world.node().control(&context).unwrap().set_next_base_fee(base_fee).unwrap();
        }
        if step >= 2 {
            send(&world, &transfer(7, step as u64 - 2, GWEI));
        }
        let pending = block(&world, BlockId::pending());
        mine(&world, 1);
        let mined = block(&world, BlockId::latest());
        assert_eq!(hashes(&pending).len(), count, "step {step}");
        assert_eq!(hashes(&pending), hashes(&mined), "step {step}");
        let fields = |block: &FoundBlock| {
            let header = &block.header.header;
            let roots = [header.state_root, header.receipts_root, header.transactions_root];
            (roots, header.gas_used, header.base_fee_per_gas, header.timestamp)
        };
        assert_eq!(fields(&pending), fields(&mined), "step {step}");
        let header = &mined.header.header;
        assert_eq!(timestamp.unwrap_or(header.timestamp), header.timestamp, "step {step}");
        assert_eq!(base_fee.or(header.base_fee_per_gas), header.base_fee_per_gas, "step {step}");
    }
    let view = world.view();
    let departures = Departures { base_fees: [3, 4].into(), ..Departures::default() };
    check_blocks(&*view, 1..=view.head().number, &departures);
}

#[test]
fn refuses_invalid_requests_to_mine() {
    let world = node(Mining::Manual, TransactionOrder::Fees, 100_000);
    let refused = world.node().mine(&Context::unbounded(), (1 << 32) + 1, None, Vec::new()).unwrap_err();
    assert!(matches!(refused, NodeError::Control(_)), "{refused:?}");
    assert!(refused.to_string().contains("4294967296"), "{refused}");
    assert_eq!(mined(&world), Vec::<Vec<H256>>::new());
}
