//! Traced runs.

#[cfg(feature = "tracers")]
mod geth_tracer;
pub(crate) mod inspection;
pub(crate) mod tracer;

use crate::machine::Machine;
use crate::machine::refusal::{TransactionTerms, refusal};
use crate::trace::inspection::Inspection;
use crate::trace::tracer::{Finished, Place, StartTracer, Tracer, TracerMap, TracerOptions};
use node_core::executor::{ExecutionError, TraceError, Tracing};
use node_types::buffer::JsonBuffer;
use revm::context::TxEnv;
use revm::context::result::{ExecutionResult, ResultAndState};
use revm::state::EvmState;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A traced run, whose changes are not committed.
pub(crate) struct TracedRun {
    pub(crate) result: ExecutionResult,
    pub(crate) state: EvmState,
}

/// Runs a transaction and appends its trace to `out`. `place` is its position on the chain, which is empty for a call.
pub(crate) fn run(
    machine: &mut Machine<'_>,
    transaction: TxEnv,
    terms: &TransactionTerms,
    place: Place,
    tracing: &Tracing,
    tracers: &TracerMap,
    out: &mut JsonBuffer,
) -> Result<TracedRun, TraceError> {
    let tracer = select(tracing, tracers).map_err(TraceError::Options)?;
    let mut inspection = Inspection::Tracer(tracer);
    let (result, state) = machine.inspect(transaction.clone(), &mut inspection);
    let Inspection::Tracer(tracer) = inspection else {
        return Err(defect("the run was not traced").into());
    };
    if tracer.is_full() {
        return Err(TraceError::TooLarge);
    }
    let result = result.map_err(|fault| refusal(machine, terms, fault))?;
    let (block, outcome) = (machine.block().clone(), ResultAndState { result, state });
    let run = Finished { transaction: &transaction, block: &block, outcome: &outcome, state: machine.db(), place };
    tracer.finish(run, out)?;
    if let Some(full) = out.full() {
        return Err(full.into());
    }
    Ok(TracedRun { result: outcome.result, state: outcome.state })
}

/// Creates the tracer that the options request: a custom one, or one of geth's.
fn select(tracing: &Tracing, tracers: &TracerMap) -> Result<Box<dyn Tracer>, String> {
    let options = tracing.tracer.as_deref();
    match own(options, tracers) {
        Some((start, config)) => start(&TracerOptions { config: config.as_deref(), max_bytes: tracing.max_bytes }),
        None => geths(options, tracing.max_bytes, tracers),
    }
}

/// Returns the custom tracer that the options request, with its settings, or `None` if they do not request a custom
/// one.
fn own<'t>(options: Option<&RawValue>, tracers: &'t TracerMap) -> Option<(&'t StartTracer, Option<Box<RawValue>>)> {
    if tracers.is_empty() {
        return None;
    }
    let mut options: BTreeMap<String, Box<RawValue>> = serde_json::from_str(options?.get()).ok()?;
    let name: String = serde_json::from_str(options.get("tracer")?.get()).ok()?;
    let config = options.remove("tracerConfig").filter(|config| config.get() != "null");
    Some((&**tracers.get(&name)?, config))
}

#[cfg(feature = "tracers")]
fn geths(options: Option<&RawValue>, max_bytes: u64, own: &TracerMap) -> Result<Box<dyn Tracer>, String> {
    Ok(Box::new(crate::trace::geth_tracer::GethTracer::new(options, max_bytes, own)?))
}

#[cfg(not(feature = "tracers"))]
fn geths(_: Option<&RawValue>, _: u64, _: &TracerMap) -> Result<Box<dyn Tracer>, String> {
    Err("this program was built without geth's tracers (feature `tracers` of node-evm)".to_owned())
}

/// Returns the error for a failure that is a bug.
pub(crate) fn defect(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExecutionError {
    ExecutionError::Internal(error.into())
}
