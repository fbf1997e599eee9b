//! The parameters that executions of blocks and calls have in common.

use crate::code_cache::CodeCache;
use crate::extension::Extensions;
use node_core::backend::View;
use node_core::context::Context;
use node_core::forks::ChainSpec;

/// The chain, the state and the limits of an execution.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    pub(crate) spec: &'a ChainSpec,
    pub(crate) codes: &'a CodeCache,
    pub(crate) extensions: &'a Extensions,
    /// Deadline, cancellation and gas budget.
    pub(crate) context: &'a Context,
    pub(crate) view: &'a dyn View,
}
