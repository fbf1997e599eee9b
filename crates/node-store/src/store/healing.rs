//! Recovery from failed writes while the folder stays open.
//!
//! A change whose write failed is refused. Before anything else is written, the log is rolled back to the last
//! acknowledged entry, so that a refused change is never found in it. Acknowledged entries that were not synced are
//! written again. A run that could not be written is written again, under another name. The flusher's thread tries
//! this regularly until it succeeds.

use super::{Shared, Writer, WriterState};
use crate::error::StoreError;
use crate::files::Folder;
use crate::wal::WalError;
use node_core::backend::BackendHealth;
#[cfg(test)]
use node_core::backend::StateBackend;
use node_core::sources::Sources;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Name of a file that is written, and removed at once, to find out whether the disk has free space.
pub(super) const PROBE: &str = "room";

/// Free space in bytes that is required before writes count as successful again.
const PROBE_BYTES: usize = 1 << 20;

/// How long a refused write of records waits for permission to change the log.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// Failed writes since the folder was opened.
#[derive(Debug, Default)]
pub(super) struct FailedWrites {
    count: u64,
    /// Why the last one failed; `None` if writes succeed again.
    pub(super) reason: Option<String>,
}

impl Shared {
    pub(super) fn health(&self) -> BackendHealth {
        let failed_writes = self.failed_writes.lock();
        let failed_reads = &self.archive.shared().failed;
        BackendHealth {
            failed_writes: failed_writes.count,
            write_failure: failed_writes.reason.clone(),
            failed_reads: failed_reads.count(),
            read_failure: failed_reads.error(),
            lag: None,
            files: self.chain().rows.tables.parts().count() as u64,
            is_merging: self.archive.is_merging(),
            merged_bytes: self.archive.merged_bytes(),
            next_merge_bytes: self.archive.plan().map_or(0, |plan| plan.bytes()),
            publication: self.publication.get().map(|publication| publication.health(&self.log)),
            requests: self.publication.get().map(|publication| publication.requests()),
            cold_files: 0,
        }
    }

    /// Records that a change was refused because of `error`, unless the change itself is at fault.
    pub(super) fn note_failure(&self, error: &StoreError) {
        if matches!(error, StoreError::Log(WalError::TooLarge { .. })) {
            return;
        }
        let mut failed_writes = self.failed_writes.lock();
        failed_writes.count += 1;
        // A later error may only say that there was an earlier one.
        let is_consequence = matches!(error, StoreError::Log(WalError::Poisoned { .. }));
        if !is_consequence || failed_writes.reason.is_none() {
            failed_writes.reason = Some(Sources(error).to_string());
        }
    }

    /// If the log has failed, removes the entries that were not acknowledged from it, and their records from memory.
    ///
    /// # Errors
    /// If the disk still fails.
    pub(super) fn roll_back(&self, writer: &Writer) -> Result<(), StoreError> {
        // By now, everyone who appended an entry and waited for its sync has received an error.
        let _logging = self.logging.write();
        let mut records = self.records.write();
        if !self.log.has_failed() {
            return Ok(());
        }
        let acknowledged = match self.sync_always.load(Ordering::SeqCst) {
            true => writer.published.max(self.log.synced()),
            // Changes are acknowledged before they are synced.
            false => self.log.last(),
        };
        // Undone even if the log cannot be truncated yet.
        records.undo_after(acknowledged);
        Ok(self.log.roll_back(acknowledged)?)
    }

    /// Like [`Self::roll_back`], after a failed write of records. Does nothing if a change of the chain takes long:
    /// that change, or the flusher, will roll back. Waiting could deadlock, because listeners of the change may wait
    /// for a lock that the caller holds.
    pub(super) fn refuse_records(&self, error: &StoreError) {
        self.note_failure(error);
        if let Some(writer) = self.writer.try_lock_for(LOCK_TIMEOUT) {
            self.roll_back_refused(&writer);
        }
    }

    /// Removes a refused change from the log. If that fails, the log accepts nothing until a later attempt succeeds, and
    /// the health says why.
    pub(super) fn roll_back_refused(&self, writer: &Writer) {
        if let Err(error) = self.roll_back(writer) {
            let reason = format!("a refused change cannot be removed from the log: {}", Sources(&error));
            self.failed_writes.lock().reason = Some(reason);
        }
    }

    /// If writes fail, tries to make them succeed again. If a run could not be written, starts writing it again.
    pub(super) fn heal(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.archive.shared().failed.read_again();
        let is_final = writer.state == WriterState::Poisoned || self.check_publication().is_err();
        if is_final || self.failed_writes.lock().reason.is_none() {
            return Ok(());
        }
        probe(&*self.folder).map_err(StoreError::File)?;
        self.roll_back(writer)?;
        match writer.state {
            WriterState::Retrying => {
                writer.state = WriterState::Ready;
                writer.flushing = true;
            }
            _ => self.failed_writes.lock().reason = None,
        }
        self.merge_turn.notify_all();
        Ok(())
    }
}

#[cfg(test)]
impl super::Store {
    /// Tries to make writes succeed again, and waits for the commit that is repeated.
    pub(crate) fn heal(&self) -> BackendHealth {
        let mut writer = self.shared.writer.lock();
        // The first attempt may repeat a commit, and the second finds it successful.
        for _ in 0..2 {
            // The error is part of the result.
            let _ = self.shared.heal(&mut writer);
            self.shared.turn.notify_all();
            self.shared.wait_for_flusher(&mut writer);
        }
        drop(writer);
        self.health()
    }
}

/// Fails if the disk does not have enough free space.
fn probe(folder: &dyn Folder) -> io::Result<()> {
    let written = folder.create(PROBE).and_then(|file| {
        file.write_at(0, &vec![0; PROBE_BYTES])?;
        file.sync_data()
    });
    let removed = folder.remove(PROBE);
    written.and(removed)
}
