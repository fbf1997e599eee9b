//! Inspectors of a run, with a limit on what they may record.
//!
//! The tracers of revm-inspectors hardly limit what they record: a loop can exhaust any memory before it runs out of gas.
//! So the bytes that a step or a call adds are counted before they are recorded, and the run ends when there are too many.

use crate::evm_context::EvmContext;
use revm::Inspector;
use revm::bytecode::opcode;
use revm::context_interface::context::ContextError;
use revm::context_interface::transaction::AccessList;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter};
use revm::primitives::map::HashSet;
use revm::primitives::{Address, AddressMap, Log, U256};
use revm_inspectors::access_list::AccessListInspector;
use revm_inspectors::tracing::types::{CallTraceNode, CallTraceStep, StorageChange, StorageChangeReason};
use revm_inspectors::tracing::{DebugInspector, TracingInspector};

/// Inspects a run within a budget of bytes.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    watcher: Watcher,
    budget: Budget,
    /// Positions of the active frames in the recorder, innermost last. Empty unless storage is recorded.
    frames: Vec<usize>,
    /// The slot that the current instruction reads or writes, and the value that it writes.
    touched: Option<(U256, Option<U256>)>,
}

#[derive(Debug, Default)]
enum Watcher {
    /// The run is not inspected.
    #[default]
    None,
    Tracer(Box<DebugInspector>),
    AccessList(Box<AccessListInspector>),
}

impl Inspection {
    /// Inspects with a tracer of revm-inspectors, which may record at most `max_bytes`.
    pub(crate) fn tracer(inspector: DebugInspector, max_bytes: u64) -> Self {
        let (steps, calls) = match &inspector {
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
        let budget = Budget { left: max_bytes, exceeded: false, steps, calls };
        Self { watcher: Watcher::Tracer(Box::new(inspector)), budget, ..Self::default() }
    }

    /// Collects the accounts and slots that a run touches, starting from `list`.
    pub(crate) fn access_list(list: AccessList) -> Self {
        let budget = Budget { left: u64::MAX, ..Budget::default() };
        Self { watcher: Watcher::AccessList(Box::new(list.into())), budget, ..Self::default() }
    }

    /// Returns the struct logger, or `None` unless it records storage.
    fn storage_recorder(&mut self) -> Option<&mut TracingInspector> {
        match &mut self.watcher {
            Watcher::Tracer(inspector) => match &mut **inspector {
                DebugInspector::Default(recorder, _) if recorder.config().record_state_diff => Some(recorder),
                _ => None,
            },
            _ => None,
        }
    }

    /// Pushes a frame that starts.
    fn begin_frame(&mut self) {
        if let Some(recorder) = self.storage_recorder() {
            let newest = recorder.traces().nodes().len() - 1;
            self.frames.push(newest);
        }
    }

    /// Notes the slot that the next instruction reads or writes.
    fn note_slot(&mut self, interpreter: &Interpreter) {
        if self.frames.is_empty() || !self.budget.steps.as_ref().is_some_and(|steps| steps.current) {
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

    /// Spends `bytes` of the budget. Returns whether it sufficed.
    pub(crate) fn reserve(&mut self, bytes: u64) -> bool {
        self.budget.spend(bytes);
        !self.budget.exceeded
    }

    /// Returns whether the run ended because the budget was exceeded.
    pub(crate) fn is_full(&self) -> bool {
        self.budget.exceeded
    }

    /// Returns the tracer with its records, or `None` if the inspection has none.
    pub(crate) fn into_tracer(self) -> Option<Box<DebugInspector>> {
        match self.watcher {
            Watcher::Tracer(inspector) => Some(inspector),
            _ => None,
        }
    }

    /// Returns the accounts and slots that were touched.
    pub(crate) fn into_access_list(self) -> AccessList {
        match self.watcher {
            Watcher::AccessList(inspector) => inspector.into_access_list(),
            _ => AccessList::default(),
        }
    }
}

/// The bytes that may still be recorded.
#[derive(Debug, Default)]
struct Budget {
    left: u64,
    exceeded: bool,
    /// `None` if instructions are not recorded.
    steps: Option<StepCosts>,
    /// `None` if calls are not recorded.
    calls: Option<CallCosts>,
}

/// What is recorded of each call, beside its output.
#[derive(Clone, Copy, Debug)]
struct CallCosts {
    inputs: bool,
}

/// What is recorded of each instruction.
#[derive(Debug)]
struct StepCosts {
    memory: bool,
    stack: bool,
    storage: bool,
    /// Number of instructions that may still be recorded.
    left: u64,
    /// Whether the current instruction is recorded.
    current: bool,
    /// The slots that each account has used. Each record of a storage instruction holds all of them.
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
    fn spend(&mut self, bytes: u64) {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.exceeded = true,
        }
    }

    fn step(&mut self, interpreter: &Interpreter) {
        if let Some(steps) = &mut self.steps {
            let bytes = steps.of(interpreter);
            self.spend(bytes);
        }
    }

    fn call(&mut self, input: usize) {
        if let Some(CallCosts { inputs }) = self.calls {
            self.spend((size_of::<CallTraceNode>() + if inputs { input } else { 0 }) as u64);
        }
    }

    fn call_end(&mut self, output: usize) {
        if self.calls.is_some() {
            self.spend(output as u64);
        }
    }

    /// Ends the run if the budget is exceeded.
    fn check(&self, context: &mut EvmContext<'_>) {
        if self.exceeded {
            context.error = Err(ContextError::Custom("the trace takes too much memory".into()));
        }
    }
}

/// Forwards a hook to the inspector, if there is one.
macro_rules! watch {
    ($self:expr, $inspector:ident => $work:expr) => {
        match &mut $self.watcher {
            Watcher::None => Default::default(),
            Watcher::Tracer($inspector) => $work,
            Watcher::AccessList($inspector) => $work,
        }
    };
}

impl<'a> Inspector<EvmContext<'a>> for Inspection {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        watch!(self, inspector => inspector.initialize_interp(interpreter, context));
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        self.budget.step(interpreter);
        if self.budget.exceeded {
            self.budget.check(context);
            interpreter.halt_fatal();
            return;
        }
        self.note_slot(interpreter);
        watch!(self, inspector => inspector.step(interpreter, context));
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        watch!(self, inspector => inspector.step_end(interpreter, context));
        self.record_slot(interpreter, context);
    }

    fn log(&mut self, context: &mut EvmContext<'a>, log: Log) {
        self.budget.call(log.data.data.len());
        watch!(self, inspector => Inspector::<EvmContext<'a>>::log(&mut **inspector, context, log));
    }

    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.budget.call(inputs.input.len());
        self.budget.check(context);
        let outcome = watch!(self, inspector => inspector.call(context, inputs));
        self.begin_frame();
        outcome
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.budget.call_end(outcome.result.output.len());
        self.frames.pop();
        watch!(self, inspector => inspector.call_end(context, inputs, outcome));
    }

    fn create(&mut self, context: &mut EvmContext<'a>, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.budget.call(inputs.init_code().len());
        self.budget.check(context);
        let outcome = watch!(self, inspector => inspector.create(context, inputs));
        self.begin_frame();
        outcome
    }

    fn create_end(&mut self, context: &mut EvmContext<'a>, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.budget.call_end(outcome.result.output.len());
        self.frames.pop();
        watch!(self, inspector => inspector.create_end(context, inputs, outcome));
    }

    fn selfdestruct(&mut self, contract: Address, target: Address, value: U256) {
        watch!(self, inspector => Inspector::<EvmContext<'a>>::selfdestruct(&mut **inspector, contract, target, value));
    }
}
