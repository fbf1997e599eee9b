//! The executor on revm.

use crate::access_list;
use crate::block::EvmBlock;
use crate::call::CallRun;
use crate::code_cache::CodeCache;
use crate::kzg::KzgVerifier;
use crate::recovery::Secp256k1Recovery;
use crate::run_context::RunContext;
use crate::simulation::EvmSimulation;
use crate::{estimate, precompiles, spec, system};
use node_core::backend::View;
use node_core::caches::CacheUse;
use node_core::context::Context;
use node_core::crypto::{BlobError, BlobVerifier, SenderRecovery, SignatureError};
use node_core::executor::{BlockExecution, Call, CallOutcome, Contracts, EstimateOutcome, ExecutionError, Executor};
use node_core::forks::{ChainSpec, Fork};
use node_core::simulation::{SimulatedExecution, SimulationRules};
use node_core::trace::{AccessListOutcome, Trace, TraceError, Tracing};
use node_types::consensus::{BlobSidecar, Header, Signature};
use node_types::{Address, H256};
use std::sync::Arc;

/// The [`Execution`](node_core::executor::Execution) of one chain: code runs on revm, libsecp256k1 recovers senders, and
/// c-kzg verifies blobs.
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

impl SenderRecovery for EvmExecutor {
    fn recover(&self, message: H256, signature: &Signature, low_s: bool) -> Result<Address, SignatureError> {
        Secp256k1Recovery.recover(message, signature, low_s)
    }
}

impl BlobVerifier for EvmExecutor {
    fn verify(&self, versioned_hashes: &[H256], sidecar: &BlobSidecar) -> Result<(), BlobError> {
        KzgVerifier.verify(versioned_hashes, sidecar)
    }

    fn with_cell_proofs(&self, sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError> {
        KzgVerifier.with_cell_proofs(sidecar)
    }
}
