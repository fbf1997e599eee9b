//! Inspectors of runs.

use crate::call::collector::Collector;
use crate::extension::EvmInspector;
use crate::machine::context::EvmContext;
use crate::trace::tracer::Tracer;
use revm::Inspector;
use revm::handler::FrameResult;
use revm::interpreter::{CallInputs, CallOutcome, CreateInputs, CreateOutcome, FrameInput, Interpreter};
use revm::primitives::{Address, Log, U256};

/// The inspector of a run.
#[derive(Default)]
pub(crate) enum Inspection<'i> {
    /// The run is not inspected.
    #[default]
    None,
    Tracer(Box<dyn Tracer>),
    AccessList(Box<Collector>),
    /// The caller's inspector.
    Custom(&'i mut dyn EvmInspector),
}

/// Forwards a hook to the inspector, if there is one.
macro_rules! forward {
    ($self:expr, $hook:ident($($argument:expr),*)) => {
        match $self {
            Self::None => Default::default(),
            Self::Tracer(inspector) => Inspector::<EvmContext<'_>>::$hook(&mut **inspector, $($argument),*),
            Self::AccessList(inspector) => Inspector::<EvmContext<'_>>::$hook(&mut **inspector, $($argument),*),
            Self::Custom(inspector) => Inspector::<EvmContext<'_>>::$hook(&mut **inspector, $($argument),*),
        }
    };
}

impl<'a> Inspector<EvmContext<'a>> for Inspection<'_> {
    fn initialize_interp(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        forward!(self, initialize_interp(interpreter, context));
    }

    fn step(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        forward!(self, step(interpreter, context));
    }

    fn step_end(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>) {
        forward!(self, step_end(interpreter, context));
    }

    fn log(&mut self, context: &mut EvmContext<'a>, log: Log) {
        forward!(self, log(context, log));
    }

    fn log_full(&mut self, interpreter: &mut Interpreter, context: &mut EvmContext<'a>, log: Log) {
        forward!(self, log_full(interpreter, context, log));
    }

    fn frame_start(&mut self, context: &mut EvmContext<'a>, frame: &mut FrameInput) -> Option<FrameResult> {
        forward!(self, frame_start(context, frame))
    }

    fn frame_end(&mut self, context: &mut EvmContext<'a>, frame: &FrameInput, result: &mut FrameResult) {
        forward!(self, frame_end(context, frame, result));
    }

    fn call(&mut self, context: &mut EvmContext<'a>, inputs: &mut CallInputs) -> Option<CallOutcome> {
        forward!(self, call(context, inputs))
    }

    fn call_end(&mut self, context: &mut EvmContext<'a>, inputs: &CallInputs, outcome: &mut CallOutcome) {
        forward!(self, call_end(context, inputs, outcome));
    }

    fn create(&mut self, context: &mut EvmContext<'a>, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        forward!(self, create(context, inputs))
    }

    fn create_end(&mut self, context: &mut EvmContext<'a>, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        forward!(self, create_end(context, inputs, outcome));
    }

    fn selfdestruct(&mut self, contract: Address, target: Address, value: U256) {
        forward!(self, selfdestruct(contract, target, value));
    }
}
