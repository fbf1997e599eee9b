//! Removing blocks from the chain.

use super::reorganize::check_depth;
use super::{Producer, ProducerError, ProducerParts, new_instance};
use crate::backend::{BackendError, HeadChange, RecordWrite, StateBackend};
use crate::block::BlockRef;
use crate::pool::{DropReason, Effects};
use node_types::BlockNumber;
use std::collections::HashSet;

impl Producer {
    /// Resets the chain to its first block, in one durable write: drops all other blocks, edits, snapshots,
    /// transactions of the pool, impersonations and settings for later blocks. The chain's clock is again the system
    /// clock, or continues from that block if [`continue_time`](Self::continue_time) was called before.
    /// A fork [begins](Self::begin) again.
    ///
    /// # Errors
    /// Failures of the backend, after which nothing has changed.
    pub fn reset(&self) -> Result<BlockRef, ProducerError> {
        self.read_funded()?;
        let first = {
            let _sealing = self.lock()?;
            let first = self.reset_locked()?;
            // Nothing may come in between.
            self.begin_again()?;
            first
        };
        self.transactions_changed();
        Ok(first)
    }

    /// Resets the chain; `sealing` must be locked.
    pub(super) fn reset_locked(&self) -> Result<BlockRef, ProducerError> {
        let mut snapshots = self.snapshots.lock();
        // Read before anything is changed, because a failure must not make the reset look refused.
        let view = self.parts.backend.view()?;
        let number = view.first();
        let first = view.header(number.into())?.ok_or(BackendError::UnknownBlock(number))?;
        let dropped = self.parts.pool.hashes().into_iter().map(|hash| (hash, DropReason::Reset)).collect();
        let effects = Effects { returning: Some((HashSet::new(), DropReason::Reset)), dropped };
        self.revert_to(number, effects, &snapshots.deletions_from(0))?;
        snapshots.forget_from(0);
        self.settings.reset(&first);
        self.refresh_pool();
        self.impersonated.write().clear();
        self.impersonate_all(false);
        *self.instance.lock() = new_instance();
        Ok(first.block_ref())
    }

    /// Removes the newest `blocks` blocks with their transactions; the pool is not changed. The chain's clock
    /// continues to run. Returns the removed blocks, newest first.
    ///
    /// # Errors
    /// [`ProducerError::ReorganizationTooDeep`], and failures of the backend.
    pub fn rollback(&self, blocks: u64) -> Result<Vec<BlockRef>, ProducerError> {
        let _sealing = self.lock()?;
        let view = self.parts.backend.view()?;
        let head = view.head().number;
        let earliest = view.earliest_state().max(view.first());
        drop(view);
        check_depth(head, earliest, blocks, u64::MAX)?;
        if blocks == 0 {
            return Ok(Vec::new());
        }
        let effects = Effects { returning: Some((HashSet::new(), DropReason::RolledBack)), dropped: Vec::new() };
        Ok(self.revert_to(head - blocks, effects, &[])?.removed)
    }

    /// Makes the canonical block `target` the head, without edits, with these `effects` on transactions, and applies
    /// `writes`.
    fn revert_to(
        &self,
        target: BlockNumber,
        effects: Effects,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        let ProducerParts { backend, pool, .. } = &self.parts;
        let view = backend.view()?;
        let earliest = view.earliest_state().max(view.first());
        // The state of the first block is known even if later blocks come from a dump.
        if target != view.first() && target < earliest {
            return Err(BackendError::StatePruned { block: target, earliest });
        }
        let writes = [&effects.deletions(), writes].concat();
        let change = pool.change_chain(effects, || backend.switch_recording(target, Vec::new(), &writes))?;
        self.forget_obstacle();
        Ok(change)
    }
}
