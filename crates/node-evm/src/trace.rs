//! Traced runs, with the tracers of revm-inspectors and in geth's form.

use crate::database::{DatabaseError, StateDb};
use crate::inspection::Inspection;
use crate::machine::Machine;
use crate::refusal::{Offer, refusal};
use alloy_rpc_types_trace::geth::{
    GethDebugBuiltInTracerType, GethDebugTracerType, GethDebugTracingOptions, GethTrace, StructLog,
};
use node_core::backend::BackendError;
use node_core::executor::ExecutionError;
use node_core::trace::{Trace, TraceError, Tracing};
use revm::bytecode::Bytecode;
use revm::context::TxEnv;
use revm::context::result::{ExecutionResult, ResultAndState};
use revm::database_interface::{Database, DatabaseRef};
use revm::primitives::{Address, B256, U256};
use revm::state::{AccountInfo, EvmState};
use revm_inspectors::tracing::{DebugInspector, DebugInspectorError, TransactionContext};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::RefCell;

/// Size of an account in a trace in bytes, without its code and storage. An estimate.
const ACCOUNT_BYTES: u64 = 256;

/// Size of a storage slot in a trace in bytes. An estimate.
const SLOT_BYTES: u64 = 128;

/// The supported tracers, for the error about an unknown one.
const NAMES: &str = "callTracer, prestateTracer, 4byteTracer, flatCallTracer, noopTracer";

/// Longest name of a tracer; a longer text is a JavaScript program.
const MAX_NAME: usize = 40;

/// A traced run, whose changes are not committed.
pub(crate) struct TracedRun {
    pub(crate) trace: Trace,
    pub(crate) result: ExecutionResult,
    pub(crate) state: EvmState,
}

/// Runs a transaction and returns its trace. `place` is its position on the chain, if it was mined.
pub(crate) fn run(
    machine: &mut Machine<'_>,
    transaction: TxEnv,
    offer: &Offer,
    place: TransactionContext,
    tracing: &Tracing,
) -> Result<TracedRun, TraceError> {
    let Tracer { inspector, parity_errors } = Tracer::new(tracing.tracer.as_deref()).map_err(TraceError::Options)?;
    let of_prestate = matches!(inspector, DebugInspector::PreStateTracer(..));
    let mut inspection = Inspection::tracer(inspector, tracing.max_bytes);
    let (result, state) = machine.inspect(transaction.clone(), &mut inspection);
    if inspection.is_full() {
        return Err(TraceError::TooLarge);
    }
    let result = result.map_err(|fault| refusal(machine, offer, fault))?;
    if of_prestate && !inspection.reserve(touched_bytes(machine.db(), &state)?) {
        return Err(TraceError::TooLarge);
    }
    let outcome = ResultAndState { result, state };
    let trace = write(machine, inspection, &transaction, place, &outcome, parity_errors)?;
    Ok(TracedRun { trace, result: outcome.result, state: outcome.state })
}

/// A tracer of revm-inspectors.
struct Tracer {
    inspector: DebugInspector,
    /// Whether flat traces have OpenEthereum's error texts rather than geth's.
    parity_errors: bool,
}

impl Tracer {
    /// Creates the tracer that geth's options request. Unknown options are ignored.
    fn new(options: Option<&RawValue>) -> Result<Self, String> {
        use GethDebugBuiltInTracerType::{CallTracer, FlatCallTracer, FourByteTracer, NoopTracer, PreStateTracer};
        let options = options.map(|options| serde_json::from_str::<GethDebugTracingOptions>(options.get()));
        let mut options =
            options.transpose().map_err(|error| format!("options of the trace: {error}"))?.unwrap_or_default();
        // geth has no such options.
        (options.config.disable_memory, options.config.disable_return_data) = (None, None);
        options.config.limit = options.config.limit.filter(|limit| *limit != 0);
        let settings = &options.tracer_config.0;
        let setting = |name: &str| settings.get(name) == Some(&Value::Bool(true));
        let name = match &options.tracer {
            Some(GethDebugTracerType::BuiltInTracer(
                tracer @ (CallTracer | FlatCallTracer | FourByteTracer | NoopTracer | PreStateTracer),
            )) => {
                if *tracer == PreStateTracer && setting("includeEmpty") {
                    return Err("prestateTracer leaves out accounts that are empty: includeEmpty cannot be true".into());
                }
                GethDebugTracerType::from(*tracer).as_str().to_owned()
            }
            None => String::new(),
            Some(GethDebugTracerType::JsTracer(name)) if name.is_empty() => String::new(),
            Some(tracer) => {
                let name = tracer.as_str();
                return Err(if name.len() > MAX_NAME || name.contains(['{', '(', ' ']) {
                    format!("tracers in JavaScript are not run; there are {NAMES}")
                } else {
                    format!("there is no tracer {name:?}; there are {NAMES}")
                });
            }
        };
        let invalid = || format!("tracerConfig of {name} must be an object with settings of that tracer");
        if !name.is_empty() && !settings.is_null() && !settings.is_object() {
            return Err(invalid());
        }
        let parity_errors = setting("convertParityErrors");
        let inspector = DebugInspector::new(options).map_err(|_| invalid())?;
        Ok(Self { inspector, parity_errors })
    }
}

/// Serializes the trace as JSON.
fn write(
    machine: &mut Machine<'_>,
    inspection: Inspection,
    transaction: &TxEnv,
    place: TransactionContext,
    outcome: &ResultAndState,
    parity_errors: bool,
) -> Result<Trace, ExecutionError> {
    let Some(mut tracer) = inspection.into_tracer() else { return Err(defect("the run was not traced")) };
    let block = machine.block().clone();
    let mut state = SharedState(RefCell::new(machine.db()));
    let trace = tracer.get_result(Some(place), transaction, &block, outcome, &mut state);
    // The records may be large.
    drop(tracer);
    let mut trace = trace.map_err(|error| match error {
        DebugInspectorError::Database(error) => ExecutionError::from(error),
        other => defect(other),
    })?;
    match &mut trace {
        GethTrace::Default(frame) => frame.struct_logs.iter_mut().for_each(remove_empty_properties),
        GethTrace::FlatCallTracer(calls) if !parity_errors => {
            let errors = calls.iter_mut().filter_map(|call| call.trace.error.as_mut());
            errors.for_each(|error| *error = geth_error(error).to_owned());
        }
        _ => {}
    }
    serde_json::value::to_raw_value(&trace).map_err(defect)
}

/// Removes properties that are empty or zero, which geth omits, except for the stack.
fn remove_empty_properties(log: &mut StructLog) {
    log.refund_counter = log.refund_counter.filter(|refund| *refund != 0);
    log.return_data = log.return_data.take().filter(|data| !data.is_empty());
    log.memory = log.memory.take().filter(|memory| !memory.is_empty());
    log.storage = log.storage.take().filter(|slots| !slots.is_empty());
}

/// Converts an error of the flat tracer, which uses OpenEthereum's texts, to geth's text.
fn geth_error(error: &str) -> &str {
    match error {
        "Reverted" => "execution reverted",
        "Out of gas" => "out of gas",
        "Bad instruction" => "invalid opcode",
        "Bad jump destination" => "invalid jump destination",
        "Stack underflow" => "stack underflow",
        "Out of stack" => "stack limit reached 1024 (1023)",
        "Out of bounds" => "return data out of bounds",
        "Built-in failed" => "precompiled failed",
        "Mutable Call In Static Context" => "write protection",
        "Insufficient balance for transfer" => "insufficient balance for transfer",
        "Contract address collision" => "contract address collision",
        "Max call depth exceeded" => "max call depth exceeded",
        other => other,
    }
}

/// Estimates the size in bytes of the accounts that a run touched.
fn touched_bytes(db: &mut StateDb<'_>, state: &EvmState) -> Result<u64, ExecutionError> {
    let mut bytes = 0;
    for (address, account) in state {
        let code_hash = db.account(*address)?.map_or(B256::ZERO, |info| info.code_hash);
        let code = if code_hash.is_zero() { 0 } else { db.code_by_hash(code_hash)?.len() };
        bytes += ACCOUNT_BYTES + code as u64 + SLOT_BYTES * account.storage.len() as u64;
    }
    Ok(bytes)
}

fn defect(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExecutionError {
    BackendError::Storage(error.into()).into()
}

/// The state before a run, for tracers that read it through a shared reference.
struct SharedState<'a, 'b>(RefCell<&'b mut StateDb<'a>>);

impl DatabaseRef for SharedState<'_, '_> {
    type Error = DatabaseError;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, DatabaseError> {
        self.0.borrow_mut().basic(address)
    }

    fn code_by_hash_ref(&self, hash: B256) -> Result<Bytecode, DatabaseError> {
        self.0.borrow_mut().code_by_hash(hash)
    }

    fn storage_ref(&self, address: Address, slot: U256) -> Result<U256, DatabaseError> {
        self.0.borrow_mut().storage(address, slot)
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, DatabaseError> {
        self.0.borrow_mut().block_hash(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracer(options: &str) -> Result<Tracer, String> {
        Tracer::new(Some(&RawValue::from_string(options.to_owned()).unwrap()))
    }

    #[test]
    fn options_choose_a_tracer_and_its_settings() {
        let struct_logs = |options: &str| match tracer(options).unwrap().inspector {
            DebugInspector::Default(_, options) => options,
            other => panic!("{options}: {other:?}"),
        };
        for options in [
            "{}",
            r#"{"tracer":"","tracerConfig":7,"reexec":128}"#,
            r#"{"tracer":null,"limit":0,"enableMemory":null,"disableMemory":false}"#,
        ] {
            let got = struct_logs(options);
            assert!(got.limit.is_none() && !got.is_memory_enabled() && got.is_stack_enabled(), "{options}");
        }
        let got = struct_logs(r#"{"enableMemory":true,"disableStack":true,"limit":7}"#);
        assert!(got.limit == Some(7) && got.is_memory_enabled() && !got.is_stack_enabled());
        let calls = tracer(r#"{"tracer":"callTracer","tracerConfig":{"onlyTopCall":true,"other":1}}"#).unwrap();
        let DebugInspector::CallTracer(_, config) = calls.inspector else { panic!("{:?}", calls.inspector) };
        assert_eq!((config.only_top_call, config.with_log), (Some(true), None));
        for (options, parity_errors) in [
            (r#"{"tracer":"flatCallTracer","tracerConfig":null}"#, false),
            (r#"{"tracer":"flatCallTracer","tracerConfig":{"convertParityErrors":true}}"#, true),
        ] {
            let flat = tracer(options).unwrap();
            assert!(matches!(flat.inspector, DebugInspector::FlatCallTracer(_)), "{options}");
            assert_eq!(flat.parity_errors, parity_errors, "{options}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_run() {
        let cases = [
            (r#"{"tracer":"muxTracer"}"#, "there is no tracer \"muxTracer\""),
            (r#"{"tracer":"myTracer"}"#, "there is no tracer \"myTracer\""),
            (r#"{"tracer":"{step: function() {}, fault: function() {}, result: function() {}}"}"#, "JavaScript"),
            (r#"{"tracer":"callTracer","tracerConfig":[]}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"callTracer","tracerConfig":{"withLog":"yes"}}"#, "tracerConfig of callTracer"),
            (r#"{"tracer":"prestateTracer","tracerConfig":{"includeEmpty":true}}"#, "includeEmpty"),
            (r#"{"tracer":7}"#, "options of the trace"),
            (r#"{"enableMemory":"true"}"#, "expected a boolean"),
        ];
        for (options, expected) in cases {
            let error = tracer(options).err().unwrap();
            assert!(error.contains(expected), "{options}: {error}");
        }
    }
}
