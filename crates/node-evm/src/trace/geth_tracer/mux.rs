//! Several tracers at once: muxTracer.

use super::budget::Budget;
use super::json;
use super::recorder::{Entry, Exit, Recorder, StepEnd};
use crate::machine::context::EvmContext;
use crate::trace::tracer::Finished;
use node_core::executor::TraceError;
use node_types::buffer::JsonBuffer;
use revm::interpreter::Interpreter;
use revm::primitives::Log;
use std::collections::BTreeMap;

/// Tracers by name. They share the budget.
pub(super) struct Mux(pub(super) BTreeMap<String, Box<dyn Recorder>>);

impl Recorder for Mux {
    fn step(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, budget: &mut Budget) {
        self.0.values_mut().for_each(|recorder| recorder.step(interpreter, context, budget));
    }

    fn step_end(&mut self, interpreter: &Interpreter, context: &mut EvmContext<'_>, end: &StepEnd) {
        self.0.values_mut().for_each(|recorder| recorder.step_end(interpreter, context, end));
    }

    fn enter(&mut self, entry: &Entry<'_>, budget: &mut Budget) {
        self.0.values_mut().for_each(|recorder| recorder.enter(entry, budget));
    }

    fn exit(&mut self, exit: &Exit<'_>, budget: &mut Budget) {
        self.0.values_mut().for_each(|recorder| recorder.exit(exit, budget));
    }

    fn log(&mut self, log: &Log, budget: &mut Budget) {
        self.0.values_mut().for_each(|recorder| recorder.log(log, budget));
    }

    fn finish(
        &mut self,
        run: &mut Finished<'_, '_>,
        budget: &mut Budget,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        out.push(b'{');
        for (index, (name, recorder)) in self.0.iter_mut().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write(out, name)?;
            out.push(b':');
            recorder.finish(run, budget, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}
