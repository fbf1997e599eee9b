//! Calls: results, refusals, limits and interruption.

use super::support::*;
use node_core::backend::BackendError;
use node_core::context::{Context, Interrupted};
use node_core::executor::{
    AccountOverride, BlockOverrides, Call, CallFailure, CallOutcome, ExecutionError, Property, StorageOverride,
    TransactionError,
};
use node_core::protocol::Fork;
use node_core::waiting;
use node_types::consensus::AccessListItem;
use node_types::{Address, Bytes, H256, U256, keccak256};
use std::time::Duration;

/// Returns the word on top of the stack.
const RETURN_WORD: &str = "5f5260205ff3";

fn call() -> Call {
    Call { from: ALICE, to: Some(CONTRACT), ..Call::default() }
}

fn returned(outcome: CallOutcome) -> Bytes {
    match outcome {
        CallOutcome::Returned { output, .. } => output,
        CallOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

fn failed(outcome: CallOutcome) -> CallFailure {
    match outcome {
        CallOutcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn refused(outcome: Result<CallOutcome, ExecutionError>) -> TransactionError {
    match outcome {
        Err(ExecutionError::Refused(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Runs code and returns the word that it leaves on the stack.
fn returned_word(world: &World, call: &Call) -> U256 {
    word(&returned(world.call(call).unwrap()))
}

#[test]
fn calls_use_the_environment_of_the_block_and_the_state_after_it() {
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("43{RETURN_WORD}")).build();
    assert_eq!(returned_word(&world, &call()), wei(0));
    world.extend(&[]);
    assert_eq!(returned_word(&world, &call()), wei(1));
    let balance = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("3331{RETURN_WORD}")).build();
    assert_eq!(returned_word(&balance, &call()), wei(1000) * wei(ETHER), "the balance of the caller");
}

#[test]
fn fee_opcodes_return_zero_without_a_gas_price() {
    for (name, opcode, price, expected) in [
        ("BASEFEE without a price", "48", 0, 0),
        ("BASEFEE with a price", "48", 10, BASE_FEE),
        ("BLOBBASEFEE without a price, which is that of blobs", "4a", 0, 1),
        ("BLOBBASEFEE with a price", "4a", 10, 1),
        ("GASPRICE without a price", "3a", 0, 0),
        ("GASPRICE with a price", "3a", 10, 10),
    ] {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("{opcode}{RETURN_WORD}")).build();
        assert_eq!(returned_word(&world, &Call { gas_price: wei(price), ..call() }), wei(expected), "{name}");
    }
}

#[test]
fn a_block_with_another_number_knows_the_ancestors_of_its_block() {
    let code = format!("5f3540{RETURN_WORD}");
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).build();
    for _ in 0..3 {
        world.extend(&[]);
    }
    let hash = |number: u64| world.view.canonical_hash(number).unwrap().unwrap();
    let overrides = BlockOverrides { number: Some(5), ..BlockOverrides::default() };
    let ask = |number: u64| Call {
        input: slot(number).as_bytes().to_vec().into(),
        block_overrides: overrides.clone(),
        ..call()
    };
    for (number, expected) in [(0, hash(0)), (1, hash(1)), (2, hash(2)), (3, H256::zero()), (4, H256::zero())] {
        assert_eq!(returned_word(&world, &ask(number)), U256::from_big_endian(expected.as_bytes()), "{number}");
    }
}

#[test]
fn rejects_prices_that_the_sender_cannot_pay() {
    let world = Genesis::at(Fork::Osaka).balance(ALICE, wei(1_000_000)).build();
    let balance = wei(1_000_000);
    let short = |required: u64, fees_exceed_value| TransactionError::InsufficientFunds {
        balance,
        required: wei(required),
        fees_exceed_value,
    };
    let priced = |price: u64, gas, value: u64| Call { gas_price: wei(price), gas, value: wei(value), ..call() };
    for (name, call, expected) in [
        (
            "below the base fee",
            priced(6, None, 0),
            TransactionError::FeeCapTooLow { price: Property::GasPrice, cap: wei(6), base_fee: BASE_FEE },
        ),
        ("gas", priced(10, Some(100_001), 0), short(1_000_010, true)),
        ("gas and value", priced(10, Some(100_000), 1), short(1_000_001, true)),
        ("value alone", priced(0, None, 1_000_001), short(1_000_001, false)),
        // The cost is whole, even where the value or the blobs alone are too expensive.
        ("value with gas", priced(10, Some(100_000), 1_000_001), short(2_000_001, false)),
        ("value without gas", priced(10, None, 1_000_001), short(1_210_001, false)),
        (
            "blobs with gas",
            Call {
                blob_versioned_hashes: vec![H256([1; 32])],
                max_fee_per_blob_gas: wei(10),
                ..priced(10, Some(100_000), 1)
            },
            short(10 * 131_072 + 1_000_001, true),
        ),
        ("not even the intrinsic gas", priced(48, None, 0), short(48 * 21_000, true)),
        (
            "a price beyond 128 bits",
            Call { gas_price: U256::MAX, gas: Some(100_000), ..call() },
            TransactionError::InsufficientFunds { balance, required: U256::MAX, fees_exceed_value: true },
        ),
    ] {
        assert_eq!(refused(world.call(&call)), expected, "{name}");
    }
    for (name, call) in [
        ("exactly", priced(10, Some(100_000), 0)),
        ("as much gas as can be paid", priced(10, None, 500_000)),
        ("all value, no price", priced(0, None, 1_000_000)),
        ("from an account without ether", Call { from: BOB, ..call() }),
    ] {
        assert_eq!(returned(world.call(&call).unwrap()), Bytes::new(), "{name}");
    }
}

#[test]
fn some_rules_for_transactions_do_not_apply_to_calls() {
    // The sender has code and a nonce, and the gas exceeds the block's limit and the cap of EIP-7825.
    let gas_left = format!("5a{RETURN_WORD}");
    let world = Genesis::at(Fork::Osaka).code(ALICE, "00").nonce(ALICE, 9).code(CONTRACT, &gas_left).build();
    let context = Context::unbounded().with_gas_budget(100_000_000);
    let outcome = world.call_within(&context, &Call { gas: Some(GAS_LIMIT + 1), ..call() }).unwrap();
    assert_eq!(word(&returned(outcome)), wei(GAS_LIMIT + 1 - 21_000 - 2));
}

#[test]
fn gas_is_bounded_by_the_budget() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("5a{RETURN_WORD}")).build();
    let given = |gas, budget| {
        let context = Context::unbounded().with_gas_budget(budget);
        world.call_within(&context, &Call { gas, ..call() })
    };
    for (gas, budget, expected) in [
        (None, 50_000, 50_000),
        (Some(40_000), 50_000, 40_000),
        (Some(60_000), 50_000, 50_000),
        (Some(u64::MAX), u64::MAX, u64::MAX),
        (None, u64::MAX, u64::MAX),
    ] {
        let left = word(&returned(given(gas, budget).unwrap()));
        assert_eq!(left, wei(expected - 21_000 - 2), "{gas:?} of {budget}");
    }
    let intrinsic = TransactionError::IntrinsicGas { limit: 20_999, required: 21_000 };
    assert_eq!(refused(given(Some(20_999), 50_000)), intrinsic, "requested gas");
    for gas in [None, Some(50_000)] {
        assert_eq!(failed(given(gas, 20_999).unwrap()), CallFailure::GasCap { cap: 20_999 }, "{gas:?}");
    }
}

#[test]
fn failures_have_a_reason() {
    let error = "08c379a0 0000000000000000000000000000000000000000000000000000000000000020
        0000000000000000000000000000000000000000000000000000000000000004 6e6f7065";
    let reverted = |reason: Option<&str>, output| CallFailure::Reverted { reason: reason.map(str::to_owned), output };
    let halted = |reason: &str| CallFailure::Halted { reason: reason.to_owned(), out_of_gas: reason == "out of gas" };
    // The code reverts with the call data.
    let echo = "365f5f37365ffd";
    for (name, code, input, expected) in [
        ("a reason", echo, hex(error), reverted(Some("nope"), hex(error))),
        ("no reason", echo, hex("1234"), reverted(None, hex("1234"))),
        ("nothing", echo, Bytes::new(), reverted(None, Bytes::new())),
        ("INVALID", "fe", Bytes::new(), halted("invalid opcode: INVALID")),
        ("a jump astray", "600056", Bytes::new(), halted("invalid jump destination")),
        ("an empty stack", "01", Bytes::new(), halted("stack underflow (0 <=> 2)")),
        ("no gas left", "5b5f56", Bytes::new(), halted("out of gas")),
    ] {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        assert_eq!(failed(world.call(&Call { input, ..call() }).unwrap()), expected, "{name}");
    }
}

#[test]
fn a_creation_returns_the_code_it_would_deploy() {
    let world = Genesis::at(Fork::Osaka).build();
    let create = |input| Call { to: None, input, ..call() };
    assert_eq!(returned(world.call(&create(hex("605b60005360016000f3"))).unwrap()), hex("5b"));
    assert_eq!(returned(world.call(&create(Bytes::new())).unwrap()), Bytes::new());
    let failure = failed(world.call(&create(hex("60ef60005360016000f3"))).unwrap());
    assert_eq!(
        failure,
        CallFailure::Halted { reason: "invalid code: must not begin with 0xef".into(), out_of_gas: false }
    );
    let too_long = TransactionError::InitCodeTooLong { length: 49_153, limit: 49_152 };
    assert_eq!(refused(world.call(&create(vec![0; 49_153].into()))), too_long);
}

#[test]
fn calls_change_nothing() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f54600101806000556000 5460205260206020f3").build();
    for _ in 0..2 {
        assert_eq!(returned_word(&world, &call()), wei(1));
    }
}

#[test]
fn overrides_apply_to_one_call() {
    let balance = format!("7f{}31{RETURN_WORD}", H256::from(BOB).0.map(|byte| format!("{byte:02x}")).concat());
    let hash = format!("7f{}3f{RETURN_WORD}", H256::from(BOB).0.map(|byte| format!("{byte:02x}")).concat());
    let load = |number: u8| format!("60{number:02x}54{RETURN_WORD}");
    let of = |address, change: AccountOverride| Call { overrides: [(address, change)].into(), ..call() };
    let storage = |storage| AccountOverride { storage, ..AccountOverride::default() };
    let slots = || [(slot(1), wei(111)), (slot(3), wei(333)), (slot(4), wei(0))].into();
    let code = |code: &str| AccountOverride { code: Some(hex(code)), ..AccountOverride::default() };
    for (name, code, call, expected) in [
        ("balance", balance.clone(), of(BOB, AccountOverride { balance: Some(wei(5)), ..Default::default() }), wei(5)),
        (
            "balance beyond all",
            balance,
            of(BOB, AccountOverride { balance: Some(U256::MAX), ..Default::default() }),
            U256::MAX,
        ),
        ("hash of code", hash, of(BOB, code("6000")), word(keccak256(hex("6000")).as_bytes())),
        ("code", "fe".into(), of(CONTRACT, code(&format!("602a{RETURN_WORD}"))), wei(42)),
        ("patched", load(1), of(CONTRACT, storage(StorageOverride::Patch(slots()))), wei(111)),
        ("patched, another slot", load(2), of(CONTRACT, storage(StorageOverride::Patch(slots()))), wei(22)),
        ("patched to zero", load(4), of(CONTRACT, storage(StorageOverride::Patch(slots()))), wei(0)),
        ("replaced", load(3), of(CONTRACT, storage(StorageOverride::Replace(slots()))), wei(333)),
        ("replaced, another slot", load(2), of(CONTRACT, storage(StorageOverride::Replace(slots()))), wei(0)),
        ("kept", load(2), of(CONTRACT, storage(StorageOverride::Keep)), wei(22)),
    ] {
        let world = Genesis::at(Fork::Osaka)
            .code(CONTRACT, &code)
            .slot(CONTRACT, 1, 11)
            .slot(CONTRACT, 2, 22)
            .slot(CONTRACT, 4, 44)
            .build();
        assert_eq!(returned_word(&world, &call), expected, "{name}");
    }
    // The nonce determines the address of a new contract: CREATE(0, 0, 0).
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("5f5f5ff0{RETURN_WORD}")).build();
    let nonce = AccountOverride { nonce: Some(7), ..AccountOverride::default() };
    assert_ne!(returned_word(&world, &of(CONTRACT, nonce)), returned_word(&world, &call()));
    let exhausted = AccountOverride { nonce: Some(u64::MAX), ..AccountOverride::default() };
    assert_eq!(returned_word(&world, &of(CONTRACT, exhausted)), wei(0));
}

#[test]
fn the_code_of_a_precompile_can_be_replaced() {
    let world = Genesis::at(Fork::Osaka).build();
    let identity = Address::from_low_u64_be(4);
    let input = Bytes::from(&[7; 32][..]);
    let plain = Call { to: Some(identity), input, ..call() };
    let forty_two = AccountOverride { code: Some(hex(&format!("602a{RETURN_WORD}"))), ..AccountOverride::default() };
    let rich = AccountOverride { balance: Some(wei(5)), ..AccountOverride::default() };
    let overridden = |change| Call { overrides: [(identity, change)].into(), ..plain.clone() };
    assert_eq!(returned_word(&world, &overridden(forty_two)), wei(42));
    // An override without code does not replace the precompile, and neither does the previous call.
    for call in [overridden(rich), plain.clone()] {
        assert_eq!(returned_word(&world, &call), word(&[7; 32]));
    }
}

#[test]
fn an_override_can_fund_the_sender() {
    let world = Genesis::at(Fork::Osaka).build();
    let rich = AccountOverride { balance: Some(wei(100)), ..AccountOverride::default() };
    let call = Call { from: BOB, value: wei(100), overrides: [(BOB, rich)].into(), ..call() };
    assert_eq!(returned(world.call(&call).unwrap()), Bytes::new());
    let poor = Call { overrides: Default::default(), ..call };
    let expected =
        TransactionError::InsufficientFunds { balance: wei(0), required: wei(100), fees_exceed_value: false };
    assert_eq!(refused(world.call(&poor)), expected);
}

#[test]
fn the_deadline_ends_endless_code() {
    // An endless loop, endless recursive calls, and endless recursive creations.
    for (name, code) in [
        ("JUMP", "5b5f56"),
        ("JUMPI", "5b60015f57"),
        ("STATICCALL", "5b5f5f5f5f305afa505f56"),
        ("recursion", "5f5f5f5f305afa 5f5f5f5f305afa 5f5f5f5f305afa 5f5f5f5f305afa"),
        ("CREATE", "5b5f5f5ff0505f56"),
        // A megabyte at a time, so that 1,024 iterations would take seconds.
        ("KECCAK256", "5b620fffff5f20505f56"),
        ("CODECOPY", "5b620fffff5f5f395f56"),
        ("SHA-256", "5b5f5f620fffff5f60025afa505f56"),
    ] {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        let context = Context::unbounded().with_gas_budget(u64::MAX / 2).with_timeout(Duration::from_millis(50));
        let outcome = world.call_within(&context, &call());
        assert!(
            matches!(outcome, Err(ExecutionError::Interrupted(Interrupted::DeadlineExceeded))),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn a_cancelled_call_ends() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5b5f56").build();
    let context = Context::unbounded();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            context.cancel();
        });
        let outcome = world.call_within(&context, &call());
        assert!(matches!(outcome, Err(ExecutionError::Interrupted(Interrupted::Cancelled))), "{outcome:?}");
    });
}

#[test]
fn a_backend_error_keeps_its_source() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("600154{RETURN_WORD}")).build();
    // The state as of an unknown block.
    let header = node_types::consensus::Header { number: 7, ..world.head() };
    let context = Context::unbounded();
    let outcome = node_core::executor::Executor::call(&world.executor, &context, &*world.view, &header, &call());
    assert!(matches!(outcome, Err(ExecutionError::Backend(BackendError::UnknownBlock(7)))), "{outcome:?}");
    assert_eq!(world.view.head().number, 0);
}

/// Threads that serve many clients leave long calls to other threads.
#[test]
fn work_that_must_not_take_long_refuses_long_calls() {
    let short = |world: &World, call: &Call| waiting::without_waiting(|| world.call(call)).map(Result::unwrap);
    let world = |code: &str| Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
    let call = |to, input: &str| Call { from: ALICE, to: Some(to), input: hex(input), ..Call::default() };
    let precompile = |number| Address::from_low_u64_be(number);
    let any = world("");
    // Memory to hash, in bytes.
    for (code, runs) in [("62010000 5f 20", true), ("62010001 5f 20", false), ("5f 19 5f 20", false)] {
        assert_eq!(short(&world(code), &call(CONTRACT, "")).is_some(), runs, "{code}");
    }
    // Memory to return or to revert with.
    for (code, runs) in [("62010000 5f f3", true), ("62010001 5f f3", false), ("62010001 5f fd", false)] {
        assert_eq!(short(&world(code), &call(CONTRACT, "")).is_some(), runs, "{code}");
    }
    // What is prepared before the code runs.
    let overrides = [(BOB, AccountOverride::default())].into();
    let access_list = vec![AccessListItem { address: BOB, storage_keys: Vec::new() }];
    for (call, runs) in [
        (call(BOB, ""), true),
        (Call { overrides, ..call(BOB, "") }, false),
        (Call { access_list, ..call(BOB, "") }, false),
    ] {
        assert_eq!(short(&any, &call).is_some(), runs, "{call:?}");
    }
    // With more gas, a single instruction could allocate much memory.
    for (gas, runs) in [(50_000_000, true), (50_000_001, false)] {
        let context = Context::unbounded().with_gas_budget(gas);
        let found = waiting::without_waiting(|| any.call_within(&context, &call(BOB, "")));
        assert_eq!(found.is_some(), runs, "{gas}");
    }
    for (number, input, runs) in [(2, 2_048, true), (2, 2_049, false), (4, 100, true), (5, 96, false), (9, 213, false)]
    {
        let call = call(precompile(number), &"00".repeat(input));
        assert_eq!(short(&any, &call).is_some(), runs, "{number}, {input} bytes");
    }
    // A cached result takes no time.
    let pairing = call(precompile(8), "");
    assert_eq!(short(&any, &pairing), None);
    let outcome = any.call(&pairing).unwrap();
    assert_eq!(short(&any, &pairing), Some(outcome));
    // Slow instructions are interrupted soon after the slice, with and without jumps.
    for code in [&format!("5b {} 602156", "80800a50".repeat(6_000)), &"5a5450".repeat(8_000), &"5a3150".repeat(8_000)] {
        let slow = world(&format!("7f {} {code}", "ff".repeat(32)));
        let slice = Context::unbounded().with_timeout(Duration::from_micros(100));
        assert!(waiting::without_waiting(|| slow.call_within(&slice, &call(CONTRACT, ""))).is_none());
    }
}
