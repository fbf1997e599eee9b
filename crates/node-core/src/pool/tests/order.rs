//! The order of transactions, and of eviction.

use super::*;
use crate::pool::{DropReason, PoolStatus};
use crate::protocol::Fork;
use crate::test_world::{BASE_FEE, World};

#[test]
fn orders_by_tip_and_nonce() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let cheap_first = add(&pool, priced(1, 0, 10));
    let then_dear = add(&pool, priced(1, 1, 900));
    let middle = add(&pool, priced(2, 0, 50));
    let equal_but_later = add(&pool, priced(3, 0, 50));
    add(&pool, priced(4, 1, 1_000));
    let order = |mut best: crate::pool::BestTransactions| best.by_ref().map(|tx| tx.hash()).collect::<Vec<_>>();
    assert_eq!(
        order(pool.best(Some(BASE_FEE), None)),
        [middle, equal_but_later, cheap_first, then_dear],
        "a queued transaction is not included"
    );
    assert_eq!(
        order(pool.best(Some(10_020), None)),
        [middle, equal_but_later],
        "transactions that cannot pay the base fee are left out"
    );

    let mut best = pool.best(Some(BASE_FEE), None);
    let taken: Vec<_> = std::iter::from_fn(|| {
        let next = best.next()?;
        best.skip_sender();
        Some(next.hash())
    })
    .collect();
    assert_eq!(taken, [middle, equal_but_later, cheap_first], "later transactions of the sender are skipped");
}

#[test]
fn skips_transactions_below_the_blob_base_fee() {
    let world = World::new(Fork::Cancun);
    let pool = world.pool(PoolLimits::default());
    add(&pool, blob_transaction(1, 0, 1));
    for (blob_base_fee, expected) in [(1_000, 1), (1_001, 0)] {
        assert_eq!(pool.best(Some(BASE_FEE), Some(blob_base_fee.into())).count(), expected, "{blob_base_fee}");
    }
}

#[test]
fn a_hostile_sender_is_evicted_whatever_it_pays() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits { bytes: 1 << 20, ..small_limits() });
    let hostile: Vec<_> = (0..12).map(|nonce| add(&pool, priced(1, nonce, 5_000))).collect();
    let modest: Vec<_> = (2..=11).map(|sender| add(&pool, priced(sender, 0, 1))).collect();
    for hash in modest {
        assert_eq!(pool.status(hash), PoolStatus::Pending);
    }
    for (nonce, hash) in hostile.into_iter().enumerate() {
        let expected = if nonce < 2 { PoolStatus::Pending } else { PoolStatus::Dropped(DropReason::Evicted) };
        assert_eq!(pool.status(hash), expected, "nonce {nonce}");
    }
}

#[test]
fn a_full_pool_evicts_the_cheapest() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits { bytes: 1 << 20, ..small_limits() });
    let hashes: Vec<_> = (1..=12).map(|sender| add(&pool, priced(sender, 0, 10 * u64::from(sender)))).collect();
    let full = |reasons: Vec<PoolError>| {
        assert!(matches!(reasons[..], [PoolError::PoolFull { transactions: 12, .. }]), "{reasons:?}");
    };
    full(refused(&pool, priced(13, 0, 9)));
    full(refused(&pool, priced(13, 0, 10)));
    add(&pool, priced(13, 0, 11));
    assert_eq!(pool.status(hashes[0]), PoolStatus::Dropped(DropReason::Evicted));

    // An expensive transaction after a cheap one ranks as the cheap one.
    add(&pool, priced(2, 1, 900));
    assert_eq!(pool.status(hashes[1]), PoolStatus::Pending);
}

#[test]
fn bytes_are_limited_too() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(small_limits());
    let mut tx = transfer(0);
    (tx.input, tx.gas_limit) = (vec![0; 3_900].into(), 100_000);
    let large = sent(TransactionBody::DynamicFee(tx), 20);
    let cheap = add(&pool, priced(1, 0, 10));
    let dear = add(&pool, priced(2, 0, 200));
    let reasons = refused(&pool, large);
    assert!(matches!(reasons[..], [PoolError::PoolFull { transactions: 2, .. }]), "{reasons:?}");
    assert_eq!([cheap, dear].map(|hash| pool.status(hash)), [PoolStatus::Pending, PoolStatus::Pending]);
}

#[test]
fn the_queue_is_shared_evenly() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits { bytes: 1 << 20, ..small_limits() });
    let greedy: Vec<_> = (1..=4).map(|nonce| add(&pool, priced(1, nonce, 5_000))).collect();
    for sender in 2..=3 {
        add(&pool, priced(sender, 1, 1));
    }
    add(&pool, priced(4, 1, 1));
    assert_eq!(pool.status(greedy[3]), PoolStatus::Dropped(DropReason::Evicted));
    let mut one_each = (5..=20).map(|sender| pool.add_transaction(priced(sender, 1, 1)));
    assert!(one_each.any(|added| added.is_err()), "the queue is full at some point");
    let queued: usize = pool.content().queued.values().map(Vec::len).sum();
    assert_eq!(queued, 6);
}
