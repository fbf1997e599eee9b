//! Traces of execution, with geth's tracers.

use crate::backend::BackendError;
use crate::executor::ExecutionError;
use node_types::buffer::{BufferFull, JsonBuffer};
use node_types::consensus::AccessListItem;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The options of a trace.
#[derive(Clone, Debug)]
pub struct Tracing {
    /// The tracer with its settings; `None` for the defaults.
    pub tracer: Option<TracerJson>,
    /// Maximum memory for recording the trace, in bytes. The buffer to which its JSON is written has its own limit.
    pub max_bytes: u64,
}

/// geth's trace options, such as `tracer`, `tracerConfig` and `enableMemory`, as the text of a JSON object. The
/// executor's tracers define them, as well as the format of a trace.
pub type TracerJson = Arc<RawValue>;

/// Appends a trace as JSON.
pub type WriteTrace<'a> = dyn FnMut(&mut JsonBuffer) -> Result<(), TraceError> + 'a;

/// Why a trace failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    #[error("{0}")]
    Options(String),
    /// The records exceed [`Tracing::max_bytes`].
    #[error("the trace exceeds its memory limit")]
    TooLarge,
    /// The JSON does not fit into the buffer.
    #[error(transparent)]
    Full(#[from] BufferFull),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
}

impl From<BackendError> for TraceError {
    fn from(error: BackendError) -> Self {
        Self::Execution(error.into())
    }
}

/// The access list of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessListOutcome {
    /// The touched accounts and slots, ascending, without the sender, the recipient and precompiles (EIP-2930).
    pub access_list: Vec<AccessListItem>,
    /// Gas that the call uses with this list.
    pub gas_used: u64,
    /// Why the call failed, if it did.
    pub error: Option<String>,
}
