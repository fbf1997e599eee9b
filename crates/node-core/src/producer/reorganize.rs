//! Simulated reorganizations: replacing the newest blocks.

use super::{Edits, Producer, ProducerError, ProducerParts, assemble, has_far_gas_limit};
use crate::backend::{BackendError, GrowingBranch, HeadChange, StateBackend};
use crate::block::RecoveredTransaction;
use crate::context::Context;
use crate::edits::block_edits;
use crate::executor::{BlockExecution, ExecutionError, TransactionError};
use crate::pool::{DropReason, Effects};
use node_types::consensus::Header;
use node_types::{BlockNumber, H256};
use std::collections::HashSet;

impl Producer {
    /// Maximum number of blocks that can be replaced at a time.
    pub const MAX_REORGANIZATION: u64 = 128;

    /// Replaces the newest `blocks` blocks with the same number of empty ones, in one step. Transactions of the
    /// replaced blocks return to the pool if they are still valid; edits that they included are lost.
    ///
    /// Each new block has the hash of the block that it replaces as its extra data, so that their hashes differ. Values
    /// chosen for all further blocks apply to the new blocks, and those for the next block only to the one after them.
    ///
    /// # Errors
    /// [`ProducerError::ReorganizationTooDeep`], [`ProducerError::TimestampTooHigh`], and failures of the execution and
    /// the backend. On an error, including an interruption of `context`, nothing has changed.
    pub fn reorganize(&self, context: &Context, blocks: u64) -> Result<HeadChange, ProducerError> {
        let now = self.settings.system_time();
        let change = self.change(context, || self.replace(context, blocks, &[], now, |_| true))?;
        self.transactions_changed();
        Ok(change)
    }

    /// Checks a number of blocks as [`reorganize`](Self::reorganize) does, without replacing any.
    ///
    /// # Errors
    /// [`ProducerError::ReorganizationTooDeep`], and failures of the backend.
    pub fn check_reorganization(&self, blocks: u64) -> Result<(), ProducerError> {
        let base = self.parts.backend.view()?;
        check_depth(base.head().number, base.earliest_state().max(base.first()), blocks, Self::MAX_REORGANIZATION)
    }

    /// Like [`reorganize`](Self::reorganize), but the new blocks contain the given transactions, and those of the
    /// replaced blocks are dropped. Each given transaction is paired with the index of its block among the replaced
    /// ones, oldest first, and must be signed.
    ///
    /// # Errors
    /// Those of [`reorganize`](Self::reorganize), [`ProducerError::NoSuchBlock`], and [`ProducerError::NotIncluded`].
    pub fn reorganize_with(
        &self,
        context: &Context,
        blocks: u64,
        transactions: Vec<(u64, RecoveredTransaction)>,
    ) -> Result<HeadChange, ProducerError> {
        for (index, (block, transaction)) in transactions.iter().enumerate() {
            if *block >= blocks {
                return Err(ProducerError::NoSuchBlock { index, block: *block, blocks });
            }
            if transaction.is_impersonating() {
                return Err(ProducerError::NotSigned);
            }
        }
        let now = self.settings.system_time();
        let change = self.change(context, || {
            let returning = Some((HashSet::new(), DropReason::Reorganized));
            let effects = Effects { returning, dropped: Vec::new() };
            self.parts.pool.change_chain(effects, || self.replace(context, blocks, &transactions, now, |_| false))
        })?;
        self.transactions_changed();
        Ok(change)
    }

    /// Replaces blocks. Transactions for which `returns` is true are recorded, so that a crash does not lose them.
    fn replace(
        &self,
        context: &Context,
        blocks: u64,
        transactions: &[(u64, RecoveredTransaction)],
        system_time: u64,
        returns: fn(H256) -> bool,
    ) -> Result<HeadChange, ProducerError> {
        let ProducerParts { backend, executor, spec, .. } = &self.parts;
        let base = backend.view()?;
        let head = base.head().number;
        check_depth(head, base.earliest_state().max(base.first()), blocks, Self::MAX_REORGANIZATION)?;
        let ancestor = head - blocks;
        let mut branch = GrowingBranch::new(base.clone(), ancestor)?;
        let mut writes = Vec::new();
        for number in ancestor..head {
            let view = branch.view()?;
            let parent = view.header(number.into())?.ok_or(BackendError::UnknownBlock(number))?;
            let replaced = base.canonical_hash(number + 1)?.ok_or(BackendError::UnknownBlock(number + 1))?;
            let extra_data = replaced.as_bytes().to_vec().into();
            let header = Header { extra_data, ..self.settings.replacement(&parent, system_time)? };
            let gas_limit = has_far_gas_limit(spec, &parent, &header);
            context.check().map_err(BackendError::from)?;
            let mut refused = None;
            let fill = |execution: &mut dyn BlockExecution| {
                let mut included = Vec::new();
                refused = None;
                let of_block = |(_, (block, _)): &(usize, &(u64, _))| *block == number - ancestor;
                for (index, (_, transaction)) in transactions.iter().enumerate().filter(of_block) {
                    // It may already be mined if the nonce was lowered since.
                    let mined = view.own_transaction_position(transaction.hash)?;
                    if let Some(position) = mined {
                        let reason = TransactionError::Other(format!("already known: in block {}", position.block));
                        refused = Some(ProducerError::NotIncluded { index, block: number + 1, reason });
                        break;
                    }
                    match execution.transact(transaction) {
                        Ok(_) => included.push(transaction.clone()),
                        Err(ExecutionError::Refused(reason)) => {
                            refused = Some(ProducerError::NotIncluded { index, block: number + 1, reason });
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(included)
            };
            let block = assemble(context, &**executor, &*view, header, Vec::new(), fill)?.block;
            if let Some(refused) = refused {
                return Err(refused);
            }
            if gas_limit {
                writes.push(block_edits(block.header.block_ref(), &Edits { gas_limit, ..Edits::default() }));
            }
            branch.push(block)?;
        }
        let branch = branch.into_blocks();
        if branch.is_empty() {
            return Ok(HeadChange { removed: Vec::new(), added: Vec::new() });
        }
        writes.extend(self.parts.pool.record_leaving(&*base, ancestor, returns)?);
        drop(base);
        let change = backend.switch_recording(ancestor, branch, &writes)?;
        self.forget_obstacle();
        Ok(change)
    }
}

/// Fails if the newest `blocks` blocks, or more than `limit`, cannot be removed. The state of the parent of the first of
/// them is needed, and states are stored from the block `earliest` on.
pub(super) fn check_depth(
    head: BlockNumber,
    earliest: BlockNumber,
    blocks: u64,
    limit: u64,
) -> Result<(), ProducerError> {
    let kept = head.saturating_sub(earliest);
    let most = kept.min(limit);
    if blocks > most {
        let earliest = (earliest > 0 && most == kept).then_some(earliest);
        return Err(ProducerError::ReorganizationTooDeep { blocks, most, earliest });
    }
    Ok(())
}
