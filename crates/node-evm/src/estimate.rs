//! The gas that a call needs, found by running it.

use crate::call::{CallRun, halted, reverted};
use node_core::executor::{CallFailure, EstimateOutcome, ExecutionError, TransactionError};
use node_core::forks::Fork;
use revm::context::result::{ExecutionResult, HaltReason};

/// Highest gas limit of a transaction since Osaka (EIP-7825).
const TRANSACTION_GAS_CAP: u64 = 1 << 24;

/// Gas of a transaction that does nothing; a lower limit is not taken as one.
const TRANSACTION_GAS: u64 = 21_000;

/// Gas given to a call that transfers value, above what the caller spares.
const CALL_STIPEND: u64 = 2_300;

/// The search ends when the bounds are this close, relative to the upper one.
const TOLERANCE: f64 = 0.015;

/// Searches the least gas limit with which the call succeeds, between the highest one and what it used there.
///
/// Most calls need what they use before refunds, transfers among them, so that is tried first. Others need more: a
/// callee gets at most 63/64 of what is left (EIP-150), and code may look at the gas left. So a second guess allows for
/// that, and all else is bisected. The answer is always a limit with which the call did succeed.
pub(crate) fn estimate(mut run: CallRun<'_>) -> Result<EstimateOutcome, ExecutionError> {
    let mut high = highest_limit(&run);
    let (gas_used, gas_needed) = match attempt(&mut run, high)? {
        Attempt::Succeeded { gas_used, gas_needed } => (gas_used, gas_needed),
        Attempt::Failed(failure) => return Ok(EstimateOutcome::Failed(failure)),
    };
    let mut low = gas_used.saturating_sub(1);

    if gas_needed < high {
        bisect(&mut run, gas_needed, &mut low, &mut high)?;
        if high == gas_needed {
            return Ok(EstimateOutcome::Gas(high));
        }
    }
    let guess = gas_needed.saturating_add(CALL_STIPEND).saturating_mul(64) / 63;
    if guess < high {
        bisect(&mut run, guess, &mut low, &mut high)?;
    }
    while low + 1 < high && (high - low) as f64 / high as f64 >= TOLERANCE {
        // Most calls need little more than they use: do not go far above the lower bound at once.
        let middle = (low + (high - low) / 2).min(low.saturating_mul(2));
        bisect(&mut run, middle, &mut low, &mut high)?;
    }
    Ok(EstimateOutcome::Gas(high))
}

/// Moves the bound that an attempt with `limit` decides.
fn bisect(run: &mut CallRun<'_>, limit: u64, low: &mut u64, high: &mut u64) -> Result<(), ExecutionError> {
    match attempt(run, limit)? {
        Attempt::Succeeded { .. } => *high = limit,
        Attempt::Failed(_) => *low = limit,
    }
    Ok(())
}

/// The highest limit that is allowed and can be paid.
fn highest_limit(run: &CallRun<'_>) -> u64 {
    let asked = run.asked_gas().filter(|gas| *gas >= TRANSACTION_GAS);
    let cap = (run.fork >= Fork::Osaka).then_some(TRANSACTION_GAS_CAP);
    [asked, cap, run.affordable_gas()].into_iter().flatten().fold(run.block_gas_limit.min(run.gas_budget()), u64::min)
}

/// How a run with one limit ended.
enum Attempt {
    Succeeded {
        /// Gas used after refunds.
        gas_used: u64,
        /// Gas used at the highest point.
        gas_needed: u64,
    },
    Failed(CallFailure),
}

fn attempt(run: &mut CallRun<'_>, limit: u64) -> Result<Attempt, ExecutionError> {
    let failure = match run.run(limit) {
        Ok(ExecutionResult::Success { gas, .. }) => {
            let gas_used = gas.tx_gas_used();
            return Ok(Attempt::Succeeded { gas_used, gas_needed: gas.total_gas_spent().max(gas_used) });
        }
        Ok(ExecutionResult::Revert { output, .. }) => reverted(&output),
        Ok(ExecutionResult::Halt { reason: HaltReason::OutOfGas(_), .. })
        | Err(ExecutionError::Refused(TransactionError::IntrinsicGas { .. } | TransactionError::FloorGas { .. })) => {
            CallFailure::GasCap { cap: limit }
        }
        Ok(ExecutionResult::Halt { reason, .. }) => halted(&reason),
        Err(error) => return Err(error),
    };
    Ok(Attempt::Failed(failure))
}
