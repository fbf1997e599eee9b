//! A hostile sender cannot crowd out others: an honest transaction with a better tip is always accepted, and is the
//! first in the next block.

use super::*;
use crate::executor::TransactionError as Rule;
use crate::pool::{DropReason, PoolStatus};
use crate::protocol::Fork;
use crate::test_world::{BASE_FEE, CHAIN_ID, Plan, World};
use node_types::consensus::{Authorization, SetCodeTransaction};
use node_types::{Address, U256};
use std::sync::Arc;

const HONEST: u8 = 1;
const HOSTILE: u8 = 2;

/// Returns a world with a small pool and many funded accounts.
fn crowd(accounts: u64, limits: PoolLimits) -> (World, Arc<Pool>, Vec<Address>) {
    let world = World::new(Fork::Osaka);
    let crowd: Vec<_> = (0..accounts).map(|number| Address::from_low_u64_be(0x1000 + number)).collect();
    world.mine(Plan { balances: crowd.iter().map(|address| (*address, 1 << 60)).collect(), ..Default::default() });
    let pool = world.pool(limits);
    (world, pool, crowd)
}

fn bid(nonce: u64, fee: u64, tip: u64) -> TransactionBody {
    TransactionBody::DynamicFee(DynamicFeeTransaction {
        max_fee_per_gas: fee.into(),
        max_priority_fee_per_gas: tip.into(),
        ..transfer(nonce)
    })
}

fn of(sender: Address, body: TransactionBody) -> PooledTransaction {
    PooledTransaction { transaction: signed(body, sender), sidecar: None }
}

/// Sends as many honest transactions as are guaranteed to everyone, and checks that they come first.
fn the_honest_one_is_next(world: &World, pool: &Pool, tip: u64) {
    let honest: Vec<_> = (0..2).map(|nonce| add(pool, of(account(HONEST), bid(nonce, 100_000, tip)))).collect();
    let first: Vec<_> = pool.best(Some(BASE_FEE), None).take(2).map(|tx| tx.hash()).collect();
    assert_eq!(first, honest);
    pool.contents.read().assert_consistent(&pool.limits);
    let mined = honest.iter().map(|hash| mined(pool, *hash)).collect();
    world.mine(Plan { salt: 77, transactions: mined, ..Default::default() });
    pool.contents.read().assert_consistent(&pool.limits);
}

#[test]
fn one_account_that_fills_the_queue() {
    let limits = PoolLimits { queued: 64, transactions: 100, ..PoolLimits::default() };
    let (world, pool, _) = crowd(0, limits);
    for nonce in 1..=64 {
        add(&pool, of(account(HOSTILE), bid(nonce, 900_000, 800_000)));
    }
    assert_eq!(
        refused(&pool, of(account(HOSTILE), bid(65, 900_000, 800_000))),
        [PoolError::AccountLimit { queued: 64, limit: 64 }]
    );
    let waiting = add(&pool, of(account(3), bid(1, 5_000, 1)));
    assert_eq!(pool.status(waiting), PoolStatus::Queued, "there is room in the queue for others");
    the_honest_one_is_next(&world, &pool, 1);
}

#[test]
fn one_account_that_fills_the_pool() {
    let limits = PoolLimits { transactions: 200, guaranteed_per_account: 16, ..PoolLimits::default() };
    let (world, pool, _) = crowd(0, limits);
    for nonce in 0..200 {
        add(&pool, of(account(HOSTILE), bid(nonce, 90_000, 80_000)));
    }
    // Even a transaction that pays less is accepted, although the others are mined first.
    let modest = add(&pool, of(account(3), bid(0, 5_000, 1)));
    assert_eq!(pool.status(modest), PoolStatus::Pending);
    the_honest_one_is_next(&world, &pool, 90_000);
}

#[test]
fn a_thousand_accounts_with_one_cheap_transaction_each() {
    let (world, pool, crowd) = crowd(1_000, PoolLimits { transactions: 1_000, ..PoolLimits::default() });
    for address in &crowd {
        add(&pool, of(*address, bid(0, 5_000, 1)));
    }
    the_honest_one_is_next(&world, &pool, 2);
}

#[test]
fn underpriced_transactions_before_expensive_ones() {
    // Each sender stays within its guaranteed number, and none of the transactions can be mined.
    let limits = PoolLimits { transactions: 160, guaranteed_per_account: 16, ..PoolLimits::default() };
    let (world, pool, crowd) = crowd(10, limits);
    for address in &crowd {
        add(&pool, of(*address, bid(0, BASE_FEE - 200, 1)));
        for nonce in 1..16 {
            add(&pool, of(*address, bid(nonce, 900_000, 800_000)));
        }
    }
    // More than are guaranteed to one sender, all of them cheap.
    let honest: Vec<_> = (0..40).map(|nonce| add(&pool, of(account(HONEST), bid(nonce, 5_000, 1)))).collect();
    let next: Vec<_> = pool.best(Some(BASE_FEE), None).map(|tx| tx.hash()).collect();
    assert_eq!(next, honest);
    pool.contents.read().assert_consistent(&pool.limits);
    world.mine(Plan::default());
    pool.contents.read().assert_consistent(&pool.limits);
}

#[test]
fn huge_transactions_without_funds() {
    let (world, pool, _) = crowd(0, PoolLimits::default());
    for number in 0..200 {
        let address = Address::from_low_u64_be(0x9000 + number);
        let TransactionBody::DynamicFee(tx) = bid(0, u64::MAX, u64::MAX) else { unreachable!() };
        let body = TransactionBody::DynamicFee(DynamicFeeTransaction {
            input: vec![0; 100_000].into(),
            gas_limit: 1_500_000,
            value: U256::MAX >> 1,
            ..tx
        });
        let reasons = refused(&pool, of(address, body));
        assert!(matches!(reasons[..], [PoolError::Invalid(Rule::InsufficientFunds { .. })]), "{reasons:?}");
    }
    assert!(pool.hashes().is_empty());
    the_honest_one_is_next(&world, &pool, 1);
}

#[test]
fn replacements_without_end() {
    let (world, pool, _) = crowd(0, PoolLimits::default());
    let (mut fee, mut tip, mut last, mut sent) = (10_000u64, 100u64, H256::zero(), 0u64);
    while fee < 300_000_000_000 {
        last = add(&pool, of(account(HOSTILE), bid(0, fee, tip)));
        (fee, tip, sent) = (fee + fee / 10 + 1, tip + tip / 10 + 1, sent + 1);
    }
    assert!(sent > 150, "{sent}");
    assert_eq!(pool.hashes(), [last], "the pool has one of them");
    use crate::backend::{RecordKind, StateBackend};
    assert_eq!(world.backend.records(RecordKind::PoolTransaction).unwrap().len(), 1, "one of them is stored");
    let honest_tip = tip * 2;
    let honest = add(&pool, of(account(HONEST), bid(0, fee * 2, honest_tip)));
    assert_eq!(pool.best(Some(BASE_FEE), None).next().map(|tx| tx.hash()), Some(honest));
}

#[test]
fn drained_balances() {
    let limits = PoolLimits { transactions: 160, ..PoolLimits::default() };
    let (world, pool, crowd) = crowd(10, limits);
    let hashes: Vec<_> = crowd
        .iter()
        .flat_map(|address| {
            (0..16).map(|nonce| add(&pool, of(*address, bid(nonce, 90_000, 80_000)))).collect::<Vec<_>>()
        })
        .collect();
    // A block empties all their accounts.
    world.mine(Plan { balances: crowd.iter().map(|address| (*address, 1)).collect(), ..Default::default() });
    assert!(pool.hashes().is_empty());
    for hash in hashes {
        let status = pool.status(hash);
        assert!(
            matches!(
                status,
                PoolStatus::Dropped(DropReason::Invalid(PoolError::Invalid(Rule::InsufficientFunds { .. })))
            ),
            "{status:?}"
        );
    }
    the_honest_one_is_next(&world, &pool, 1);
}

/// Returns a transaction of `sender` with an authorization of `authority`.
fn delegating(sender: u8, authority: u8, chain_id: u64, nonce: u64) -> PooledTransaction {
    let DynamicFeeTransaction { max_priority_fee_per_gas, max_fee_per_gas, .. } = transfer(0);
    let authorization = Authorization {
        chain_id: chain_id.into(),
        nonce,
        r: U256::from_big_endian(account(authority).as_bytes()),
        s: U256::one(),
        ..Default::default()
    };
    sent(
        TransactionBody::SetCode(SetCodeTransaction {
            chain_id: CHAIN_ID,
            max_priority_fee_per_gas,
            max_fee_per_gas,
            gas_limit: 200_000,
            authorization_list: vec![authorization],
            ..Default::default()
        }),
        sender,
    )
}

#[test]
fn old_authorizations_of_others() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let first = add(&pool, priced(HONEST, 0, 100));
    world.mine(Plan { transactions: vec![mined(&pool, first)], ..Default::default() });
    // One was signed before the account's first transaction, the other for another chain: neither can take effect.
    add(&pool, delegating(HOSTILE, HONEST, CHAIN_ID, 0));
    add(&pool, delegating(3, HONEST, 5, 1));
    for nonce in 1..4 {
        add(&pool, priced(HONEST, nonce, 100));
    }
    assert_eq!(pool.nonce(account(HONEST)), Some(4));
    // An authorization that can take effect restricts its signer.
    add(&pool, delegating(4, 5, 0, 0));
    add(&pool, priced(5, 0, 100));
    assert_eq!(refused(&pool, priced(5, 1, 100)), [PoolError::DelegatedInFlight { sender: account(5) }]);
    // An account with several transactions in the pool cannot be made to delegate.
    assert_eq!(
        refused(&pool, delegating(6, HONEST, CHAIN_ID, 1)),
        [PoolError::AuthorityReserved { authority: account(HONEST), count: 3 }]
    );
}
