//! Traced runs, with the tracers of revm-inspectors and in geth's form.

use crate::database::{DatabaseError, StateDb};
use crate::inspection::Inspection;
use crate::machine::Machine;
use crate::refusal::{Offer, refusal};
use alloy_rpc_types_trace::geth::{
    CallConfig, FlatCallConfig, GethDefaultTracingOptions, GethTrace, PreStateConfig, StructLog,
};
use node_core::backend::BackendError;
use node_core::executor::ExecutionError;
use node_core::trace::{StructLogs, Trace, TraceError, Tracer, Tracing};
use revm::bytecode::Bytecode;
use revm::context::TxEnv;
use revm::context::result::{ExecutionResult, ResultAndState};
use revm::database_interface::{Database, DatabaseRef};
use revm::inspector::NoOpInspector;
use revm::primitives::{Address, B256, U256};
use revm::state::{AccountInfo, EvmState};
use revm_inspectors::tracing::{
    DebugInspector, DebugInspectorError, FourByteInspector, TracingInspector, TracingInspectorConfig,
    TransactionContext,
};
use std::cell::RefCell;

/// Size of an account in a trace in bytes, without its code and storage. An estimate.
const ACCOUNT_BYTES: u64 = 256;

/// Size of a storage slot in a trace in bytes. An estimate.
const SLOT_BYTES: u64 = 128;

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
    let mut inspection = Inspection::tracer(inspector(&tracing.tracer), tracing);
    let (result, state) = machine.inspect(transaction.clone(), &mut inspection);
    if inspection.is_full() {
        return Err(TraceError::TooLarge);
    }
    let result = result.map_err(|fault| refusal(machine, offer, fault))?;
    if let Tracer::Prestate { .. } = tracing.tracer
        && !inspection.reserve(touched_bytes(machine.db(), &state)?)
    {
        return Err(TraceError::TooLarge);
    }
    let outcome = ResultAndState { result, state };
    let trace = write(machine, inspection, &transaction, place, &outcome, tracing.tracer)?;
    Ok(TracedRun { trace, result: outcome.result, state: outcome.state })
}

/// Creates the tracer of revm-inspectors.
fn inspector(tracer: &Tracer) -> DebugInspector {
    match *tracer {
        Tracer::StructLogs(StructLogs { enable_memory, disable_stack, disable_storage, enable_return_data, limit }) => {
            let options = GethDefaultTracingOptions {
                enable_memory: Some(enable_memory),
                disable_stack: Some(disable_stack),
                disable_storage: Some(disable_storage),
                enable_return_data: Some(enable_return_data),
                limit,
                ..GethDefaultTracingOptions::default()
            };
            DebugInspector::Default(recorder(TracingInspectorConfig::from_geth_config(&options)), options)
        }
        Tracer::Calls { only_top_call, with_log } => {
            let options = CallConfig { only_top_call: Some(only_top_call), with_log: Some(with_log) };
            DebugInspector::CallTracer(recorder(TracingInspectorConfig::from_geth_call_config(&options)), options)
        }
        Tracer::FlatCalls { include_precompiles, .. } => {
            let options =
                FlatCallConfig { include_precompiles: Some(include_precompiles), ..FlatCallConfig::default() };
            DebugInspector::FlatCallTracer(recorder(TracingInspectorConfig::from_flat_call_config(&options)))
        }
        Tracer::Prestate { diff_mode, disable_code, disable_storage } => {
            let options = PreStateConfig {
                diff_mode: Some(diff_mode),
                disable_code: Some(disable_code),
                disable_storage: Some(disable_storage),
            };
            DebugInspector::PreStateTracer(
                recorder(TracingInspectorConfig::from_geth_prestate_config(&options)),
                options,
            )
        }
        Tracer::FourByte => DebugInspector::FourByte(FourByteInspector::default()),
        Tracer::Noop => DebugInspector::Noop(NoOpInspector),
    }
}

fn recorder(config: TracingInspectorConfig) -> TracingInspector {
    TracingInspector::new(config)
}

/// Serializes the trace as JSON.
fn write(
    machine: &mut Machine<'_>,
    inspection: Inspection,
    transaction: &TxEnv,
    place: TransactionContext,
    outcome: &ResultAndState,
    asked: Tracer,
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
    match (&mut trace, asked) {
        (GethTrace::Default(frame), _) => frame.struct_logs.iter_mut().for_each(remove_empty_properties),
        (GethTrace::FlatCallTracer(calls), Tracer::FlatCalls { parity_errors: false, .. }) => {
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
