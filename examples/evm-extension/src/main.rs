//! An EVM with a precompile at 0xbeef, and an inspector that counts opcodes: for one call, and as a tracer that requests can
//! name, as in `debug_traceCall` with `{"tracer": "opcodes"}`.
//!
//! `cargo run -p example-evm-extension`

use node_core::backend::{MemoryBackend, StateBackend};
use node_core::context::Context;
use node_core::executor::{AccountOverride, Call, TraceError};
use node_core::node::{Node, TraceOptions};
use node_dev::{AccountOptions, Accounts, DevGenesis};
use node_evm::revm::{Inspector, bytecode::OpCode, interpreter::Interpreter, interpreter::interpreter_types::Jumps};
use node_evm::{EvmContext, EvmExecutor, Finished, PrecompileCall, PrecompileOutcome, Tracer};
use node_types::wire::{JsonBuffer, append_json};
use node_types::{Address, BlockId, Bytes};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, error::Error, sync::Arc};

/// Calls 0xbeef with STATICCALL and the call data, and returns what that returns:
/// `calldatacopy; staticcall(gas(), 0xbeef, 0, calldatasize(), 0, 0); returndatacopy; return`.
const CALLER: [u8; 20] = [
    0x36, 0x5f, 0x5f, 0x37, 0x5f, 0x5f, 0x36, 0x5f, 0x61, 0xbe, 0xef, 0x5a, 0xfa, 0x3d, 0x5f, 0x5f, 0x3e, 0x3d, 0x5f,
    0xf3,
];

/// Returns the call data in reverse, for 3 gas a byte.
fn reverse(call: PrecompileCall<'_, '_>) -> PrecompileOutcome {
    let output = call.input.iter().rev().copied().collect();
    PrecompileOutcome::Returned { gas_used: 3 * call.input.len() as u64, output }
}

/// How often a run executes each opcode.
type Counts = BTreeMap<&'static str, u64>;

#[derive(Default)]
struct Opcodes(Counts);

impl<'a> Inspector<EvmContext<'a>> for Opcodes {
    fn step(&mut self, interpreter: &mut Interpreter, _: &mut EvmContext<'a>) {
        *self.0.entry(OpCode::name_by_op(interpreter.bytecode.opcode())).or_default() += 1;
    }
}

impl Tracer for Opcodes {
    fn finish(self: Box<Self>, _: Finished<'_, '_>, out: &mut JsonBuffer) -> Result<(), TraceError> {
        // If the buffer is full, the node notices.
        append_json(out, &self.0).map_err(|error| TraceError::Options(error.to_string()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (returned, inspected, traced) = run(b"stressed")?;
    println!("{}\n{inspected:?}\n{}", String::from_utf8_lossy(&returned), String::from_utf8_lossy(&traced));
    Ok(())
}

/// Calls a contract that calls the precompile with `input`. Returns the output, and the opcodes of the call as the inspector
/// and as the tracer counted them.
fn run(input: &[u8]) -> Result<(Bytes, Counts, Vec<u8>), Box<dyn Error>> {
    let genesis = DevGenesis::default().build(Accounts::derive(&AccountOptions::default())?.addresses())?;
    let backend = Arc::new(MemoryBackend::new(genesis.block())?);
    let spec = Arc::new(genesis.spec);
    let executor = EvmExecutor::new(spec.clone())
        .with_precompile(Address::from_low_u64_be(0xbeef), reverse)
        .with_tracer("opcodes", |_| Ok(Box::new(Opcodes::default())));
    let executor = Arc::new(executor);
    let node = Node::builder(backend.clone(), executor.clone(), spec).open()?;

    let contract = Address::from_low_u64_be(0xc0de);
    let code = AccountOverride { code: Some(CALLER.into()), ..AccountOverride::default() };
    let overrides = [(contract, code)].into();
    let call = Call { to: Some(contract), input: input.into(), overrides, ..Call::default() };
    let context = Context::unbounded().with_gas_budget(1_000_000);
    let returned = node.call(&context, &call, BlockId::latest())?;

    let mut opcodes = Opcodes::default();
    let view = backend.view()?;
    let head = view.header(view.head().hash.into())?.ok_or("the chain has no head")?;
    executor.inspect_call(&context, &*view, &head.header, &call, &mut opcodes)?;

    let tracer = RawValue::from_string(r#"{"tracer": "opcodes"}"#.to_owned())?;
    let options = TraceOptions { tracer: Some(tracer.into()), ..TraceOptions::default() };
    let mut traced = JsonBuffer::default();
    node.trace_call(&context, &call, BlockId::latest(), None, &options, &mut traced)?;
    Ok((returned, opcodes.0, traced.into()))
}

#[cfg(test)]
#[test]
fn a_contract_reaches_the_precompile_and_the_opcodes_are_counted() -> Result<(), Box<dyn Error>> {
    let (returned, inspected, traced) = run(b"stressed")?;
    assert_eq!(returned[..], *b"desserts");
    assert_eq!(inspected["STATICCALL"], 1);
    assert_eq!(traced, serde_json::to_vec(&inspected)?);
    Ok(())
}
