//! Gas estimates: a call succeeds with the estimate and fails with much less.

use super::support::*;
use node_core::context::Context;
use node_core::executor::{
    Call, CallFailure, CallOutcome, EstimateOutcome, ExecutionError, Property, TransactionError,
};
use node_core::protocol::Fork;
use node_types::U256;

fn call() -> Call {
    Call { from: ALICE, to: Some(CONTRACT), ..Call::default() }
}

fn gas(outcome: Result<EstimateOutcome, ExecutionError>) -> u64 {
    match outcome.unwrap() {
        EstimateOutcome::Gas(gas) => gas,
        EstimateOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

fn failed(outcome: Result<EstimateOutcome, ExecutionError>) -> CallFailure {
    match outcome.unwrap() {
        EstimateOutcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_succeeds_with_the_estimate_and_fails_with_much_less() {
    let stores = (1..=10).map(|n: u8| format!("60{n:02x}60{n:02x}55")).collect::<String>();
    let clears = (1..=10).map(|n: u8| format!("5f60{n:02x}55")).collect::<String>();
    // Passes on 63/64 of its gas with CALL(gas, BOB, 0, 0, 0, 0, 0) and reverts if that fails.
    let passes_on = format!("5f5f5f5f5f 73{BOB:x} 5af1 602257 5f5ffd 5b00");
    // Fails unless 500,000 gas are left: PUSH3 500000 GAS GT PUSH1 dest JUMPI REVERT.
    let demanding = "6207a1205a11600c575f5ffd5b00";
    for (name, code, needs_more_than_it_uses) in [
        ("nothing", "00", false),
        ("ten new slots", stores.as_str(), false),
        ("ten cleared slots", clears.as_str(), true),
        ("a callee", passes_on.as_str(), true),
        ("a demand", demanding, true),
    ] {
        let mut genesis = Genesis::at(Fork::Osaka).code(CONTRACT, code).code(BOB, &stores);
        if name == "ten cleared slots" {
            genesis = (1..=10).fold(genesis, |genesis, number| genesis.slot(CONTRACT, number, 1));
        }
        let world = genesis.build();
        let estimate = gas(world.estimate(&call()));
        let run = |gas| world.call(&Call { gas: Some(gas), ..call() });
        let Ok(CallOutcome::Returned { gas_used, .. }) = run(estimate) else {
            panic!("{name} fails with its estimate of {estimate}")
        };
        assert_eq!(gas_used < estimate * 98 / 100, needs_more_than_it_uses, "{name}: {gas_used} of {estimate} used");
        let less = estimate * 984 / 1000;
        assert!(
            !matches!(run(less), Ok(CallOutcome::Returned { .. })),
            "{name}: {estimate} is too much, {less} will do"
        );
    }
}

#[test]
fn a_plain_transfer_needs_exactly_21000() {
    let world = Genesis::at(Fork::Osaka).build();
    let transfer = Call { to: Some(BOB), value: wei(1), ..call() };
    assert_eq!(gas(world.estimate(&transfer)), 21_000);
    // To code, it is executed.
    let world = Genesis::at(Fork::Osaka).code(BOB, "600160005500").build();
    assert!(gas(world.estimate(&transfer)) > 43_000);
    let world = Genesis::at(Fork::Osaka).code(BOB, "fe").build();
    assert_eq!(
        failed(world.estimate(&transfer)),
        CallFailure::Halted { reason: "invalid opcode: INVALID".into(), out_of_gas: false }
    );
}

#[test]
fn estimates_include_the_floor_price_of_call_data() {
    let world = Genesis::at(Fork::Osaka).build();
    let call = Call { to: Some(BOB), input: vec![1; 1000].into(), ..call() };
    assert_eq!(gas(world.estimate(&call)), 61_000);
}

#[test]
fn estimates_respect_gas_caps() {
    // Uses all gas.
    let endless = Genesis::at(Fork::Osaka).code(CONTRACT, "5b5f56").balance(BOB, wei(1_000_000)).build();
    let prague = Genesis::at(Fork::Prague).code(CONTRACT, "5b5f56").build();
    let priced = |price: u64, value: u64| Call { from: BOB, gas_price: wei(price), value: wei(value), ..call() };
    for (name, world, call, cap) in [
        ("EIP-7825", &endless, call(), 1 << 24),
        ("the budget", &prague, call(), 50_000_000),
        ("the requested limit", &endless, Call { gas: Some(30_000), ..call() }, 30_000),
        ("the requested limit is too low for a transaction", &endless, Call { gas: Some(20_999), ..call() }, 1 << 24),
        ("a higher limit is requested", &endless, Call { gas: Some(u64::MAX), ..call() }, 1 << 24),
        ("the affordable limit", &endless, priced(10, 0), 100_000),
        ("the affordable limit after the value", &endless, priced(10, 500_000), 50_000),
    ] {
        assert_eq!(failed(world.estimate(&call)), CallFailure::GasCap { cap }, "{name}");
    }
    // The gas limit of the block.
    let header = node_types::consensus::Header { gas_limit: 40_000, ..prague.head() };
    let context = Context::unbounded();
    let outcome = node_core::executor::Executor::estimate(&prague.executor, &context, &*prague.view, &header, &call());
    assert_eq!(failed(outcome), CallFailure::GasCap { cap: 40_000 });
}

#[test]
fn refused_calls_have_no_estimate() {
    let world = Genesis::at(Fork::Osaka).balance(BOB, wei(1_000_000)).build();
    let from_bob = |price: u64, value: U256| Call { from: BOB, gas_price: wei(price), value, ..call() };
    for (name, call, expected) in [
        (
            "value",
            from_bob(0, wei(1_000_001)),
            TransactionError::InsufficientFunds {
                balance: wei(1_000_000),
                required: wei(1_000_001),
                fees_exceed_value: false,
            },
        ),
        (
            "value with a price",
            from_bob(10, U256::MAX),
            TransactionError::InsufficientFunds {
                balance: wei(1_000_000),
                required: U256::MAX,
                fees_exceed_value: false,
            },
        ),
        (
            "gas of a transfer with a price",
            from_bob(10, wei(1_000_000)),
            TransactionError::InsufficientFunds {
                balance: wei(1_000_000),
                required: wei(1_210_000),
                fees_exceed_value: false,
            },
        ),
        (
            "price",
            from_bob(6, wei(0)),
            TransactionError::FeeCapTooLow { price: Property::GasPrice, cap: wei(6), base_fee: BASE_FEE },
        ),
    ] {
        match world.estimate(&call) {
            Err(ExecutionError::Refused(error)) => assert_eq!(error, expected, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn reverts_are_reported() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "365f5f37365ffd").build();
    let input = hex("4e487b71 0000000000000000000000000000000000000000000000000000000000000012");
    let expected = CallFailure::Reverted {
        reason: Some("panic: division or modulo by zero (0x12)".into()),
        output: input.clone(),
    };
    assert_eq!(failed(world.estimate(&Call { input, ..call() })), expected);
}
