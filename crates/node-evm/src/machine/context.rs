//! The context in which revm's instructions run.

use crate::block::log_book::LogBook;
use crate::machine::halt::LastInstruction;
use crate::state::{DatabaseError, StateDb};
use node_core::context::{Context, Interrupted};
use node_core::waiting;
use revm::context::{BlockEnv, CfgEnv, ContextError, Journal, LocalContext, TxEnv};
use revm::handler::instructions::EthInstructions;
use revm::handler::precompile_output_to_interpreter_result;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{CallInputs, InterpreterResult};
use revm::precompile::{PrecompileHalt, PrecompileOutput};
use std::borrow::Cow;

/// revm's context on top of [`StateDb`], with [`RunState`] as its extension.
pub type EvmContext<'a> =
    revm::Context<BlockEnv, TxEnv, CfgEnv, StateDb<'a>, Journal<StateDb<'a>>, RunState<'a>, LocalContext>;

/// The instruction table of a fork.
pub(crate) type Instructions<'a> = EthInstructions<EthInterpreter, EvmContext<'a>>;

/// A number of bytes that take some hundred microseconds to hash or to encode.
pub(crate) const MANY_BYTES: usize = 64 << 10;

/// The extension that this crate adds to revm's context. Instructions access it as `host.chain`.
#[derive(Debug)]
pub struct RunState<'a> {
    context: &'a Context,
    /// Number of instructions that [count](Self::count) so far.
    counted: u32,
    counted_per_check: u32,
    /// The logs of a simulated block; `None` outside of simulations.
    pub(crate) logs: Option<LogBook>,
    /// The instruction that ended the frame that ended last, if the frame failed.
    pub(crate) failed_at: Option<LastInstruction>,
    /// Why the precompile that failed last has failed, in geth's words.
    pub(crate) precompile_failure: Cow<'static, str>,
}

impl<'a> RunState<'a> {
    /// Creates the state of a run that `context` can interrupt.
    pub(crate) fn new(context: &'a Context) -> Self {
        // Up to 24 KiB of other instructions can run from one of these to the next. That usually takes nanoseconds, but
        // can take a millisecond.
        let counted_per_check = if waiting::is_allowed() { 1024 } else { 4 };
        Self {
            context,
            counted: 0,
            counted_per_check,
            logs: None,
            failed_at: None,
            precompile_failure: Cow::Borrowed(""),
        }
    }

    /// Returns an error if the context interrupts the run.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        self.context.check()
    }

    /// Counts an instruction. Returns whether the context is due for a [`check`](Self::check).
    pub(crate) fn count(&mut self) -> bool {
        self.counted = self.counted.wrapping_add(1);
        self.counted.is_multiple_of(self.counted_per_check)
    }
}

/// Returns an error if work on this thread must not take long, and what follows is not quick.
pub(crate) fn check_quick(is_quick: bool) -> Result<(), Interrupted> {
    if is_quick || waiting::is_allowed() {
        return Ok(());
    }
    waiting::refuse();
    Err(Interrupted::DeadlineExceeded)
}

/// Ends the whole operation with an error, instead of running a precompile.
pub(crate) fn abort(context: &mut EvmContext<'_>, inputs: &CallInputs, error: DatabaseError) -> InterpreterResult {
    context.error = Err(ContextError::Db(error));
    let output = PrecompileOutput::halt(PrecompileHalt::Other("".into()), inputs.reservoir);
    precompile_output_to_interpreter_result(output, inputs.gas_limit)
}

/// Ends the operation if work on this thread must not take long, and the precompile is not quick. Otherwise returns
/// `None`.
pub(crate) fn refused(context: &mut EvmContext<'_>, inputs: &CallInputs, is_quick: bool) -> Option<InterpreterResult> {
    check_quick(is_quick).err().map(|interrupted| abort(context, inputs, interrupted.into()))
}
