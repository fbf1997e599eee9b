//! Properties of random histories.

use super::*;
use crate::backend::{RecordKind, StateBackend};
use crate::protocol::Fork;
use crate::test_world::{BALANCE, BASE_FEE, Plan, World};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Add { sender: u8, nonce: u64, tip: u64 },
    AddBlob { sender: u8, nonce: u64 },
    Remove { which: usize },
    Mine { count: usize },
    SetBalance { sender: u8, balance: u64 },
    Reorganize { depth: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1u8..7, 0u64..8, 1u64..2_000).prop_map(|(sender, nonce, tip)| Step::Add { sender, nonce, tip }),
        2 => (1u8..7, 0u64..8).prop_map(|(sender, nonce)| Step::AddBlob { sender, nonce }),
        1 => any::<usize>().prop_map(|which| Step::Remove { which }),
        3 => (0usize..4).prop_map(|count| Step::Mine { count }),
        1 => (1u8..7, prop_oneof![Just(BALANCE), 0u64..2_000_000_000])
            .prop_map(|(sender, balance)| Step::SetBalance { sender, balance }),
        1 => (1u64..4).prop_map(|depth| Step::Reorganize { depth }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_pool_stays_consistent(steps in proptest::collection::vec(step(), 1..60)) {
        let world = World::new(Fork::Osaka);
        let limits = small_limits();
        let mut pool = world.pool(limits);
        for (salt, step) in steps.into_iter().enumerate() {
            let salt = salt as u64;
            match step {
                Step::Add { sender, nonce, tip } => drop(pool.add_transaction(priced(sender, nonce, tip))),
                Step::AddBlob { sender, nonce } => drop(pool.add_transaction(blob_transaction(sender, nonce, 1))),
                Step::Remove { which } => {
                    let hashes: Vec<_> = pool.best(None, None).map(|tx| tx.hash()).collect();
                    if !hashes.is_empty() {
                        prop_assert!(pool.remove(hashes[which % hashes.len()]).unwrap());
                    }
                }
                Step::Mine { count } => {
                    let transactions = pool.best(Some(BASE_FEE), None).take(count).map(|tx| tx.recovered.clone()).collect();
                    world.mine(Plan { salt, transactions, ..Default::default() });
                }
                Step::SetBalance { sender, balance } => {
                    world.mine(Plan { salt, balances: vec![(account(sender), balance)], ..Default::default() });
                }
                Step::Reorganize { depth } => {
                    let ancestor = world.head().number.saturating_sub(depth);
                    world.reorganize(ancestor, vec![Plan { salt, ..Default::default() }]);
                }
                Step::Restart => pool = world.pool(limits),
            }
            pool.contents.read().assert_consistent(&limits);
            let content = pool.content();
            let held: BTreeSet<_> =
                content.pending.values().chain(content.queued.values()).flatten().map(|tx| tx.hash()).collect();
            let records = world.backend.records(RecordKind::PoolTransaction).unwrap();
            let recorded: BTreeSet<_> = records.iter().map(|record| H256::from_slice(&record.key)).collect();
            prop_assert_eq!(held, recorded, "the durable records equal the pool");
            let view = world.backend.view().unwrap();
            for (sender, run) in &content.pending {
                let first = view.state(view.head().number).unwrap().account(*sender).unwrap().unwrap_or_default().nonce;
                let nonces: Vec<_> = run.iter().map(|tx| tx.nonce()).collect();
                prop_assert_eq!(nonces, (first..first + run.len() as u64).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let world = World::new(Fork::Osaka);
        let pool = world.pool(PoolLimits::default());
        let reasons = match pool.add(&bytes) {
            Err(AddError::Rejected(rejection)) => rejection.reasons,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        prop_assert!(!reasons.is_empty());
    }

    #[test]
    fn damaged_transactions_never_panic(position in any::<usize>(), bit in 0u8..8, cut in any::<usize>()) {
        let world = World::new(Fork::Osaka);
        let pool = world.pool(PoolLimits::default());
        let mut bytes = priced(1, 0, 100).transaction.encode();
        let position = position % bytes.len();
        bytes[position] ^= 1 << bit;
        let _ = pool.add(&bytes);
        bytes.truncate(cut % bytes.len());
        prop_assert!(pool.add(&bytes).is_err());
    }
}

#[test]
fn rejects_too_many_bytes_before_decoding() {
    let pool = World::new(Fork::Osaka).pool(PoolLimits::default());
    let (size, limit) = ((4 << 20) + 1, 4 << 20);
    match pool.add(&vec![0xff; size]) {
        Err(AddError::Rejected(rejection)) => assert_eq!(rejection.reasons, [PoolError::Oversized { size, limit }]),
        other => panic!("{other:?}"),
    }
}
