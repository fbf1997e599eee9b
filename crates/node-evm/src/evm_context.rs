//! The context in which revm's instructions run.

use crate::database::StateDb;
use crate::log_book::LogBook;
use node_core::context::{Context, Interrupted};
use revm::context::{BlockEnv, CfgEnv, Journal, LocalContext, TxEnv};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::EthInterpreter;

/// revm's context on top of [`StateDb`], with [`RunState`] as its extension.
pub type EvmContext<'a> =
    revm::Context<BlockEnv, TxEnv, CfgEnv, StateDb<'a>, Journal<StateDb<'a>>, RunState<'a>, LocalContext>;

/// The instruction table of a fork.
pub(crate) type Instructions<'a> = EthInstructions<EthInterpreter, EvmContext<'a>>;

/// The extension that this crate adds to revm's context. Instructions access it as `host.chain`.
#[derive(Debug)]
pub struct RunState<'a> {
    context: &'a Context,
    /// Number of jumps so far.
    jumps: u32,
    /// The logs of a simulated block; `None` outside of simulations.
    pub(crate) logs: Option<LogBook>,
}

impl<'a> RunState<'a> {
    /// Number of jumps between two checks of the context. Running that many jumps takes a few microseconds.
    const JUMPS_PER_CHECK: u32 = 1024;

    /// Creates the state of a run that `context` can interrupt.
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, jumps: 0, logs: None }
    }

    /// Returns an error if the context interrupts the run.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        self.context.check()
    }

    /// Counts a jump. Returns whether the context is due for a [`check`](Self::check).
    pub(crate) fn count_jump(&mut self) -> bool {
        self.jumps = self.jumps.wrapping_add(1);
        self.jumps.is_multiple_of(Self::JUMPS_PER_CHECK)
    }
}
