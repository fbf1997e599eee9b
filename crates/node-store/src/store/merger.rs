//! Merging runs, on a separate thread.

use super::{Shared, Writer};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use parking_lot::MutexGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Number of rows after which the thread checks whether the store is being closed.
const STEP: u64 = 512;

/// Niceness of the thread. Under contention, it gets about a tenth of the time of one of normal priority.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

impl Shared {
    /// Merges runs whenever there are many of about the same size, until the store is closed.
    pub(super) fn run_merger(&self) {
        // Requests go first. If merging falls behind, the flusher waits for it, which leaves it the time that it needs.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICENESS);
        let mut end = self.merges_end.lock();
        while !*end {
            let Some(plan) = self.archive.plan() else {
                self.merge_turn.wait(&mut end);
                continue;
            };
            let merged = MutexGuard::unlocked(&mut end, || {
                let mut rows = 0u64;
                let check = &mut || {
                    rows += 1;
                    if rows.is_multiple_of(STEP) && *self.merges_end.lock() { Err(StoreError::Closed) } else { Ok(()) }
                };
                let merged = catch_unwind(AssertUnwindSafe(|| self.archive.merge(&plan, check)));
                let merged = merged.unwrap_or(Err(StoreError::Poisoned));
                if merged.is_ok() {
                    // The flusher's thread publishes them, because the lock that every change needs must not be held
                    // here for longer than it takes until the flusher waits.
                    self.merged.store(true, Ordering::SeqCst);
                    drop(self.writer.lock());
                    self.turn.notify_all();
                }
                merged
            });
            match merged {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => {
                    // A failed read is reported as such, and merging would fail again until the run can be read.
                    if error.io().is_none_or(|error| error.kind() != std::io::ErrorKind::InvalidData) {
                        self.note_failure(&error);
                    }
                    if !*end {
                        self.merge_turn.wait(&mut end);
                    }
                }
            }
        }
    }

    /// Publishes the newest runs to readers, and removes the ones that they replace. Open views keep the old ones.
    pub(super) fn use_merged_runs(&self, writer: &mut MutexGuard<'_, Writer>) {
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.rows.tables = self.archive.tables();
        self.publish(chain);
        // Files that cannot be removed now are removed after the next merge.
        MutexGuard::unlocked(writer, || drop(self.archive.remove_unlisted()));
    }
}
