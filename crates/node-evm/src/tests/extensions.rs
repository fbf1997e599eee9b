//! Precompiles, settings and inspectors of the caller.

use super::support::*;
use crate::revm::Inspector;
use crate::revm::interpreter::interpreter_types::Jumps;
use crate::revm::interpreter::{CallInputs, CallOutcome as FrameOutcome, Interpreter};
use crate::{
    DatabaseError, EvmContext, EvmExecutor, Finished, PrecompileCall, PrecompileOutcome, Tracer, TracerOptions,
};
use node_core::backend::BackendError;
use node_core::context::Context;
use node_core::executor::{Call, CallFailure, CallOutcome, ExecutionError, Executor, TraceError, Tracing};
use node_core::protocol::Fork;
use node_core::waiting;
use node_types::buffer::JsonBuffer;
use node_types::consensus::{Header, LegacyTransaction, ReceiptOutcome};
use node_types::{Address, Bytes};
use serde_json::value::RawValue;

const BEEF: Address = node_types::H160([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xef]);

/// Calls 0xbeef with STATICCALL and the call data, and returns what that returns, after a word that is 1 if it
/// succeeded.
const CALLER: &str = "36 5f 5f 37 5f 5f 36 5f 61beef 5a fa 5f 52 3d 5f 6020 3e 3d 6020 01 5f f3";

/// Returns the call data in reverse, for 100 gas. Refuses call data that begins with 0xff, and fails for 0xfe.
fn reverse(call: PrecompileCall<'_, '_>) -> PrecompileOutcome {
    match call.input {
        [0xff, ..] => PrecompileOutcome::Reverted { gas_used: 100, output: Bytes::from([0x42]) },
        [0xfe, ..] => PrecompileOutcome::Failed("refused".to_owned()),
        [0xfd, ..] => PrecompileOutcome::Returned { gas_used: u64::MAX, output: Bytes::new() },
        input => PrecompileOutcome::Returned { gas_used: 100, output: input.iter().rev().copied().collect() },
    }
}

fn world() -> World {
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, CALLER).build();
    world.executor = EvmExecutor::new(world.spec.clone()).with_precompile(BEEF, reverse);
    world
}

fn call(to: Address, input: &[u8]) -> Call {
    Call { from: ALICE, to: Some(to), input: input.into(), ..Call::default() }
}

fn returned(outcome: CallOutcome) -> Bytes {
    match outcome {
        CallOutcome::Returned { output, .. } => output,
        CallOutcome::Failed(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn calls_and_contracts_reach_a_precompile() {
    let world = world();
    assert_eq!(returned(world.call(&call(BEEF, &[1, 2, 3])).unwrap())[..], [3, 2, 1]);
    let inner = returned(world.call(&call(CONTRACT, &[1, 2, 3])).unwrap());
    assert_eq!((word(&inner[..32]), &inner[32..]), (wei(1), [3, 2, 1].as_slice()));
    // In a block as in a call.
    let sent = LegacyTransaction { input: Bytes::from([1, 2, 3]), ..legacy() };
    let block = world.execute(&[send(sent)]).unwrap();
    assert_eq!(receipt(&block).outcome, ReceiptOutcome::Success(true));
    // Without the precompile there is nothing at the address.
    let plain = Genesis::at(Fork::Osaka).code(CONTRACT, CALLER).build();
    assert_eq!(returned(plain.call(&call(CONTRACT, &[1, 2, 3])).unwrap()).len(), 32);
}

#[test]
fn how_long_a_precompile_takes_is_unknown() {
    let world = world();
    for to in [BEEF, CONTRACT] {
        assert!(waiting::without_waiting(|| world.call(&call(to, &[1]))).is_none());
        returned(world.call(&call(to, &[1])).unwrap());
    }
}

#[test]
fn a_precompile_can_revert_fail_and_run_out_of_gas() {
    let world = world();
    let failed = |input: u8| match world.call(&call(BEEF, &[input])).unwrap() {
        CallOutcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    assert!(matches!(failed(0xff), CallFailure::Reverted { output, .. } if output[..] == [0x42]));
    assert!(matches!(failed(0xfe), CallFailure::Halted { reason, .. } if reason == "refused"));
    assert!(matches!(failed(0xfd), CallFailure::Halted { .. }));
    // A contract sees the failure, and what was returned.
    let reverted = returned(world.call(&call(CONTRACT, &[0xff])).unwrap());
    assert_eq!((word(&reverted[..32]), &reverted[32..]), (wei(0), [0x42].as_slice()));
    assert_eq!(word(&returned(world.call(&call(CONTRACT, &[0xfe])).unwrap())), wei(0));
}

/// Counts its calls in slot 0 of the account that it runs for, and returns the count. A static call only reads, and one
/// with call data reverts.
fn count(call: PrecompileCall<'_, '_>) -> PrecompileOutcome {
    counted(call).unwrap_or_else(PrecompileOutcome::NoState)
}

fn counted(mut call: PrecompileCall<'_, '_>) -> Result<PrecompileOutcome, DatabaseError> {
    let (account, first) = (call.address, slot(0));
    let count = call.slot(account, first)? + 1;
    if !call.is_static {
        call.set_slot(account, first, count)?;
    }
    let output = count.to_big_endian().to_vec().into();
    Ok(match call.input {
        [] => PrecompileOutcome::Returned { gas_used: 22_100, output },
        _ => PrecompileOutcome::Reverted { gas_used: 22_100, output },
    })
}

#[test]
fn a_precompile_reads_and_writes_the_state() {
    // Calls 0xbeef by CALL twice, the second time with a byte of call data, which reverts, then by STATICCALL.
    const CODE: &str =
        "5f 5f 5f 5f 5f 61beef 5a f1 50 5f 5f 6001 5f 5f 61beef 5a f1 50 6020 5f 5f 5f 61beef 5a fa 50 6020 5f f3";
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, CODE).slot(BEEF, 0, 7).balance(BEEF, wei(1)).build();
    world.executor = EvmExecutor::new(world.spec.clone()).with_precompile(BEEF, count);
    assert_eq!(word(&returned(world.call(&call(CONTRACT, &[])).unwrap())), wei(9));
    let block = world.execute(&[send(legacy()), send(LegacyTransaction { nonce: 1, ..legacy() })]).unwrap();
    assert_eq!(block.changes.accounts[&BEEF].storage[&slot(0)], wei(9));
}

#[test]
fn a_precompile_that_cannot_read_the_state_ends_the_operation() {
    let mut world = Genesis::at(Fork::Osaka).code(CONTRACT, CALLER).build();
    let lost = |_: PrecompileCall<'_, '_>| PrecompileOutcome::NoState(DatabaseError(BackendError::UnknownBlock(5)));
    world.executor = EvmExecutor::new(world.spec.clone()).with_precompile(BEEF, lost);
    for to in [BEEF, CONTRACT] {
        let error = world.call(&call(to, &[])).unwrap_err();
        assert!(matches!(error, ExecutionError::Backend(BackendError::UnknownBlock(5))), "{error:?}");
    }
}

#[test]
fn a_precompile_replaces_one_of_ethereum() {
    let identity = Address::from_low_u64_be(4);
    let mut world = Genesis::at(Fork::Osaka).build();
    assert_eq!(returned(world.call(&call(identity, &[1, 2])).unwrap())[..], [1, 2]);
    world.executor = EvmExecutor::new(world.spec.clone()).with_precompile(identity, reverse);
    assert_eq!(returned(world.call(&call(identity, &[1, 2])).unwrap())[..], [2, 1]);
}

#[test]
fn settings_apply_to_calls() {
    let big = Call { input: Bytes::from(vec![0; 60_000]), to: None, ..call(CONTRACT, &[]) };
    let mut world = world();
    assert!(world.call(&big).is_err(), "creation code of 60,000 bytes is over the limit of EIP-3860");
    world.executor = EvmExecutor::new(world.spec.clone())
        .with_configuration(|settings| settings.limit_contract_initcode_size = Some(100_000));
    assert!(world.call(&big).is_ok());
}

/// Counts instructions, and notes who is called.
#[derive(Default)]
struct Notes {
    instructions: usize,
    called: Vec<Address>,
}

impl<'a> Inspector<EvmContext<'a>> for Notes {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext<'a>) {
        let _ = interpreter.bytecode.opcode();
        self.instructions += 1;
    }

    fn call(&mut self, _: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<FrameOutcome> {
        self.called.push(Address::from(inputs.target_address.into_array()));
        None
    }
}

#[test]
fn an_inspector_sees_a_call_and_a_block() {
    let world = world();
    let (context, mut notes) = (Context::unbounded().with_gas_budget(1_000_000), Notes::default());
    let header = Header { base_fee_per_gas: Some(BASE_FEE), ..world.head() };
    let asked = call(CONTRACT, &[1, 2, 3]);
    let outcome = world.executor.inspect_call(&context, &*world.view, &header, &asked, &mut notes).unwrap();
    assert_eq!(outcome, world.executor.call(&context, &*world.view, &header, &asked).unwrap());
    assert_eq!((notes.instructions, notes.called), (22, vec![CONTRACT, BEEF]));

    let (next, mut notes) = (world.next_header(), Notes::default());
    let mut block = world.executor.inspect_block(&context, &*world.view, &next, &mut notes).unwrap();
    block.transact(&send(legacy())).unwrap();
    let outcome = block.finish(&[], None).unwrap();
    let plain = world.execute(&[send(legacy())]).unwrap();
    assert_eq!((outcome.receipts, outcome.changes), (plain.receipts, plain.changes));
    assert_eq!(notes.called.iter().filter(|called| **called == CONTRACT).count(), 1);
}

/// Counts the runs of one opcode.
struct Count {
    opcode: u8,
    seen: u64,
    max: u64,
}

impl Count {
    /// `tracerConfig` is the opcode.
    fn start(options: &TracerOptions<'_>) -> Result<Box<dyn Tracer>, String> {
        let opcode = options
            .config
            .and_then(|config| config.get().parse().ok())
            .ok_or("tracerConfig is missing or no opcode")?;
        Ok(Box::new(Self { opcode, seen: 0, max: options.max_bytes }))
    }
}

impl<'a> Inspector<EvmContext<'a>> for Count {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext<'a>) {
        self.seen += u64::from(interpreter.bytecode.opcode() == self.opcode);
    }
}

impl Tracer for Count {
    fn is_full(&self) -> bool {
        self.seen > self.max
    }

    fn finish(self: Box<Self>, run: Finished<'_, '_>, out: &mut JsonBuffer) -> Result<(), TraceError> {
        let text = format!("[{},{},{:?}]", self.seen, run.outcome.result.is_success(), run.place.index);
        out.extend_from_slice(text.replace("None", "null").replace("Some(0)", "0").as_bytes());
        Ok(())
    }
}

#[test]
fn a_tracer_of_ones_own_stands_beside_those_of_geth() {
    let mut world = world();
    world.executor = world.executor.with_tracer("count", Count::start);
    let (context, header) = (Context::unbounded(), Header { base_fee_per_gas: Some(BASE_FEE), ..world.head() });
    let trace = |options: &str, max_bytes| {
        let tracing = Tracing { tracer: Some(RawValue::from_string(options.to_owned()).unwrap().into()), max_bytes };
        let asked = call(CONTRACT, &[1, 2, 3]);
        let mut out = JsonBuffer::default();
        let trace = world.executor.trace_call(&context, &*world.view, &header, &asked, &tracing, &mut out);
        trace.map(|()| String::from_utf8(out.into()).unwrap())
    };
    // CALLER has PUSH0 (0x5f) eight times.
    let pushes = CALLER.split(' ').filter(|code| *code == "5f").count();
    assert_eq!(trace(r#"{"tracer":"count","tracerConfig":95}"#, 100).unwrap(), format!("[{pushes},true,null]"));
    assert!(matches!(trace(r#"{"tracer":"count","tracerConfig":95}"#, 1), Err(TraceError::TooLarge)));
    for options in [r#"{"tracer":"count"}"#, r#"{"tracer":"count","tracerConfig":null}"#] {
        let refused = trace(options, 100);
        assert!(matches!(refused, Err(TraceError::Options(text)) if text == "tracerConfig is missing or no opcode"));
    }
    assert!(trace(r#"{"tracer":"callTracer"}"#, 1 << 20).unwrap().contains("STATICCALL"));
    let unknown = trace(r#"{"tracer":"other"}"#, 100);
    assert!(matches!(unknown, Err(TraceError::Options(text)) if text.contains("available: count, callTracer")));

    // A transaction of a block has a place.
    let next = world.next_header();
    let mut block = world.executor.begin_block(&context, &*world.view, &next).unwrap();
    let tracing = Tracing {
        tracer: Some(RawValue::from_string(r#"{"tracer":"count","tracerConfig":250}"#.to_owned()).unwrap().into()),
        max_bytes: 100,
    };
    let mut out = JsonBuffer::default();
    block.trace(&send(legacy()), &tracing, &mut out).unwrap();
    assert_eq!(&out[..], b"[1,true,0]");
}
