//! Control of a chain: snapshots, reorganizations, resets, time.

use super::*;
use node_core::block::SealedHeader;
use node_core::context::Context;
use node_core::edits::edited_blocks;
use node_core::executor::TransactionError;
use node_core::node::{NodeError, ReplacementTransaction, TransactionRequest};
use node_core::pool::{DropReason, PoolStatus};
use node_core::producer::{Producer, ProducerError};
use node_types::consensus::{DynamicFeeTransaction, TransactionBody};
use node_types::{BlockId, Bytes, U256};

/// The contract of withdrawal requests (EIP-7002).
const WITHDRAWALS: &str = "0x00000961ef480eb55e80d19ad83579a64c007002";

/// A contract that sets slot 0 to 1.
const SETTER: [u8; 5] = [0x60, 1, 0x5f, 0x55, 0x00];

fn chain() -> DevNode {
    DevNode::builder().mining(Mining::Manual).spawn().unwrap()
}

/// Sends `value` wei from an account to the zero address.
fn send(chain: &DevNode, from: usize, nonce: u64, value: u64) -> H256 {
    let body = TransactionBody::DynamicFee(DynamicFeeTransaction {
        chain_id: chain.spec().chain_id,
        nonce,
        max_fee_per_gas: 2_000_000_000.into(),
        gas_limit: 21_000,
        to: Some(Address::zero()),
        value: value.into(),
        ..Default::default()
    });
    chain.send_transaction(&Context::unbounded(), chain.accounts()[from].sign(body)).unwrap()
}

fn mine(chain: &DevNode, blocks: u64) {
    chain.mine(&Context::unbounded(), blocks, None, Vec::new()).unwrap();
}

fn header(chain: &DevNode, number: u64) -> Arc<SealedHeader> {
    chain.get_header(&Context::unbounded(), BlockId::number(number)).unwrap().unwrap()
}

#[test]
fn a_revert_returns_a_transaction_whose_nonce_was_used_again() {
    let (chain, context) = (chain(), Context::unbounded());
    let first = send(&chain, 0, 0, 1);
    let snapshot = chain.control(&context).unwrap().snapshot().unwrap();
    mine(&chain, 1);
    chain.control(&context).unwrap().set_nonce(chain.accounts()[0].address(), 0).unwrap();
    let second = send(&chain, 0, 0, 2);
    assert!(chain.revert(&context, snapshot).unwrap());
    assert_eq!(chain.pool().status(first), PoolStatus::Pending);
    assert_eq!(chain.pool().status(second), PoolStatus::Dropped(DropReason::Reverted));
}

#[test]
fn requests_of_a_reorganization_are_completed_below_the_replaced_blocks() {
    let (chain, context) = (chain(), Context::unbounded());
    let contract = Address::repeat_byte(0xc0);
    let request = |from: usize| TransactionRequest {
        from: chain.accounts()[from].address(),
        to: Some(contract),
        ..TransactionRequest::default()
    };
    chain.control(&context).unwrap().set_code(contract, Bytes::from(&SETTER[..])).unwrap();
    mine(&chain, 1);
    chain.send_transaction(&context, request(0)).unwrap();
    mine(&chain, 1);
    // At the head the slot has its value already, so setting it again would cost less.
    let again = ReplacementTransaction::Request(request(1));
    chain.reorganize_with(&context, 1, vec![(0, again)]).unwrap();
    let slot = chain.get_storage_at(&context, contract, H256::zero(), BlockId::latest()).unwrap();
    assert_eq!(slot, U256::one());

    let last = ReplacementTransaction::Request(TransactionRequest { nonce: Some(u64::MAX), ..request(0) });
    let error = chain.reorganize_with(&context, 1, vec![(0, last)]).unwrap_err();
    let NodeError::TransactionRejected(reason) = error else { panic!("{error}") };
    assert_eq!(reason.to_string(), TransactionError::NonceOverflow.to_string());
}

#[test]
fn replaced_blocks_have_the_chosen_interval_and_gas_limit() {
    let (chain, context) = (chain(), Context::unbounded());
    let producer = chain.producer().unwrap();
    mine(&chain, 2);
    producer.set_block_interval(Some(100)).unwrap();
    producer.set_gas_limit(90_000_000).unwrap();
    producer.set_next_base_fee(7).unwrap();
    chain.control(&context).unwrap().reorganize(&context, 2).unwrap();
    for number in 1..=2 {
        let (parent, block) = (header(&chain, number - 1), header(&chain, number));
        assert_eq!(block.header.timestamp, parent.header.timestamp + 100, "block {number}");
        assert_eq!(block.header.gas_limit, 90_000_000, "block {number}");
        assert_ne!(block.header.base_fee_per_gas, Some(7), "it is for the next block only");
    }
    // Other nodes refuse the first one, whose gas limit is far from its parent's.
    let edited = edited_blocks(&**chain.backend()).unwrap();
    let [(block, edits)] = &*edited else { panic!("{edited:?}") };
    assert_eq!((block.hash, edits.gas_limit), (header(&chain, 1).hash, true));
}

#[test]
fn after_a_reset_the_clock_is_as_after_the_start() {
    let genesis = DevGenesis::default();
    let start = chain().clock().unwrap().now_millis();
    for continues in [false, true] {
        let clock = Arc::new(ManualClock::at(start + 1_000_000));
        let chain =
            DevNode::builder().dev_genesis(genesis.clone()).mining(Mining::Manual).clock(clock).spawn().unwrap();
        let producer = chain.producer().unwrap();
        if continues {
            producer.continue_time().unwrap();
        }
        let time = || {
            producer.increase_time(7).unwrap();
            mine(&chain, 1);
            header(&chain, 1).header.timestamp
        };
        let before = time();
        producer.reset().unwrap();
        assert_eq!(time(), before, "continues: {continues}");
    }
}

#[test]
fn neither_a_revert_nor_a_rollback_mines() {
    let (chain, context) = (chain(), Context::unbounded());
    let producer = chain.producer().unwrap();
    let waiting = send(&chain, 0, 0, 1);
    let snapshot = chain.control(&context).unwrap().snapshot().unwrap();
    mine(&chain, 1);
    producer.set_automine(true).unwrap();
    assert!(chain.revert(&context, snapshot).unwrap());
    assert_eq!((chain.block_number(&context).unwrap(), chain.pool().status(waiting)), (0, PoolStatus::Pending));
    let other = send(&chain, 1, 0, 1);
    assert_eq!([waiting, other].map(|hash| chain.pool().status(hash)), [PoolStatus::Unknown, PoolStatus::Unknown]);

    producer.set_automine(false).unwrap();
    producer.set_next_base_fee(100_000_000_000).unwrap();
    mine(&chain, 1);
    let unpaid = send(&chain, 2, 0, 1);
    producer.set_automine(true).unwrap();
    assert_eq!(producer.rollback(1).unwrap().len(), 1);
    assert_eq!((chain.block_number(&context).unwrap(), chain.pool().status(unpaid)), (1, PoolStatus::Pending));
}

#[test]
fn a_refused_request_to_mine_does_not_set_the_time() {
    let (chain, context) = (chain(), Context::unbounded());
    let producer = chain.producer().unwrap();
    mine(&chain, 1);
    let next = producer.next_header().unwrap();
    let (head, later) = (header(&chain, 1).header.timestamp, 4_000_000_000);
    let withdrawals: Address = WITHDRAWALS.parse().unwrap();
    let code = chain.get_code(&context, withdrawals, BlockId::latest()).unwrap();
    let refused = producer.mine_at(&context, Producer::MAX_BLOCKS + 1, later);
    assert!(matches!(refused, Err(ProducerError::TooManyBlocks { .. })), "{refused:?}");
    let refused = producer.mine_at(&context, 1, head);
    assert!(matches!(refused, Err(ProducerError::TimestampTooLow { .. })), "{refused:?}");
    assert_eq!(producer.mine_at(&context, 0, later).unwrap(), []);
    producer.set_code(withdrawals, Bytes::default()).unwrap();
    producer.mine_at(&context, 1, later).unwrap_err();
    producer.mine_in(&context, 2, Some(1_000), Vec::new()).unwrap_err();
    producer.set_code(withdrawals, code).unwrap();
    assert_eq!(producer.next_header().unwrap().timestamp, next.timestamp);

    let mined = producer.mine_at(&context, 2, later).unwrap();
    assert_eq!(mined.len(), 2);
    let times = [2, 3].map(|number| header(&chain, number).header.timestamp);
    assert_eq!(times, [later, later + 1], "the clock continues from there");
}

#[test]
fn an_obstacle_ends_with_the_edit_that_made_it() {
    for name in ["a rollback", "a reorganization", "a reset"] {
        let chain = chain();
        let producer = chain.producer().unwrap();
        mine(&chain, 1);
        producer.set_code(WITHDRAWALS.parse().unwrap(), Bytes::default()).unwrap();
        assert!(producer.obstacle().is_some_and(|reason| reason.contains("no code")), "before {name}");
        producer.mine(1, None, Vec::new()).unwrap_err();
        let head = match name {
            "a rollback" => producer.rollback(1).unwrap()[0].number - 1,
            "a reorganization" => producer.reorganize(&Context::unbounded(), 1).unwrap().added[0].number,
            _ => producer.reset().unwrap().number,
        };
        assert_eq!(
            (producer.obstacle(), chain.block_number(&Context::unbounded()).unwrap()),
            (None, head),
            "after {name}"
        );
        mine(&chain, 1);
    }
}

#[test]
fn an_edit_of_storage_shows_an_obstacle_at_once() {
    let chain = chain();
    let producer = chain.producer().unwrap();
    mine(&chain, 1);
    assert_eq!(producer.obstacle(), None);
    let withdrawals = WITHDRAWALS.parse().unwrap();
    // PUSH0 SLOAD ISZERO PUSH1 7 JUMPI INVALID JUMPDEST STOP: fails unless slot 0 is zero.
    let code = Bytes::from(&[0x5f, 0x54, 0x15, 0x60, 0x07, 0x57, 0xfe, 0x5b, 0x00][..]);
    producer.set_code(withdrawals, code).unwrap();
    producer.set_storage(withdrawals, H256::zero(), U256::zero()).unwrap();
    assert_eq!(producer.obstacle(), None);
    producer.set_storage(withdrawals, H256::zero(), U256::one()).unwrap();
    assert!(producer.obstacle().is_some());
    producer.set_storage(withdrawals, H256::zero(), U256::zero()).unwrap();
    assert_eq!(producer.obstacle(), None);
}

#[test]
fn a_genesis_that_no_block_can_follow_is_refused() {
    let mut genesis = chain().genesis().clone();
    genesis.alloc.remove(&WITHDRAWALS.parse().unwrap()).unwrap();
    genesis.state_root = None;
    let Err(error) = DevNode::builder().genesis(genesis).spawn() else { panic!("no block can follow") };
    assert!(matches!(error, DevNodeError::Backend(BackendError::NoFirstBlock(_))), "{error}");
}
