//! Calls with every field of a transaction, and with overridden blocks.

use super::support::*;
use crate::SecretKey;
use node_core::executor::{
    AccountOverride, BlockOverrides, Call, CallOutcome, ExecutionError, OverrideError, Property, StateOverrides,
    TransactionError,
};
use node_core::protocol::Fork;
use node_types::consensus::{AccessListItem, Authorization, Signature};
use node_types::{Address, Bytes, H256, U256};

/// Returns the word on top of the stack.
const RETURN_WORD: &str = "5f5260205ff3";

fn call() -> Call {
    Call { from: ALICE, to: Some(CONTRACT), ..Call::default() }
}

fn returned(world: &World, call: &Call) -> (Bytes, u64) {
    match world.call(call).unwrap() {
        CallOutcome::Returned { output, gas_used } => (output, gas_used),
        CallOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

/// Runs `code` and returns the word that it leaves on the stack.
fn returned_word(fork: Fork, code: &str, call: &Call) -> U256 {
    let world = Genesis::at(fork).code(CONTRACT, &format!("{code}{RETURN_WORD}")).build();
    word(&returned(&world, call).0)
}

#[test]
fn fee_caps_determine_the_price() {
    let capped = |cap: u64, tip: u64| Call { gas_price: wei(cap), max_priority_fee_per_gas: Some(wei(tip)), ..call() };
    let priced = Call { gas_price: wei(10), ..call() };
    let at_base_fee = |base_fee: u64, call: Call| Call {
        block_overrides: BlockOverrides { base_fee_per_gas: Some(base_fee), ..BlockOverrides::default() },
        ..call
    };
    for (name, fork, call, price, base_fee) in [
        ("a price", Fork::Osaka, priced.clone(), 10, BASE_FEE),
        ("caps", Fork::Osaka, capped(20, 2), BASE_FEE + 2, BASE_FEE),
        ("a tip that does not fit", Fork::Osaka, capped(8, 2), 8, BASE_FEE),
        ("nothing", Fork::Osaka, capped(0, 0), 0, 0),
        ("caps before London", Fork::Berlin, capped(20, 2), 0, 0),
        ("caps with an overridden base fee", Fork::Berlin, at_base_fee(5, capped(20, 2)), 7, 5),
    ] {
        // Before Shanghai, which added PUSH0, only the price is checked.
        if fork >= Fork::Shanghai {
            assert_eq!(returned_word(fork, "3a", &call), wei(price), "{name}");
            assert_eq!(returned_word(fork, "48", &call), wei(base_fee), "{name}");
        } else {
            let world = Genesis::at(fork).code(CONTRACT, "3a60005260206000f3").build();
            assert_eq!(word(&returned(&world, &call).0), wei(price), "{name}");
        }
    }
    let world = Genesis::at(Fork::Osaka).build();
    let refused = |call: Call| match world.call(&call) {
        Err(ExecutionError::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(capped(2, 3)), TransactionError::TipAboveFeeCap { tip: wei(3), cap: wei(2) });
    assert_eq!(
        refused(capped(6, 1)),
        TransactionError::FeeCapTooLow { price: Property::MaxFeePerGas, cap: wei(6), base_fee: BASE_FEE }
    );
}

#[test]
fn entries_of_an_access_list_are_warm() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("600154{RETURN_WORD}")).build();
    let item = AccessListItem { address: CONTRACT, storage_keys: vec![slot(1)] };
    let listed = Call { access_list: vec![item], ..call() };
    let (cold, warm) = (returned(&world, &call()).1, returned(&world, &listed).1);
    assert_eq!(warm, cold + 2_400 + 1_900 - 2_000);
}

#[test]
fn blobs_are_visible_and_paid_for() {
    let mut hash = H256::repeat_byte(5);
    hash.0[0] = 1;
    let blobs = |cap: u64| Call {
        blob_versioned_hashes: vec![hash],
        max_priority_fee_per_gas: Some(wei(0)),
        max_fee_per_blob_gas: wei(cap),
        ..call()
    };
    assert_eq!(returned_word(Fork::Osaka, "5f49", &blobs(0)), word(hash.as_bytes()));
    assert_eq!(returned_word(Fork::Osaka, "4a", &blobs(0)), wei(0), "without a blob fee cap BLOBBASEFEE returns 0");
    assert_eq!(returned_word(Fork::Osaka, "4a", &blobs(3)), wei(1));
    // The value leaves too little for the blob.
    let world = Genesis::at(Fork::Osaka).build();
    let required = wei(1000) * wei(ETHER) + wei(3 << 17);
    let poor = Call { value: wei(1000) * wei(ETHER), ..blobs(3) };
    match world.call(&poor) {
        Err(ExecutionError::Refused(error)) => {
            let balance = wei(1000) * wei(ETHER);
            assert_eq!(error, TransactionError::InsufficientFunds { balance, required, fees_exceed_value: false });
        }
        other => panic!("{other:?}"),
    }
    let unknown = Call { blob_versioned_hashes: vec![H256::repeat_byte(5)], ..blobs(0) };
    let Err(ExecutionError::Refused(error)) = world.call(&unknown) else { panic!("the version is unknown") };
    assert_eq!(error, TransactionError::BlobVersion { index: 0, hash: H256::repeat_byte(5) });
}

#[test]
fn authorizations_take_effect() {
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    let unsigned = Authorization { chain_id: wei(CHAIN_ID), address: CONTRACT, ..Authorization::default() };
    let Signature { r, s, y_parity } = key.sign(unsigned.signing_hash());
    let signed = Authorization { y_parity: u8::from(y_parity), r, s, ..unsigned };
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("30{RETURN_WORD}")).build();
    let plain = Call { to: Some(key.address()), ..call() };
    assert_eq!(returned(&world, &plain).0, Bytes::new());
    let delegating = Call { authorization_list: vec![signed], ..plain };
    assert_eq!(word(&returned(&world, &delegating).0), U256::from_big_endian(key.address().as_bytes()));
}

#[test]
fn block_overrides_apply() {
    let priced = |block_overrides| Call { gas_price: wei(100), block_overrides, ..call() };
    let recipient = Address::repeat_byte(6);
    let none = BlockOverrides::default;
    let cases = [
        ("43", BlockOverrides { number: Some(1_000), ..none() }, wei(1_000)),
        ("42", BlockOverrides { time: Some(2_000), ..none() }, wei(2_000)),
        ("45", BlockOverrides { gas_limit: Some(3_000), ..none() }, wei(3_000)),
        ("41", BlockOverrides { fee_recipient: Some(recipient), ..none() }, U256::from_big_endian(&recipient.0)),
        ("44", BlockOverrides { prev_randao: Some(slot(4_000)), ..none() }, wei(4_000)),
        // PREVRANDAO has replaced DIFFICULTY, and the override does not undo the merge.
        ("44", BlockOverrides { difficulty: Some(wei(5_000)), ..none() }, wei(0)),
        ("48", BlockOverrides { base_fee_per_gas: Some(60), ..none() }, wei(60)),
        ("4a", BlockOverrides { blob_base_fee: Some(wei(70)), ..none() }, wei(70)),
    ];
    for (opcode, overrides, expected) in cases {
        assert_eq!(returned_word(Fork::Osaka, opcode, &priced(overrides.clone())), expected, "{overrides:?}");
    }
    // Overrides do not change the state that the call reads. The overridden gas limit applies.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("3331{RETURN_WORD}")).build();
    let later = BlockOverrides { number: Some(1_000), gas_limit: Some(21_000), ..none() };
    let call = Call { block_overrides: later, ..call() };
    assert_eq!(word(&returned(&world, &call).0), wei(1000) * wei(ETHER));
    assert!(format!("{:?}", world.estimate(&call).unwrap()).contains("GasCap"), "21,000 gas are not enough");
}

#[test]
fn moves_precompiles() {
    let [identity, there] = [4, 0x1234].map(Address::from_low_u64_be);
    let world = Genesis::at(Fork::Osaka).build();
    let moving = |from: Address, to: Address| -> StateOverrides {
        [(from, AccountOverride { move_precompile_to: Some(to), ..AccountOverride::default() })].into()
    };
    let input = Bytes::from_static(b"input");
    let run = |to, overrides| {
        world.call(&Call { to: Some(to), input: input.clone(), overrides, ..call() }).map(|outcome| match outcome {
            CallOutcome::Returned { output, .. } => output,
            CallOutcome::Failed(failure) => panic!("{failure:?}"),
        })
    };
    assert_eq!(run(there, moving(identity, there)).unwrap(), input);
    assert_eq!(run(identity, moving(identity, there)).unwrap(), Bytes::new(), "the code is removed");
    let mut both = moving(identity, there);
    both.insert(there, AccountOverride::default());
    let refused = [
        (moving(BOB, there), OverrideError::NotAPrecompile(BOB)),
        (moving(identity, identity), OverrideError::MovedToItself(identity)),
        (both, OverrideError::DestinationOverridden(there)),
    ];
    for (overrides, expected) in refused {
        match run(there, overrides) {
            Err(ExecutionError::Override(error)) => assert_eq!(error, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn lists_the_contracts_of_a_fork() {
    let world = Genesis::at(Fork::Osaka).build();
    use node_core::executor::Executor;
    for (fork, precompiles, last, system) in [
        (Fork::Frontier, 4, "ID", 0),
        (Fork::Byzantium, 8, "BN254_PAIRING", 0),
        (Fork::Istanbul, 9, "BLAKE2F", 0),
        (Fork::Cancun, 10, "KZG_POINT_EVALUATION", 1),
        (Fork::Prague, 17, "BLS12_MAP_FP2_TO_G2", 5),
        (Fork::Osaka, 18, "P256VERIFY", 5),
    ] {
        let contracts = world.executor.contracts(fork);
        assert_eq!(contracts.precompiles.len(), precompiles, "{fork:?}");
        assert_eq!(contracts.precompiles.last().unwrap().name, last, "{fork:?}");
        assert!(contracts.precompiles.is_sorted_by_key(|contract| contract.address), "{fork:?}");
        assert_eq!(contracts.system.len(), system, "{fork:?}");
    }
}
