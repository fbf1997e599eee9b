//! Taking blocks off the chain.

use super::{Producer, ProducerError, new_instance};
use crate::backend::{BackendError, HeadChange, StateBackend};
use crate::block::BlockRef;
use crate::pool::DropReason;
use crate::state::StateChanges;
use node_types::BlockNumber;
use std::collections::HashSet;

impl Producer {
    /// Begins anew with the genesis block: all blocks, edits, snapshots and waiting transactions are gone, as are
    /// impersonations and what was set for the next blocks. Time is that of the clock again.
    pub fn reset(&self) -> Result<BlockRef, ProducerError> {
        let _sealing = self.sealing.lock();
        let mut snapshots = self.snapshots.lock();
        self.set_back(0)?;
        self.parts.pool.drop_where(DropReason::SetBack, |_| true)?;
        snapshots.forget_from(&*self.parts.backend, 0)?;
        self.settings.reset();
        self.parts.pool.refresh()?;
        self.impersonated.write().clear();
        self.impersonate_all(false);
        *self.instance.lock() = new_instance();
        Ok(self.parts.backend.view()?.head())
    }

    /// Takes the newest `blocks` blocks off the chain, with their transactions; what waits in the pool stays there. Time
    /// goes on with the clock. Answers the blocks, newest first.
    pub fn rollback(&self, blocks: u64) -> Result<Vec<BlockRef>, ProducerError> {
        let _sealing = self.sealing.lock();
        let head = self.parts.backend.view()?.head().number;
        let Some(target) = head.checked_sub(blocks) else {
            return Err(ProducerError::ReorganizationTooDeep { blocks, most: head });
        };
        if blocks == 0 {
            return Ok(Vec::new());
        }
        Ok(self.set_back(target)?.removed)
    }

    /// Makes the canonical block `target` the head, without any edits. The transactions behind it are gone.
    fn set_back(&self, target: BlockNumber) -> Result<HeadChange, BackendError> {
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
        self.parts.pool.set_back(HashSet::new(), || backend.switch(target, Vec::new()))
    }
}
