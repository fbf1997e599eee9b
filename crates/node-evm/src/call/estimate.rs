//! Gas estimation by running a call with different gas limits.

use crate::call::{CallRun, reverted};
use crate::machine::halt;
use node_core::executor::{CallFailure, EstimateOutcome, ExecutionError, TransactionError};
use node_core::protocol::gas::TRANSACTION_GAS;
use revm::context::result::ExecutionResult;

/// Gas that a call with value receives in addition to the gas passed by the caller (Yellow Paper, appendix G).
const CALL_STIPEND: u64 = 2_300;

/// The search ends when the difference between the bounds, as a fraction of the upper one, is below this. Same value
/// as in geth.
const TOLERANCE: f64 = 0.015;

/// Searches for the lowest gas limit with which the call succeeds, between the gas that it uses and the highest limit.
///
/// Most calls, such as transfers, need exactly the gas that they use before refunds, so that is tried first. Others
/// need more: a callee gets at most 63/64 of the remaining gas (EIP-150), and code may read the remaining gas.
/// Therefore the second guess allows for EIP-150, and after that the search is a bisection. The returned limit is one
/// with which the call has succeeded.
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
        // Most calls need only a little more than they use, so the guess stays close to the lower bound.
        let middle = (low + (high - low) / 2).min(low.saturating_mul(2));
        bisect(&mut run, middle, &mut low, &mut high)?;
    }
    Ok(EstimateOutcome::Gas(high))
}

/// Runs the call with `limit`, and moves the lower or the upper bound to it depending on the result.
fn bisect(run: &mut CallRun<'_>, limit: u64, low: &mut u64, high: &mut u64) -> Result<(), ExecutionError> {
    match attempt(run, limit)? {
        Attempt::Succeeded { .. } => *high = limit,
        Attempt::Failed(_) => *low = limit,
    }
    Ok(())
}

/// Returns the highest gas limit that is allowed and that the sender can pay for.
fn highest_limit(run: &CallRun<'_>) -> u64 {
    // As in geth, a requested limit below the gas of a plain transfer is ignored.
    let requested = run.requested_gas().filter(|gas| *gas >= TRANSACTION_GAS);
    [requested, run.transaction_gas_cap(), run.affordable_gas()]
        .into_iter()
        .flatten()
        .fold(run.block_gas_limit.min(run.gas_budget()), u64::min)
}

/// The result of a run with one gas limit.
enum Attempt {
    Succeeded {
        /// Gas used, after refunds.
        gas_used: u64,
        /// Gas used before refunds, at least the floor of EIP-7623.
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
        Err(ExecutionError::Refused(
            TransactionError::IntrinsicGas { required, .. } | TransactionError::FloorGas { required, .. },
        )) if run.affordable_gas() == Some(limit) => return Err(run.insufficient_funds(required)?.into()),
        Err(ExecutionError::Refused(TransactionError::IntrinsicGas { .. } | TransactionError::FloorGas { .. })) => {
            CallFailure::GasCap { cap: limit }
        }
        Ok(ExecutionResult::Halt { reason, .. }) => match run.halted(reason) {
            CallFailure::Halted { reason, .. } if halt::is_out_of_gas(&reason) => CallFailure::GasCap { cap: limit },
            failure => failure,
        },
        Err(error) => return Err(error),
    };
    Ok(Attempt::Failed(failure))
}
