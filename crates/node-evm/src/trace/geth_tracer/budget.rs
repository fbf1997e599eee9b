//! A limit on the memory of a tracer's records: a loop can record all memory full before it runs out of gas.

use crate::machine::context::EvmContext;
use revm::context_interface::context::ContextError;

/// The number of bytes that may still be recorded.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    exceeded: bool,
}

impl Budget {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { left: max_bytes, exceeded: false }
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    /// Reserves `bytes`. Returns whether they may be recorded.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes as u64) {
            Some(left) if !self.exceeded => self.left = left,
            _ => self.exceeded = true,
        }
        !self.exceeded
    }

    /// Ends the run if the budget is exceeded.
    pub(super) fn check(&self, context: &mut EvmContext<'_>) {
        if self.exceeded {
            context.error = Err(ContextError::Custom("the trace takes too much memory".into()));
        }
    }
}
