//! What callers add to the EVM: precompiles, settings, inspectors and tracers.

use crate::evm_context::EvmContext;
use crate::tracer::TracerMap;
use node_types::{Address, Bytes, U256};
use revm::Inspector;
use revm::context::CfgEnv;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A precompiled contract of the caller's own, seen by every kind of call. Implemented by closures.
///
/// Its result must depend only on the call: blocks are executed again by whoever imports them.
pub trait Precompile: Send + Sync {
    /// Runs a call of the contract.
    fn run(&self, call: &PrecompileCall<'_>) -> PrecompileOutcome;
}

impl<F: Fn(&PrecompileCall<'_>) -> PrecompileOutcome + Send + Sync> Precompile for F {
    fn run(&self, call: &PrecompileCall<'_>) -> PrecompileOutcome {
        self(call)
    }
}

/// A call of a [`Precompile`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PrecompileCall<'a> {
    /// The call data.
    pub input: &'a [u8],
    /// Gas that may be used.
    pub gas_limit: u64,
    /// The account that calls.
    pub caller: Address,
    /// Value of the call in wei.
    pub value: U256,
    /// Whether the call must not change the state.
    pub is_static: bool,
}

/// The result of a call of a [`Precompile`]. Using more gas than the limit is the same as [`OutOfGas`](Self::OutOfGas).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrecompileOutcome {
    /// It succeeded.
    Returned {
        /// Gas used.
        gas_used: u64,
        /// The returned data.
        output: Bytes,
    },
    /// It reverted. The rest of the gas is returned.
    Reverted {
        /// Gas used.
        gas_used: u64,
        /// The returned data.
        output: Bytes,
    },
    /// The gas does not suffice. All of it is used.
    OutOfGas,
    /// It failed for this reason. All gas is used.
    Failed(String),
}

/// An inspector of revm for the EVM of this crate: any type that implements [`Inspector`] for every context. See
/// [`EvmExecutor::inspect_call`](crate::EvmExecutor::inspect_call).
pub trait EvmInspector: for<'a> Inspector<EvmContext<'a>> {}

impl<T: for<'a> Inspector<EvmContext<'a>>> EvmInspector for T {}

/// Precompiles by their addresses.
pub(crate) type PrecompileMap = BTreeMap<Address, Arc<dyn Precompile>>;

type Configure = dyn Fn(&mut CfgEnv) + Send + Sync;

/// What the EVM has beyond Ethereum's rules.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    pub(crate) precompiles: Arc<PrecompileMap>,
    pub(crate) configure: Option<Arc<Configure>>,
    pub(crate) tracers: TracerMap,
}

impl Extensions {
    /// Applies the caller's settings to those of a fork.
    pub(crate) fn configured(&self, mut cfg: CfgEnv) -> CfgEnv {
        if let Some(configure) = &self.configure {
            configure(&mut cfg);
        }
        cfg
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<_> = self.precompiles.keys().collect();
        let tracers: Vec<_> = self.tracers.keys().collect();
        f.debug_struct("Extensions").field("precompiles", &addresses).field("tracers", &tracers).finish_non_exhaustive()
    }
}
