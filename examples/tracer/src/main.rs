//! An inspector that counts opcodes: for one call, and as a tracer that requests can name, as in
//! `debug_traceCall` with `{"tracer": "opcodes"}`.
//!
//! `cargo run -p example-tracer`

use node_core::backend::{MemoryBackend, StateBackend};
use node_core::context::Context;
use node_core::executor::{Call, Trace, TraceError};
use node_core::node::{Node, TraceOptions};
use node_dev::{AccountOptions, Accounts, DevGenesis};
use node_evm::revm::{Inspector, bytecode::OpCode, interpreter::Interpreter, interpreter::interpreter_types::Jumps};
use node_evm::{EvmContext, EvmExecutor, Finished, Tracer};
use node_types::BlockId;
use serde_json::value::{RawValue, to_raw_value};
use std::{collections::BTreeMap, error::Error, sync::Arc};

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
    fn finish(self: Box<Self>, _: Finished<'_, '_>) -> Result<Trace, TraceError> {
        to_raw_value(&self.0).map_err(|error| TraceError::Options(error.to_string()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (inspected, traced) = run()?;
    println!("{inspected:?}\n{traced}");
    Ok(())
}

/// Returns the opcodes of a call, counted by an inspector and by a tracer.
fn run() -> Result<(Counts, Trace), Box<dyn Error>> {
    let accounts = Accounts::derive(&AccountOptions::default())?;
    let genesis = DevGenesis { contracts: true, ..DevGenesis::default() }.build(accounts.addresses())?;
    let backend = Arc::new(MemoryBackend::new(genesis.block())?);
    let spec = Arc::new(genesis.spec);
    let executor = EvmExecutor::new(spec.clone()).with_tracer("opcodes", |_| Ok(Box::new(Opcodes::default())));
    let executor = Arc::new(executor);
    let node = Node::builder(backend.clone(), executor.clone(), spec).open()?;

    // getBlockNumber() of Multicall3, one of the contracts.
    let to = Some("0xcA11bde05977b3631167028862bE2a173976CA11".parse()?);
    let call = Call { to, input: [0x42, 0xcb, 0xb1, 0x5c].into(), ..Call::default() };
    let (context, mut opcodes) = (Context::unbounded().with_gas_budget(1_000_000), Opcodes::default());
    let view = backend.view()?;
    let head = view.header(view.head().hash.into())?.ok_or("the chain has no head")?;
    executor.inspect_call(&context, &*view, &head.header, &call, &mut opcodes)?;

    let tracer = RawValue::from_string(r#"{"tracer": "opcodes"}"#.to_owned())?;
    let options = TraceOptions { tracer: Some(tracer.into()), ..TraceOptions::default() };
    let traced = node.trace_call(&context, &call, BlockId::latest(), None, &options)?;
    Ok((opcodes.0, traced))
}

#[cfg(test)]
#[test]
fn the_inspector_and_the_tracer_count_the_same() -> Result<(), Box<dyn Error>> {
    let (inspected, traced) = run()?;
    assert_eq!(inspected["NUMBER"], 1);
    assert_eq!(traced.get(), to_raw_value(&inspected)?.get());
    Ok(())
}
