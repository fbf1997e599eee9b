//! The pool while the chain changes.

use super::*;
use crate::backend::{Record, RecordKind, RecordWrite, StateBackend};
use crate::executor::TransactionError as Rule;
use crate::pool::{DropReason, Effects, PoolListener, PoolStatus};
use crate::protocol::Fork;
use crate::test_world::{Plan, World};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

#[test]
fn mined_transactions_leave_and_the_next_become_pending() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let hashes: Vec<_> = [0, 1, 3].into_iter().map(|nonce| add(&pool, priced(1, nonce, 100))).collect();
    assert_eq!(pool.nonce(account(1)), Some(2));
    world.mine(Plan { transactions: vec![mined(&pool, hashes[0])], ..Default::default() });
    let expected = [PoolStatus::Unknown, PoolStatus::Pending, PoolStatus::Queued];
    assert_eq!(hashes.iter().map(|hash| pool.status(*hash)).collect::<Vec<_>>(), expected);
    assert_eq!(world.backend.records(RecordKind::PoolTransaction).unwrap().len(), 2);
}

#[test]
fn a_mined_transaction_with_the_same_nonce_drops_ours() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let ours = add(&pool, priced(1, 0, 100));
    let mut theirs = mined(&pool, ours);
    theirs.hash = H256::repeat_byte(9);
    world.mine(Plan { transactions: vec![theirs], ..Default::default() });
    let reason = DropReason::Invalid(Rule::NonceTooLow { got: 0, expected: 1 }.into());
    assert_eq!(pool.status(ours), PoolStatus::Dropped(reason));
}

#[test]
fn a_falling_balance_queues_and_drops() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let hashes: Vec<_> = (0..2).map(|nonce| add(&pool, priced(1, nonce, 100))).collect();
    let cost = pool.get(hashes[0]).unwrap().cost().as_u64();
    for (balance, expected) in [
        (2 * cost, [PoolStatus::Pending, PoolStatus::Pending]),
        (2 * cost - 1, [PoolStatus::Pending, PoolStatus::Queued]),
    ] {
        world.mine(Plan { balances: vec![(account(1), balance)], ..Default::default() });
        assert_eq!([hashes[0], hashes[1]].map(|hash| pool.status(hash)), expected, "balance {balance}");
    }
    world.mine(Plan { balances: vec![(account(1), cost - 1)], ..Default::default() });
    let rule = Rule::InsufficientFunds { balance: (cost - 1).into(), required: cost.into(), fees_exceed_value: true };
    assert_eq!(pool.status(hashes[0]), PoolStatus::Dropped(DropReason::Invalid(rule.into())));
}

#[test]
fn transactions_of_removed_blocks_come_back() {
    let world = World::new(Fork::Cancun);
    let pool = world.pool(PoolLimits::default());
    let transfers: Vec<_> = (0..2).map(|nonce| add(&pool, priced(1, nonce, 100))).collect();
    let blob = add(&pool, blob_transaction(2, 0, 1));
    let transactions: Vec<_> = transfers.iter().chain([&blob]).map(|hash| mined(&pool, *hash)).collect();
    world.mine(Plan { transactions: transactions.clone(), ..Default::default() });
    assert_eq!(pool.content().pending.len(), 0);

    // The new branch contains the first of them.
    world.reorganize(0, vec![Plan { salt: 1, transactions: vec![transactions[0].clone()], ..Default::default() }]);
    let expected = [PoolStatus::Unknown, PoolStatus::Pending, PoolStatus::Pending];
    assert_eq!([transfers[0], transfers[1], blob].map(|hash| pool.status(hash)), expected);
    assert!(pool.get(blob).unwrap().sidecar.is_some(), "with its blobs");
    assert_eq!(world.backend.records(RecordKind::PoolTransaction).unwrap().len(), 2);
}

#[test]
fn restarting_changes_nothing() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    add(&pool, priced(1, 0, 100));
    add(&pool, priced(1, 2, 100));
    add(&pool, blob_transaction(2, 0, 2));
    let broken = Record { key: vec![1], value: vec![0xff; 40] };
    world.backend.write_records(&[RecordWrite::Put(RecordKind::PoolTransaction, broken)]).unwrap();

    let restored = world.pool(PoolLimits::default());
    let (before, after) = (pool.content(), restored.content());
    assert_eq!((before.pending, before.queued), (after.pending, after.queued));
    assert_eq!(world.backend.records(RecordKind::PoolTransaction).unwrap().len(), 3, "the broken record is gone");
    restored.contents.read().assert_consistent(&restored.limits);
}

/// The record of a mined transaction is deleted after its block is stored, and a crash may happen in between.
#[test]
fn mined_and_dropped_transactions_do_not_arrive_again_after_a_restart() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let since = pool.arrivals(u64::MAX, 0).next;
    let hashes = [add(&pool, priced(1, 0, 100)), add(&pool, priced(2, 0, 100)), add(&pool, priced(3, 0, 100))];
    let records = world.backend.records(RecordKind::PoolTransaction).unwrap();
    let plan =
        Plan { transactions: vec![mined(&pool, hashes[0])], balances: vec![(account(2), 0)], ..Default::default() };
    world.mine(plan);
    let writes: Vec<_> =
        records.into_iter().map(|record| RecordWrite::Put(RecordKind::PoolTransaction, record)).collect();
    world.backend.write_records(&writes).unwrap();

    let next = pool.arrivals(u64::MAX, 0).next;
    let restored = world.pool(PoolLimits::default());
    let arrivals = restored.arrivals(since, usize::MAX);
    assert_eq!(arrivals.transactions.iter().map(|arrival| arrival.hash).collect::<Vec<_>>(), hashes[2..]);
    assert!(arrivals.next >= next, "numbers never decrease");
}

#[test]
fn queued_transactions_expire_unless_the_account_moves() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits { queued_lifetime: Duration::from_secs(100), ..PoolLimits::default() });
    let stuck = add(&pool, priced(1, 1, 100));
    world.clock.advance(60_000);
    let later = add(&pool, priced(2, 1, 100));
    world.clock.advance(60_000);
    let pending = add(&pool, priced(3, 0, 100));
    assert_eq!(pool.status(stuck), PoolStatus::Dropped(DropReason::Expired { waited: 120 }));
    assert_eq!(pool.status(later), PoolStatus::Queued);
    assert_eq!(pool.status(pending), PoolStatus::Pending);
}

#[test]
fn arrivals_are_reported_once_and_in_order() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let start = pool.arrivals(u64::MAX, 0).next;
    let hashes: Vec<_> = (0..3).map(|nonce| add(&pool, priced(1, nonce, 100))).collect();
    let mut next = start;
    let mut reported = || {
        let arrivals = pool.arrivals(next, 2);
        next = arrivals.next;
        arrivals.transactions.iter().map(|arrival| arrival.hash).collect::<Vec<_>>()
    };
    assert_eq!(reported(), hashes[..2]);
    assert_eq!(reported(), hashes[2..]);
    assert_eq!(reported(), []);
    assert_eq!(next, pool.arrivals(u64::MAX, 0).next);
}

#[test]
fn dropping_a_transaction_queues_later_ones() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let hashes: Vec<_> = (0..2).map(|nonce| add(&pool, priced(1, nonce, 100))).collect();
    assert!(pool.remove(hashes[0]).unwrap());
    assert!(!pool.remove(hashes[0]).unwrap());
    assert_eq!(pool.status(hashes[0]), PoolStatus::Dropped(DropReason::Requested));
    assert_eq!(pool.status(hashes[1]), PoolStatus::Queued);
}

#[test]
fn stays_consistent_under_concurrent_changes() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    std::thread::scope(|scope| {
        for sender in 1..=4 {
            let pool = &pool;
            scope.spawn(move || {
                for nonce in 0..50 {
                    add(pool, priced(sender, nonce, 100));
                }
            });
        }
        for salt in 0..30 {
            let transactions = pool.best(None, None).take(5).map(|tx| tx.recovered.clone()).collect();
            world.mine(Plan { salt, transactions, ..Default::default() });
        }
    });
    pool.contents.read().assert_consistent(&pool.limits);
    let view = world.backend.view().unwrap();
    for sender in 1..=4 {
        let mined = view.state(view.head().number).unwrap().account(account(sender)).unwrap().unwrap().nonce;
        assert_eq!(pool.nonce(account(sender)).unwrap_or(mined), 50, "sender {sender}");
    }
}

#[test]
fn rejects_transactions_that_cannot_be_recorded() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let kept = add(&pool, priced(1, 0, 100));
    let version = pool.version();
    world.backend.fails.store(true, std::sync::atomic::Ordering::SeqCst);
    for refused in [priced(1, 0, 10_000), priced(1, 1, 100)] {
        assert!(matches!(pool.add_transaction(refused), Err(AddError::Backend(_))));
    }
    assert!(pool.remove(kept).is_err());
    assert!(pool.drop_where(DropReason::Requested, |_| true).is_err());
    let effects = Effects { returning: None, dropped: vec![(kept, DropReason::Reset)] };
    pool.change_chain(effects, || Err::<(), _>("the chain stays as it is")).unwrap_err();
    assert_eq!((pool.status(kept), pool.version()), (PoolStatus::Pending, version), "nothing has changed");
    world.backend.fails.store(false, std::sync::atomic::Ordering::SeqCst);
    add(&pool, priced(1, 1, 100));
}

/// Records arrivals, and immediately reads and changes the pool.
#[derive(Default)]
struct Notes {
    pool: Weak<Pool>,
    heard: Mutex<Vec<(H256, PoolStatus)>>,
}

impl PoolListener for Notes {
    fn transaction_added(&self, hash: H256) {
        let pool = self.pool.upgrade().unwrap();
        self.heard.lock().push((hash, pool.status(hash)));
        assert!(!pool.remove(H256::zero()).unwrap(), "no lock is held");
    }
}

#[test]
fn listeners_receive_each_arrival_once() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    add(&pool, priced(9, 0, 100));
    let notes = Arc::new(Notes { pool: Arc::downgrade(&pool), heard: Mutex::default() });
    pool.subscribe(&notes);
    let heard = || std::mem::take(&mut *notes.heard.lock());

    let pending = add(&pool, priced(1, 0, 100));
    let queued = add(&pool, priced(2, 1, 100));
    add(&pool, priced(1, 0, 100));
    refused(&pool, priced(1, 0, 101));
    assert_eq!(heard(), [(pending, PoolStatus::Pending), (queued, PoolStatus::Queued)]);

    let block = vec![mined(&pool, pending)];
    world.mine(Plan { transactions: block, ..Default::default() });
    assert_eq!(heard(), [], "no event arrived");
    world.reorganize(0, vec![]);
    assert_eq!(heard(), [(pending, PoolStatus::Pending)], "the transaction returned to the pool");
}

/// Reverts to the genesis block; the transactions of later blocks are lost.
fn revert(pool: &Pool, world: &World) {
    let effects = Effects { returning: Some((HashSet::new(), DropReason::RolledBack)), dropped: Vec::new() };
    pool.change_chain(effects, || Ok::<_, Infallible>(world.reorganize(0, Vec::new()))).unwrap();
}

#[test]
fn blobs_of_a_reverted_transaction_stay_known() {
    let world = World::new(Fork::Cancun);
    let pool = world.pool(PoolLimits::default());
    let blob = add(&pool, blob_transaction(2, 0, 1));
    let block = Plan { transactions: vec![mined(&pool, blob)], ..Default::default() };
    world.mine(block.clone());
    revert(&pool, &world);
    assert_eq!(pool.status(blob), PoolStatus::Dropped(DropReason::RolledBack));

    // A snapshot restores the block, and a reorganization replaces it.
    world.reorganize(0, vec![block.clone()]);
    world.reorganize(0, vec![Plan { salt: 1, ..Default::default() }]);
    assert_eq!(pool.status(blob), PoolStatus::Pending);
    assert!(pool.get(blob).unwrap().sidecar.is_some());

    // The same blobs are not remembered twice.
    world.reorganize(0, vec![block.clone()]);
    revert(&pool, &world);
    add(&pool, blob_transaction(2, 0, 1));
    world.mine(block);
    assert_eq!(pool.changing.lock().sidecars().count(), 1);
}
