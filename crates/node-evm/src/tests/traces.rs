//! Traces of calls and transactions: content, memory limits and interruption.

use super::support::*;
use node_core::context::{Context, Interrupted};
use node_core::executor::{
    AccessListOutcome, Call, CallFailure, CallOutcome, EstimateOutcome, ExecutionError, Executor, TraceError, Tracing,
    TransactionError, WriteTrace,
};
use node_core::protocol::Fork;
use node_types::buffer::{Allowance, BufferFull, JsonBuffer};
use node_types::consensus::{AccessListItem, Header, LegacyTransaction};
use node_types::{Address, U256};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::time::Duration;

const CALLEE: Address = node_types::H160([0xca; 20]);
const BUDGET: u64 = 50_000_000;

const CALLS: &str = r#"{"tracer":"callTracer"}"#;
const CALLS_WITH_LOGS: &str = r#"{"tracer":"callTracer","tracerConfig":{"withLog":true}}"#;
const FLAT_CALLS: &str = r#"{"tracer":"flatCallTracer"}"#;
const PRESTATE: &str = r#"{"tracer":"prestateTracer"}"#;
const SELECTORS: &str = r#"{"tracer":"4byteTracer"}"#;
const NOTHING: &str = r#"{"tracer":"noopTracer"}"#;
const BARE: &str = r#"{"disableStack":true,"disableStorage":true}"#;

/// Traces with geth's options, within `max_bytes`.
fn tracing(options: &str, max_bytes: u64) -> Tracing {
    Tracing { tracer: Some(RawValue::from_string(options.to_owned()).unwrap().into()), max_bytes }
}

fn call() -> Call {
    Call { from: ALICE, to: Some(CONTRACT), gas: Some(100_000), ..Call::default() }
}

fn header(world: &World) -> Header {
    Header { base_fee_per_gas: Some(BASE_FEE), beneficiary: MINER, ..world.head() }
}

fn trace_within(world: &World, context: &Context, call: &Call, tracing: &Tracing) -> Result<Value, TraceError> {
    let mut out = JsonBuffer::default();
    world.executor.trace_call(context, &*world.view, &header(world), call, tracing, &mut out)?;
    Ok(serde_json::from_slice(&out).unwrap())
}

fn trace(world: &World, call: &Call, options: &str) -> Value {
    let context = Context::unbounded().with_gas_budget(BUDGET);
    trace_within(world, &context, call, &tracing(options, 1 << 20)).unwrap()
}

fn access_list(world: &World, call: &Call) -> Result<AccessListOutcome, ExecutionError> {
    let context = Context::unbounded().with_gas_budget(BUDGET);
    world.executor.access_list(&context, &*world.view, &header(world), call)
}

#[test]
fn struct_logs_contain_what_is_enabled() {
    // Stores 7 at slot 1, copies it to memory and reverts with that word.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "6007600155 6001545f52 60205ffd").build();
    let word = |n: u64| format!("0x{n:064x}");
    let step = |pc: u64, op: &str, gas: u64, cost: u64, stack: &[&str]| json!({ "pc": pc, "op": op, "gas": gas, "gasCost": cost, "depth": 1, "stack": stack });
    let with = |mut step: Value, name: &str, value: Value| {
        step[name] = value;
        step
    };
    let slots = json!({ word(1): word(7) });
    let memory = json!([word(7)]);
    // Gas: 3 per push (2 for PUSH0), 22,100 to set a cold slot, 100 to read a warm one, 3 + 3 for a word of memory.
    let expected = [
        step(0, "PUSH1", 79_000, 3, &[]),
        step(2, "PUSH1", 78_997, 3, &["0x7"]),
        with(step(4, "SSTORE", 78_994, 22_100, &["0x7", "0x1"]), "storage", slots.clone()),
        step(5, "PUSH1", 56_894, 3, &[]),
        with(step(7, "SLOAD", 56_891, 100, &["0x1"]), "storage", slots),
        step(8, "PUSH0", 56_791, 2, &["0x7"]),
        step(9, "MSTORE", 56_789, 6, &["0x7", "0x0"]),
        with(step(10, "PUSH1", 56_783, 3, &[]), "memory", memory.clone()),
        with(step(12, "PUSH0", 56_780, 2, &["0x20"]), "memory", memory.clone()),
        with(step(13, "REVERT", 56_778, 0, &["0x20", "0x0"]), "memory", memory),
    ];
    let got = trace(&world, &call(), r#"{"enableMemory":true,"enableReturnData":true}"#);
    assert_eq!(got["gas"], 100_000 - 56_778);
    assert_eq!(got["failed"], true);
    assert_eq!(got["returnValue"], json!(word(7)));
    for (index, expected) in expected.iter().enumerate() {
        assert_eq!(got["structLogs"][index], *expected, "step {index}");
    }
    assert_eq!(got["structLogs"].as_array().unwrap().len(), expected.len());

    let got = trace(&world, &call(), r#"{"disableStack":true,"disableStorage":true,"limit":3}"#);
    let steps = got["structLogs"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    for step in steps {
        let names: Vec<_> = step.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["depth", "gas", "gasCost", "op", "pc"]);
    }
}

fn digits(address: Address) -> String {
    format!("{address:#x}")
}

#[test]
fn records_warm_storage() {
    // Calls the callee, which reads its slot 1; then reads slot 1 and stores to slot 2 the value it has. All slots are
    // warm.
    let code = format!("5f5f5f5f5f 73{} 5af150 60015450 6009600255 00", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).slot(CONTRACT, 1, 7).slot(CONTRACT, 2, 9);
    let world = world.code(CALLEE, "60015400").slot(CALLEE, 1, 3).build();
    let warm = |address, storage_keys| AccessListItem { address, storage_keys };
    let access_list = vec![warm(CONTRACT, vec![slot(1), slot(2)]), warm(CALLEE, vec![slot(1)])];
    let call = Call { access_list, ..call() };
    let word = |n: u64| format!("0x{n:064x}");
    let of = |op: &str, options: &str| {
        let got = trace(&world, &call, options);
        let steps = got["structLogs"].as_array().unwrap().iter().filter(|step| step["op"] == op);
        steps.map(|step| step["storage"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("SLOAD", "{}"), [json!({ word(1): word(3) }), json!({ word(1): word(7) })]);
    assert_eq!(of("SSTORE", "{}"), [json!({ word(1): word(7), word(2): word(9) })]);
    // Instructions after the limit do not change the records before it.
    assert_eq!(of("SLOAD", r#"{"limit":10}"#), [json!({ word(1): word(3) })]);
    assert_eq!(of("SLOAD", r#"{"disableStorage":true}"#), [Value::Null, Value::Null]);
}

/// Returns a contract that sends 5 wei to a callee, which logs a topic and reverts if it gets data.
fn calling() -> World {
    let to = "ca".repeat(20);
    Genesis::at(Fork::Osaka)
        .code(CONTRACT, &format!("5f5f 365f 6005 73{to} 5a f1 00"))
        .code(CALLEE, "36600a57 60075f5fa1 00 5b 5f5ffd")
        .balance(CONTRACT, wei(9))
        .build()
}

#[test]
fn traces_calls_as_a_tree() {
    let world = calling();
    let got = trace(&world, &call(), CALLS_WITH_LOGS);
    let outer = &got["calls"][0];
    assert_eq!(
        (&got["type"], &got["from"], &got["to"]),
        (&json!("CALL"), &json!(digits(ALICE)), &json!(digits(CONTRACT)))
    );
    assert_eq!((&got["gas"], &got["value"], &got["input"]), (&json!("0x186a0"), &json!("0x0"), &json!("0x")));
    assert_eq!(
        (&outer["type"], &outer["from"], &outer["to"]),
        (&json!("CALL"), &json!(digits(CONTRACT)), &json!(digits(CALLEE)))
    );
    assert_eq!((&outer["value"], &outer["error"]), (&json!("0x5"), &Value::Null));
    let topic = format!("0x{:064x}", 7);
    assert_eq!(outer["logs"][0]["address"], json!(digits(CALLEE)));
    assert_eq!(outer["logs"][0]["topics"], json!([topic]));
    assert_eq!(got["calls"].as_array().unwrap().len(), 1);

    let top = trace(&world, &call(), r#"{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true}}"#);
    assert_eq!(top.get("calls"), None);
    assert_eq!(top["gasUsed"], got["gasUsed"]);

    let failing = Call { input: hex("01"), ..call() };
    let got = trace(&world, &failing, CALLS_WITH_LOGS);
    assert_eq!(got["calls"][0]["error"], "execution reverted");
    assert_eq!(got.get("error"), None);
    assert_eq!(got["calls"][0].get("logs"), None);
}

#[test]
fn a_failed_outermost_call_has_no_logs() {
    // Emits a log and reverts, or jumps to where it must not.
    for (code, error) in
        [("60075f5fa1 5f5ffd", "execution reverted"), ("60075f5fa1 5b602a56", "invalid jump destination")]
    {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        let got = trace(&world, &call(), CALLS_WITH_LOGS);
        assert_eq!((&got["error"], got.get("logs")), (&json!(error), None));
    }
}

#[test]
fn self_destructs_in_favor_of_the_contract_itself_are_traced() {
    // Destroys itself in favor of itself, or of the callee. The former keeps its balance from Cancun on.
    let callee = format!("73{}ff", "ca".repeat(20));
    for fork in [Fork::Shanghai, Fork::Osaka] {
        for (code, beneficiary) in [("30ff", CONTRACT), (&callee, CALLEE)] {
            let world = Genesis::at(fork).code(CONTRACT, code).balance(CONTRACT, wei(5)).build();
            let got = &trace(&world, &call(), CALLS)["calls"][0];
            assert_eq!((&got["type"], &got["value"]), (&json!("SELFDESTRUCT"), &json!("0x5")));
            assert_eq!((&got["from"], &got["to"]), (&json!(digits(CONTRACT)), &json!(digits(beneficiary))));
            let got = &trace(&world, &call(), FLAT_CALLS)[1]["action"];
            let expected =
                json!({ "address": digits(CONTRACT), "balance": "0x5", "refundAddress": digits(beneficiary) });
            assert_eq!(*got, expected);
        }
    }
    // Not if the instruction fails.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "30ff").build();
    let little = Call { gas: Some(21_000 + 100), ..call() };
    assert_eq!(trace(&world, &little, CALLS).get("calls"), None);
}

#[test]
fn errors_have_the_same_text_in_steps_and_calls() {
    // The code, and the error.
    let cases = [
        ("01", "stack underflow (0 <=> 2)"),
        ("5f8f", "stack underflow (1 <=> 16)"),
        ("5f5fa1", "stack underflow (2 <=> 3)"),
        ("5b5f5f600056", "stack limit reached 1024 (1023)"),
        (&format!("7f{}51", "ff".repeat(32)), "gas uint64 overflow"),
        ("64ffffffffff51", "out of gas"),
        ("3e", "stack underflow (0 <=> 3)"),
        ("60015f5f3e", "return data out of bounds"),
    ];
    for (code, error) in cases {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        assert_eq!(trace(&world, &call(), CALLS)["error"], error, "{code}");
        let steps = trace(&world, &call(), BARE);
        assert_eq!(steps["structLogs"].as_array().unwrap().last().unwrap()["error"], error, "{code}");
    }
    // Opcodes without a name.
    let code = format!("5f5f5f5f5f 73{} 5af1 21", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).code(CALLEE, "0c").build();
    let steps = trace(&world, &call(), BARE);
    let undefined: Vec<_> =
        steps["structLogs"].as_array().unwrap().iter().filter(|s| s.get("error").is_some()).collect();
    for (step, opcode) in undefined.iter().zip(["0xc", "0x21"]) {
        let name = format!("opcode {opcode} not defined");
        assert_eq!((&step["op"], &step["error"]), (&json!(name), &json!(format!("invalid opcode: {name}"))));
    }
    assert_eq!(undefined.len(), 2);
}

#[test]
fn calls_estimates_access_lists_and_traces_name_a_halt_alike() {
    // The code, whether it is init code, and the error.
    let long = "61c0005ff3";
    let cases = [
        ("fe", false, "invalid opcode: INVALID"),
        ("0c", false, "invalid opcode: opcode 0xc not defined"),
        ("5b5f5f600056", false, "stack limit reached 1024 (1023)"),
        ("5f5f5f5f5f5ff1", false, "stack underflow (6 <=> 7)"),
        ("5f5fa1", false, "stack underflow (2 <=> 3)"),
        ("90", false, "stack underflow (0 <=> 2)"),
        ("600056", false, "invalid jump destination"),
        ("60015f5f3e", false, "return data out of bounds"),
        (&format!("7f{}51", "ff".repeat(32)), false, "gas uint64 overflow"),
        ("61c0015f5ff0", false, "out of gas: max initcode size exceeded"),
        (long, true, "max code size exceeded"),
        ("60ef5f5360015ff3", true, "invalid code: must not begin with 0xef"),
        // 12,000 bytes of code, for 2,400,000 gas.
        ("612ee05ff3", true, "contract creation code storage out of gas"),
    ];
    for (code, is_creation, error) in cases {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        let gas = Some(if code == long { 20_000_000 } else { 1_000_000 });
        let call = match is_creation {
            true => Call { to: None, input: hex(code), gas, ..call() },
            false => Call { gas, ..call() },
        };
        let reason = |failure| match failure {
            CallFailure::Halted { reason, .. } => reason,
            other => panic!("{code}: {other:?}"),
        };
        let CallOutcome::Failed(failure) = world.call(&call).unwrap() else { panic!("{code}") };
        assert_eq!(reason(failure), error, "{code}");
        assert_eq!(access_list(&world, &call).unwrap().error.as_deref(), Some(error), "{code}");
        let got = trace(&world, &call, CALLS);
        assert_eq!(got["error"], error, "{code}");
        let context = Context::unbounded().with_gas_budget(BUDGET);
        let estimate = world.executor.estimate(&context, &*world.view, &header(&world), &call).unwrap();
        let EstimateOutcome::Failed(failure) = estimate else { panic!("{code}: {estimate:?}") };
        match error.starts_with("out of gas") {
            true => assert_eq!(failure, CallFailure::GasCap { cap: 1_000_000 }, "{code}"),
            false => assert_eq!(reason(failure), error, "{code}"),
        }
    }
}

#[test]
fn calls_estimates_and_traces_name_the_failure_of_a_precompile_alike() {
    let one = format!("{:064x}", 1);
    let zeros = |bytes: usize| "00".repeat(bytes);
    // A commitment and its versioned hash, with a value that is not that of the polynomial.
    let infinity = format!("c0{}", zeros(47));
    let versioned_hash = "010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014";
    let too_long = "one or more of base/exponent/modulus length exceeded 1024 bytes";
    let cases = [
        (0x05, format!("{:064x}{}", 1_025, zeros(64)), too_long),
        (0x06, format!("{one}{one}"), "point is not on curve"),
        (0x06, "ff".repeat(64), "invalid fp.Element encoding"),
        (0x07, format!("{one}{one}"), "point is not on curve"),
        (0x08, one.clone(), "bad elliptic curve pairing size"),
        (0x09, "00".to_owned(), "invalid input length"),
        (0x09, format!("{}02", zeros(212)), "invalid final flag"),
        (0x0a, "00".to_owned(), "invalid input length"),
        (0x0a, zeros(192), "mismatched versioned hash"),
        (0x0a, format!("{versioned_hash}{one}{one}{infinity}{infinity}"), "error verifying kzg proof"),
        (0x0a, format!("{versioned_hash}{}{infinity}{infinity}", "ff".repeat(64)), "error verifying kzg proof"),
        (0x0b, "00".to_owned(), "invalid input length"),
        (0x0b, format!("01{}", zeros(255)), "invalid field element top bytes"),
        (0x0b, format!("{}{one}{}", zeros(32), zeros(192)), "invalid point: not on curve"),
        (0x0c, String::new(), "invalid input length"),
        (0x0d, zeros(257), "invalid input length"),
        (0x0e, String::new(), "invalid input length"),
        (0x0f, zeros(383), "invalid input length"),
        (0x10, format!("{}{}", zeros(16), "ff".repeat(48)), "invalid fp.Element encoding"),
        (0x11, zeros(64), "invalid input length"),
    ];
    let calls = |code: &str| Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
    for (precompile, input, error) in cases {
        let direct = Call { to: Some(Address::from_low_u64_be(precompile)), input: hex(&input), ..call() };
        let world = calls("00");
        let CallOutcome::Failed(CallFailure::Halted { reason, .. }) = world.call(&direct).unwrap() else {
            panic!("{precompile:#x}")
        };
        assert_eq!(reason, error, "{precompile:#x}");
        let Ok(EstimateOutcome::Failed(CallFailure::Halted { reason, .. })) = world.estimate(&direct) else {
            panic!("{precompile:#x}")
        };
        assert_eq!(reason, error, "{precompile:#x}");
        assert_eq!(access_list(&world, &direct).unwrap().error.as_deref(), Some(error), "{precompile:#x}");
        assert_eq!(trace(&world, &direct, CALLS)["error"], error, "{precompile:#x}");
        let list = trace(&world, &direct, r#"{"tracer":"openEthereumTracer"}"#);
        assert_eq!(list[0]["error"], "Built-in failed", "{list}");
        // The caller of the precompile passes on its input, and succeeds.
        let inner = Call { input: hex(&input), ..call() };
        let traced = trace(&calls(&format!("365f5f37 5f5f365f5f60{precompile:02x}5af1")), &inner, CALLS);
        assert_eq!(traced["calls"][0]["error"], error, "{precompile:#x}");
        assert!(traced.get("error").is_none(), "{traced}");
    }
    // Before Osaka, no gas suffices for such lengths.
    let world = Genesis::at(Fork::Prague).build();
    let lengths = Call { to: Some(Address::from_low_u64_be(5)), input: hex(&"ff".repeat(96)), ..call() };
    assert_eq!(trace(&world, &lengths, CALLS)["error"], "out of gas");
}

#[test]
fn the_stack_is_checked_before_write_protection() {
    // The code of a contract that is called statically, and the error.
    for (code, error) in [
        ("55", "stack underflow (0 <=> 2)"),
        ("5f5d", "stack underflow (1 <=> 2)"),
        ("5f5fa1", "stack underflow (2 <=> 3)"),
        ("5ff0", "stack underflow (1 <=> 3)"),
        ("ff", "stack underflow (0 <=> 1)"),
        ("5f5f55", "write protection"),
        ("5f5f5ff0", "write protection"),
    ] {
        let world = Genesis::at(Fork::Osaka)
            .code(CONTRACT, &format!("5f5f5f5f73{}5afa", "ca".repeat(20)))
            .code(CALLEE, code)
            .build();
        assert_eq!(trace(&world, &call(), CALLS)["calls"][0]["error"], error, "{code}");
    }
}

#[test]
fn an_instruction_that_is_not_active_yet_has_a_name() {
    let world = Genesis::at(Fork::London).code(CONTRACT, "5f").build();
    let CallOutcome::Failed(failure) = world.call(&call()).unwrap() else { panic!("PUSH0 succeeded") };
    assert_eq!(failure, CallFailure::Halted { reason: "invalid opcode: PUSH0".into(), out_of_gas: false });
    assert_eq!(trace(&world, &call(), CALLS)["error"], "invalid opcode: PUSH0");
}

#[test]
fn steps_cost_what_geth_computes_before_it_executes_them() {
    let last = |code: &str, gas: u64| {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        let got = trace(&world, &Call { gas: Some(21_000 + gas), ..call() }, BARE);
        let step = got["structLogs"].as_array().unwrap().last().unwrap().clone();
        (step["gasCost"].as_u64().unwrap(), step["error"].clone())
    };
    let out_of_gas = json!("out of gas");
    // An addition, a slot that is read, memory, a hash, a log, and a call of a cold account.
    assert_eq!(last("5f5f01", 6), (3, out_of_gas.clone()));
    assert_eq!(last("5f54", 2 + 2_000), (2_100, out_of_gas.clone()));
    assert_eq!(last("5f6204000052", 3_000), (3 + 3 * 8_193 + 8_193 * 8_193 / 512, out_of_gas.clone()));
    assert_eq!(last("6110005f20", 1_000), (30 + 6 * 128 + 3 * 128 + 128 * 128 / 512, out_of_gas.clone()));
    assert_eq!(last("60205fa0", 100), (375 + 8 * 32 + 3, out_of_gas.clone()));
    assert_eq!(last("60015f55", 10_000), (22_100, out_of_gas));
    // A creation passes gas on, which is not its cost.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f5f5ff0").build();
    let got = trace(&world, &call(), BARE);
    let create = got["structLogs"].as_array().unwrap().iter().find(|step| step["op"] == "CREATE").unwrap();
    assert_eq!(create["gasCost"], 32_000);
}

#[test]
fn refunds_count_for_the_whole_transaction() {
    // The contract clears a slot and calls one that does nothing.
    let code = format!("5f5f55 5f5f5f5f5f 73{} 5af1 00", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).slot(CONTRACT, 0, 1).code(CALLEE, "5b00").build();
    let got = trace(&world, &call(), BARE);
    let inner = got["structLogs"].as_array().unwrap().iter().find(|step| step["depth"] == 2).unwrap();
    assert_eq!(inner["refund"], 4_800);
}

#[test]
fn logs_have_the_index_of_their_receipt() {
    // Logs, calls a contract that logs and reverts, and logs again.
    let code = format!("60015f5fa1 5f5f5f5f5f 73{} 5af150 60025f5fa1 00", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).code(CALLEE, "60035f5fa1 5f5ffd").build();
    let places = |options: &str| {
        let got = trace(&world, &call(), options);
        let logs = got["logs"].as_array().unwrap().clone();
        logs.iter().map(|log| [log["index"].clone(), log["position"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!(places(CALLS_WITH_LOGS), [["0x0", "0x0"], ["0x1", "0x1"]]);
    let top = r#"{"tracer":"callTracer","tracerConfig":{"withLog":true,"onlyTopCall":true}}"#;
    assert_eq!(places(top), [["0x0", "0x0"], ["0x1", "0x0"]]);
}

#[test]
fn calls_of_precompiles_by_delegation_are_listed() {
    // CALL, STATICCALL, DELEGATECALL and CALLCODE of the identity.
    let code = "5f5f5f5f5f60045af1 5f5f5f5f60045afa 5f5f5f5f60045af4 5f5f5f5f5f60045af2 00";
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
    for tracer in ["flatCallTracer", "openEthereumTracer"] {
        let got = trace(&world, &call(), &format!(r#"{{"tracer":"{tracer}"}}"#));
        let types: Vec<_> = got.as_array().unwrap().iter().map(|call| call["action"]["callType"].clone()).collect();
        assert_eq!(types, ["call", "delegatecall", "callcode"], "{tracer}");
        assert_eq!(got[0]["subtraces"], 2);
        assert_eq!(got[2]["traceAddress"], json!([1]));
    }
}

#[test]
fn lists_of_calls_have_the_gas_of_their_convention() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f5000").build();
    let gas = |tracer: &str| {
        let got = trace(&world, &call(), &format!(r#"{{"tracer":"{tracer}"}}"#));
        [got[0]["action"]["gas"].clone(), got[0]["result"]["gasUsed"].clone()]
    };
    assert_eq!(gas("flatCallTracer"), [json!("0x186a0"), json!(format!("{:#x}", 21_004))]);
    assert_eq!(gas("openEthereumTracer"), [json!(format!("{:#x}", 79_000)), json!("0x4")]);
}

#[test]
fn without_gas_a_sender_that_cannot_pay_for_it_lacks_funds() {
    let world = Genesis::at(Fork::Osaka).balance(ALICE, wei(1_000_000)).build();
    let call = Call { gas: None, gas_price: wei(48), ..call() };
    let expected = TransactionError::InsufficientFunds {
        balance: wei(1_000_000),
        required: wei(48 * 21_000),
        fees_exceed_value: true,
    };
    assert!(matches!(access_list(&world, &call), Err(ExecutionError::Refused(error)) if error == expected));
    let context = Context::unbounded().with_gas_budget(BUDGET);
    let traced = trace_within(&world, &context, &call, &tracing(CALLS, 1 << 20));
    assert!(matches!(traced, Err(TraceError::Execution(ExecutionError::Refused(error))) if error == expected));
}

#[test]
fn several_tracers_run_at_once() {
    let options = r#"{"tracer":"muxTracer","tracerConfig":{"callTracer":{"onlyTopCall":true},"4byteTracer":null}}"#;
    let got = trace(&calling(), &Call { input: hex("01020304"), ..call() }, options);
    assert_eq!(got["callTracer"]["to"], json!(digits(CONTRACT)));
    assert_eq!(got["4byteTracer"], json!({ "0x01020304-0": 1, "0x00000000-0": 1 }));
}

#[test]
fn differences_show_what_was_destroyed_and_cleared() {
    let diff = r#"{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}"#;
    let word = |n: u64| format!("0x{n:064x}");
    // Before Cancun: reads slot 1, then destroys itself in favor of an account that is empty.
    let code = format!("60015450 73{}ff", "ca".repeat(20));
    let world =
        Genesis::at(Fork::Shanghai).code(CONTRACT, &code).slot(CONTRACT, 1, 7).balance(CONTRACT, wei(5)).build();
    let got = trace(&world, &call(), diff);
    assert_eq!(got["pre"][digits(CONTRACT)]["storage"], json!({ word(1): word(7) }));
    assert_eq!(got["post"].get(digits(CONTRACT)), None);
    assert_eq!((got["pre"].get(digits(CALLEE)), &got["post"][digits(CALLEE)]["balance"]), (None, &json!("0x5")));
    // A slot that is cleared is missing afterwards.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f600155").slot(CONTRACT, 1, 7).build();
    let got = trace(&world, &call(), diff);
    assert_eq!(got["pre"][digits(CONTRACT)]["storage"], json!({ word(1): word(7) }));
    assert_eq!(got["post"][digits(CONTRACT)], json!({}));
    assert!(got["pre"][digits(CONTRACT)]["codeHash"].is_string());
    // Empty accounts are listed on request.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &format!("73{}31", "ca".repeat(20))).build();
    assert_eq!(trace(&world, &call(), PRESTATE).get(digits(CALLEE)), None);
    let all = r#"{"tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}}"#;
    assert_eq!(trace(&world, &call(), all)[digits(CALLEE)], json!({ "balance": "0x0" }));
}

#[test]
fn traces_calls_as_a_list() {
    let got = trace(&calling(), &call(), FLAT_CALLS);
    let places: Vec<_> = got.as_array().unwrap().iter().map(|call| &call["traceAddress"]).collect();
    assert_eq!(places, [&json!([]), &json!([0])]);
    assert_eq!(got[1]["action"]["value"], "0x5");
    let parity = r#"{"tracer":"flatCallTracer","tracerConfig":{"convertParityErrors":true}}"#;
    for (options, expected) in [(FLAT_CALLS, "execution reverted"), (parity, "Reverted")] {
        let got = trace(&calling(), &Call { input: hex("01"), ..call() }, options);
        assert_eq!((&got[0]["error"], &got[1]["error"]), (&Value::Null, &json!(expected)));
    }
}

#[test]
fn counts_selectors() {
    let world = calling();
    assert_eq!(trace(&world, &call(), SELECTORS), json!({}));
    let input = hex("01020304 0506");
    assert_eq!(trace(&world, &Call { input, ..call() }, SELECTORS), json!({ "0x01020304-2": 1, "0x00000000-2": 1 }));
}

#[test]
fn noop_traces_are_empty() {
    assert_eq!(trace(&calling(), &call(), NOTHING), json!({}));
}

#[test]
fn traces_states_before_and_after() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "6007600155 600254 00").slot(CONTRACT, 2, 9).build();
    let word = |n: u64| format!("0x{n:064x}");
    let got = trace(&world, &call(), PRESTATE);
    assert_eq!(got[digits(CONTRACT)]["code"], "0x600760015560025400");
    assert_eq!(got[digits(CONTRACT)]["storage"], json!({ word(1): word(0), word(2): word(9) }));
    assert_eq!(got[digits(ALICE)]["balance"], "0x3635c9adc5dea00000");
    assert_eq!(got.as_object().unwrap().len(), 2, "{got}");

    let diff = r#"{"tracer":"prestateTracer","tracerConfig":{"diffMode":true}}"#;
    let got = trace(&world, &call(), diff);
    assert_eq!(got["post"][digits(CONTRACT)], json!({ "storage": { word(1): word(7) } }));
    assert_eq!(got["pre"][digits(CONTRACT)]["code"], "0x600760015560025400");
    assert_eq!(got["post"][digits(ALICE)], json!({ "nonce": 1 }));

    let little = r#"{"tracer":"prestateTracer","tracerConfig":{"disableCode":true,"disableStorage":true}}"#;
    let got = trace(&world, &call(), little);
    assert_eq!((got[digits(CONTRACT)].get("code"), got[digits(CONTRACT)].get("storage")), (None, None));
}

#[test]
fn limits_the_memory_of_records() {
    let memory = r#"{"enableMemory":true,"disableStack":true,"disableStorage":true}"#;
    let first_steps = r#"{"disableStack":true,"disableStorage":true,"limit":9}"#;
    let precompiles = r#"{"tracer":"flatCallTracer","tracerConfig":{"includePrecompiles":true}}"#;
    // The code, the tracer, and whether a megabyte suffices.
    let cases = [
        ("an endless loop", "5b5f56", "{}", false),
        ("no stack", "5b5f56", BARE, false),
        ("the beginning of an endless loop", "5b5f56", first_steps, true),
        ("calls do not record steps", "5b5f56", CALLS, true),
        // Memory of 64 KiB, and 24 instructions.
        ("memory", "5f 61fff052 5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b 00", memory, false),
        ("the same without memory", "5f 61fff052 5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b 00", BARE, true),
        // Reads one slot after the other.
        ("slots", "5f 5b 8054 50 600101 600156", r#"{"disableStack":true}"#, false),
        // Calls itself with 64 KiB of data each time.
        ("call data", "5f5f 62010000 5f5f30 5a f1", CALLS, false),
        ("call data, flat", "5f5f 62010000 5f5f30 5a f1", precompiles, false),
        ("selectors only", "5f5f 62010000 5f5f30 5a f1", SELECTORS, true),
    ];
    for (name, code, options, fits) in cases {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, code).build();
        let context = Context::unbounded().with_gas_budget(BUDGET);
        let call = Call { gas: Some(BUDGET / 10), ..call() };
        let got = trace_within(&world, &context, &call, &tracing(options, 1 << 20));
        match (got, fits) {
            (Ok(_), true) | (Err(TraceError::TooLarge), false) => {}
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn counts_code_of_accounts_that_are_only_read() {
    // Reads the balance of an account with 20,000 bytes of code, which the trace would contain.
    let code = format!("73{}3100", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).bytecode(CALLEE, vec![0; 20_000].into()).build();
    let context = Context::unbounded();
    let within = |max_bytes| trace_within(&world, &context, &call(), &tracing(PRESTATE, max_bytes));
    assert!(matches!(within(20_000), Err(TraceError::TooLarge)));
    within(30_000).unwrap();
}

#[test]
fn the_deadline_ends_traced_code() {
    for options in [CALLS, NOTHING, SELECTORS, PRESTATE] {
        let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5b5f56").build();
        let context = Context::unbounded().with_timeout(Duration::from_millis(20));
        let call = Call { gas: Some(u64::MAX), ..call() };
        let error = trace_within(&world, &context, &call, &tracing(options, u64::MAX)).unwrap_err();
        let TraceError::Execution(ExecutionError::Interrupted(Interrupted::DeadlineExceeded)) = error else {
            panic!("{options}: {error:?}")
        };
    }
}

#[test]
fn refused_calls_have_no_trace() {
    let world = Genesis::at(Fork::Osaka).build();
    let context = Context::unbounded();
    let tracing = tracing(CALLS, 1 << 20);
    let call = Call { value: U256::MAX, ..call() };
    let error = trace_within(&world, &context, &call, &tracing).unwrap_err();
    let TraceError::Execution(ExecutionError::Refused(TransactionError::InsufficientFunds { .. })) = error else {
        panic!("{error:?}")
    };
}

#[test]
fn tracing_a_transaction_does_not_change_its_effects() {
    // Counts its calls in slot 0 and returns the number.
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, "5f54600101805f555f5260205ff3").build();
    let transactions: Vec<_> = (0..3).map(|nonce| send(LegacyTransaction { nonce, ..legacy() })).collect();
    let header = world.next_header();
    let plain = world.execute_with(&header, &transactions, &[], None).unwrap();
    let context = Context::unbounded();
    let begin = || world.executor.begin_block(&context, &*world.view, &header).unwrap();
    let tracing = tracing(CALLS, 1 << 20);
    let json = |write: &mut WriteTrace<'_>| {
        let mut out = JsonBuffer::default();
        write(&mut out).unwrap();
        serde_json::from_slice::<Value>(&out).unwrap()
    };
    let word = |n: usize| json!(format!("0x{n:064x}"));

    let mut block = begin();
    for (index, transaction) in transactions.iter().enumerate() {
        assert_eq!(json(&mut |out| block.trace(transaction, &tracing, out))["output"], word(index + 1));
    }
    let traced = block.finish(&[], None).unwrap();
    assert_eq!((traced.receipts, traced.changes), (plain.receipts, plain.changes));

    // Traces a transaction after others that are not traced, and then a call.
    let mut block = begin();
    block.transact(&transactions[0]).unwrap();
    assert_eq!(json(&mut |out| block.trace(&transactions[1], &tracing, out))["output"], word(2));
    let mut out = JsonBuffer::default();
    block.trace_call(&call(), &tracing, &mut out).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()["output"], word(3));

    // The trace has the position of the transaction.
    world.extend(&transactions);
    let flat = self::tracing(FLAT_CALLS, 1 << 20);
    let mut block = world.executor.begin_block(&context, &*world.view, &header).unwrap();
    block.transact(&transactions[0]).unwrap();
    let trace = json(&mut |out| block.trace(&transactions[1], &flat, out));
    assert_eq!((&trace[0]["blockNumber"], &trace[0]["transactionPosition"]), (&json!(1), &json!(1)));
    let hash = world.view.canonical_hash(1).unwrap().unwrap();
    assert_eq!(trace[0]["blockHash"], json!(format!("{hash:#x}")));
}

#[test]
fn returned_data_is_counted_once_however_many_steps_show_it() {
    // Calls the identity contract eight times with 0x8000 bytes, which it returns.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &"5f5f6180005f60045afa50".repeat(8)).build();
    let context = Context::unbounded().with_gas_budget(BUDGET);
    let options = r#"{"enableReturnData":true,"disableStack":true,"disableStorage":true}"#;
    let call = Call { gas: Some(1_000_000), ..call() };
    let within = |max_bytes| trace_within(&world, &context, &call, &tracing(options, max_bytes));
    assert!(matches!(within(8 * 0x8000), Err(TraceError::TooLarge)));
    let trace = within(10 * 0x8000).unwrap();
    let shown = trace["structLogs"].as_array().unwrap().iter().filter(|step| step["returnData"].is_string());
    assert!(shown.count() > 50);
}

struct Most(usize);

impl Allowance for Most {
    fn most(&self) -> usize {
        self.0
    }

    fn hold(&mut self, bytes: usize) -> Result<(), BufferFull> {
        if bytes > self.0 { Err(BufferFull::TooLong { limit: self.0 }) } else { Ok(()) }
    }
}

#[test]
fn a_trace_ends_when_its_json_does_not_fit() {
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &"5f50".repeat(5_000)).build();
    let context = Context::unbounded().with_gas_budget(BUDGET);
    let call = Call { gas: Some(1_000_000), input: vec![1; 20_000].into(), ..call() };
    let mux = r#"{"tracer":"muxTracer","tracerConfig":{"callTracer":{},"4byteTracer":{}}}"#;
    for options in [BARE, CALLS, FLAT_CALLS, PRESTATE, mux, r#"{"tracer":"openEthereumTracer"}"#] {
        let mut out = JsonBuffer::within(Most(10_000), 0);
        let tracing = tracing(options, u64::MAX);
        let trace = world.executor.trace_call(&context, &*world.view, &header(&world), &call, &tracing, &mut out);
        assert!(matches!(trace, Err(TraceError::Full(BufferFull::TooLong { limit: 10_000 }))), "{options}: {trace:?}");
        assert!(out.len() <= 10_000, "{options}");
    }
}

#[test]
fn access_lists_leave_out_sender_and_recipient() {
    // Reads its slots 1 and 2 and the balance of the callee, and then reverts if it gets data.
    let code = format!("600154 600254 73{}31 36 602157 00 5b 5f5ffd", "ca".repeat(20));
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, &code).build();
    let item = |address, slots: &[u64]| AccessListItem {
        address,
        storage_keys: slots.iter().map(|number| slot(*number)).collect(),
    };
    let got = access_list(&world, &call()).unwrap();
    assert_eq!(got.access_list, [item(CONTRACT, &[1, 2]), item(CALLEE, &[])]);
    assert_eq!(got.error, None);
    // EIP-2930: 2,400 per address and 1,900 per slot, after which three reads cost 100 each; then pushes and the rest.
    let list = 2 * 2_400 + 2 * 1_900;
    assert_eq!(got.gas_used - 21_000 - list - 300, 3 + 3 + 3 + 2 + 3 + 10);

    let got = access_list(&world, &Call { input: hex("01"), ..call() }).unwrap();
    assert_eq!(got.access_list, [item(CONTRACT, &[1, 2]), item(CALLEE, &[])]);
    assert_eq!(got.error.as_deref(), Some("execution reverted"));

    let nothing = access_list(&world, &Call { to: Some(BOB), gas: None, ..call() }).unwrap();
    assert_eq!(nothing, AccessListOutcome { access_list: Vec::new(), gas_used: 21_000, error: None });
}

#[test]
fn access_lists_take_as_many_runs_as_needed() {
    // Reads slot 1, and slot 2 only if less than 75,500 gas is left, which is the case with the list of the first run.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "6001545a 620126ec 11 600d57 00 5b 600254 00").build();
    let got = access_list(&world, &call()).unwrap();
    assert_eq!(got.access_list, [AccessListItem { address: CONTRACT, storage_keys: vec![slot(1), slot(2)] }]);
}

#[test]
fn an_access_list_only_grows() {
    let item = |slots: &[u64]| AccessListItem {
        address: CONTRACT,
        storage_keys: slots.iter().map(|number| slot(*number)).collect(),
    };
    // Reads slot 1 only if more than 7,500 gas is left, which is not the case with the list of the first run.
    let world = Genesis::at(Fork::Osaka).code(CONTRACT, "5a 611d4c 10 600957 00 5b 600154 00").build();
    let call = Call { gas: Some(30_000), ..call() };
    assert_eq!(access_list(&world, &call).unwrap().access_list, [item(&[1])]);

    // Slots that the caller lists stay, accounts that are warm anyway do not.
    let access_list = vec![item(&[7]), AccessListItem { address: ALICE, storage_keys: Vec::new() }];
    let listed = Call { gas: Some(90_000), access_list, ..call };
    assert_eq!(self::access_list(&world, &listed).unwrap().access_list, [item(&[1, 7])]);
}
