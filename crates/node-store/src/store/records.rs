//! Records: small durable values that do not belong to a block.

use super::Shared;
use crate::error::StoreError;
use crate::journal;
use crate::wal::Sequence;
use node_core::backend::{Record, RecordKind, RecordValues, RecordWrite};
use std::collections::{BTreeSet, VecDeque};

/// Small durable records. All of them are in memory.
#[derive(Default)]
pub(super) struct Records {
    pub(super) values: RecordValues,
    /// Keys of records that differ from those in runs.
    pub(super) dirty: BTreeSet<RecordId>,
    /// The entries of the log that may not be durable yet, oldest first, each with the values that it replaced.
    unsynced: VecDeque<(Sequence, Replaced)>,
}

/// Kind and key of a record.
pub(super) type RecordId = (RecordKind, Vec<u8>);

/// Records with their values before a write; `None` if they did not exist.
pub(super) type Replaced = Vec<(RecordId, Option<Vec<u8>>)>;

impl Records {
    /// Applies `writes`, and returns what they replaced.
    pub(super) fn write(&mut self, writes: Vec<RecordWrite>) -> Replaced {
        let one = |write| {
            let (id, value) = match write {
                RecordWrite::Put(kind, Record { key, value }) => ((kind, key), Some(value)),
                RecordWrite::Delete(kind, key) => ((kind, key), None),
            };
            let replaced = self.set(id.clone(), value);
            (id, replaced)
        };
        writes.into_iter().map(one).collect()
    }

    fn set(&mut self, id: RecordId, value: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.dirty.insert(id.clone());
        match value {
            Some(value) => self.values.insert(id, value),
            None => self.values.remove(&id),
        }
    }

    /// Reverts the writes of the entries after `durable`, which were removed from the log.
    pub(super) fn undo_after(&mut self, durable: Sequence) {
        while let Some((_, replaced)) = self.unsynced.pop_back_if(|(sequence, _)| *sequence > durable) {
            for (id, value) in replaced.into_iter().rev() {
                self.set(id, value);
            }
        }
    }
}

impl Shared {
    /// Logs records, and changes them in memory.
    pub(super) fn log_records(&self, writes: &[RecordWrite]) -> Result<Sequence, StoreError> {
        self.check_publication()?;
        self.log_with_records(&journal::records(writes), writes)
    }

    /// Logs `entry`, which contains `writes`, and changes the records in memory.
    pub(super) fn log_with_records(&self, entry: &[u8], writes: &[RecordWrite]) -> Result<Sequence, StoreError> {
        if writes.is_empty() {
            return Ok(self.append_to_log(entry)?);
        }
        // The lock ensures that the log has the same order as memory. Others may append while the caller waits for
        // the sync, so one sync serves many changes.
        let mut records = self.records.write();
        let sequence = self.append_to_log(entry)?;
        let synced = self.log.synced();
        while records.unsynced.pop_front_if(|(sequence, _)| *sequence <= synced).is_some() {}
        let replaced = records.write(writes.to_vec());
        records.unsynced.push_back((sequence, replaced));
        Ok(sequence)
    }

    /// Logs records, and syncs the log unless the policy is to sync on demand.
    pub(super) fn write_records(&self, writes: &[RecordWrite]) -> Result<(), StoreError> {
        self.logged(|| self.log_records(writes)).map(drop)
    }
}
