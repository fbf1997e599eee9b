//! Output of traces in geth's format.

use crate::convert::ToEvm;
use crate::state::{DatabaseError, StateDb};
use crate::trace::defect;
use crate::trace::tracer::Finished;
use alloy_rpc_types_trace::geth::{CallFrame, GethTrace, StructLog};
use node_core::executor::{ExecutionError, Trace};
use revm::bytecode::Bytecode;
use revm::database_interface::{Database, DatabaseRef};
use revm::primitives::{Address, B256, U256};
use revm::state::{AccountInfo, EvmState};
use revm_inspectors::tracing::{DebugInspector, DebugInspectorError, TransactionContext};
use std::cell::RefCell;
use std::slice;

/// Estimated size in bytes of an account in a trace, without its code and storage.
const ACCOUNT_BYTES: u64 = 256;

/// Estimated size in bytes of a storage slot in a trace.
const SLOT_BYTES: u64 = 128;

/// revm's name of an undefined opcode.
const UNDEFINED: &str = "Unknown";

/// Serializes the trace as JSON. `undefined` are the undefined opcodes of recorded steps.
pub(super) fn write(
    mut tracer: DebugInspector,
    parity_errors: bool,
    undefined: &[u8],
    run: Finished<'_, '_>,
) -> Result<Trace, ExecutionError> {
    let place = TransactionContext {
        block_hash: run.place.block_hash.map(|hash| hash.to_evm()),
        tx_index: run.place.index,
        tx_hash: run.place.hash.map(|hash| hash.to_evm()),
    };
    let mut state = SharedState(RefCell::new(run.state));
    let trace = tracer.get_result(Some(place), run.transaction, run.block, run.outcome, &mut state);
    // The records may be large.
    drop(tracer);
    let mut trace = trace.map_err(|error| match error {
        DebugInspectorError::Database(error) => ExecutionError::from(error),
        other => defect(other),
    })?;
    match &mut trace {
        GethTrace::Default(frame) => {
            let mut undefined = undefined.iter();
            frame.struct_logs.iter_mut().for_each(|log| write_step_as_geth(log, &mut undefined));
        }
        GethTrace::CallTracer(frame) => write_calls_as_geth(frame),
        GethTrace::FlatCallTracer(calls) if !parity_errors => {
            let errors = calls.iter_mut().filter_map(|call| call.trace.error.as_mut());
            errors.for_each(|error| *error = geth_error(error).to_owned());
        }
        _ => {}
    }
    serde_json::value::to_raw_value(&trace).map_err(defect)
}

/// Removes properties that are empty or zero, which geth omits, except for the stack, and gives errors and undefined
/// opcodes geth's texts. `undefined` are the opcodes of the steps that have one, in their order.
fn write_step_as_geth(log: &mut StructLog, undefined: &mut slice::Iter<'_, u8>) {
    if log.op == UNDEFINED
        && let Some(opcode) = undefined.next()
    {
        log.op = format!("opcode {opcode:#x} not defined").into();
    }
    log.error = log.error.take().map(|error| {
        let name = error.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&error);
        match name {
            "InvalidFEOpcode" | "OpcodeNotFound" | "NotActivated" => format!("invalid opcode: {}", log.op),
            other => geth_error(other).to_owned(),
        }
    });
    log.refund_counter = log.refund_counter.filter(|refund| *refund != 0);
    log.return_data = log.return_data.take().filter(|data| !data.is_empty());
    log.memory = log.memory.take().filter(|memory| !memory.is_empty());
    log.storage = log.storage.take().filter(|slots| !slots.is_empty());
}

/// Gives errors geth's texts, and removes the logs of a failed outermost call: those of failed inner calls are missing
/// already.
fn write_calls_as_geth(outermost: &mut CallFrame) {
    if outermost.error.is_some() {
        outermost.logs.clear();
    }
    let mut frames = vec![outermost];
    while let Some(frame) = frames.pop() {
        frame.error = frame.error.take().map(|error| geth_error(&error).to_owned());
        frames.extend(&mut frame.calls);
    }
}

/// Returns geth's text of an error, which is revm's name of it in struct logs, a text similar to geth's in the call
/// tracer, and one of OpenEthereum's in the flat tracer.
fn geth_error(error: &str) -> &str {
    match error {
        "Revert" | "Reverted" => "execution reverted",
        "Bad instruction" => "invalid opcode",
        "InvalidJump" | "Bad jump destination" => "invalid jump destination",
        "StackUnderflow" | "Stack underflow" => "stack underflow",
        "StackOverflow" | "Out of stack" => "stack limit reached 1024 (1023)",
        "OutOfOffset" | "Out of bounds" => "return data out of bounds",
        "StateChangeDuringStaticCall" | "CallNotAllowedInsideStatic" | "Mutable Call In Static Context" => {
            "write protection"
        }
        "CallTooDeep" | "Max call depth exceeded" => "max call depth exceeded",
        "CreateInitCodeSizeLimit" => "max initcode size exceeded",
        "Built-in failed" => "precompiled failed",
        "Insufficient balance for transfer" => "insufficient balance for transfer",
        "Contract address collision" => "contract address collision",
        "InvalidOperandOOG" | "out of gas: invalid operand" => "gas uint64 overflow",
        "OutOfGas" | "MemoryOOG" | "MemoryLimitOOG" | "PrecompileOOG" | "ReentrancySentryOOG" | "Out of gas" => {
            "out of gas"
        }
        other if other.starts_with("out of gas: ") => "out of gas",
        other => other,
    }
}

/// Estimates the size in bytes of the accounts that a run touched.
pub(super) fn touched_bytes(db: &mut StateDb<'_>, state: &EvmState) -> Result<u64, ExecutionError> {
    let mut bytes = 0;
    for (address, account) in state {
        let code_hash = db.account(*address)?.map_or(B256::ZERO, |info| info.code_hash);
        let code = if code_hash.is_zero() { 0 } else { db.code_by_hash(code_hash)?.len() };
        bytes += ACCOUNT_BYTES + code as u64 + SLOT_BYTES * account.storage.len() as u64;
    }
    Ok(bytes)
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
