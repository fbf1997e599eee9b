//! Each rule with its exact reason.

use super::*;
use crate::pool::{DropReason, NextBlockRules, PoolStatus, stateless};
use crate::protocol::{ChainSpec, Fork};
use crate::sources::Sources;
use crate::test_world::{BALANCE, CHAIN_ID, CONTRACT, DELEGATED, GAS_LIMIT, POOR, Plan, World};
use node_types::consensus::{AccessListTransaction, Authorization, Header, LegacyTransaction, SetCodeTransaction};
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
    let address = |number| format!("{:#x}", account(number));
    let has_code = format!("sender not an eoa: {} has code", address(CONTRACT));
    let too_long = format!("oversized data: {oversized_length} bytes, at most 131072 are accepted");
    let too_long_with_blobs = blob(|tx| (tx.input, tx.gas_limit) = (vec![0; 1 << 20].into(), 16_000_000));
    let blob_length = too_long_with_blobs.transaction.encode().len();
    let too_long_blob = format!("oversized data: {blob_length} bytes, at most 1048576 are accepted");
    let unknown_version = format!("invalid blob hash version: {:#x}", versioned_hash(2, 0));
    let beyond_256_bits =
        format!("insufficient funds for gas * price + value: balance {BALANCE}, tx cost {}", U256::MAX);

    let cases: Vec<(&str, Fork, PooledTransaction, &str)> = vec![
        (
            "type 3",
            Fork::Shanghai,
            blob(|_| ()),
            "transaction type not supported: type 3 is not part of the active fork",
        ),
        (
            "type 4",
            Fork::Cancun,
            set_code(1, 0, &[account(2)]),
            "transaction type not supported: type 4 is not part of the active fork",
        ),
        ("chain id", Fork::Osaka, dynamic(1, |tx| tx.chain_id = 2), "invalid chain id for signer: have 2 want 1"),
        ("size", Fork::Osaka, oversized, &too_long),
        ("size with blobs", Fork::Prague, too_long_with_blobs, &too_long_blob),
        (
            "last nonce",
            Fork::Osaka,
            dynamic(1, |tx| tx.nonce = u64::MAX),
            "nonce has max value: 2^64 - 1 cannot be used",
        ),
        (
            "block gas limit",
            Fork::Prague,
            dynamic(1, |tx| tx.gas_limit = GAS_LIMIT + 1),
            "exceeds block gas limit: gas limit reached: gas 30000001, available 30000000",
        ),
        (
            "EIP-7825",
            Fork::Osaka,
            dynamic(1, |tx| tx.gas_limit = (1 << 24) + 1),
            "transaction gas limit too high (cap: 16777216, tx: 16777217): EIP-7825 limits it from Osaka on",
        ),
        (
            "intrinsic gas",
            Fork::Cancun,
            dynamic(1, |tx| tx.gas_limit = 20_999),
            "intrinsic gas too low: gas 20999, minimum needed 21000",
        ),
        (
            "EIP-7623",
            Fork::Prague,
            dynamic(1, |tx| (tx.input, tx.gas_limit) = (vec![1; 100].into(), 24_999)),
            "insufficient gas for floor data gas cost: gas 24999, minimum needed 25000",
        ),
        ("EIP-3860", Fork::Shanghai, creation(49_153), "max initcode size exceeded: code size 49153, limit 49152"),
        (
            "tip above fee cap",
            Fork::Osaka,
            dynamic(1, |tx| tx.max_priority_fee_per_gas = 10_001.into()),
            "max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 10001, maxFeePerGas: 10000",
        ),
        (
            "minimum tip",
            Fork::Osaka,
            dynamic(1, |tx| tx.max_priority_fee_per_gas = 0.into()),
            "transaction underpriced: gas tip cap 0, minimum needed 1",
        ),
        ("high s (EIP-2)", Fork::Osaka, high_s, "invalid sender: s is above half the order of the curve (EIP-2)"),
        (
            "no signer",
            Fork::Osaka,
            nobody,
            "invalid sender: r and s must be above zero and below the order of the curve",
        ),
        ("no authorizations", Fork::Prague, set_code(1, 0, &[]), "EIP-7702 transaction with empty auth list"),
        ("no blobs", Fork::Cancun, blob(|tx| tx.blob_versioned_hashes.clear()), "blob transaction missing blob hashes"),
        ("blobs a block", Fork::Prague, blob_transaction(1, 0, 10), "too many blobs: have 10, permitted 9"),
        ("blobs a transaction", Fork::Osaka, blob_transaction(1, 0, 7), "too many blobs: have 7, permitted 6"),
        (
            "versioned hash",
            Fork::Cancun,
            blob(|tx| tx.blob_versioned_hashes = vec![versioned_hash(2, 0)]),
            &unknown_version,
        ),
        (
            "blob fee cap",
            Fork::Cancun,
            blob(|tx| tx.max_fee_per_blob_gas = 0.into()),
            "max fee per blob gas less than block blob gas fee: blobGasFeeCap: 0, blobBaseFee: 1",
        ),
        (
            "no sidecar",
            Fork::Cancun,
            PooledTransaction { sidecar: None, ..blob(|_| ()) },
            "missing sidecar in blob transaction",
        ),
        (
            "a sidecar too many",
            Fork::Cancun,
            PooledTransaction { sidecar: Some(sidecar(1)), ..dynamic(1, |_| ()) },
            "unexpected sidecar: only a blob transaction carries blobs",
        ),
        (
            "sidecar version",
            Fork::Prague,
            PooledTransaction { sidecar: Some(second_version), ..blob(|_| ()) },
            "unexpected sidecar version, want: 0, got: 1",
        ),
        (
            "wrong blobs",
            Fork::Osaka,
            PooledTransaction { sidecar: Some(sidecar(2)), ..blob(|_| ()) },
            "invalid blobs: blobs: 2, expected 1",
        ),
        ("EIP-3607", Fork::Osaka, dynamic(CONTRACT, |_| ()), &has_code),
        (
            "balance",
            Fork::Osaka,
            dynamic(POOR, |_| ()),
            "insufficient funds for gas * price + value: balance 1000, tx cost 210000001",
        ),
        (
            "balance for blobs",
            Fork::Cancun,
            PooledTransaction { sidecar: Some(sidecar(1)), ..sent(TransactionBody::Blob(blob_body(0, 1)), POOR) },
            // 131072 blob gas at 1000 wei each in addition to the gas.
            "insufficient funds for gas * price + value: balance 1000, tx cost 341072001",
        ),
        ("a cost beyond 256 bits", Fork::Osaka, dynamic(1, |tx| tx.max_fee_per_gas = U256::MAX), &beyond_256_bits),
        (
            "every reason at once",
            Fork::Osaka,
            dynamic(POOR, |tx| (tx.chain_id, tx.gas_limit, tx.max_priority_fee_per_gas) = (5, 20_000, 20_000.into())),
            "invalid chain id for signer: have 5 want 1; \
             intrinsic gas too low: gas 20000, minimum needed 21000; \
             max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 20000, maxFeePerGas: 10000; \
             insufficient funds for gas * price + value: balance 1000, tx cost 200000001",
        ),
    ];
    for (name, fork, transaction, expected) in cases {
        let world = World::new(fork);
        let pool = world.pool(PoolLimits::default());
        let hash = transaction.transaction.hash();
        assert_eq!(reasons(&pool, transaction).join("; "), expected, "{name}");
        assert_eq!(pool.status(hash), PoolStatus::Unknown, "{name}");
    }
}

/// Returns the texts of the reasons for rejecting a transaction, which must be rejected.
fn reasons(pool: &Pool, transaction: PooledTransaction) -> Vec<String> {
    refused(pool, transaction).iter().map(|reason| Sources(reason).to_string()).collect()
}

#[test]
fn reports_why_bytes_are_not_a_transaction() {
    let pool = World::new(Fork::Osaka).pool(PoolLimits::default());
    // Both types have their receiver after chain id, nonce, two caps and gas limit: 20 bytes after 0x94.
    let without_receiver = |transaction: PooledTransaction| {
        let encoded = transaction.transaction.encode();
        let receiver = [&[0x94][..], account(9).as_bytes()].concat();
        let position = encoded.windows(21).position(|window| window == receiver).unwrap();
        let mut bytes = encoded[..position].to_vec();
        bytes.push(0x80);
        bytes.extend(&encoded[position + 21..]);
        // The second and third byte are the list's header (0xf8 and the length).
        assert_eq!(bytes[1], 0xf8);
        bytes[2] -= 20;
        bytes
    };
    let mut blobless = blob(|_| ());
    blobless.sidecar = None;
    let mut delegating = set_code(1, 0, &[account(2)]);
    if let TransactionBody::SetCode(tx) = &mut delegating.transaction.body {
        tx.to = account(9);
    }
    let cases = [
        (vec![], "typed transaction too short: a type and a list are expected"),
        (vec![0x02], "typed transaction too short: a type and a list are expected"),
        (vec![0xf8], "rlp: value size exceeds available input length: transaction is cut off"),
        (vec![0x05, 0xc0], "transaction type not supported: no fork has type 5"),
        (vec![0x00], "transaction type not supported: a transaction of type 0 is an RLP list without a type byte"),
        (
            vec![0x00, 0xc0],
            "transaction type not supported: a transaction of type 0 is an RLP list without a type byte",
        ),
        (without_receiver(blobless), "rlp: input string too short: a transaction of type 3 cannot create a contract"),
        (without_receiver(delegating), "rlp: input string too short: a transaction of type 4 cannot create a contract"),
    ];
    for (bytes, expected) in cases {
        match pool.add(&bytes) {
            Err(AddError::Rejected(rejection)) => {
                assert_eq!(rejection.to_string(), expected);
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn early_rules() {
    let legacy_of = |chain_id| TransactionBody::Legacy(LegacyTransaction { chain_id, ..legacy() });
    let too_early = "replay protection for chain 1 before EIP-155 is in force";
    let cases: [(Fork, TransactionBody, &[&str]); 6] = [
        (Fork::TangerineWhistle, legacy_of(Some(1)), &[too_early]),
        (Fork::TangerineWhistle, legacy_of(None), &[]),
        (Fork::SpuriousDragon, legacy_of(Some(1)), &[]),
        (
            Fork::Istanbul,
            access_list().transaction.body,
            &["transaction type not supported: type 1 is not part of the active fork"],
        ),
        (
            Fork::Berlin,
            dynamic(1, |_| ()).transaction.body,
            &["transaction type not supported: type 2 is not part of the active fork"],
        ),
        (Fork::London, dynamic(1, |_| ()).transaction.body, &[]),
    ];
    for (fork, body, expected) in cases {
        let next = NextBlockRules {
            fork,
            gas_limit: GAS_LIMIT,
            base_fee: None,
            ..NextBlockRules::new(&ChainSpec::at_genesis(1, fork), &Header::default())
        };
        let reasons = stateless::check(&next, CHAIN_ID, &PoolLimits::default(), &body, None, 100);
        assert_eq!(reasons.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{fork:?}");
    }
}

fn access_list() -> PooledTransaction {
    let tx = AccessListTransaction {
        chain_id: 1,
        gas_price: 10_000.into(),
        gas_limit: 21_000,
        to: Some(account(9)),
        ..Default::default()
    };
    sent(TransactionBody::AccessList(tx), 1)
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
        ("legacy", Fork::Osaka, sent(TransactionBody::Legacy(LegacyTransaction { chain_id: Some(1), ..legacy() }), 1)),
        ("access list", Fork::Berlin, access_list()),
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
fn converts_sidecars_since_osaka() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let hash = add(&pool, blob_transaction(1, 0, 2));
    assert!(
        matches!(&pool.get(hash).unwrap().sidecar, Some(BlobSidecar::V1 { cell_proofs, .. }) if cell_proofs.len() == 256)
    );
}

#[test]
fn rejects_used_nonces_and_knows_mined_transactions() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let first = priced(1, 0, 100);
    let hash = add(&pool, first.clone());
    world.mine(Plan { transactions: vec![mined(&pool, hash)], ..Default::default() });
    assert_eq!(pool.add_transaction(first).ok(), Some(hash));
    assert_eq!(pool.status(hash), PoolStatus::Unknown, "the pool no longer holds it");
    assert_eq!(reasons(&pool, priced(1, 0, 200)), ["nonce too low: next nonce 1, tx nonce 0"]);
}

#[test]
fn pending_transactions_must_be_affordable_together() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let half = |nonce| dynamic(1, |tx| (tx.nonce, tx.value) = (nonce, (BALANCE / 2).into()));
    add(&pool, half(0));
    assert_eq!(
        reasons(&pool, half(1)),
        ["insufficient funds for gas * price + value: balance 10000000000000000000, tx cost 10000000000420000000"]
    );
    // This also applies if the transaction would be queued.
    assert_eq!(
        reasons(&pool, half(2)),
        ["insufficient funds for gas * price + value: balance 10000000000000000000, tx cost 10000000000420000000"]
    );
}

#[test]
fn a_replacement_must_raise_both_caps() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let old = add(&pool, dynamic(1, |_| ()));
    let caps = |fee: u64, tip: u64| {
        dynamic(1, |tx| (tx.max_fee_per_gas, tx.max_priority_fee_per_gas) = (fee.into(), tip.into()))
    };
    let fee = |got: u64| {
        format!(
            "replacement transaction underpriced: fee cap {got} does not replace 10000 with the same nonce, at least 11000 is needed"
        )
    };
    let tip = |got: u64| {
        format!(
            "replacement transaction underpriced: tip cap {got} does not replace 100 with the same nonce, at least 110 is needed"
        )
    };
    for (transaction, expected) in [
        (caps(10_999, 110), vec![fee(10_999)]),
        (caps(11_000, 109), vec![tip(109)]),
        (caps(10_000, 101), vec![fee(10_000), tip(101)]),
    ] {
        assert_eq!(reasons(&pool, transaction), expected);
    }
    let new = add(&pool, caps(11_000, 110));
    assert_eq!(pool.status(old), PoolStatus::Dropped(DropReason::Replaced { by: new }));
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
    let expected = [
        "replacement transaction underpriced: fee cap 19999 does not replace 10000 with the same nonce, at least 20000 is needed",
        "replacement transaction underpriced: tip cap 199 does not replace 100 with the same nonce, at least 200 is needed",
        "replacement transaction underpriced: blob fee cap 1999 does not replace 1000 with the same nonce, at least 2000 is needed",
    ];
    assert_eq!(reasons(&pool, caps(19_999, 199, 1_999)), expected);
    add(&pool, caps(20_000, 200, 2_000));
}

#[test]
fn queued_transactions_of_an_account_are_bounded() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(small_limits());
    for nonce in 1..=4 {
        add(&pool, priced(1, nonce, 100));
    }
    assert_eq!(
        reasons(&pool, priced(1, 5, 100)),
        ["account limit exceeded: 4 transactions of the account wait for earlier nonces already, at most 4 may"]
    );
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
        reasons(&pool, priced(DELEGATED, 1, 100)),
        [format!("gapped-nonce tx from delegated accounts: {sender:#x} must use nonce 0, got 1")]
    );
    add(&pool, priced(DELEGATED, 0, 100));
    let in_flight = |sender| {
        let phrase = "in-flight transaction limit reached for delegated accounts";
        format!("{phrase}: {sender:#x} has a transaction in the pool already")
    };
    assert_eq!(reasons(&pool, priced(DELEGATED, 1, 100)), [in_flight(sender)]);
    add(&pool, priced(DELEGATED, 0, 2_000));

    // An authorization in the pool counts like an active delegation.
    add(&pool, set_code(1, 0, &[account(2)]));
    add(&pool, priced(2, 0, 100));
    assert_eq!(reasons(&pool, priced(2, 1, 100)), [in_flight(account(2))]);
}

#[test]
fn an_authority_with_several_transactions_is_reserved() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    for nonce in 0..2 {
        add(&pool, priced(2, nonce, 100));
    }
    assert_eq!(
        reasons(&pool, set_code(1, 0, &[account(2)])),
        [format!("authority already reserved: {:#x} has 2 transactions in the pool, at most 1 is allowed", account(2))]
    );
}

#[test]
fn texts_of_drop_reasons_and_of_a_full_pool() {
    let hash = H256::repeat_byte(0x11);
    let low = PoolError::Invalid(crate::executor::TransactionError::NonceTooLow { got: 0, expected: 1 });
    for (reason, words) in [
        (DropReason::Replaced { by: hash }, format!("replaced by {hash:#x}")),
        (DropReason::Evicted, "the pool was full, and others paid more".to_owned()),
        (
            DropReason::AccountLimit,
            "too many transactions of the account wait for earlier nonces or for balance".to_owned(),
        ),
        (
            DropReason::Expired { waited: 10_800 },
            "it waited for 10800 s for an earlier nonce or for balance".to_owned(),
        ),
        (DropReason::Invalid(low), "nonce too low: next nonce 1, tx nonce 0".to_owned()),
        (DropReason::Reverted, "the chain was reverted to a snapshot without it".to_owned()),
        (DropReason::RolledBack, "its block was removed by a rollback".to_owned()),
        (DropReason::Reorganized, "its block was replaced by a reorganization with other transactions".to_owned()),
        (DropReason::Reset, "the chain was reset".to_owned()),
        (DropReason::InvalidBlock("why".to_owned()), "a block with it is invalid: why".to_owned()),
        (DropReason::Requested, "dropped on request".to_owned()),
    ] {
        assert_eq!(reason.to_string(), words);
    }

    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits { transactions: 2, queued: 1, ..PoolLimits::default() });
    let first = priced(1, 1, 100);
    let bytes = first.transaction.encode().len();
    add(&pool, first);
    assert_eq!(
        reasons(&pool, priced(2, 1, 100)),
        ["txpool is full: 1 transactions wait for earlier nonces already, at most 1 may"]
    );
    add(&pool, priced(3, 0, 100));
    add(&pool, priced(4, 0, 100));
    let full = format!("txpool is full: 2 transactions with {} bytes, none that pays less could make room", 2 * bytes);
    assert_eq!(reasons(&pool, priced(5, 0, 100)), [full]);
}
