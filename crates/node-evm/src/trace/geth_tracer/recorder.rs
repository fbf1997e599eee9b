//! What a tracer learns about a run: geth's events.

use super::budget::Budget;
use crate::machine::context::EvmContext;
use crate::machine::halt::{self, LastInstruction};
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::interpreter::{InstructionResult, Interpreter};
use revm::primitives::{Address, Bytes, Log, U256};
use serde::Serialize;
use std::borrow::Cow;

/// Records the events of a run and produces a trace. It reports the bytes that it records to the budget, before it
/// records them.
pub(super) trait Recorder {
    /// An instruction is about to be executed.
    fn step(&mut self, _interpreter: &Interpreter, _context: &mut EvmContext<'_>, _budget: &mut Budget) {}

    /// An instruction has been executed, or has failed.
    fn step_end(&mut self, _interpreter: &Interpreter, _context: &mut EvmContext<'_>, _end: &StepEnd) {}

    /// A frame begins: a call, a creation, or a contract's destruction.
    fn enter(&mut self, _entry: &Entry<'_>, _budget: &mut Budget) {}

    /// The innermost frame ends.
    fn exit(&mut self, _exit: &Exit<'_>, _budget: &mut Budget) {}

    /// The innermost frame emits a log.
    fn log(&mut self, _log: &Log, _budget: &mut Budget) {}

    /// Appends the trace to `out`. Called once, at the end.
    fn finish(
        &mut self,
        run: &mut Finished<'_, '_>,
        budget: &mut Budget,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError>;
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum FrameKind {
    Call,
    CallCode,
    DelegateCall,
    StaticCall,
    Create,
    Create2,
    SelfDestruct,
}

impl FrameKind {
    pub(super) fn is_creation(self) -> bool {
        matches!(self, Self::Create | Self::Create2)
    }
}

/// The beginning of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'e> {
    pub(super) kind: FrameKind,
    pub(super) from: Address,
    /// The called or created contract, or the beneficiary of one that is destroyed.
    pub(super) to: Address,
    /// The call data or init code.
    pub(super) input: &'e [u8],
    pub(super) gas: u64,
    /// In wei. That of DELEGATECALL is the caller's.
    pub(super) value: U256,
    pub(super) is_precompile: bool,
}

/// The end of a frame.
#[derive(Clone, Debug)]
pub(super) struct Exit<'e> {
    pub(super) gas_used: u64,
    pub(super) output: &'e Bytes,
    pub(super) failure: Option<Failure>,
}

/// The end of an instruction.
#[derive(Clone, Debug)]
pub(super) struct StepEnd {
    /// Why it failed.
    pub(super) failure: Option<Failure>,
    /// Gas that it passes to a contract that it creates.
    pub(super) passed_to_creation: u64,
}

/// Why an instruction or a frame failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) result: InstructionResult,
    pub(super) last: Option<LastInstruction>,
    /// Why the precompile that failed last has failed.
    pub(super) precompile: Cow<'static, str>,
}

impl Failure {
    /// Returns the failure, or `None` if `result` is a success.
    pub(super) fn of(result: InstructionResult, last: Option<LastInstruction>) -> Option<Self> {
        (!result.is_ok()).then_some(Self { result, last, precompile: Cow::Borrowed("") })
    }

    pub(super) fn is_revert(&self) -> bool {
        self.result == InstructionResult::Revert
    }

    pub(super) fn is_of_precompile(&self) -> bool {
        self.result == InstructionResult::PrecompileError
    }

    /// Returns geth's text.
    pub(super) fn text(&self) -> Cow<'static, str> {
        halt::text(self.result, self.last, self.precompile.clone())
    }
}
