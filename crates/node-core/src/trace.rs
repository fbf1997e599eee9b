//! Traces of execution, with geth's tracers.

use crate::executor::ExecutionError;
use node_types::consensus::AccessListItem;
use serde_json::value::RawValue;

/// What a trace records, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// The tracer.
    pub tracer: Tracer,
    /// Maximum size of the records in bytes. While the trace is serialized, about two and a half times as much memory is
    /// in use.
    pub max_bytes: u64,
}

/// One of geth's tracers, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Every instruction: geth's default tracer.
    StructLogs(StructLogs),
    /// Calls as a tree: callTracer.
    Calls {
        /// Only the outermost call.
        only_top_call: bool,
        /// Include logs.
        with_log: bool,
    },
    /// Calls as a flat list: flatCallTracer.
    FlatCalls {
        /// Include calls of precompiles.
        include_precompiles: bool,
        /// Use OpenEthereum's error texts.
        parity_errors: bool,
    },
    /// The touched accounts before the execution: prestateTracer.
    Prestate {
        /// Only what changed, before and after the execution.
        diff_mode: bool,
        /// Without code.
        disable_code: bool,
        /// Without storage.
        disable_storage: bool,
    },
    /// Number of calls per selector: 4byteTracer.
    FourByte,
    /// Nothing: noopTracer.
    Noop,
}

/// What is recorded of each instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StructLogs {
    /// Record memory.
    pub enable_memory: bool,
    /// Do not record the stack.
    pub disable_stack: bool,
    /// Do not record storage.
    pub disable_storage: bool,
    /// Record the return data of the last call.
    pub enable_return_data: bool,
    /// Maximum number of instructions. `None` for no limit.
    pub limit: Option<u64>,
}

/// A trace as JSON text in geth's format.
pub type Trace = Box<RawValue>;

/// Why a trace failed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The records exceed [`Tracing::max_bytes`].
    #[error("the trace exceeds its memory limit")]
    TooLarge,
    /// The execution failed.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
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
