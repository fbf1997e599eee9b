//! Tracers, which record a run for the `debug_trace` methods.

use crate::extension::EvmInspector;
use crate::state::StateDb;
use node_core::executor::TraceError;
use node_types::H256;
use node_types::buffer::JsonBuffer;
use revm::context::result::ResultAndState;
use revm::context::{BlockEnv, TxEnv};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records one transaction or call, and produces a trace. geth's tracers are built in (feature `tracers`);
/// [`EvmExecutor::with_tracer`](crate::EvmExecutor::with_tracer) adds others.
pub trait Tracer: EvmInspector {
    /// Returns whether the records exceed their limit. The run then fails with [`TraceError::TooLarge`].
    fn is_full(&self) -> bool {
        false
    }

    /// Appends the trace to `out` as JSON.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`] if it exceeds its limit, [`TraceError::Full`] if `out` is full, and
    /// [`TraceError::Execution`] if the state cannot be read.
    fn finish(self: Box<Self>, run: Finished<'_, '_>, out: &mut JsonBuffer) -> Result<(), TraceError>;
}

/// The options from which a tracer is created.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TracerOptions<'a> {
    /// The request's `tracerConfig`.
    pub config: Option<&'a RawValue>,
    /// Maximum number of bytes that the tracer should record.
    pub max_bytes: u64,
}

/// A traced run that has ended: its input, its result, and the state before it.
#[non_exhaustive]
pub struct Finished<'r, 'a> {
    pub transaction: &'r TxEnv,
    pub block: &'r BlockEnv,
    /// The result, with every account that the run touched.
    pub outcome: &'r ResultAndState,
    /// The state before the run, a [`Database`](revm::Database).
    pub state: &'r mut StateDb<'a>,
    /// The transaction's position on the chain.
    pub place: Place,
}

/// The position of a transaction on the chain. All fields are `None` or 0 for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    pub block_hash: Option<H256>,
    /// Its index in the block, from 0.
    pub index: Option<usize>,
    pub hash: Option<H256>,
    /// Number of logs of the transactions before it in the block.
    pub first_log: u64,
}

/// Creates a tracer, or returns an error message about options that it does not accept.
pub(crate) type StartTracer = dyn Fn(&TracerOptions<'_>) -> Result<Box<dyn Tracer>, String> + Send + Sync;

/// Custom tracers by name.
pub(crate) type TracerMap = BTreeMap<String, Arc<StartTracer>>;
