//! geth's tracers: those of revm-inspectors, with geth's options and results.

mod budget;
mod options;
mod output;

use crate::machine::context::EvmContext;
use crate::trace::tracer::{Finished, Tracer};
use budget::Budget;
use node_core::executor::{Trace, TraceError};
use revm::Inspector;
use revm::bytecode::opcode::{self, OpCode};
use revm::handler::FrameResult;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CreateInputs, CreateOutcome, FrameInput, InstructionResult, Interpreter, InterpreterAction,
};
use revm::primitives::{Address, Log, U256};
use revm_inspectors::tracing::types::{StorageChange, StorageChangeReason};
use revm_inspectors::tracing::{DebugInspector, TracingInspector};

/// A tracer of revm-inspectors with a limit on its records.
pub(crate) struct GethTracer {
    inspector: DebugInspector,
    /// Whether flat traces have OpenEthereum's error texts rather than geth's.
    parity_errors: bool,
    budget: Budget,
    /// Positions of the active frames in the recorder, innermost last. Empty unless storage is recorded.
    frames: Vec<usize>,
    /// The slot that the current instruction reads or writes, and the value that it writes.
    touched: Option<(U256, Option<U256>)>,
    /// The contract that the current instruction destroys, the beneficiary, and the balance.
    destroyed: Option<(Address, Address, U256)>,
    /// The undefined opcodes of recorded steps.
    undefined: Vec<u8>,
}

impl GethTracer {
    /// Returns the struct logger, or `None` unless it records storage.
    fn storage_recorder(&mut self) -> Option<&mut TracingInspector> {
        match &mut self.inspector {
            DebugInspector::Default(recorder, _) if recorder.config().record_state_diff => Some(recorder),
            _ => None,
        }
    }

    /// Pushes a new frame.
    fn begin_frame(&mut self) {
        if let Some(recorder) = self.storage_recorder() {
            let newest = recorder.traces().nodes().len() - 1;
            self.frames.push(newest);
        }
    }

    /// Remembers what the recorder does not record of the next instruction, if it has no name or destroys a contract.
    fn note_opcode(&mut self, interpreter: &Interpreter, context: &EvmContext<'_>) {
        let opcode = interpreter.bytecode.opcode();
        if opcode == opcode::SELFDESTRUCT {
            let contract = interpreter.input.target_address();
            let account = context.journaled_state.inner.state.get(&contract);
            let balance = account.map(|account| account.info.balance).unwrap_or_default();
            let beneficiary = interpreter.stack.peek(0).ok().map(|word| Address::from_word(word.into()));
            self.destroyed = beneficiary.map(|beneficiary| (contract, beneficiary, balance));
        } else if OpCode::new(opcode).is_none() && self.budget.records_step() {
            self.undefined.push(opcode);
        }
    }

    /// Remembers the slot that the next instruction reads or writes.
    fn note_slot(&mut self, interpreter: &Interpreter) {
        if self.frames.is_empty() || !self.budget.records_step() {
            return;
        }
        let stack = |depth| interpreter.stack.peek(depth).ok();
        self.touched = match interpreter.bytecode.opcode() {
            opcode::SLOAD => stack(0).map(|slot| (slot, None)),
            opcode::SSTORE => stack(0).zip(stack(1)).map(|(slot, value)| (slot, Some(value))),
            _ => None,
        };
    }

    /// Records the slot of the last instruction as geth does, even if it was warm and did not change, in which case the
    /// tracer does not record it.
    fn record_slot(&mut self, interpreter: &Interpreter, context: &EvmContext<'_>) {
        let Some((slot, stored)) = self.touched.take() else { return };
        let state = &context.journaled_state.inner.state;
        let account = state.get(&interpreter.input.target_address());
        let kept = || account.and_then(|account| account.storage.get(&slot)).map(|kept| kept.present_value);
        let Some(value) = stored.or_else(kept) else { return };
        let frame = self.frames.last().copied();
        let Some((recorder, frame)) = self.storage_recorder().zip(frame) else { return };
        let step = recorder.traces_mut().nodes_mut().get_mut(frame).and_then(|node| node.trace.steps.last_mut());
        if let Some(step) = step.filter(|step| step.storage_change.is_none()) {
            let reason = if stored.is_some() { StorageChangeReason::SSTORE } else { StorageChangeReason::SLOAD };
            step.storage_change = Some(Box::new(StorageChange { key: slot, value, had_value: None, reason }));
        }
    }
}

impl Tracer for GethTracer {
    fn is_full(&self) -> bool {
        self.budget.exceeded
    }

    fn finish(mut self: Box<Self>, run: Finished<'_, '_>) -> Result<Trace, TraceError> {
        if matches!(self.inspector, DebugInspector::PreStateTracer(..)) {
            self.budget.spend(output::touched_bytes(run.state, &run.outcome.state)?);
            if self.budget.exceeded {
                return Err(TraceError::TooLarge);
            }
        }
        Ok(output::write(self.inspector, self.parity_errors, &self.undefined, run)?)
    }
}

impl<'a> Inspector<EvmContext<'a>> for GethTracer {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        self.inspector.initialize_interp(interpreter, context);
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        self.budget.step(interpreter);
        if self.budget.exceeded {
            self.budget.check(context);
            interpreter.halt_fatal();
            return;
        }
        self.note_opcode(interpreter, context);
        self.note_slot(interpreter);
        self.inspector.step(interpreter, context);
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        self.inspector.step_end(interpreter, context);
        self.record_slot(interpreter, context);
        if let Some((contract, beneficiary, balance)) = self.destroyed.take()
            && interpreter.bytecode.action().as_ref().and_then(InterpreterAction::instruction_result)
                == Some(InstructionResult::SelfDestruct)
        {
            // revm does not report it if the contract is its own beneficiary.
            Inspector::<EvmContext<'a>>::selfdestruct(&mut self.inspector, contract, beneficiary, balance);
        }
    }

    fn log(&mut self, context: &mut EvmContext<'a>, log: Log) {
        self.budget.call(log.data.data.len());
        Inspector::<EvmContext<'a>>::log(&mut self.inspector, context, log);
    }

    fn log_full(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>, log: Log) {
        self.budget.call(log.data.data.len());
        self.inspector.log_full(interpreter, context, log);
    }

    fn frame_start(&mut self, context: &mut EvmContext<'a>, frame: &mut FrameInput) -> Option<FrameResult> {
        self.inspector.frame_start(context, frame)
    }

    fn frame_end(&mut self, context: &mut EvmContext<'a>, frame: &FrameInput, result: &mut FrameResult) {
        self.inspector.frame_end(context, frame, result);
    }

    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.budget.call(inputs.input.len());
        self.budget.check(context);
        let outcome = self.inspector.call(context, inputs);
        self.begin_frame();
        outcome
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.budget.call_end(outcome.result.output.len());
        self.frames.pop();
        self.inspector.call_end(context, inputs, outcome);
    }

    fn create(&mut self, context: &mut EvmContext<'a>, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.budget.call(inputs.init_code().len());
        self.budget.check(context);
        let outcome = self.inspector.create(context, inputs);
        self.begin_frame();
        outcome
    }

    fn create_end(&mut self, context: &mut EvmContext<'a>, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.budget.call_end(outcome.result.output.len());
        self.frames.pop();
        self.inspector.create_end(context, inputs, outcome);
    }

    fn selfdestruct(&mut self, contract: Address, target: Address, value: U256) {
        Inspector::<EvmContext<'a>>::selfdestruct(&mut self.inspector, contract, target, value);
    }
}
