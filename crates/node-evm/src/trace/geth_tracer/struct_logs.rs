//! The executed instructions: geth's struct logs.

use super::budget::Budget;
use super::cost::Operation;
use super::json::{self, Data, Hex, Words};
use super::recorder::{Recorder, StepEnd};
use crate::machine::context::EvmContext;
use crate::machine::halt;
use crate::trace::tracer::Finished;
use node_core::executor::{Trace, TraceError};
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::database_interface::Database;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, ReturnData};
use revm::primitives::{Address, B256, Bytes, U256};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The options of the struct logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StructLogOptions {
    pub(super) memory: bool,
    pub(super) stack: bool,
    pub(super) storage: bool,
    pub(super) return_data: bool,
    /// Maximum number of logs.
    pub(super) limit: Option<usize>,
}

/// Records instructions.
#[derive(Debug, Default)]
pub(super) struct StructLogs {
    options: StructLogOptions,
    logs: Vec<StructLog>,
    /// The slots that each account has used, with the values that were read or written last.
    storage: BTreeMap<Address, BTreeMap<Hex<B256>, Hex<B256>>>,
    /// The current instruction, if it is recorded.
    current: Option<Operation>,
    /// The refund counters of the active frames, outermost first.
    refunds: Vec<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StructLog {
    pc: usize,
    op: Cow<'static, str>,
    gas: u64,
    gas_cost: u64,
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<Hex<U256>>>,
    #[serde(skip_serializing_if = "Words::is_empty")]
    memory: Words,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<Hex<B256>, Hex<B256>>,
    #[serde(skip_serializing_if = "Data::is_empty")]
    return_data: Data,
    #[serde(rename = "refund", skip_serializing_if = "json::is_zero")]
    refund: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'l> {
    gas: u64,
    failed: bool,
    return_value: Data,
    struct_logs: &'l [StructLog],
}

impl StructLogs {
    pub(super) fn new(options: StructLogOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Notes the slot that the next instruction uses. Returns the account with the slot, if there is one.
    fn note_slot(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>) -> Option<Address> {
        let opcode = interpreter.bytecode.opcode();
        if !self.options.storage || !matches!(opcode, opcode::SLOAD | opcode::SSTORE) {
            return None;
        }
        let address = interpreter.input.target_address();
        let slot = interpreter.stack.peek(0).ok()?;
        let value = match opcode {
            opcode::SSTORE => interpreter.stack.peek(1).ok()?,
            _ => stored(context, address, slot)?,
        };
        self.storage.entry(address).or_default().insert(Hex(slot.into()), Hex(value.into()));
        Some(address)
    }
}

/// Returns the value of a slot without making it warm, or `None` if the state cannot be read. The run then fails.
pub(super) fn stored(context: &mut EvmContext<'_>, address: Address, slot: U256) -> Option<U256> {
    let account = context.journaled_state.inner.state.get(&address);
    if let Some(kept) = account.and_then(|account| account.storage.get(&slot)) {
        return Some(kept.present_value);
    }
    if account.is_some_and(|account| account.is_created_locally()) {
        return Some(U256::ZERO);
    }
    context.journaled_state.database.storage(address, slot).ok()
}

impl Recorder for StructLogs {
    fn step(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, budget: &mut Budget) {
        self.current = None;
        let depth = context.journaled_state.depth();
        self.refunds.resize(depth, 0);
        if let Some(innermost) = self.refunds.last_mut() {
            *innermost = interpreter.gas.refunded();
        }
        if self.options.limit.is_some_and(|limit| self.logs.len() >= limit) {
            return;
        }
        let options = self.options;
        let slots = self.note_slot(interpreter, context).and_then(|address| self.storage.get(&address));
        let returned = interpreter.return_data.buffer();
        let bytes = size_of::<StructLog>()
            + if options.stack { size_of::<U256>() * interpreter.stack.len() } else { 0 }
            + if options.memory { interpreter.memory.len() } else { 0 }
            + slots.map_or(0, |slots| 2 * size_of::<U256>() * slots.len());
        if !budget.spend(bytes) {
            return;
        }
        let storage = slots.cloned().unwrap_or_default();
        self.current = Some(Operation::next(interpreter, context));
        self.logs.push(StructLog {
            pc: interpreter.bytecode.pc(),
            op: halt::opcode_name(interpreter.bytecode.opcode()),
            gas: interpreter.gas.remaining(),
            gas_cost: 0,
            depth,
            error: None,
            stack: options.stack.then(|| interpreter.stack.data().iter().copied().map(Hex).collect()),
            memory: Words(match options.memory {
                true => Bytes::copy_from_slice(&interpreter.memory.context_memory()),
                false => Bytes::new(),
            }),
            storage,
            return_data: Data(if options.return_data { returned.clone() } else { Bytes::new() }),
            refund: u64::try_from(self.refunds.iter().sum::<i64>()).unwrap_or(0),
        });
    }

    fn step_end(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, end: &StepEnd) {
        let Some((operation, log)) = self.current.take().zip(self.logs.last_mut()) else { return };
        log.gas_cost = match end.failure {
            Some(failure) => operation.cost(failure.result, context),
            None => log.gas.saturating_sub(interpreter.gas.remaining()).saturating_sub(end.passed_to_creation),
        };
        log.error = end.failure.map(|failure| failure.text());
    }

    fn finish(&mut self, run: &mut Finished<'_, '_>, _: &mut Budget) -> Result<Trace, TraceError> {
        let result = &run.outcome.result;
        Ok(json::to_trace(&Execution {
            gas: result.tx_gas_used(),
            failed: !result.is_success(),
            return_value: Data(result.output().cloned().unwrap_or_default()),
            struct_logs: &self.logs,
        })?)
    }
}
