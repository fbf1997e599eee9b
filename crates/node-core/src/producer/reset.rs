//! Removing blocks from the chain.

use super::{Producer, ProducerError, new_instance};
use crate::backend::{BackendError, HeadChange, StateBackend};
use crate::block::BlockRef;
use crate::pool::DropReason;
use crate::state::StateChanges;
use node_types::BlockNumber;
use std::collections::HashSet;

impl Producer {
    /// Resets the chain to its genesis block: drops all other blocks, edits, snapshots, transactions of the pool,
    /// impersonations and settings for later blocks. The chain's clock is again the system clock, or continues from the
    /// genesis block if [`continue_time`](Self::continue_time) was called before.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn reset(&self) -> Result<BlockRef, ProducerError> {
        let _sealing = self.sealing.lock();
        let mut snapshots = self.snapshots.lock();
        self.revert_to(0)?;
        self.parts.pool.drop_where(DropReason::Reverted, |_| true)?;
        snapshots.delete_from(&*self.parts.backend, 0)?;
        self.settings.reset(&*self.head()?);
        self.parts.pool.refresh()?;
        self.impersonated.write().clear();
        self.impersonate_all(false);
        *self.instance.lock() = new_instance();
        Ok(self.parts.backend.view()?.head())
    }

    /// Removes the newest `blocks` blocks with their transactions; the pool is not changed. The chain's clock
    /// continues to run. Returns the removed blocks, newest first.
    ///
    /// # Errors
    /// [`ProducerError::ReorganizationTooDeep`], and failures of the backend.
    pub fn rollback(&self, blocks: u64) -> Result<Vec<BlockRef>, ProducerError> {
        let _sealing = self.sealing.lock();
        let view = self.parts.backend.view()?;
        let head = view.head().number;
        let most = head.saturating_sub(view.earliest_state());
        drop(view);
        if blocks > most {
            return Err(ProducerError::ReorganizationTooDeep { blocks, most });
        }
        if blocks == 0 {
            return Ok(Vec::new());
        }
        Ok(self.revert_to(head - blocks)?.removed)
    }

    /// Makes the canonical block `target` the head, without edits. The transactions of later blocks are lost.
    fn revert_to(&self, target: BlockNumber) -> Result<HeadChange, BackendError> {
        let backend = &self.parts.backend;
        let view = backend.view()?;
        let (head, earliest) = (view.head().number, view.earliest_state());
        drop(view);
        if target < earliest {
            return Err(BackendError::StatePruned { block: target, earliest });
        }
        if target == head {
            backend.set_pending_edits(&StateChanges::default())?;
            return Ok(HeadChange { removed: Vec::new(), added: Vec::new() });
        }
        self.parts.pool.revert_with(HashSet::new(), || backend.switch(target, Vec::new()))
    }
}
