//! The executor on revm.

use crate::access_list;
use crate::block::EvmBlock;
use crate::call::CallRun;
use crate::code_cache::CodeCache;
use crate::run_context::RunContext;
use crate::simulation::EvmSimulation;
use crate::{estimate, precompiles, spec, system};
use node_core::backend::View;
use node_core::caches::CacheUse;
use node_core::context::Context;
use node_core::executor::{BlockExecution, Call, CallOutcome, Contracts, EstimateOutcome, ExecutionError, Executor};
use node_core::forks::{ChainSpec, Fork};
use node_core::simulation::{SimulatedExecution, SimulationRules};
use node_core::trace::{AccessListOutcome, Trace, TraceError, Tracing};
use node_types::consensus::Header;
use std::sync::Arc;

/// The [`Executor`] of one chain, on revm.
#[derive(Debug)]
pub struct EvmExecutor {
    spec: Arc<ChainSpec>,
    codes: CodeCache,
}

impl EvmExecutor {
    /// Default size of the cache of analysed code, in bytes.
    pub const CODE_CACHE_BYTES: u64 = 64 << 20;

    /// Creates an executor for the chain `spec`.
    pub fn new(spec: Arc<ChainSpec>) -> Self {
        Self::with_code_cache(spec, Self::CODE_CACHE_BYTES)
    }

    /// Creates an executor whose cache of analysed code takes at most `bytes` of memory.
    pub fn with_code_cache(spec: Arc<ChainSpec>, bytes: u64) -> Self {
        Self { spec, codes: CodeCache::new(bytes) }
    }

    fn run_context<'a>(&'a self, context: &'a Context, view: &'a dyn View) -> RunContext<'a> {
        RunContext { spec: &self.spec, codes: &self.codes, context, view }
    }
}

impl Executor for EvmExecutor {
    fn begin_block<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError> {
        Ok(Box::new(EvmBlock::begin(self.run_context(context, view), header)?))
    }

    fn begin_simulated<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
        rules: &SimulationRules<'_>,
    ) -> Result<Box<dyn SimulatedExecution + 'a>, ExecutionError> {
        Ok(Box::new(EvmSimulation::begin(self.run_context(context, view), header, rules)?))
    }

    fn call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<CallOutcome, ExecutionError> {
        CallRun::new(self.run_context(context, view), header, call)?.call()
    }

    fn estimate(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<EstimateOutcome, ExecutionError> {
        estimate::estimate(CallRun::new(self.run_context(context, view), header, call)?)
    }

    fn trace_call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
        tracing: &Tracing,
    ) -> Result<Trace, TraceError> {
        CallRun::new(self.run_context(context, view), header, call)?.trace(tracing)
    }

    fn access_list(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<AccessListOutcome, ExecutionError> {
        access_list::find(CallRun::new(self.run_context(context, view), header, call)?)
    }

    fn contracts(&self, fork: Fork) -> Contracts {
        Contracts { precompiles: precompiles::named(spec::spec_id(fork)), system: system::contracts(&self.spec, fork) }
    }

    fn caches(&self) -> Vec<CacheUse> {
        vec![self.codes.usage()]
    }
}
