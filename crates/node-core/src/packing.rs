//! Blocks of the best transactions of the pool.

use crate::assembly::{Assembled, assemble};
use crate::backend::View;
use crate::block::RecoveredTransaction;
use crate::context::Context;
use crate::executor::{BlockExecution, ExecutionError, Executor};
use crate::pool::{BestTransactions, Filled, Pool};
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

/// Assembles blocks of the best transactions of the pool on top of the head of `view`, like
/// [`assemble`](crate::assembly::assemble).
///
/// A transaction may be valid and yet make its block invalid. If it logs a deposit that cannot be read, this shows when it
/// is executed. If it makes a system contract fail, this shows only when the block is finished: such a transaction is
/// found by executing parts of the block, and if there are many, the block contains only some of the others.
pub(crate) struct Packer<'a> {
    pub(crate) context: &'a Context,
    pub(crate) executor: &'a dyn Executor,
    pub(crate) view: &'a dyn View,
    pub(crate) header: &'a Header,
    pub(crate) pool: &'a Pool,
    /// Why an empty block is invalid, if that is known. A block that fails for the same reason is not searched for a
    /// transaction that is at fault.
    pub(crate) known_obstacle: Option<String>,
}

impl Packer<'_> {
    /// Assembles a block of `best`, the best transactions of the pool for the header.
    ///
    /// # Errors
    /// If not even an empty block is valid, and those of [`assemble`](crate::assembly::assemble).
    pub(crate) fn pack(&self, withdrawals: &[Withdrawal], best: BestTransactions) -> Result<Packed, ExecutionError> {
        let mut best = Some(best);
        let mut excluded = Vec::new();
        let mut executions = 0;
        // The longest block that is known to be valid.
        let mut longest: Option<Assembled> = None;
        loop {
            executions += 1;
            let mut filled = Filled::default();
            let fill = |execution: &mut dyn BlockExecution| {
                // It is filled again if state had to be fetched.
                let best = best.take().unwrap_or_else(|| self.best_without(&excluded));
                filled = best.fill(execution, self.header.gas_limit)?;
                Ok(filled.transactions.clone())
            };
            let assembled = self.assemble(withdrawals, fill);
            let Filled { transactions: included, faulty } = filled;
            excluded.extend(faulty);
            let mut reason = match assembled {
                Ok(assembled) => return Ok(Packed { assembled, excluded }),
                Err(error) if included.is_empty() || !self.is_fault(&error) => return Err(error),
                Err(error) => error,
            };
            let mut assemble_first = |count: usize| {
                executions += 1;
                self.assemble_of(withdrawals, &included[..count])
            };
            // The block is valid with the first `valid` transactions, and invalid with the first `invalid`. What came
            // before the last excluded transaction is known to be valid.
            let (mut valid, mut assembled) = match longest.take().filter(|block| begins_with(&included, block)) {
                Some(block) => (block.block.body.transactions.len(), block),
                None => (0, assemble_first(0)?),
            };
            let mut invalid = included.len();
            while invalid - valid > 1 {
                let middle = valid.midpoint(invalid);
                match assemble_first(middle) {
                    Ok(longer) => (valid, assembled) = (middle, longer),
                    Err(error) if self.is_fault(&error) => (invalid, reason) = (middle, error),
                    Err(error) => return Err(error),
                }
            }
            excluded.push((included[invalid - 1].hash, reason.to_string()));
            if executions >= MAX_EXECUTIONS {
                return Ok(Packed { assembled, excluded });
            }
            longest = Some(assembled);
        }
    }

    fn best_without(&self, excluded: &[(H256, String)]) -> BestTransactions {
        self.pool.best_for(self.header).without(excluded.iter().map(|(hash, _)| *hash).collect())
    }

    /// Returns whether a transaction may be the reason why a block is invalid.
    fn is_fault(&self, error: &ExecutionError) -> bool {
        matches!(error, ExecutionError::SystemContract { .. }) && self.known_obstacle != Some(error.to_string())
    }

    fn assemble_of(
        &self,
        withdrawals: &[Withdrawal],
        transactions: &[RecoveredTransaction],
    ) -> Result<Assembled, ExecutionError> {
        self.assemble(withdrawals, |execution| {
            transactions.iter().try_for_each(|transaction| execution.transact(transaction).map(drop))?;
            Ok(transactions.to_vec())
        })
    }

    fn assemble(
        &self,
        withdrawals: &[Withdrawal],
        fill: impl FnMut(&mut dyn BlockExecution) -> Result<Vec<RecoveredTransaction>, ExecutionError>,
    ) -> Result<Assembled, ExecutionError> {
        assemble(self.context, self.executor, self.view, self.header.clone(), withdrawals.to_vec(), fill)
    }
}

/// Returns whether `transactions` begin with those of `block`, and there are more.
fn begins_with(transactions: &[RecoveredTransaction], block: &Assembled) -> bool {
    let known = &block.block.body.transactions;
    let hashes = |transactions: &[RecoveredTransaction]| -> Vec<H256> {
        transactions.iter().map(|transaction| transaction.hash).collect()
    };
    known.len() < transactions.len() && hashes(known) == hashes(&transactions[..known.len()])
}
