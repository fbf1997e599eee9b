//! Each rule with the exact reason.

use super::*;
use crate::crypto::{BlobError, SignatureError};
use crate::executor::TransactionError as Rule;
use crate::forks::Fork;
use crate::pool::{FeeCap, PoolStatus};
use crate::test_world::{BALANCE, CONTRACT, DELEGATED, GAS_LIMIT, POOR, Plan, World};
use node_types::consensus::{Authorization, LegacyTransaction, SetCodeTransaction};
use node_types::{Address, U256};

fn dynamic(sender: u8, change: impl FnOnce(&mut DynamicFeeTransaction)) -> PooledTransaction {
    let mut tx = transfer(0);
    change(&mut tx);
    sent(TransactionBody::DynamicFee(tx), sender)
}

fn blob(change: impl FnOnce(&mut BlobTransaction)) -> PooledTransaction {
    let mut tx = blob_body(0, 1);
    change(&mut tx);
    PooledTransaction { sidecar: Some(sidecar(1)), ..sent(TransactionBody::Blob(tx), 1) }
}

fn set_code(sender: u8, nonce: u64, authorities: &[Address]) -> PooledTransaction {
    let authorization = |authority: &Address| Authorization {
        r: U256::from_big_endian(authority.as_bytes()),
        s: U256::one(),
        ..Default::default()
    };
    let DynamicFeeTransaction { chain_id, max_priority_fee_per_gas, max_fee_per_gas, .. } = transfer(nonce);
    let tx = SetCodeTransaction {
        chain_id,
        nonce,
        max_priority_fee_per_gas,
        max_fee_per_gas,
        gas_limit: 200_000,
        authorization_list: authorities.iter().map(authorization).collect(),
        ..Default::default()
    };
    sent(TransactionBody::SetCode(tx), sender)
}

#[test]
fn rules_of_a_single_transaction() {
    let oversized = dynamic(1, |tx| (tx.input, tx.gas_limit) = (vec![0; 131_072].into(), 2_000_000));
    let oversized_length = oversized.transaction.encode().len();
    let mut high_s = sent(TransactionBody::Legacy(LegacyTransaction { nonce: 0, ..legacy() }), 1);
    high_s.transaction.signature.s = U256::one() << 255;
    let mut nobody = dynamic(1, |_| ());
    nobody.transaction.signature.r = U256::zero();
    let second_version =
        BlobSidecar::V1 { blobs: vec![Bytes::new()], commitments: vec![Bytes::new()], cell_proofs: vec![Bytes::new()] };
    let cost = U256::from(21_000u64 * 10_000 + 1);

    let cases: Vec<(&str, Fork, PooledTransaction, Vec<PoolError>)> = vec![
        ("type", Fork::Cancun, set_code(1, 0, &[account(2)]), vec![Rule::TypeNotSupported(4).into()]),
        ("blobs before Cancun", Fork::Shanghai, blob(|_| ()), vec![Rule::TypeNotSupported(3).into()]),
        ("chain id", Fork::Osaka, dynamic(1, |tx| tx.chain_id = 2), vec![Rule::ChainId { got: 2, expected: 1 }.into()]),
        ("size", Fork::Osaka, oversized, vec![PoolError::Oversized { size: oversized_length, limit: 131_072 }]),
        ("last nonce", Fork::Osaka, dynamic(1, |tx| tx.nonce = u64::MAX), vec![Rule::NonceOverflow.into()]),
        (
            "block gas limit",
            Fork::Prague,
            dynamic(1, |tx| tx.gas_limit = GAS_LIMIT + 1),
            vec![Rule::BlockGasExceeded { limit: GAS_LIMIT + 1, available: GAS_LIMIT }.into()],
        ),
        (
            "EIP-7825",
            Fork::Osaka,
            dynamic(1, |tx| tx.gas_limit = (1 << 24) + 1),
            vec![Rule::GasLimitCap { limit: (1 << 24) + 1, cap: 1 << 24 }.into()],
        ),
        (
            "intrinsic gas",
            Fork::Cancun,
            dynamic(1, |tx| tx.gas_limit = 20_999),
            vec![Rule::IntrinsicGas { limit: 20_999, required: 21_000 }.into()],
        ),
        (
            "EIP-7623",
            Fork::Prague,
            dynamic(1, |tx| (tx.input, tx.gas_limit) = (vec![1; 100].into(), 24_999)),
            vec![Rule::FloorGas { limit: 24_999, required: 25_000 }.into()],
        ),
        (
            "EIP-3860",
            Fork::Shanghai,
            creation(49_153),
            vec![Rule::InitCodeTooLong { length: 49_153, limit: 49_152 }.into()],
        ),
        (
            "tip above fee cap",
            Fork::Osaka,
            dynamic(1, |tx| tx.max_priority_fee_per_gas = 10_001.into()),
            vec![Rule::TipAboveFeeCap { tip: 10_001.into(), cap: 10_000.into() }.into()],
        ),
        (
            "minimum tip",
            Fork::Osaka,
            dynamic(1, |tx| tx.max_priority_fee_per_gas = 0.into()),
            vec![PoolError::TipTooLow { tip: 0.into(), minimum: 1 }],
        ),
        ("high s (EIP-2)", Fork::Osaka, high_s, vec![Rule::Signature(SignatureError::HighS).into()]),
        ("no signer", Fork::Osaka, nobody, vec![Rule::Signature(SignatureError::OutOfRange).into()]),
        ("no authorizations", Fork::Prague, set_code(1, 0, &[]), vec![Rule::NoAuthorizations.into()]),
        ("no blobs", Fork::Cancun, blob(|tx| tx.blob_versioned_hashes.clear()), vec![Rule::NoBlobs.into()]),
        (
            "blobs a block",
            Fork::Prague,
            blob_transaction(1, 0, 10),
            vec![Rule::TooManyBlobs { count: 10, limit: 9 }.into()],
        ),
        (
            "blobs a transaction",
            Fork::Osaka,
            blob_transaction(1, 0, 7),
            vec![Rule::TooManyBlobs { count: 7, limit: 6 }.into()],
        ),
        (
            "versioned hash",
            Fork::Cancun,
            blob(|tx| tx.blob_versioned_hashes = vec![versioned_hash(2, 0)]),
            vec![Rule::BlobVersion(versioned_hash(2, 0)).into()],
        ),
        (
            "blob fee cap",
            Fork::Cancun,
            blob(|tx| tx.max_fee_per_blob_gas = 0.into()),
            vec![Rule::BlobFeeCapTooLow { cap: 0.into(), base_fee: 1.into() }.into()],
        ),
        (
            "no sidecar",
            Fork::Cancun,
            PooledTransaction { sidecar: None, ..blob(|_| ()) },
            vec![PoolError::MissingSidecar],
        ),
        (
            "a sidecar too many",
            Fork::Cancun,
            PooledTransaction { sidecar: Some(sidecar(1)), ..dynamic(1, |_| ()) },
            vec![PoolError::UnexpectedSidecar],
        ),
        (
            "sidecar version",
            Fork::Prague,
            PooledTransaction { sidecar: Some(second_version), ..blob(|_| ()) },
            vec![PoolError::SidecarVersion { got: 1, expected: 0 }],
        ),
        (
            "wrong blobs",
            Fork::Osaka,
            PooledTransaction { sidecar: Some(sidecar(2)), ..blob(|_| ()) },
            vec![PoolError::Blob(BlobError::Count { what: "blobs", got: 2, expected: 1 })],
        ),
        ("EIP-3607", Fork::Osaka, dynamic(CONTRACT, |_| ()), vec![Rule::SenderHasCode(account(CONTRACT)).into()]),
        (
            "balance",
            Fork::Osaka,
            dynamic(POOR, |_| ()),
            vec![Rule::InsufficientFunds { balance: 1_000.into(), required: cost }.into()],
        ),
        (
            "a cost beyond 256 bits",
            Fork::Osaka,
            dynamic(1, |tx| tx.max_fee_per_gas = U256::MAX),
            vec![Rule::InsufficientFunds { balance: BALANCE.into(), required: U256::MAX }.into()],
        ),
        (
            "every reason at once",
            Fork::Osaka,
            dynamic(POOR, |tx| (tx.chain_id, tx.gas_limit, tx.max_priority_fee_per_gas) = (5, 20_000, 20_000.into())),
            vec![
                Rule::ChainId { got: 5, expected: 1 }.into(),
                Rule::IntrinsicGas { limit: 20_000, required: 21_000 }.into(),
                Rule::FloorGas { limit: 20_000, required: 21_000 }.into(),
                Rule::TipAboveFeeCap { tip: 20_000.into(), cap: 10_000.into() }.into(),
                Rule::InsufficientFunds { balance: 1_000.into(), required: (20_000u64 * 10_000 + 1).into() }.into(),
            ],
        ),
    ];
    for (name, fork, transaction, expected) in cases {
        let world = World::new(fork);
        let pool = world.pool(PoolLimits::default());
        let hash = transaction.transaction.hash();
        let reasons = refused(&pool, transaction);
        assert_eq!(reasons, expected, "{name}");
        assert_eq!(pool.status(hash), PoolStatus::Unknown, "{name}");
    }
}

fn legacy() -> LegacyTransaction {
    LegacyTransaction { gas_price: 10_000.into(), gas_limit: 21_000, to: Some(account(9)), ..Default::default() }
}

fn creation(length: usize) -> PooledTransaction {
    dynamic(1, |tx| (tx.to, tx.input, tx.gas_limit) = (None, vec![0; length].into(), 1_000_000))
}

#[test]
fn every_type_is_accepted_under_its_fork() {
    let cases = [
        ("legacy without chain id", Fork::Osaka, sent(TransactionBody::Legacy(legacy()), 1)),
        ("dynamic fee", Fork::Shanghai, dynamic(1, |_| ())),
        ("longest creation code", Fork::Shanghai, creation(49_152)),
        ("longer creation code before EIP-3860", Fork::Paris, creation(49_153)),
        ("blobs", Fork::Cancun, blob_transaction(1, 0, 6)),
        ("more blobs", Fork::Prague, blob_transaction(1, 0, 9)),
        ("set code", Fork::Prague, set_code(1, 0, &[account(2)])),
        ("sender that delegates", Fork::Osaka, dynamic(DELEGATED, |_| ())),
        ("a nonce ahead", Fork::Osaka, priced(1, 7, 100)),
        ("a fee cap below the base fee", Fork::Osaka, dynamic(1, |tx| tx.max_fee_per_gas = 200.into())),
    ];
    for (name, fork, transaction) in cases {
        let world = World::new(fork);
        let pool = world.pool(PoolLimits::default());
        let again = transaction.clone();
        let hash = pool.add_transaction(transaction).unwrap_or_else(|error| panic!("{name}: {error}"));
        let version = pool.version();
        assert_eq!(pool.add_transaction(again).ok(), Some(hash), "{name}: the same again");
        assert_eq!(pool.version(), version, "{name}: the same again changes nothing");
    }
}

#[test]
fn since_osaka_a_sidecar_is_converted() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let hash = add(&pool, blob_transaction(1, 0, 2));
    assert!(
        matches!(&pool.get(hash).unwrap().sidecar, Some(BlobSidecar::V1 { cell_proofs, .. }) if cell_proofs.len() == 256)
    );
}

#[test]
fn a_used_nonce_is_refused_and_a_mined_transaction_is_known() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let first = priced(1, 0, 100);
    let hash = add(&pool, first.clone());
    world.mine(Plan { transactions: vec![mined(&pool, hash)], ..Default::default() });
    assert_eq!(pool.add_transaction(first).ok(), Some(hash));
    assert_eq!(pool.status(hash), PoolStatus::Unknown, "the pool does not hold it any more");
    assert_eq!(refused(&pool, priced(1, 0, 200)), [Rule::NonceTooLow { got: 0, expected: 1 }.into()]);
}

#[test]
fn pending_transactions_must_be_affordable_together() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let half = |nonce| dynamic(1, |tx| (tx.nonce, tx.value) = (nonce, (BALANCE / 2).into()));
    add(&pool, half(0));
    let cost = U256::from(BALANCE / 2) + U256::from(21_000u64 * 10_000);
    let expected = Rule::InsufficientFunds { balance: BALANCE.into(), required: cost * 2 };
    assert_eq!(refused(&pool, half(1)), [expected.into()]);
}

#[test]
fn a_replacement_must_raise_both_caps() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let old = add(&pool, dynamic(1, |_| ()));
    let caps = |fee: u64, tip: u64| {
        dynamic(1, |tx| (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) = (fee.into(), tip.into()))
    };
    let fee = |got: u64| PoolError::ReplacementUnderpriced {
        cap: FeeCap::Fee,
        got: got.into(),
        old: 10_000.into(),
        required: 11_000.into(),
    };
    let tip = |got: u64| PoolError::ReplacementUnderpriced {
        cap: FeeCap::Tip,
        got: got.into(),
        old: 100.into(),
        required: 110.into(),
    };
    for (transaction, expected) in [
        (caps(10_999, 110), vec![fee(10_999)]),
        (caps(11_000, 109), vec![tip(109)]),
        (caps(10_000, 101), vec![fee(10_000), tip(101)]),
    ] {
        assert_eq!(refused(&pool, transaction), expected);
    }
    let new = add(&pool, caps(11_000, 110));
    assert_eq!(pool.status(old), PoolStatus::Dropped(crate::pool::DropReason::Replaced { by: new }));
    assert_eq!(pool.status(new), PoolStatus::Pending);
}

#[test]
fn a_replacement_with_blobs_must_double_all_caps() {
    let world = World::new(Fork::Cancun);
    let pool = world.pool(PoolLimits::default());
    add(&pool, blob(|_| ()));
    let caps = |fee: u64, tip: u64, blob_fee: u64| {
        blob(|tx| {
            tx.max_fee_per_gas = fee.into();
            tx.max_priority_fee_per_gas = tip.into();
            tx.max_fee_per_blob_gas = blob_fee.into();
        })
    };
    let expected = [(FeeCap::Fee, 10_000), (FeeCap::Tip, 100), (FeeCap::BlobFee, 1_000)].map(|(cap, old)| {
        PoolError::ReplacementUnderpriced {
            cap,
            got: (2 * old - 1).into(),
            old: old.into(),
            required: (2 * old).into(),
        }
    });
    assert_eq!(refused(&pool, caps(19_999, 199, 1_999)), expected);
    add(&pool, caps(20_000, 200, 2_000));
}

#[test]
fn queued_transactions_of_an_account_are_bounded() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(small_limits());
    for nonce in 1..=4 {
        add(&pool, priced(1, nonce, 100));
    }
    assert_eq!(refused(&pool, priced(1, 5, 100)), [PoolError::AccountLimit { queued: 4, limit: 4 }]);
    add(&pool, priced(1, 0, 100));
    assert_eq!(pool.nonce(account(1)), Some(5), "the gap is closed");
    add(&pool, priced(1, 5, 100));
}

#[test]
fn a_sender_that_delegates_has_one_transaction() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let sender = account(DELEGATED);
    assert_eq!(
        refused(&pool, priced(DELEGATED, 1, 100)),
        [PoolError::DelegatedOutOfOrder { sender, got: 1, expected: 0 }]
    );
    add(&pool, priced(DELEGATED, 0, 100));
    assert_eq!(refused(&pool, priced(DELEGATED, 1, 100)), [PoolError::DelegatedInFlight { sender }]);
    add(&pool, priced(DELEGATED, 0, 2_000));

    // An authorization in the pool counts like one that is in force.
    add(&pool, set_code(1, 0, &[account(2)]));
    add(&pool, priced(2, 0, 100));
    assert_eq!(refused(&pool, priced(2, 1, 100)), [PoolError::DelegatedInFlight { sender: account(2) }]);
}

#[test]
fn an_authority_with_several_transactions_is_reserved() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    for nonce in 0..2 {
        add(&pool, priced(2, nonce, 100));
    }
    assert_eq!(
        refused(&pool, set_code(1, 0, &[account(2)])),
        [PoolError::AuthorityReserved { authority: account(2), count: 2 }]
    );
}
