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
use revm_inspectors::tracing::DebugInspector;
use revm_inspectors::tracing::types::{CallTraceNode, CallTraceStep};

/// Watches a run.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    watcher: Watcher,
    budget: Budget,
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
        Self { watcher: Watcher::Tracer(Box::new(inspector)), budget }
    }

    /// Records what is touched beside `list`.
    pub(crate) fn access_list(list: AccessList) -> Self {
        let budget = Budget { left: u64::MAX, ..Budget::default() };
        Self { watcher: Watcher::AccessList(Box::new(list.into())), budget }
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
    /// Slots that each account has used: all of them stand at each of its instructions that use storage.
    slots: AddressMap<HashSet<U256>>,
}

impl StepCosts {
    fn of(&mut self, interpreter: &Interpreter) -> u64 {
        if self.left == 0 {
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
        watch!(self, inspector => inspector.step(interpreter, context));
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        watch!(self, inspector => inspector.step_end(interpreter, context));
    }

    fn log(&mut self, context: &mut EvmContext<'a>, log: Log) {
        self.budget.call(log.data.data.len());
        watch!(self, inspector => Inspector::<EvmContext<'a>>::log(&mut **inspector, context, log));
    }

    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.budget.call(inputs.input.len());
        self.budget.check(context);
        watch!(self, inspector => inspector.call(context, inputs))
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, outcome: &mut CallOutcome) {
        self.budget.call_end(outcome.result.output.len());
        watch!(self, inspector => inspector.call_end(context, inputs, outcome));
    }

    fn create(&mut self, context: &mut EvmContext<'a>, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.budget.call(inputs.init_code().len());
        self.budget.check(context);
        watch!(self, inspector => inspector.create(context, inputs))
    }

    fn create_end(&mut self, context: &mut EvmContext<'a>, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        self.budget.call_end(outcome.result.output.len());
        watch!(self, inspector => inspector.create_end(context, inputs, outcome));
    }

    fn selfdestruct(&mut self, contract: Address, target: Address, value: U256) {
        watch!(self, inspector => Inspector::<EvmContext<'a>>::selfdestruct(&mut **inspector, contract, target, value));
    }
}
