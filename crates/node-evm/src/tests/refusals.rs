//! Transactions that a block refuses.

use super::support::*;
use node_core::crypto::SignatureError;
use node_core::executor::{Property, TransactionError};
use node_core::protocol::{BlobEntry, BlobParams, Fork};
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Authorization, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction, Signature, TransactionBody,
};
use node_types::{H256, U256};

fn dynamic(max_fee: u64, tip: u64) -> TransactionBody {
    TransactionBody::DynamicFee(DynamicFeeTransaction {
        chain_id: CHAIN_ID,
        max_fee_per_gas: wei(max_fee),
        max_priority_fee_per_gas: wei(tip),
        gas_limit: 100_000,
        to: Some(BOB),
        ..DynamicFeeTransaction::default()
    })
}

fn blob_hash() -> H256 {
    let mut hash = H256::repeat_byte(7);
    hash.0[0] = 1;
    hash
}

fn blobs(count: usize) -> BlobTransaction {
    BlobTransaction {
        chain_id: CHAIN_ID,
        max_fee_per_gas: wei(100),
        gas_limit: 100_000,
        to: BOB,
        max_fee_per_blob_gas: wei(10),
        blob_versioned_hashes: vec![blob_hash(); count],
        ..BlobTransaction::default()
    }
}

fn blob(count: usize) -> TransactionBody {
    TransactionBody::Blob(blobs(count))
}

fn set_code(authorization_list: Vec<Authorization>) -> TransactionBody {
    TransactionBody::SetCode(SetCodeTransaction {
        chain_id: CHAIN_ID,
        max_fee_per_gas: wei(100),
        gas_limit: 100_000,
        to: BOB,
        authorization_list,
        ..SetCodeTransaction::default()
    })
}

fn plain(change: impl FnOnce(&mut LegacyTransaction)) -> TransactionBody {
    let mut transaction = LegacyTransaction { to: Some(BOB), gas_limit: 100_000, ..legacy() };
    change(&mut transaction);
    TransactionBody::Legacy(transaction)
}

fn access_list(chain_id: u64) -> TransactionBody {
    TransactionBody::AccessList(AccessListTransaction {
        chain_id,
        gas_price: wei(10),
        gas_limit: 100_000,
        to: Some(BOB),
        access_list: vec![AccessListItem { address: BOB, storage_keys: vec![slot(1)] }],
        ..AccessListTransaction::default()
    })
}

#[track_caller]
fn check(fork: Fork, cases: Vec<(&str, TransactionBody, Option<TransactionError>)>) {
    let world = Genesis::at(fork).build();
    for (name, body, expected) in cases {
        assert_eq!(world.refusal(signed(body)), expected, "{name} in {fork:?}");
    }
}

#[test]
fn rejects_transaction_types_before_their_forks() {
    let unsupported = |of| Some(TransactionError::TypeNotSupported(of));
    check(Fork::Istanbul, vec![("access list", access_list(CHAIN_ID), unsupported(1))]);
    check(
        Fork::Berlin,
        vec![("access list", access_list(CHAIN_ID), None), ("dynamic fee", dynamic(100, 1), unsupported(2))],
    );
    check(Fork::London, vec![("dynamic fee", dynamic(100, 1), None), ("blob", blob(1), unsupported(3))]);
    check(Fork::Cancun, vec![("blob", blob(1), None), ("set code", set_code(vec![]), unsupported(4))]);
}

#[test]
fn checks_replay_protection() {
    let legacy = |chain_id| plain(|transaction| transaction.chain_id = chain_id);
    let other = Some(TransactionError::ChainId { got: 1, expected: CHAIN_ID });
    check(
        Fork::Osaka,
        vec![
            ("none", legacy(None), None),
            ("this chain", legacy(Some(CHAIN_ID)), None),
            ("another chain", legacy(Some(1)), other.clone()),
            ("another chain, type 1", access_list(1), other),
        ],
    );
    let early = TransactionError::ReplayProtectionTooEarly { chain_id: CHAIN_ID };
    check(Fork::TangerineWhistle, vec![("none", legacy(None), None), ("any", legacy(Some(CHAIN_ID)), Some(early))]);
}

#[test]
fn rejects_high_s_since_homestead() {
    let half = U256::from_big_endian(&hex("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0"));
    for (fork, s, refused) in [
        (Fork::Frontier, half + 1, false),
        (Fork::Homestead, half, false),
        (Fork::Homestead, half + 1, true),
        (Fork::Osaka, half + 1, true),
    ] {
        let mut transaction = signed(plain(|_| ()));
        transaction.transaction.signature = Signature { s, ..transaction.transaction.signature };
        let expected = refused.then_some(TransactionError::Signature(SignatureError::HighS));
        assert_eq!(Genesis::at(fork).build().refusal(transaction), expected, "{fork:?}");
    }
}

#[test]
fn checks_nonces() {
    let world = Genesis::at(Fork::Osaka).nonce(ALICE, 5).build();
    for (nonce, expected) in [
        (5, None),
        (4, Some(TransactionError::NonceTooLow { got: 4, expected: 5 })),
        (6, Some(TransactionError::NonceTooHigh { got: 6, expected: 5 })),
        (u64::MAX, Some(TransactionError::NonceOverflow)),
    ] {
        assert_eq!(world.refusal(signed(plain(|transaction| transaction.nonce = nonce))), expected, "nonce {nonce}");
    }
}

#[test]
fn rejects_senders_with_code() {
    let delegation = format!("ef0100{}", "11".repeat(20));
    for (code, expected) in [
        ("00", Some(TransactionError::SenderHasCode(ALICE))),
        ("ef0101", Some(TransactionError::SenderHasCode(ALICE))),
        (delegation.as_str(), None),
    ] {
        let world = Genesis::at(Fork::Prague).code(ALICE, code).build();
        assert_eq!(world.refusal(signed(plain(|_| ()))), expected, "code {code}");
    }
}

#[test]
fn funds_must_cover_the_maximum_cost() {
    let balance = wei(1_000_000);
    let world = Genesis::at(Fork::Osaka).balance(ALICE, balance).build();
    let insufficient = |required, fees_exceed_value| {
        Some(TransactionError::InsufficientFunds { balance, required, fees_exceed_value })
    };
    let short = |required| insufficient(required, true);
    let legacy = |gas_limit, gas_price, value| {
        plain(|transaction| {
            transaction.gas_limit = gas_limit;
            transaction.gas_price = gas_price;
            transaction.value = value;
        })
    };
    let blob = |max_fee_per_blob_gas| {
        TransactionBody::Blob(BlobTransaction {
            gas_limit: 21_000,
            max_fee_per_gas: wei(7),
            max_fee_per_blob_gas,
            ..blobs(1)
        })
    };
    let mut capped = dynamic(10, 0);
    if let TransactionBody::DynamicFee(transaction) = &mut capped {
        transaction.gas_limit = 100_001;
    }
    let huge = U256::from(u128::MAX) + 1;
    for (name, body, expected) in [
        ("exactly", legacy(100_000, wei(10), wei(0)), None),
        ("gas", legacy(100_001, wei(10), wei(0)), short(wei(1_000_010))),
        ("value", legacy(100_000, wei(10), wei(1)), short(wei(1_000_001))),
        ("at the fee cap, not at the price", capped, short(wei(1_000_010))),
        ("blob gas", blob(wei(7)), short(wei(21_000 * 7 + 131_072 * 7))),
        ("blob gas that is covered", blob(wei(6)), None),
        ("a price beyond 128 bits", legacy(21_000, huge, wei(0)), short(huge * 21_000)),
        ("a fee beyond 128 bits", legacy(21_000, U256::from(u128::MAX), wei(0)), short(U256::from(u128::MAX) * 21_000)),
        ("a fee beyond 256 bits", legacy(21_000, U256::MAX, wei(0)), short(U256::MAX)),
        ("value beyond 256 bits", legacy(21_000, wei(10), U256::MAX), insufficient(U256::MAX, false)),
        ("a blob fee beyond 128 bits", blob(huge), short(huge * 131_072 + 21_000 * 7)),
    ] {
        assert_eq!(world.refusal(signed(body)), expected, "{name}");
    }
}

#[test]
fn checks_prices() {
    let low = |price| Some(TransactionError::FeeCapTooLow { price, cap: wei(6), base_fee: BASE_FEE });
    let price = |price| plain(|transaction| transaction.gas_price = wei(price));
    let mut boundless = dynamic(8, 0);
    if let TransactionBody::DynamicFee(transaction) = &mut boundless {
        transaction.max_priority_fee_per_gas = U256::MAX;
    }
    check(
        Fork::Osaka,
        vec![
            ("the base fee", price(BASE_FEE), None),
            ("below the base fee", price(6), low(Property::GasPrice)),
            ("a fee cap below the base fee", dynamic(6, 0), low(Property::MaxFeePerGas)),
            (
                "a tip cap above the fee cap",
                dynamic(8, 9),
                Some(TransactionError::TipAboveFeeCap { tip: wei(9), cap: wei(8) }),
            ),
            ("a tip cap that does not fit", dynamic(8, 8), None),
            (
                "a tip cap beyond 128 bits",
                boundless,
                Some(TransactionError::TipAboveFeeCap { tip: U256::MAX, cap: wei(8) }),
            ),
        ],
    );
    check(Fork::Berlin, vec![("nothing before London", price(0), None)]);
}

#[test]
fn checks_gas_limits() {
    let limit = |gas_limit, input: Vec<u8>| {
        plain(|transaction| {
            transaction.gas_limit = gas_limit;
            transaction.input = input.into();
        })
    };
    let intrinsic = |limit, required| Some(TransactionError::IntrinsicGas { limit, required });
    check(
        Fork::Frontier,
        vec![
            ("bytes of data before Istanbul", limit(21_071, vec![0, 1]), intrinsic(21_071, 21_072)),
            ("enough for them", limit(21_072, vec![0, 1]), None),
        ],
    );
    // EIP-7623: 10 gas per token. A zero byte is one token, any other byte four. The standard price is 4 gas per token.
    let floor = |limit, required| Some(TransactionError::FloorGas { limit, required });
    check(Fork::Cancun, vec![("no floor before Prague", limit(21_020, vec![0, 1]), None)]);
    check(
        Fork::Prague,
        vec![
            ("the intrinsic gas", limit(20_999, vec![]), intrinsic(20_999, 21_000)),
            ("the floor", limit(21_049, vec![0, 1]), floor(21_049, 21_050)),
            ("enough for it", limit(21_050, vec![0, 1]), None),
        ],
    );
    let block = Some(TransactionError::BlockGasExceeded { limit: GAS_LIMIT + 1, available: GAS_LIMIT });
    check(
        Fork::Prague,
        vec![
            ("the whole block", limit(GAS_LIMIT, vec![]), None),
            ("more than the block", limit(GAS_LIMIT + 1, vec![]), block),
        ],
    );
    let cap = Some(TransactionError::GasLimitCap { limit: (1 << 24) + 1, cap: 1 << 24 });
    check(
        Fork::Osaka,
        vec![
            ("the cap of EIP-7825", limit(1 << 24, vec![]), None),
            ("above the cap of EIP-7825", limit((1 << 24) + 1, vec![]), cap),
        ],
    );
}

#[test]
fn later_transactions_get_the_remaining_gas_of_the_block() {
    let world = Genesis::at(Fork::Prague).build();
    let transaction = |nonce, gas_limit| {
        signed(plain(|transaction| {
            transaction.nonce = nonce;
            transaction.gas_limit = gas_limit;
        }))
    };
    let left = GAS_LIMIT - 21_000;
    assert!(world.execute(&[transaction(0, GAS_LIMIT), transaction(1, left)]).is_ok());
    let error = world.execute(&[transaction(0, GAS_LIMIT), transaction(1, left + 1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("exceeds block gas limit: gas limit reached: gas {}, available {left}", left + 1)
    );
}

#[test]
fn charges_the_floor_price_of_call_data() {
    // 1,000 non-zero bytes: 16,000 gas at the standard price, 40,000 at the floor price (EIP-7623).
    for (fork, expected) in [(Fork::Cancun, 37_000), (Fork::Prague, 61_000), (Fork::Osaka, 61_000)] {
        let world = Genesis::at(fork).build();
        let transaction = plain(|transaction| transaction.input = vec![1; 1000].into());
        assert_eq!(world.execute(&[signed(transaction)]).unwrap().gas_used, expected, "{fork:?}");
    }
}

#[test]
fn limits_init_code_since_shanghai() {
    let creation = |length| {
        plain(|transaction| {
            transaction.to = None;
            transaction.gas_limit = 5_000_000;
            transaction.input = vec![0; length].into();
        })
    };
    let too_long = Some(TransactionError::InitCodeTooLong { length: 49_153, limit: 49_152 });
    check(Fork::Shanghai, vec![("the limit", creation(49_152), None), ("above it", creation(49_153), too_long)]);
    check(Fork::Paris, vec![("no limit before", creation(49_153), None)]);
}

#[test]
fn checks_the_blobs_of_a_transaction() {
    let too_many = |count, limit| Some(TransactionError::TooManyBlobs { count, limit });
    let hashes = |blob_versioned_hashes| TransactionBody::Blob(BlobTransaction { blob_versioned_hashes, ..blobs(0) });
    let other_version = H256::repeat_byte(2);
    check(
        Fork::Cancun,
        vec![
            ("none", blob(0), Some(TransactionError::NoBlobs)),
            (
                "another version",
                hashes(vec![blob_hash(), other_version]),
                Some(TransactionError::BlobVersion { index: 1, hash: other_version }),
            ),
            ("the most of a block", blob(6), None),
            ("more than a block may hold", blob(7), too_many(7, 6)),
        ],
    );
    check(Fork::Prague, vec![("the most of a block", blob(9), None), ("more", blob(10), too_many(10, 9))]);
    check(
        Fork::Osaka,
        vec![
            ("the most of a transaction (EIP-7594)", blob(6), None),
            ("more than a transaction may have", blob(7), too_many(7, 6)),
        ],
    );
}

#[test]
fn the_schedule_limits_the_blobs_of_a_block() {
    let mut genesis = Genesis::at(Fork::Osaka);
    let bpo = BlobParams { target: 2, max: 3, base_fee_update_fraction: 1_000_000 };
    genesis.spec.blob_schedule.push(BlobEntry { upgrade: "bpo1", params: bpo, time: 100 });
    let world = genesis.build();
    let transactions = |counts: &[usize]| -> Vec<_> {
        let nonces = 0..;
        let body = |nonce, count| TransactionBody::Blob(BlobTransaction { nonce, ..blobs(count) });
        nonces.zip(counts).map(|(nonce, count)| signed(body(nonce, *count))).collect()
    };
    for (timestamp, counts, expected) in [
        (99, &[6, 3][..], Ok(9)),
        (99, &[6, 4], Err("too many blobs: have 10, permitted 9")),
        (100, &[2, 1], Ok(3)),
        (100, &[2, 2], Err("too many blobs: have 4, permitted 3")),
    ] {
        let header = node_types::consensus::Header { timestamp, ..world.next_header() };
        let outcome = world.execute_with(&header, &transactions(counts), &[], None);
        let got = outcome.map(|outcome| outcome.blob_gas_used / 131_072).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{counts:?} at {timestamp}");
    }
}

#[test]
fn the_blob_base_fee_follows_the_schedule() {
    let mut genesis = Genesis::at(Fork::Osaka).code(CONTRACT, "4a60005500");
    let bpo = BlobParams { target: 14, max: 21, base_fee_update_fraction: 11_684_671 };
    genesis.spec.blob_schedule.push(BlobEntry { upgrade: "bpo1", params: bpo, time: 100 });
    let world = genesis.build();
    // e^(excess / fraction): 50,077,160 / 5,007,716 is 10, and 50,077,160 / 11,684,671 is 4.29.
    for (timestamp, price) in [(99, 22_026), (100, 72)] {
        let header =
            node_types::consensus::Header { timestamp, excess_blob_gas: Some(50_077_160), ..world.next_header() };
        let blob = |cap: u64| {
            let max_fee_per_blob_gas = wei(cap);
            signed(TransactionBody::Blob(BlobTransaction { to: CONTRACT, max_fee_per_blob_gas, ..blobs(2) }))
        };
        let refused = world.execute_with(&header, &[blob(price - 1)], &[], None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "max fee per blob gas less than block blob gas fee: blobGasFeeCap: {}, blobBaseFee: {price}",
                price - 1
            )
        );

        let outcome = world.execute_with(&header, &[blob(price)], &[], None).unwrap();
        assert_eq!(outcome.changes.accounts[&CONTRACT].storage[&slot(0)], wei(price), "BLOBBASEFEE at {timestamp}");
        let paid = wei(1000) * wei(ETHER) - outcome.changes.accounts[&ALICE].account.unwrap().balance;
        let expected = wei(outcome.gas_used) * wei(BASE_FEE) + wei(2 * 131_072 * price);
        assert_eq!(paid, expected, "paid at {timestamp}");
    }
}

#[test]
fn a_set_code_transaction_needs_authorizations() {
    check(Fork::Prague, vec![("none", set_code(vec![]), Some(TransactionError::NoAuthorizations))]);
}
