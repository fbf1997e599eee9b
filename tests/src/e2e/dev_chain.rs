//! Features of development chains: signing, block settings, reverting, dumps.

use crate::model::{blob_hash, sidecar};
use node_chain::Genesis;
use node_core::backend::View;
use node_core::block::SealedHeader;
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::edits::edited_blocks;
use node_core::node::{NodeError, ReplacementTransaction, TransactionRequest};
use node_core::pool::{DropReason, PoolStatus};
use node_core::producer::{Mining, Producer, ProducerError, WholeAccount};
use node_dev::{DevGenesisError, DevNode, DevNodeError};
use node_evm::{PrecompileCall, PrecompileOutcome, Secp256k1Recovery};
use node_store::{Options, Store};
use node_types::buffer::BufferFull;
use node_types::consensus::{AccessListItem, Header, TransactionBody, TransactionType};
use node_types::{Address, BlockId, H256, U256, keccak256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const GWEI: u64 = 1_000_000_000;

/// A chain whose clock is advanced by 12 s between blocks.
fn chain(mining: Mining) -> DevNode {
    DevNode::builder().mining(mining).spawn().unwrap()
}

fn context() -> Context {
    Context::unbounded()
}

fn view(chain: &DevNode) -> Arc<dyn View> {
    chain.backend().view().unwrap()
}

fn header(chain: &DevNode, number: u64) -> Arc<SealedHeader> {
    view(chain).header(number.into()).unwrap().unwrap()
}

fn head(chain: &DevNode) -> Arc<SealedHeader> {
    header(chain, view(chain).head().number)
}

fn mine(chain: &DevNode) -> Arc<SealedHeader> {
    chain.producer().unwrap().mine(1, None, Vec::new()).unwrap();
    head(chain)
}

fn address(chain: &DevNode, index: usize) -> Address {
    chain.accounts()[index].address()
}

fn dump(producer: &Producer) -> BTreeMap<Address, WholeAccount> {
    producer.dump(&context(), |_| Ok(())).unwrap()
}

fn transfer(chain: &DevNode, from: usize) -> TransactionRequest {
    let to = Some(Address::from_low_u64_be(0xdd));
    TransactionRequest { from: address(chain, from), to, value: U256::one(), ..TransactionRequest::default() }
}

fn hashes(chain: &DevNode, number: u64) -> Vec<H256> {
    let body = view(chain).body(number.into()).unwrap().unwrap();
    body.transactions.iter().map(|transaction| transaction.hash).collect()
}

fn balance(chain: &DevNode, address: Address) -> U256 {
    let view = view(chain);
    view.state(view.head().number).unwrap().account(address).unwrap().unwrap_or_default().balance
}

#[test]
fn transactions_of_every_type_are_filled_in_signed_and_mined() {
    let chain = chain(Mining::Instant);
    let signer = chain.accounts()[3].clone();
    let to = Address::from_low_u64_be(0xdd);
    let access_list = Some(vec![AccessListItem { address: to, storage_keys: vec![H256::zero()] }]);
    let gas = Some(100_000);
    let plain = transfer(&chain, 0);
    let cases = [
        (TransactionRequest { gas_price: Some((5 * GWEI).into()), ..plain.clone() }, TransactionType::Legacy),
        (
            TransactionRequest { transaction_type: Some(TransactionType::Legacy), ..plain.clone() },
            TransactionType::Legacy,
        ),
        (
            TransactionRequest {
                gas_price: Some((5 * GWEI).into()),
                access_list: access_list.clone(),
                gas,
                ..plain.clone()
            },
            TransactionType::AccessList,
        ),
        (plain.clone(), TransactionType::DynamicFee),
        (TransactionRequest { access_list, gas, ..plain.clone() }, TransactionType::DynamicFee),
        (TransactionRequest { sidecar: Some(sidecar(1)), ..plain.clone() }, TransactionType::Blob),
        (
            TransactionRequest {
                authorization_list: Some(vec![signer.sign_authorization(chain.spec().chain_id, to, 0)]),
                gas,
                ..plain.clone()
            },
            TransactionType::SetCode,
        ),
    ];
    for (number, (request, expected)) in (1..).zip(cases) {
        let hash = chain.send_transaction(&context(), request).unwrap();
        assert_eq!(hashes(&chain, number), [hash], "{expected:?}");
        let body = view(&chain).body(number.into()).unwrap().unwrap();
        let sent = &body.transactions[0];
        assert_eq!(sent.transaction.body.transaction_type(), expected);
        assert_eq!((sent.sender, sent.transaction.body.nonce()), (address(&chain, 0), number - 1));
        assert_eq!(Secp256k1Recovery.sender(&sent.transaction), Ok(address(&chain, 0)), "it is signed");
        if expected == TransactionType::Blob {
            assert_eq!(sent.transaction.body.blob_versioned_hashes(), [blob_hash()]);
        }
    }
    let delegated = view(&chain).state(7).unwrap().account(signer.address()).unwrap().unwrap();
    assert_eq!(delegated.nonce, 1, "the authorization is in force");
}

#[test]
fn refuses_contradictory_requests() {
    let chain = chain(Mining::Instant);
    let plain = transfer(&chain, 0);
    let one = || Some(U256::from(GWEI));
    let cases = [
        TransactionRequest { gas_price: one(), max_fee_per_gas: one(), ..plain.clone() },
        TransactionRequest { gas_price: one(), max_priority_fee_per_gas: one(), ..plain.clone() },
        TransactionRequest { transaction_type: Some(TransactionType::DynamicFee), gas_price: one(), ..plain.clone() },
        TransactionRequest { transaction_type: Some(TransactionType::Legacy), max_fee_per_gas: one(), ..plain.clone() },
        TransactionRequest {
            transaction_type: Some(TransactionType::Legacy),
            access_list: Some(Vec::new()),
            ..plain.clone()
        },
        TransactionRequest { max_fee_per_blob_gas: one(), ..plain.clone() },
        TransactionRequest { authorization_list: Some(Vec::new()), gas_price: one(), ..plain.clone() },
        TransactionRequest { sidecar: Some(sidecar(1)), to: None, gas: Some(100_000), ..plain.clone() },
        TransactionRequest {
            sidecar: Some(sidecar(1)),
            blob_versioned_hashes: Some(vec![H256::zero()]),
            ..plain.clone()
        },
    ];
    for request in cases {
        let refused = chain.send_transaction(&context(), request.clone());
        assert!(matches!(refused, Err(NodeError::Invalid(_))), "{request:?}: {refused:?}");
    }
    let other_chain = TransactionRequest { chain_id: Some(5), ..plain.clone() };
    let refused = chain.send_transaction(&context(), other_chain);
    assert!(matches!(refused, Err(NodeError::TransactionRejected(_))), "{refused:?}");
    let stranger = TransactionRequest { from: Address::from_low_u64_be(1), ..plain };
    let refused = chain.send_transaction(&context(), stranger);
    assert!(matches!(refused, Err(NodeError::UnknownAccount(_))), "{refused:?}");
    assert_eq!(head(&chain).header.number, 0);
}

#[test]
fn signs_only_for_known_accounts() {
    let chain = chain(Mining::Instant);
    assert_eq!(chain.node().accounts(), chain.accounts().addresses().collect::<Vec<_>>());
    let message = b"hello";
    let signature = chain.sign_message(address(&chain, 1), message).unwrap();
    let hash = node_core::crypto::personal_message_hash(message);
    assert_eq!(Secp256k1Recovery.recover(hash, &signature, true), Ok(address(&chain, 1)));
    let stranger = Address::from_low_u64_be(1);
    assert!(matches!(chain.sign_message(stranger, message), Err(NodeError::UnknownAccount(_))));
    let signed = chain.sign_transaction(&context(), transfer(&chain, 1)).unwrap();
    assert_eq!(Secp256k1Recovery.sender(&signed.transaction), Ok(address(&chain, 1)));
    assert_eq!(head(&chain).header.number, 0, "it was not sent");
    // An impersonated account needs no key, and an account with a key need not use it.
    chain.producer().unwrap().set_balance(stranger, U256::exp10(18)).unwrap();
    chain.producer().unwrap().impersonate_all(true);
    for (from, unsigned) in [(stranger, true), (address(&chain, 2), false)] {
        chain.send_transaction(&context(), TransactionRequest { from, ..transfer(&chain, 0) }).unwrap();
        let body = view(&chain).body(view(&chain).head().number.into()).unwrap().unwrap();
        assert_eq!((body.transactions[0].sender, body.transactions[0].is_impersonating()), (from, unsigned));
    }
    chain.producer().unwrap().impersonate_all(false);
    let refused = chain.send_transaction(&context(), TransactionRequest { from: stranger, ..transfer(&chain, 0) });
    assert!(matches!(refused, Err(NodeError::UnknownAccount(_))), "{refused:?}");
}

#[test]
fn a_sender_that_becomes_a_contract_loses_its_signed_transactions() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let stranger = Address::from_low_u64_be(1_000);
    producer.set_balance(stranger, U256::exp10(18)).unwrap();
    producer.impersonate(stranger, true).unwrap();
    let send = |from| chain.send_transaction(&context(), TransactionRequest { from, ..transfer(&chain, 0) }).unwrap();
    let sender = address(&chain, 0);
    let signed = [send(sender), send(sender)];
    let (unsigned, other) = (send(stranger), send(address(&chain, 1)));
    let set = |address, code: &[u8]| producer.set_code(address, code.to_vec().into()).unwrap();

    // A delegation may send transactions (EIP-7702).
    set(sender, &[&[0xef, 0x01, 0x00][..], stranger.as_bytes()].concat());
    assert_eq!(chain.pool().status(signed[0]), PoolStatus::Pending);
    set(stranger, &[0x60, 0x00]);
    set(sender, &[0x60, 0x00]);
    for hash in signed {
        let PoolStatus::Dropped(reason) = chain.pool().status(hash) else { panic!("{hash:?}") };
        assert_eq!(reason.to_string(), format!("sender not an eoa: {sender:#x} has code"));
    }
    mine(&chain);
    let mut mined = hashes(&chain, 1);
    mined.sort_unstable();
    let mut expected = [unsigned, other];
    expected.sort_unstable();
    assert_eq!(mined, expected, "the sender of one is impersonated");
}

#[test]
fn sets_the_fields_of_blocks() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let genesis = head(&chain);
    let (coinbase, randao) = (Address::from_low_u64_be(0xc0), H256::repeat_byte(7));
    producer.set_coinbase(coinbase);
    producer.set_prev_randao(randao).unwrap();
    let block = mine(&chain);
    assert_eq!((block.header.beneficiary, block.header.mix_hash), (coinbase, randao));
    let block = mine(&chain);
    assert_eq!(block.header.beneficiary, coinbase);
    assert_ne!(block.header.mix_hash, randao, "the value applies to one block");
    assert_eq!(edited_blocks(&**chain.backend()).unwrap(), [], "other nodes would accept the blocks");

    // A small change of the gas limit is valid; a large one makes the block invalid for other nodes.
    let limit = genesis.header.gas_limit;
    producer.set_gas_limit(limit - 1).unwrap();
    assert_eq!(mine(&chain).header.gas_limit, limit - 1);
    assert_eq!(edited_blocks(&**chain.backend()).unwrap(), []);
    producer.set_gas_limit(50_000).unwrap();
    let block = mine(&chain);
    assert_eq!(block.header.gas_limit, 50_000);
    let edited = edited_blocks(&**chain.backend()).unwrap();
    assert_eq!(edited.len(), 1);
    assert!(edited[0].0 == block.block_ref() && edited[0].1.gas_limit, "{edited:?}");
    assert_eq!(mine(&chain).header.gas_limit, 50_000, "the limit also applies to later blocks");
    assert_eq!(edited_blocks(&**chain.backend()).unwrap().len(), 1, "only the first block exceeds the limit of change");
    let refused = chain.send_transaction(&context(), TransactionRequest { gas: Some(50_001), ..transfer(&chain, 0) });
    assert!(matches!(refused, Err(NodeError::TransactionRejected(_))), "{refused:?}");
    for none in [4_999, 1 << 63] {
        let refused = producer.set_gas_limit(none);
        assert!(matches!(refused, Err(ProducerError::GasLimitRange { .. })), "{refused:?}");
    }
}

#[test]
fn a_lower_gas_limit_drops_transactions_above_it() {
    let chain = chain(Mining::Manual);
    let [large, small] = [60_000, 40_000].map(|gas| {
        let from = if gas == 60_000 { 0 } else { 1 };
        let request = TransactionRequest { gas: Some(gas), ..transfer(&chain, from) };
        chain.send_transaction(&context(), request).unwrap()
    });
    chain.producer().unwrap().set_gas_limit(50_000).unwrap();
    assert!(matches!(chain.pool().status(large), PoolStatus::Dropped(DropReason::Invalid(_))));
    assert_eq!(chain.pool().status(small), PoolStatus::Pending);
}

#[test]
fn only_valid_blocks_follow_an_extreme_genesis() {
    let genesis = chain(Mining::Manual).genesis().clone();
    for (gas_limit, timestamp) in [(0, 0), (4_999, 0), (1 << 63, 0), (5_000, u64::MAX)] {
        let header = Header { gas_limit, timestamp, ..genesis.header.clone() };
        let refused = DevNode::builder().genesis(Genesis { header, ..genesis.clone() }).spawn().map(drop);
        assert!(matches!(refused, Err(DevNodeError::Genesis(DevGenesisError::OutOfBounds { .. }))), "{refused:?}");
    }
    let last = chain(Mining::Manual);
    last.producer().unwrap().set_next_timestamp(ProducerError::LAST_TIMESTAMP).unwrap();
    mine(&last);
    let refused = last.producer().unwrap().mine(1, None, Vec::new());
    assert!(matches!(refused, Err(ProducerError::TimestampTooHigh { .. })), "{refused:?}");
}

#[test]
fn sets_the_time() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let start = head(&chain).header.timestamp;
    assert_eq!(producer.set_block_interval(Some(30)).unwrap(), None);
    assert_eq!([mine(&chain), mine(&chain)].map(|block| block.header.timestamp), [start + 30, start + 60]);
    producer.set_next_timestamp(start + 1_000).unwrap();
    assert_eq!(mine(&chain).header.timestamp, start + 1_000, "a set timestamp has precedence");
    assert_eq!(mine(&chain).header.timestamp, start + 1_030);
    assert_eq!(producer.set_block_interval(None).unwrap(), Some(30));
    assert_eq!(producer.set_time(start + 5_000).unwrap(), 4_000);
    chain.clock().unwrap().advance(2_000);
    assert_eq!(mine(&chain).header.timestamp, start + 5_002);
    let beyond = ProducerError::LAST_TIMESTAMP + 1;
    assert!(producer.set_time(beyond).is_err() && producer.set_block_interval(Some(beyond)).is_err());
}

#[test]
fn time_increases_from_the_head() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let start = head(&chain).header.timestamp;
    // The clock does not advance, and each block is one second after its parent.
    producer.mine(30, None, Vec::new()).unwrap();
    assert_eq!(head(&chain).header.timestamp, start + 30);
    producer.increase_time(60).unwrap();
    assert_eq!(mine(&chain).header.timestamp, start + 90);
    producer.increase_time(60).unwrap();
    producer.increase_time(60).unwrap();
    assert_eq!(mine(&chain).header.timestamp, start + 210);
    // A head that is older than the clock does not hold it back.
    chain.clock().unwrap().advance(5_000);
    producer.increase_time(60).unwrap();
    assert_eq!(mine(&chain).header.timestamp, start + 275);
    assert!(matches!(producer.increase_time(u64::MAX), Err(ProducerError::TooFarAhead { .. })));
}

#[test]
fn threads_that_send_without_nonces_do_not_collide() {
    const THREADS: usize = 8;
    const EACH: usize = 50;
    let chain = chain(Mining::Instant);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    // A request reads one view, which may be older than the pool.
                    let context = context();
                    let request = TransactionRequest { nonce: None, ..transfer(&chain, 0) };
                    chain.send_transaction(&context, request).unwrap();
                }
            });
        }
    });
    let account = view(&chain).state(head(&chain).header.number).unwrap().account(address(&chain, 0)).unwrap();
    assert_eq!(account.unwrap().nonce, (THREADS * EACH) as u64);
}

#[test]
fn switches_the_mining_mode() {
    let chain = chain(Mining::Instant);
    let producer = chain.producer().unwrap();
    let hour = Duration::from_secs(3_600);
    producer.set_automine(false).unwrap();
    assert_eq!(producer.mining(), Mining::Manual);
    let hash = chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    assert_eq!(chain.pool().status(hash), PoolStatus::Pending);
    producer.set_interval_mining(hour).unwrap();
    assert_eq!(producer.mining(), Mining::Interval(hour));
    producer.set_automine(false).unwrap();
    assert_eq!((producer.mining(), head(&chain).header.number), (Mining::Interval(hour), 0));
    producer.set_automine(true).unwrap();
    assert_eq!((producer.mining(), hashes(&chain, 1)), (Mining::Instant, vec![hash]));
    producer.set_interval_mining(Duration::ZERO).unwrap();
    assert_eq!(producer.mining(), Mining::Manual);
    producer.set_mining(Mining::Mixed(hour)).unwrap();
    producer.set_automine(false).unwrap();
    assert_eq!(producer.mining(), Mining::Interval(hour));
    producer.set_mining(Mining::Mixed(Duration::ZERO)).unwrap();
    assert_eq!(producer.mining(), Mining::Instant);
}

#[test]
fn blocks_are_mined_at_intervals_after_a_panic() {
    let target = Address::from_low_u64_be(0xbeef);
    let called = Arc::new(AtomicUsize::new(0));
    let count = called.clone();
    let precompile = move |_: PrecompileCall<'_, '_>| -> PrecompileOutcome {
        count.fetch_add(1, Ordering::SeqCst);
        panic!("a test")
    };
    let chain = DevNode::builder()
        .mining(Mining::Manual)
        .executor(move |evm| evm.with_precompile(target, precompile.clone()))
        .spawn()
        .unwrap();
    let request = TransactionRequest { to: Some(target), gas: Some(100_000), ..transfer(&chain, 0) };
    let hash = chain.send_transaction(&context(), request).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_until = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(1));
        }
    };
    chain.producer().unwrap().set_mining(Mining::Interval(Duration::from_millis(5))).unwrap();
    wait_until(&|| called.load(Ordering::SeqCst) >= 2);
    assert!(chain.drop_transaction(&context(), hash).unwrap());
    wait_until(&|| head(&chain).header.number >= 2);
}

#[test]
fn a_slot_that_is_set_to_zero_does_not_create_an_account() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let absent = Address::from_low_u64_be(0xabcd);
    for (value, exists) in [(0, false), (1, true)] {
        producer.set_storage(absent, H256::zero(), value.into()).unwrap();
        mine(&chain);
        assert_eq!(dump(producer).contains_key(&absent), exists);
    }
}

#[test]
fn reset_restores_the_initial_chain() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let (genesis, rich) = (head(&chain), balance(&chain, address(&chain, 0)));
    chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    mine(&chain);
    let waiting = chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    let snapshot = producer.snapshot().unwrap();
    assert_eq!(producer.snapshots(), [(snapshot, head(&chain).block_ref())]);
    producer.set_balance(Address::from_low_u64_be(1), 5.into()).unwrap();
    producer.impersonate(Address::from_low_u64_be(1), true).unwrap();
    producer.increase_time(1_000).unwrap();
    producer.set_block_interval(Some(77)).unwrap();
    for _ in 0..2 {
        // The second time there is only an edit to undo.
        assert_eq!(producer.reset().unwrap(), genesis.block_ref());
        assert_eq!(head(&chain).hash, genesis.hash);
        assert_eq!(balance(&chain, address(&chain, 0)), rich);
        assert_eq!(balance(&chain, Address::from_low_u64_be(1)), U256::zero());
        assert_eq!((producer.snapshots(), producer.impersonated(), chain.pool().hashes()), (vec![], vec![], vec![]));
        producer.set_balance(Address::from_low_u64_be(1), 5.into()).unwrap();
    }
    assert_eq!(chain.pool().status(waiting), PoolStatus::Dropped(DropReason::Reset));
    assert_eq!(mine(&chain).header.timestamp, genesis.header.timestamp + 1, "the clock has not moved");
}

#[test]
fn rolls_blocks_back_with_their_transactions() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let kept = mine(&chain);
    let gone = chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    let second = mine(&chain);
    let third = mine(&chain);
    let waiting = chain.send_transaction(&context(), transfer(&chain, 1)).unwrap();
    assert_eq!(producer.rollback(2).unwrap(), [third.block_ref(), second.block_ref()]);
    assert_eq!((head(&chain).hash, chain.pool().hashes()), (kept.hash, vec![waiting]));
    assert_eq!(chain.pool().status(gone), PoolStatus::Dropped(DropReason::RolledBack));
    assert_eq!(producer.rollback(0).unwrap(), []);
    let refused = producer.rollback(2);
    assert!(
        matches!(refused, Err(ProducerError::ReorganizationTooDeep { blocks: 2, most: 1, earliest: None })),
        "{refused:?}"
    );
}

#[test]
fn removed_transactions_are_not_reported() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let heard = |since| -> Vec<H256> {
        let arrivals = chain.pool().arrivals(since, 100).transactions;
        arrivals.into_iter().map(|arrival| arrival.hash).collect()
    };
    let now = || chain.pool().arrivals(u64::MAX, 0).next;
    let send = || chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    let kept = send();
    let snapshot = producer.snapshot().unwrap();
    mine(&chain);
    let gone = send();
    mine(&chain);

    // Transactions that waited at the snapshot wait again, and are reported again.
    let since = now();
    producer.revert(snapshot).unwrap();
    assert_eq!((heard(since), chain.pool().hashes()), (vec![kept], vec![kept]));
    assert_eq!(chain.pool().status(gone), PoolStatus::Dropped(DropReason::Reverted));

    mine(&chain);
    let since = now();
    producer.rollback(1).unwrap();
    assert_eq!((heard(since), chain.pool().hashes()), (vec![], vec![]));
    let again = send();
    mine(&chain);
    let since = now();
    producer.reset().unwrap();
    assert_eq!((heard(since), chain.pool().hashes()), (vec![], vec![]));
    assert_eq!(chain.pool().status(again), PoolStatus::Dropped(DropReason::Reset));

    // The revert leaves no traces: other blocks that are removed return their transactions.
    let since = now();
    let returning = send();
    mine(&chain);
    let change = producer.reorganize(&context(), 1).unwrap();
    assert_eq!((change.removed.len(), heard(since)), (1, vec![returning, returning]));
}

#[test]
fn replaces_blocks_by_given_transactions() {
    let chain = chain(Mining::Manual);
    let old = chain.send_transaction(&context(), transfer(&chain, 0)).unwrap();
    for _ in 0..3 {
        mine(&chain);
    }
    let before = head(&chain).hash;
    let signed =
        chain.sign_transaction(&context(), TransactionRequest { nonce: Some(0), ..transfer(&chain, 1) }).unwrap();
    let signed = signed.transaction;
    let request = || ReplacementTransaction::Request(transfer(&chain, 2));
    // One that breaks a rule, one for a block that is not replaced: nothing happens.
    let poor = TransactionRequest { value: U256::exp10(30), gas: Some(21_000), ..transfer(&chain, 3) };
    let refused = chain.reorganize_with(&context(), 2, vec![(1, ReplacementTransaction::Request(poor))]).unwrap_err();
    let refused_for = |error: NodeError| match error {
        NodeError::Control(source) => source,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused_for(refused), ProducerError::NotIncluded { index: 0, block: 3, .. }));
    let refused = chain.reorganize_with(&context(), 2, vec![(2, request())]).unwrap_err();
    assert!(matches!(refused_for(refused), ProducerError::NoSuchBlock { index: 0, block: 2, blocks: 2 }));
    assert_eq!(head(&chain).hash, before);

    let transactions = vec![(1, request()), (0, ReplacementTransaction::Signed(signed.clone())), (1, request())];
    chain.reorganize_with(&context(), 3, transactions).unwrap();
    assert_eq!(head(&chain).header.number, 3);
    assert_eq!(hashes(&chain, 1), [signed.hash()]);
    assert_eq!(hashes(&chain, 2).len(), 2);
    assert_eq!(hashes(&chain, 3), []);
    assert_eq!(chain.pool().hashes(), [], "replaced transactions do not come back");
    assert_eq!(chain.pool().status(old), PoolStatus::Dropped(DropReason::Reorganized));
    let view = view(&chain);
    assert_eq!(view.state(3).unwrap().account(address(&chain, 2)).unwrap().unwrap().nonce, 2);
}

#[test]
fn dumps_and_loads_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let source = DevNode::builder().data_dir(folder.path(), Options::default()).spawn().unwrap();
    let producer = source.producer().unwrap();
    let contract = Address::from_low_u64_be(0xcc);
    producer.set_code(contract, vec![0x60, 0x00].into()).unwrap();
    producer.set_storage(contract, H256::from_low_u64_be(1), 9.into()).unwrap();
    producer.set_storage(contract, H256::from_low_u64_be(2), 8.into()).unwrap();
    source.send_transaction(&context(), transfer(&source, 0)).unwrap();
    producer.set_storage(contract, H256::from_low_u64_be(2), 0.into()).unwrap();
    assert_eq!(producer.add_balance(contract, 7.into()).unwrap(), 7.into());
    let accounts = dump(producer);
    let dumped = &accounts[&contract];
    assert_eq!((dumped.balance, dumped.storage.len()), (7.into(), 1));
    assert_eq!(accounts[&address(&source, 0)].nonce, 1);

    let target = chain(Mining::Instant);
    let control = target.producer().unwrap();
    // Existing accounts are replaced, except for those that are not in the dump.
    control.set_storage(contract, H256::from_low_u64_be(5), 1.into()).unwrap();
    control.set_balance(Address::from_low_u64_be(0xee), 3.into()).unwrap();
    control.load(accounts.clone()).unwrap();
    let mut loaded = dump(control);
    assert_eq!(loaded.remove(&Address::from_low_u64_be(0xee)).unwrap().balance, 3.into());
    assert_eq!(loaded, accounts);
    mine(&target);
    let mined = dump(control);
    assert_eq!(mined[&contract], accounts[&contract]);
    let view = view(&target);
    let proof = view.state(view.head().number).unwrap().proof(contract, &[H256::from_low_u64_be(1)]).unwrap();
    let of_storage = &proof.storage[0].proof;
    for node in proof.proof.iter().chain(of_storage) {
        assert_eq!(control.trie_node(&context(), keccak256(node), |_| Ok(())).unwrap().as_ref(), Some(node));
    }
    assert!(!of_storage.is_empty());
    assert_eq!(control.trie_node(&context(), H256::zero(), |_| Ok(())).unwrap(), None);

    target.send_transaction(&context(), transfer(&target, 0)).unwrap();
    control.load(accounts.clone()).unwrap();
    assert_eq!(dump(control)[&address(&target, 0)], accounts[&address(&target, 0)]);
}

#[test]
fn snapshots_and_pending_edits_are_limited_in_bytes() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let snapshots = |count| (0..count).try_for_each(|_| producer.snapshot().map(|_| ()));
    let first = producer.snapshot().unwrap();
    snapshots(1_100).unwrap();
    let code = |number: u64, mebibytes: usize| {
        producer.set_code(Address::from_low_u64_be(0xcc00 + number), vec![number as u8; mebibytes << 20].into())
    };
    code(0, 20).unwrap();
    snapshots(3).unwrap();
    let refused = producer.snapshot();
    assert!(matches!(refused, Err(ProducerError::SnapshotsTooLarge(_))), "{refused:?}");
    // Reverting returns the memory.
    producer.revert(first + 1_101).unwrap();
    snapshots(3).unwrap();
    producer.revert(first).unwrap();

    (1..=3).for_each(|number| code(number, 20).unwrap());
    let refused = code(4, 20);
    assert!(matches!(refused, Err(ProducerError::EditsTooLarge(_))), "{refused:?}");
    mine(&chain);
    code(4, 20).unwrap();
}

#[test]
fn a_dump_ends_when_its_memory_is_refused_or_its_request_ends() {
    let chain = chain(Mining::Manual);
    let producer = chain.producer().unwrap();
    let contract = Address::from_low_u64_be(0xcc);
    (0..1_000).for_each(|slot| producer.set_storage(contract, H256::from_low_u64_be(slot), 9.into()).unwrap());
    let mut most = 0;
    let accounts = producer.dump(&context(), |bytes| {
        most = bytes;
        Ok(())
    });
    assert!(accounts.unwrap().contains_key(&contract));
    assert!(most > 1_000 * 64, "{most}");
    let full = BufferFull::TooLong { limit: most / 2 };
    let grant = |bytes| if bytes > most / 2 { Err(full) } else { Ok(()) };
    let refused = producer.dump(&context(), grant);
    assert!(matches!(refused, Err(ProducerError::StateTooLarge(_))), "{refused:?}");
    let refused = producer.trie_node(&context(), H256::zero(), grant);
    assert!(matches!(refused, Err(ProducerError::StateTooLarge(_))), "{refused:?}");
    let cancelled = context();
    cancelled.cancel();
    producer.dump(&cancelled, |_| Ok(())).unwrap_err();
}

#[test]
fn transactions_are_mined_once_although_the_nonce_was_lowered() {
    let folder = tempfile::tempdir().unwrap();
    let open = || DevNode::builder().data_dir(folder.path(), Options::default()).spawn().unwrap();
    let chain = open();
    let signed = chain.sign_transaction(&context(), transfer(&chain, 0)).unwrap();
    let hash = chain.send_transaction(&context(), signed.clone()).unwrap();
    assert_eq!(hashes(&chain, 1), [hash]);
    let sender = address(&chain, 0);
    chain.producer().unwrap().set_nonce(sender, 0).unwrap();
    assert_eq!(chain.get_transaction_count(&context(), sender, BlockId::latest()).unwrap(), 0);
    drop(chain);

    let chain = open();
    assert_eq!(chain.pool().hashes(), []);
    assert_eq!(chain.send_transaction(&context(), signed.clone()).unwrap(), hash);
    assert_eq!(head(&chain).header.number, 1, "it is mined already");
    let again = vec![(0, ReplacementTransaction::Signed(signed.transaction))];
    mine(&chain);
    let refused = chain.reorganize_with(&context(), 1, again).unwrap_err();
    assert!(
        matches!(refused, NodeError::Control(ProducerError::NotIncluded { index: 0, block: 2, .. })),
        "{refused:?}"
    );
    let other = TransactionRequest { value: 2.into(), ..transfer(&chain, 0) };
    let other = chain.send_transaction(&context(), other).unwrap();
    assert_eq!(hashes(&chain, 3), [other], "another one with the same nonce is mined");
}

#[test]
fn finds_transactions_by_sender_and_nonce() {
    let chain = chain(Mining::Manual);
    let sender = address(&chain, 0);
    let mut sent = Vec::new();
    for block in 0..4 {
        for _ in 0..block {
            sent.push(chain.send_transaction(&context(), transfer(&chain, 0)).unwrap());
        }
        mine(&chain);
        mine(&chain);
    }
    sent.push(chain.send_transaction(&context(), transfer(&chain, 0)).unwrap());
    for (nonce, hash) in sent.iter().enumerate() {
        let found = chain.get_transaction_of(&context(), sender, nonce as u64).unwrap();
        assert_eq!(found.map(|found| found.recovered().hash), Some(*hash), "nonce {nonce}");
    }
    assert!(chain.get_transaction_of(&context(), sender, sent.len() as u64).unwrap().is_none());
    assert!(chain.get_transaction_of(&context(), Address::zero(), 0).unwrap().is_none());
}

#[test]
fn finds_the_transaction_of_the_earliest_block_that_is_kept() {
    let genesis = DevNode::spawn().unwrap().genesis().clone();
    let store = Arc::new(Store::in_memory(genesis.block(), Options::in_memory()).unwrap());
    let builder = DevNode::builder().genesis(genesis).mining(Mining::Instant);
    let chain = builder.backend(store.clone()).spawn().unwrap();
    let sent: Vec<_> = (0..20).map(|_| chain.send_transaction(&context(), transfer(&chain, 0)).unwrap()).collect();
    store.prune_before(10).unwrap();
    let found = |nonce| {
        let found = chain.get_transaction_of(&context(), address(&chain, 0), nonce).unwrap();
        found.map(|found| found.recovered().hash)
    };
    // The transaction with nonce n is in block n + 1.
    assert_eq!([8, 9, 10].map(found), [None, Some(sent[9]), Some(sent[10])]);
}

#[test]
fn with_instant_mining_a_fee_cap_below_the_base_fee_is_refused() {
    let chain = chain(Mining::Instant);
    let low = || TransactionRequest {
        max_fee_per_gas: Some(7.into()),
        max_priority_fee_per_gas: Some(0.into()),
        ..transfer(&chain, 0)
    };
    match chain.send_transaction(&context(), low()).unwrap_err() {
        NodeError::TransactionRejected(rejection) => assert_eq!(
            rejection.to_string(),
            "max fee per gas less than block base fee: maxFeePerGas: 7, baseFee: 875000000"
        ),
        other => panic!("{other:?}"),
    }
    // Blocks that are mined on request lower the base fee.
    chain.producer().unwrap().set_automine(false).unwrap();
    let waiting = chain.send_transaction(&context(), low()).unwrap();
    assert_eq!(chain.pool().status(waiting), PoolStatus::Pending);
}

#[test]
fn empties_the_pool() {
    let chain = chain(Mining::Manual);
    let send = |from| chain.send_transaction(&context(), transfer(&chain, from)).unwrap();
    let (first, second) = ([send(0), send(0)], send(1));
    let from = address(&chain, 0);
    let dropped = chain.pool().drop_where(DropReason::Requested, |transaction| transaction.sender() == from).unwrap();
    assert_eq!((dropped, chain.pool().hashes()), (2, vec![second]));
    assert_eq!(chain.pool().status(first[0]), PoolStatus::Dropped(DropReason::Requested));
    assert_eq!(mine(&chain).header.number, 1);
    assert_eq!(hashes(&chain, 1), [second]);
    let body = chain.fill_transaction(&context(), &transfer(&chain, 0)).unwrap();
    assert!(matches!(body, TransactionBody::DynamicFee(body) if body.nonce == 0));
}
