//! Merging runs, on a separate thread.

use super::Shared;
use crate::chain::ChainVersion;
use crate::error::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// Number of rows after which the thread yields to others.
const STEP: u64 = 64;

/// Niceness of the thread, from -20 to 19: those that serve requests come first.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of this thread. Where that is not possible, merging still yields after each step.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

impl Shared {
    /// Merges runs whenever there are many of about the same size, until the store is closed.
    pub(super) fn run_merger(&self) {
        yield_to_others();
        let mut end = self.merges_end.lock();
        while !*end {
            let Some(plan) = self.archive.plan() else {
                self.merge_turn.wait(&mut end);
                continue;
            };
            let merged = parking_lot::MutexGuard::unlocked(&mut end, || {
                let mut rows = 0u64;
                let go_on = &mut || {
                    rows += 1;
                    if rows.is_multiple_of(STEP) {
                        thread::yield_now();
                        if *self.merges_end.lock() {
                            return Err(StoreError::Closed);
                        }
                    }
                    Ok(())
                };
                let merged = catch_unwind(AssertUnwindSafe(|| self.archive.merge(&plan, go_on)));
                let merged = merged.unwrap_or(Err(StoreError::Poisoned));
                if merged.is_ok() {
                    self.use_merged_runs();
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

    /// Publishes the newest runs to readers, and removes those that they replace. Views that are open keep theirs.
    fn use_merged_runs(&self) {
        let writer = self.writer.lock();
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.rows.tables = self.archive.tables();
        self.publish(chain);
        drop(writer);
        // What cannot be removed now is removed after the next time.
        let _ = self.archive.remove_unlisted();
    }
}
