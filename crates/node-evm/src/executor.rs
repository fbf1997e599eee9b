//! The executor on revm.

use crate::block::simulation::EvmSimulation;
use crate::block::{EvmBlock, system};
use crate::call::{CallRun, access_list, estimate};
use crate::extension::{EvmInspector, Extensions, Precompile};
use crate::kzg::KzgVerifier;
use crate::machine::{RunContext, spec};
use crate::precompile;
use crate::recovery::Secp256k1Recovery;
use crate::state::code_cache::CodeCache;
use crate::trace::tracer::{Tracer, TracerOptions};
use node_core::backend::{CacheUse, StateBackend, View};
use node_core::context::Context;
use node_core::crypto::{BlobError, BlobVerifier, SenderRecovery, SignatureError};
use node_core::executor::{
    AccessListOutcome, BlockExecution, Call, CallOutcome, Contracts, EstimateOutcome, ExecutionError, Executor,
    SimulatedExecution, SimulationRules, TraceError, Tracing,
};
use node_core::node::{Node, NodeBuilder};
use node_core::protocol::{ChainSpec, Fork};
use node_types::buffer::JsonBuffer;
use node_types::consensus::{BlobSidecar, Header, Signature};
use node_types::{Address, H256};
use revm::context::CfgEnv;
use std::sync::Arc;

/// The [`Execution`](node_core::executor::Execution) of one chain: code runs on revm, libsecp256k1 recovers senders,
/// and c-kzg verifies blobs.
#[derive(Debug)]
pub struct EvmExecutor {
    spec: Arc<ChainSpec>,
    codes: CodeCache,
    extensions: Extensions,
}

impl EvmExecutor {
    /// Default size of the cache of analyzed code, in bytes.
    pub const CODE_CACHE_BYTES: u64 = 64 << 20;

    /// Creates an executor for the chain `spec`.
    pub fn new(spec: Arc<ChainSpec>) -> Self {
        Self::with_code_cache(spec, Self::CODE_CACHE_BYTES)
    }

    /// Creates an executor whose cache of analyzed code takes at most `bytes` bytes of memory.
    pub fn with_code_cache(spec: Arc<ChainSpec>, bytes: u64) -> Self {
        Self { spec, codes: CodeCache::new(bytes), extensions: Extensions::default() }
    }

    /// Adds a precompiled contract at `address`, replacing any other precompile there, also one of Ethereum's. It can be
    /// called by every kind of call, including from contracts.
    ///
    /// # Examples
    /// ```
    /// use node_core::protocol::{ChainSpec, Fork};
    /// use node_evm::{EvmExecutor, PrecompileCall, PrecompileOutcome};
    /// use node_types::Address;
    /// use std::sync::Arc;
    ///
    /// let reverse = |call: PrecompileCall<'_, '_>| PrecompileOutcome::Returned {
    ///     gas_used: 100,
    ///     output: call.input.iter().rev().copied().collect(),
    /// };
    /// let spec = Arc::new(ChainSpec::at_genesis(1337, Fork::Osaka));
    /// let executor = EvmExecutor::new(spec).with_precompile(Address::from_low_u64_be(0xbeef), reverse);
    /// ```
    #[must_use]
    pub fn with_precompile(mut self, address: Address, precompile: impl Precompile + 'static) -> Self {
        Arc::make_mut(&mut self.extensions.precompiles).insert(address, Arc::new(precompile));
        self
    }

    /// Makes `configure` change revm's settings for every block and call, after those of the active fork were
    /// applied.
    #[must_use]
    pub fn with_configuration(mut self, configure: impl Fn(&mut CfgEnv) + Send + Sync + 'static) -> Self {
        self.extensions.configure = Some(Arc::new(configure));
        self
    }

    /// Adds a tracer that the `debug_trace` methods run if a request has `name` as `tracer`. It replaces a geth
    /// tracer with the same name. `start` creates the tracer for a request, or returns an error message if it does
    /// not accept the request's options.
    #[must_use]
    pub fn with_tracer(
        mut self,
        name: impl Into<String>,
        start: impl Fn(&TracerOptions<'_>) -> Result<Box<dyn Tracer>, String> + Send + Sync + 'static,
    ) -> Self {
        self.extensions.tracers.insert(name.into(), Arc::new(start));
        self
    }

    /// Executes a call like [`call`](Executor::call), with an inspector.
    ///
    /// # Errors
    /// Those of [`call`](Executor::call).
    pub fn inspect_call(
        &self,
        context: &Context,
        view: &dyn View,
        header: &Header,
        call: &Call,
        inspector: &mut dyn EvmInspector,
    ) -> Result<CallOutcome, ExecutionError> {
        CallRun::new(self.run_context(context, view), header, call)?.inspect(inspector)
    }

    /// Starts a block like [`begin_block`](Executor::begin_block). Its transactions run with an inspector.
    ///
    /// # Errors
    /// Those of [`begin_block`](Executor::begin_block).
    pub fn inspect_block<'a>(
        &'a self,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
        inspector: &'a mut dyn EvmInspector,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError> {
        Ok(Box::new(EvmBlock::begin(self.run_context(context, view), header)?.inspected_by(inspector)))
    }

    fn run_context<'a>(&'a self, context: &'a Context, view: &'a dyn View) -> RunContext<'a> {
        RunContext { spec: &self.spec, codes: &self.codes, extensions: &self.extensions, context, view }
    }
}

/// Starts building a node on the chain that `backend` stores, executed under the rules of `spec` on revm. Everything
/// else has a default.
///
/// # Examples
/// ```
/// use node_core::backend::{BackendError, StateBackend};
/// use node_core::protocol::ChainSpec;
/// use node_core::node::Node;
/// use std::sync::Arc;
///
/// fn open(backend: Arc<dyn StateBackend>, spec: ChainSpec) -> Result<Node, BackendError> {
///     node_evm::builder(backend, spec).open()
/// }
/// ```
pub fn builder(backend: Arc<dyn StateBackend>, spec: impl Into<Arc<ChainSpec>>) -> NodeBuilder {
    let spec = spec.into();
    Node::builder(backend, Arc::new(EvmExecutor::new(spec.clone())), spec)
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
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        CallRun::new(self.run_context(context, view), header, call)?.trace(tracing, out)
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
        Contracts { precompiles: precompile::named(spec::spec_id(fork)), system: system::contracts(&self.spec, fork) }
    }

    fn caches(&self) -> Vec<CacheUse> {
        vec![self.codes.usage(), self.extensions.results.usage()]
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
