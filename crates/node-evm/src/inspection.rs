//! What watches a run of the machine, and how much it may record.
//!
//! The tracers of revm-inspectors bound next to nothing of what they record: a loop that ends with its gas fills any
//! memory. So what a step or a call adds is counted before it is recorded, and the run ends where that is too much.

use crate::machine::EvmContext;
use node_core::trace::{Tracer, Tracing};
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

/// Watches a run.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    watcher: Watcher,
    budget: Budget,
    /// Where the records of the frames that run are, if their storage is recorded; the innermost one last.
    frames: Vec<usize>,
    /// The slot that the instruction which runs reads or writes, and what it writes.
    touched: Option<(U256, Option<U256>)>,
}

/// Who watches.
#[derive(Debug, Default)]
enum Watcher {
    /// Nobody: such a run is not inspected at all.
    #[default]
    Nobody,
    Tracer(Box<DebugInspector>),
    AccessList(Box<AccessListInspector>),
}

impl Inspection {
    /// Records for `inspector` what `tracing` asks for.
    pub(crate) fn tracer(inspector: DebugInspector, tracing: &Tracing) -> Self {
        let steps = match tracing.tracer {
            Tracer::StructLogs(settings) => Some(StepCosts {
                memory: settings.enable_memory,
                stack: !settings.disable_stack,
                storage: !settings.disable_storage,
                left: settings.limit.filter(|limit| *limit != 0).unwrap_or(u64::MAX),
                current: false,
                slots: AddressMap::default(),
            }),
            _ => None,
        };
        let calls = match tracing.tracer {
            Tracer::Calls { .. } | Tracer::FlatCalls { .. } => Some(CallCosts { inputs: true }),
            Tracer::StructLogs(_) | Tracer::Prestate { .. } => Some(CallCosts { inputs: false }),
            Tracer::FourByte | Tracer::Noop => None,
        };
        let budget = Budget { left: tracing.max_bytes, exceeded: false, steps, calls };
        Self { watcher: Watcher::Tracer(Box::new(inspector)), budget, ..Self::default() }
    }

    /// Records what is touched beside `list`.
    pub(crate) fn access_list(list: AccessList) -> Self {
        let budget = Budget { left: u64::MAX, ..Budget::default() };
        Self { watcher: Watcher::AccessList(Box::new(list.into())), budget, ..Self::default() }
    }

    /// The struct logger, if storage is recorded.
    fn storage_recorder(&mut self) -> Option<&mut TracingInspector> {
        match &mut self.watcher {
            Watcher::Tracer(inspector) => match &mut **inspector {
                DebugInspector::Default(recorder, _) if recorder.config().record_state_diff => Some(recorder),
                _ => None,
            },
            _ => None,
        }
    }

    /// Takes note of a frame that begins.
    fn begin_frame(&mut self) {
        if let Some(recorder) = self.storage_recorder() {
            let newest = recorder.traces().nodes().len() - 1;
            self.frames.push(newest);
        }
    }

    /// Takes note of the slot that the next instruction reads or writes.
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

    /// Records a slot as geth does, also where the tracer does not see it for it was warm, and nothing changed.
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

    /// Takes `bytes` more into account. Whether there is room for them.
    pub(crate) fn reserve(&mut self, bytes: u64) -> bool {
        self.budget.spend(bytes);
        !self.budget.exceeded
    }

    /// Whether the run was ended because too much was recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.budget.exceeded
    }

    /// The tracer with what it has recorded.
    pub(crate) fn into_tracer(self) -> Option<Box<DebugInspector>> {
        match self.watcher {
            Watcher::Tracer(inspector) => Some(inspector),
            _ => None,
        }
    }

    /// All that was touched.
    pub(crate) fn into_access_list(self) -> AccessList {
        match self.watcher {
            Watcher::AccessList(inspector) => inspector.into_access_list(),
            _ => AccessList::default(),
        }
    }
}

/// How much may still be recorded.
#[derive(Debug, Default)]
struct Budget {
    left: u64,
    exceeded: bool,
    /// What each instruction costs; none where instructions are not recorded.
    steps: Option<StepCosts>,
    /// What each call costs; none where calls are not recorded.
    calls: Option<CallCosts>,
}

/// What is recorded of each call, beside what it returns.
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
    /// How many are still recorded.
    left: u64,
    /// Whether the one that runs is recorded.
    current: bool,
    /// Slots that each account has used: all of them stand at each of its instructions that use storage.
    slots: AddressMap<HashSet<U256>>,
}

impl StepCosts {
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

    /// Ends the run where nothing more may be recorded.
    fn check(&self, context: &mut EvmContext<'_>) {
        if self.exceeded {
            context.error = Err(ContextError::Custom("the trace takes too much memory".into()));
        }
    }
}

/// Does the same with whoever watches.
macro_rules! watch {
    ($self:expr, $inspector:ident => $work:expr) => {
        match &mut $self.watcher {
            Watcher::Nobody => Default::default(),
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
