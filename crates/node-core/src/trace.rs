//! What can be recorded of code while it runs, as geth's tracers record it.

use crate::executor::ExecutionError;
use node_types::consensus::AccessListItem;
use serde_json::value::RawValue;

/// What to record of a transaction or call, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// What to record.
    pub tracer: Tracer,
    /// Most bytes of memory that the record may take; at its end, with its text, about two and a half times as many are used.
    pub max_bytes: u64,
}

/// Which of geth's tracers, with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Every instruction: the tracer where none is named.
    StructLogs(StructLogs),
    /// Calls as a tree: callTracer.
    Calls {
        /// Only the outermost call.
        only_top_call: bool,
        /// Logs as well.
        with_log: bool,
    },
    /// Calls one behind the other: flatCallTracer.
    FlatCalls {
        /// Calls of precompiled contracts as well.
        include_precompiles: bool,
        /// Errors in the words of OpenEthereum.
        parity_errors: bool,
    },
    /// The accounts that were touched, as they were before: prestateTracer.
    Prestate {
        /// Only what changed, before and after.
        diff_mode: bool,
        /// Without code.
        disable_code: bool,
        /// Without storage.
        disable_storage: bool,
    },
    /// How often each selector was called: 4byteTracer.
    FourByte,
    /// Nothing: noopTracer.
    Noop,
}

/// What is recorded of each instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StructLogs {
    /// Memory.
    pub enable_memory: bool,
    /// No stack.
    pub disable_stack: bool,
    /// No storage.
    pub disable_storage: bool,
    /// What the last call returned.
    pub enable_return_data: bool,
    /// Most instructions; none for all.
    pub limit: Option<u64>,
}

/// What a tracer has seen, as the JSON text that geth gives.
pub type Trace = Box<RawValue>;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// What was recorded takes more memory than it may.
    #[error("the trace takes more memory than it may")]
    TooLarge,
    /// Code was not run, or not to its end.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
}

/// What a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessListOutcome {
    /// Accounts and slots beside the sender, the receiver and precompiled contracts (EIP-2930), ascending.
    pub access_list: Vec<AccessListItem>,
    /// Gas used by the call with this list.
    pub gas_used: u64,
    /// Why the call failed, if it did.
    pub error: Option<String>,
}
