//! Limits on the memory of a tracer's records.
//!
//! The tracers of revm-inspectors hardly limit what they record: a loop can exhaust all memory before it runs out of
//! gas. Therefore the bytes that a step or a call adds are counted before they are recorded, and the run ends when
//! there are too many.

use crate::machine::context::EvmContext;
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::primitives::map::HashSet;
use revm::primitives::{AddressMap, U256};
use revm_inspectors::tracing::DebugInspector;
use revm_inspectors::tracing::types::{CallTraceNode, CallTraceStep};

/// The number of bytes that may still be recorded.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    pub(super) exceeded: bool,
    /// `None` if instructions are not recorded.
    steps: Option<StepCosts>,
    /// `None` if calls are not recorded.
    calls: Option<CallCosts>,
}

/// Which data of each call is recorded, besides its output.
#[derive(Clone, Copy, Debug)]
struct CallCosts {
    inputs: bool,
}

/// Which data of each instruction is recorded.
#[derive(Debug)]
struct StepCosts {
    memory: bool,
    stack: bool,
    storage: bool,
    /// Number of instructions that may still be recorded.
    left: u64,
    /// Whether the current instruction is recorded.
    current: bool,
    /// The slots that each account has used. Each record of a storage instruction contains all of them.
    slots: AddressMap<HashSet<U256>>,
}

impl StepCosts {
    /// Returns the bytes that the record of the next instruction takes.
    fn of(&mut self, interpreter: &Interpreter) -> u64 {
        self.current = self.left > 0;
        if !self.current {
            return 0;
        }
        self.left -= 1;
        let mut bytes = size_of::<CallTraceStep>();
        if self.stack {
            bytes += size_of::<U256>() * interpreter.stack.len();
        }
        if self.memory {
            bytes += interpreter.memory.len();
        }
        if self.storage
            && matches!(interpreter.bytecode.opcode(), opcode::SLOAD | opcode::SSTORE)
            && let Ok(slot) = interpreter.stack.peek(0)
        {
            let slots = self.slots.entry(interpreter.input.target_address()).or_default();
            slots.insert(slot);
            bytes += 2 * size_of::<U256>() * slots.len();
        }
        bytes as u64
    }
}

impl Budget {
    /// Returns the budget of a tracer that may record at most `max_bytes`.
    pub(super) fn new(tracer: &DebugInspector, max_bytes: u64) -> Self {
        let (steps, calls) = match tracer {
            DebugInspector::Default(_, options) => {
                let steps = StepCosts {
                    memory: options.is_memory_enabled(),
                    stack: options.is_stack_enabled(),
                    storage: options.is_storage_enabled(),
                    left: options.limit.unwrap_or(u64::MAX),
                    current: false,
                    slots: AddressMap::default(),
                };
                (Some(steps), Some(CallCosts { inputs: false }))
            }
            DebugInspector::PreStateTracer(..) => (None, Some(CallCosts { inputs: false })),
            DebugInspector::FourByte(_) | DebugInspector::Noop(_) => (None, None),
            _ => (None, Some(CallCosts { inputs: true })),
        };
        Self { left: max_bytes, exceeded: false, steps, calls }
    }

    /// Returns whether the current instruction is recorded.
    pub(super) fn records_step(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.current)
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.exceeded = true,
        }
    }

    pub(super) fn step(&mut self, interpreter: &Interpreter) {
        if let Some(steps) = &mut self.steps {
            let bytes = steps.of(interpreter);
            self.spend(bytes);
        }
    }

    pub(super) fn call(&mut self, input: usize) {
        if let Some(CallCosts { inputs }) = self.calls {
            self.spend((size_of::<CallTraceNode>() + if inputs { input } else { 0 }) as u64);
        }
    }

    pub(super) fn call_end(&mut self, output: usize) {
        if self.calls.is_some() {
            self.spend(output as u64);
        }
    }

    /// Ends the run if the budget is exceeded.
    pub(super) fn check(&self, context: &mut EvmContext<'_>) {
        if self.exceeded {
            context.error = Err(ContextError::Custom("the trace takes too much memory".into()));
        }
    }
}
