//! Recovery from failed writes while the folder stays open.
//!
//! A change whose write failed is refused. Before anything else is written, the log is rolled back to the last acknowledged
//! entry, so that a refused change is never found in it. If the database has failed, it is opened again, and the commit that
//! did not succeed is repeated. The flusher's thread tries this regularly until it succeeds.

use super::open::{CHECKSUMS, DATABASE, open_database, read_meta};
use super::{Shared, Writer, WriterState};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::files::Folder;
use crate::rows::Tables;
use crate::wal::WalError;
use node_core::backend::BackendHealth;
#[cfg(test)]
use node_core::backend::StateBackend;
use redb::ReadableDatabase;
use std::io;

/// A file that is written to learn whether the disk has room, and removed at once.
pub(super) const PROBE: &str = "room";

/// Room that there must be before writes count as successful again, in bytes.
const PROBE_BYTES: usize = 1 << 20;

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
        let file = self.open.read().file.clone();
        BackendHealth {
            failed_writes: failed_writes.count,
            write_failure: failed_writes.reason.clone(),
            failed_reads: file.failed_reads(),
            read_failure: file.unreadable(),
        }
    }

    /// Notes that a change was refused because of `error`, unless the change itself is at fault.
    pub(super) fn note_failure(&self, error: &StoreError) {
        if matches!(error, StoreError::Log(WalError::TooLarge { .. })) {
            return;
        }
        let mut failed_writes = self.failed_writes.lock();
        failed_writes.count += 1;
        // A later error may only say that there was an earlier one.
        let is_consequence = matches!(error, StoreError::Log(WalError::Poisoned { .. }));
        if !is_consequence || failed_writes.reason.is_none() {
            failed_writes.reason = Some(error.with_causes());
        }
    }

    /// If the log has failed, removes the entries that were not acknowledged from it, and their records from memory.
    ///
    /// # Errors
    /// If the disk still fails, or if a change that was published without a sync is lost.
    pub(super) fn roll_back(&self, writer: &mut Writer) -> Result<(), StoreError> {
        // All who append an entry and wait for its sync have got an error by now.
        let _logging = self.logging.write();
        let mut records = self.records.write();
        if !self.log.has_failed() {
            return Ok(());
        }
        self.log.roll_back()?;
        let durable = self.log.synced();
        records.undo_after(durable);
        if writer.published > durable {
            writer.state = WriterState::Poisoned;
            return Err(StoreError::Poisoned);
        }
        Ok(())
    }

    /// As [`Self::roll_back`], after a failed write of records. Does nothing while the chain is being changed: that change,
    /// or the flusher, will do it.
    pub(super) fn refuse_records(&self, error: &StoreError) {
        self.note_failure(error);
        if let Some(mut writer) = self.writer.try_lock() {
            let _ = self.roll_back(&mut writer);
        }
    }

    /// Tries to make writes succeed again, if they fail. If a commit of the database failed, starts it again.
    pub(super) fn heal(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.open.read().file.read_again();
        self.reopen_failed_database(writer)?;
        if self.failed_writes.lock().reason.is_none() || writer.state == WriterState::Poisoned {
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
        Ok(())
    }

    /// Opens the database again if it refuses every operation.
    pub(super) fn reopen_failed_database(&self, writer: &mut Writer) -> Result<(), StoreError> {
        let failed = self.open.read().file.clone();
        if !failed.has_failed() {
            return Ok(());
        }
        let file = failed.reopen(&*self.folder, DATABASE, CHECKSUMS).map_err(StoreError::File)?;
        let open = open_database(file, &self.options)?;
        let meta = read_meta(&open.database)?.ok_or(StoreError::Missing { table: "meta" })?;
        let tables = Tables::open(&open.database.begin_read()?)?;
        *self.open.write() = open;
        let mut chain = ChainVersion::clone(&self.chain());
        // A commit that returned an error may have reached the disk nevertheless.
        let attempted = self.attempted.lock().take();
        if attempted == Some(meta.head) && meta.head != writer.database_head {
            self.moved_to_database(writer, &mut chain, &meta, tables);
        } else {
            chain.rows.database = tables.into();
        }
        self.publish(chain);
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

/// Fails if there is no room on the disk.
fn probe(folder: &dyn Folder) -> io::Result<()> {
    let written = folder.create(PROBE).and_then(|file| {
        file.write_at(0, &vec![0; PROBE_BYTES])?;
        file.sync_data()
    });
    let removed = folder.remove(PROBE);
    written.and(removed)
}
