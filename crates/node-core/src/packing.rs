//! Blocks of the best transactions of the pool.

use crate::assembly::{Assembled, assemble};
use crate::backend::View;
use crate::context::Context;
use crate::executor::{BlockExecution, ExecutionError, Executor};
use crate::pool::{BestTransactions, Pool};
use node_types::H256;
use node_types::consensus::{Header, Withdrawal};

/// How often a block may be executed before it is made of what is known to be valid; the search in progress still ends.
const MAX_EXECUTIONS: usize = 32;

/// A block of the best transactions of the pool.
pub(crate) struct Packed {
    pub(crate) assembled: Assembled,
    /// Transactions that were left out, because a block that contains them is invalid in the end, and why.
    pub(crate) excluded: Vec<(H256, String)>,
}

/// Assembles a block of `best`, the best transactions of the pool for `header`, on top of the head of `view`, like
/// [`assemble`](crate::assembly::assemble).
///
/// A transaction may be valid and yet make its block invalid, which shows only when the block is finished: it makes a
/// system contract fail, or logs a deposit that cannot be read. Such a transaction is found by executing parts of the
/// block, and left out. If there are many, the block contains only some of the others.
///
/// # Errors
/// If not even an empty block is valid, and those of `assemble`.
pub(crate) fn assemble_best(
    context: &Context,
    executor: &dyn Executor,
    view: &dyn View,
    header: &Header,
    withdrawals: &[Withdrawal],
    pool: &Pool,
    mut best: BestTransactions,
) -> Result<Packed, ExecutionError> {
    let mut excluded = Vec::new();
    let mut executions = 0;
    loop {
        executions += 1;
        let mut included = Vec::new();
        let fill = |execution: &mut dyn BlockExecution| {
            included = best.fill(execution, header.gas_limit)?;
            Ok(included.clone())
        };
        let mut reason = match assemble(context, executor, view, header.clone(), withdrawals.to_vec(), fill) {
            Ok(assembled) => return Ok(Packed { assembled, excluded }),
            Err(error @ ExecutionError::SystemContract { .. }) if !included.is_empty() => error,
            Err(error) => return Err(error),
        };
        let mut assemble_first = |count: usize| {
            executions += 1;
            let transactions = included[..count].to_vec();
            let fill = |execution: &mut dyn BlockExecution| {
                transactions.iter().try_for_each(|transaction| execution.transact(transaction).map(drop))?;
                Ok(transactions)
            };
            assemble(context, executor, view, header.clone(), withdrawals.to_vec(), fill)
        };
        // The block is valid with the first `valid` transactions, and invalid with the first `invalid`.
        let (mut valid, mut invalid) = (0, included.len());
        let mut assembled = assemble_first(0)?;
        while invalid - valid > 1 {
            let middle = valid.midpoint(invalid);
            match assemble_first(middle) {
                Ok(longer) => (valid, assembled) = (middle, longer),
                Err(error @ ExecutionError::SystemContract { .. }) => (invalid, reason) = (middle, error),
                Err(error) => return Err(error),
            }
        }
        excluded.push((included[invalid - 1].hash, reason.to_string()));
        if executions >= MAX_EXECUTIONS {
            return Ok(Packed { assembled, excluded });
        }
        best = pool.best_for(header).without(excluded.iter().map(|(hash, _)| *hash).collect());
    }
}
