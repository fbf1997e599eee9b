//! Tracers, which record a run for the `debug_trace` methods.

use crate::database::StateDb;
use crate::extension::EvmInspector;
use node_core::trace::{Trace, TraceError};
use node_types::H256;
use revm::context::result::ResultAndState;
use revm::context::{BlockEnv, TxEnv};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records one transaction or call, and makes a trace of it. geth's tracers are built in (feature `tracers`);
/// [`EvmExecutor::with_tracer`](crate::EvmExecutor::with_tracer) adds others.
pub trait Tracer: EvmInspector {
    /// Whether the records exceed their limit. The run is then refused with [`TraceError::TooLarge`].
    fn is_full(&self) -> bool {
        false
    }

    /// Returns the trace as JSON.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`] if it exceeds its limit, and [`TraceError::Execution`] if the state cannot be read.
    fn finish(self: Box<Self>, run: Finished<'_, '_>) -> Result<Trace, TraceError>;
}

/// What a tracer is created from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TracerOptions<'a> {
    /// The request's `tracerConfig`.
    pub config: Option<&'a RawValue>,
    /// Bytes that the tracer should record at most.
    pub max_bytes: u64,
}

/// A run that was traced.
#[non_exhaustive]
pub struct Finished<'r, 'a> {
    /// The transaction or call.
    pub transaction: &'r TxEnv,
    /// The environment of its block.
    pub block: &'r BlockEnv,
    /// The result, with every account that the run touched.
    pub outcome: &'r ResultAndState,
    /// The state before the run, a [`Database`](revm::Database).
    pub state: &'r mut StateDb<'a>,
    /// The transaction's position on the chain.
    pub place: Place,
}

/// The position of a transaction on the chain. Everything is `None` for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Hash of its block.
    pub block_hash: Option<H256>,
    /// Its index in the block.
    pub index: Option<usize>,
    /// Its hash.
    pub hash: Option<H256>,
}

/// Creates a tracer, or returns a sentence about the settings that it refuses.
pub(crate) type StartTracer = dyn Fn(&TracerOptions<'_>) -> Result<Box<dyn Tracer>, String> + Send + Sync;

/// The caller's tracers by their names.
pub(crate) type TracerMap = BTreeMap<String, Arc<StartTracer>>;
