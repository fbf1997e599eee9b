//! The executed instructions: geth's struct logs.

use super::budget::Budget;
use super::cost::Operation;
use super::json::{self, Data, Hex, Words};
use super::recorder::{Failure, Recorder, StepEnd};
use crate::machine::context::EvmContext;
use crate::machine::halt;
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::database_interface::Database;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, ReturnData};
use revm::primitives::{Address, B256, Bytes, U256};
use serde::{Serialize, Serializer};
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

/// Number of logs that are allocated together.
const GROUP: usize = 256;

/// Records instructions.
#[derive(Debug, Default)]
pub(super) struct StructLogs {
    options: StructLogOptions,
    /// In groups of [`GROUP`], so that growing does not copy them.
    logs: Vec<Vec<StructLog>>,
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
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "write_slots")]
    storage: Box<[Slot]>,
    #[serde(skip_serializing_if = "Data::is_empty")]
    return_data: Data,
    #[serde(rename = "refund", skip_serializing_if = "json::is_zero")]
    refund: u64,
}

/// A slot and its value.
type Slot = (Hex<B256>, Hex<B256>);

fn write_slots<S: Serializer>(slots: &[Slot], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(slots.iter().copied())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'l> {
    gas: u64,
    failed: bool,
    return_value: Data,
    #[serde(serialize_with = "write_logs")]
    struct_logs: &'l [Vec<StructLog>],
}

fn write_logs<S: Serializer>(logs: &[Vec<StructLog>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(logs.iter().flatten())
}

impl StructLogs {
    pub(super) fn new(options: StructLogOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn recorded(&self) -> usize {
        self.logs.last().map_or(0, |newest| (self.logs.len() - 1) * GROUP + newest.len())
    }

    fn newest(&mut self) -> Option<&mut StructLog> {
        self.logs.last_mut()?.last_mut()
    }

    fn push(&mut self, log: StructLog) {
        match self.logs.last_mut().filter(|newest| newest.len() < GROUP) {
            Some(newest) => newest.push(log),
            None => {
                let mut next = Vec::with_capacity(GROUP);
                next.push(log);
                self.logs.push(next);
            }
        }
    }

    /// Returns the data that the last call returned, and how many of its bytes are not recorded yet: the logs until the
    /// next call share it.
    fn returned(&mut self, interpreter: &Interpreter) -> (Bytes, usize) {
        if !self.options.return_data {
            return (Bytes::new(), 0);
        }
        let data = interpreter.return_data.buffer();
        let is_shared = self.newest().is_some_and(|log| log.return_data.0.as_ptr() == data.as_ptr());
        (data.clone(), if is_shared { 0 } else { data.len() })
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
        if self.options.limit.is_some_and(|limit| self.recorded() >= limit) {
            return;
        }
        let options = self.options;
        let (returned, new_bytes) = self.returned(interpreter);
        let slots = self.note_slot(interpreter, context).and_then(|address| self.storage.get(&address));
        let bytes = size_of::<StructLog>()
            + if options.stack { size_of::<U256>() * interpreter.stack.len() } else { 0 }
            + if options.memory { interpreter.memory.len() } else { 0 }
            + slots.map_or(0, |slots| size_of::<Slot>() * slots.len())
            + new_bytes;
        if !budget.spend(bytes) {
            return;
        }
        let storage = slots.into_iter().flatten().map(|(slot, value)| (*slot, *value)).collect();
        self.current = Some(Operation::next(interpreter, context));
        self.push(StructLog {
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
            return_data: Data(returned),
            refund: u64::try_from(self.refunds.iter().sum::<i64>()).unwrap_or(0),
        });
    }

    fn step_end(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, end: &StepEnd) {
        let Some((operation, log)) = self.current.take().zip(self.newest()) else { return };
        log.gas_cost = match &end.failure {
            Some(failure) => operation.cost(failure.result, context),
            None => log.gas.saturating_sub(interpreter.gas.remaining()).saturating_sub(end.passed_to_creation),
        };
        log.error = end.failure.as_ref().map(Failure::text);
    }

    fn finish(&mut self, run: &mut Finished<'_, '_>, _: &mut Budget, out: &mut JsonBuffer) -> Result<(), TraceError> {
        let result = &run.outcome.result;
        let execution = Execution {
            gas: result.tx_gas_used(),
            failed: !result.is_success(),
            return_value: Data(result.output().cloned().unwrap_or_default()),
            struct_logs: &self.logs,
        };
        json::write(out, &execution)
    }
}
