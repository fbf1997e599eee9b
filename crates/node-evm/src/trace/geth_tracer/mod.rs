//! geth's tracers.

mod budget;
mod calls;
mod cost;
mod erc7562;
mod flat_calls;
mod json;
mod mux;
mod options;
mod prestate;
mod recorder;
mod revert;
mod selectors;
mod struct_logs;

use crate::machine::context::EvmContext;
use crate::machine::halt::LastInstruction;
use crate::trace::tracer::{Finished, Tracer};
use budget::Budget;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use recorder::{Entry, Exit, Failure, FrameKind, Recorder, StepEnd};
use revm::Inspector;
use revm::bytecode::opcode;
use revm::context::JournalTr;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, CreateScheme, FrameInput, InstructionResult,
    Interpreter, InterpreterAction, InterpreterResult,
};
use revm::primitives::{Address, Bytes, Log, U256};

/// One of geth's tracers, with a limit on its records. It turns revm's hooks into geth's events.
pub(crate) struct GethTracer {
    recorder: Box<dyn Recorder>,
    budget: Budget,
    /// The newest instruction of each active frame, innermost last.
    frames: Vec<Option<LastInstruction>>,
    /// The contract that the current instruction destroys, the beneficiary, and the balance.
    destroyed: Option<(Address, Address, U256)>,
}

impl GethTracer {
    /// Remembers whom the next instruction destroys: revm's hook does not report a contract that is its own beneficiary.
    fn note_destruction(&mut self, interpreter: &Interpreter, context: &EvmContext<'_>) {
        if interpreter.bytecode.opcode() == opcode::SELFDESTRUCT {
            let contract = interpreter.input.target_address();
            let account = context.journaled_state.inner.state.get(&contract);
            let balance = account.map(|account| account.info.balance).unwrap_or_default();
            let beneficiary = interpreter.stack.peek(0).ok().map(|word| Address::from_word(word.into()));
            self.destroyed = beneficiary.map(|beneficiary| (contract, beneficiary, balance));
        }
    }

    fn destroy(&mut self, (from, to, value): (Address, Address, U256)) {
        let kind = FrameKind::SelfDestruct;
        self.recorder
            .enter(&Entry { kind, from, to, input: &[], gas: 0, value, is_precompile: false }, &mut self.budget);
        self.recorder.exit(&Exit { gas_used: 0, output: &Bytes::new(), failure: None }, &mut self.budget);
    }

    /// Ends the innermost frame, which had the gas limit `gas`.
    fn exit(&mut self, context: &EvmContext<'_>, result: InstructionResult, outcome: &InterpreterResult, gas: u64) {
        let last = self.frames.pop().flatten();
        let halted = !outcome.result.is_ok() && !outcome.result.is_revert();
        let exit = Exit {
            gas_used: if halted { gas } else { outcome.gas.total_gas_spent() },
            output: &outcome.output,
            failure: Failure::of(result, last)
                .map(|failure| Failure { precompile: context.chain.precompile_failure.clone(), ..failure }),
        };
        self.recorder.exit(&exit, &mut self.budget);
    }
}

impl Tracer for GethTracer {
    fn is_full(&self) -> bool {
        self.budget.is_exceeded()
    }

    fn finish(mut self: Box<Self>, mut run: Finished<'_, '_>, out: &mut JsonBuffer) -> Result<(), TraceError> {
        self.recorder.finish(&mut run, &mut self.budget, out)?;
        if self.budget.is_exceeded() { Err(TraceError::TooLarge) } else { Ok(()) }
    }
}

impl<'a> Inspector<EvmContext<'a>> for GethTracer {
    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        if let Some(newest) = self.frames.last_mut() {
            *newest = Some(LastInstruction::next(interpreter));
        }
        self.note_destruction(interpreter, context);
        self.recorder.step(interpreter, context, &mut self.budget);
        if self.budget.is_exceeded() {
            self.budget.check(context);
            interpreter.halt_fatal();
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        let last = self.frames.last().copied().flatten();
        let action = interpreter.bytecode.action().as_ref();
        let result = action.and_then(InterpreterAction::instruction_result);
        let passed_to_creation = match action {
            Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) => inputs.gas_limit(),
            _ => 0,
        };
        // REVERT itself does not fail.
        let failed = result.filter(|result| *result != InstructionResult::Revert);
        let end = StepEnd { failure: failed.and_then(|result| Failure::of(result, last)), passed_to_creation };
        self.recorder.step_end(interpreter, context, &end);
        if let Some(destroyed) = self.destroyed.take()
            && result == Some(InstructionResult::SelfDestruct)
        {
            self.destroy(destroyed);
        }
    }

    fn log(&mut self, _: &mut EvmContext<'a>, log: Log) {
        self.recorder.log(&log, &mut self.budget);
    }

    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        let kind = match inputs.scheme {
            CallScheme::Call => FrameKind::Call,
            CallScheme::CallCode => FrameKind::CallCode,
            CallScheme::DelegateCall => FrameKind::DelegateCall,
            CallScheme::StaticCall => FrameKind::StaticCall,
        };
        let (from, to) = match kind {
            FrameKind::CallCode | FrameKind::DelegateCall => (inputs.target_address, inputs.bytecode_address),
            _ => (inputs.caller, inputs.target_address),
        };
        let is_precompile = context.journaled_state.precompile_addresses().contains(&to);
        let input = inputs.input.as_bytes(context);
        let (gas, value) = (inputs.gas_limit, inputs.call_value());
        self.recorder.enter(&Entry { kind, from, to, input: &input, gas, value, is_precompile }, &mut self.budget);
        drop(input);
        self.frames.push(None);
        self.budget.check(context);
        None
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.exit(context, outcome.result.result, &outcome.result, inputs.gas_limit);
    }

    fn create(&mut self, context: &mut EvmContext<'a>, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        let kind = match inputs.scheme() {
            CreateScheme::Create2 { .. } => FrameKind::Create2,
            _ => FrameKind::Create,
        };
        let creator = context.journaled_state.inner.state.get(&inputs.caller());
        let entry = Entry {
            kind,
            from: inputs.caller(),
            to: inputs.created_address(creator.map_or(0, |creator| creator.info.nonce)),
            input: inputs.init_code(),
            gas: inputs.gas_limit(),
            value: inputs.value(),
            is_precompile: false,
        };
        self.recorder.enter(&entry, &mut self.budget);
        self.frames.push(None);
        self.budget.check(context);
        None
    }

    fn create_end(&mut self, context: &mut EvmContext<'a>, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        // revm reports a creator whose nonce cannot increase as a success without an address.
        let overflow = outcome.result.result.is_ok() && outcome.address.is_none();
        let result = if overflow { InstructionResult::NonceOverflow } else { outcome.result.result };
        self.exit(context, result, &outcome.result, inputs.gas_limit());
    }
}

/// Records nothing.
struct Nothing;

impl Recorder for Nothing {
    fn finish(&mut self, _: &mut Finished<'_, '_>, _: &mut Budget, out: &mut JsonBuffer) -> Result<(), TraceError> {
        json::write(out, &serde_json::Map::new())
    }
}
