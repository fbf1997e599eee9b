//! Pruning of old states.

use super::{Shared, Store};
use crate::chain::ChainVersion;
use node_core::backend::BackendError;
use node_types::BlockNumber;

impl Store {
    /// Drops the states before that of block `floor`, which becomes the earliest state. Blocks, receipts and the log
    /// index are kept. Afterwards, reads of earlier states, and switches to branches that start before the floor,
    /// fail with [`BackendError::StatePruned`]. Does nothing if `floor` is not above the current floor. Returns the
    /// number of deleted rows.
    ///
    /// Takes time in proportion to the size of the store, and disk space for a second copy of its states. Writers
    /// wait until it is finished; readers do not.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if the floor is above the head. After any other error, or a crash, nothing was
    /// pruned. The exception is an error during the sync of the manifest: then pruning may have taken effect when the
    /// folder is opened again, unless something else was written in between.
    pub fn prune_before(&self, floor: BlockNumber) -> Result<u64, BackendError> {
        self.shared.prune_before(floor)
    }
}

impl Shared {
    fn prune_before(&self, floor: BlockNumber) -> Result<u64, BackendError> {
        let mut writer = loop {
            self.flush()?;
            let mut writer = self.writer.lock();
            self.wait_for_flusher(&mut writer);
            self.check_publication()?;
            self.check(&writer)?;
            if floor > self.current.read().head.number {
                return Err(BackendError::UnknownBlock(floor));
            }
            // Otherwise rows of blocks that left the chain would be taken for the newest ones, and a floor above the
            // blocks in runs would make the changes in the log fail.
            let limit = self.current.read().rows.limit;
            if self.archive.meta().is_some_and(|meta| meta.head.number == limit) && floor <= limit {
                break writer;
            }
        };
        let mut chain = ChainVersion::clone(&self.current.read());
        if floor <= chain.earliest {
            return Ok(0);
        }
        chain.earliest = floor;
        let done = self.archive.prune(floor).inspect(|_| {
            chain.rows.tables = self.archive.tables();
            self.publish(chain);
        });
        let _ = self.archive.remove_unlisted();
        // The manifest may be durable despite the error. The next one replaces it.
        Ok(done.inspect_err(|error| self.commit_failed(&mut writer, error))?)
    }
}
