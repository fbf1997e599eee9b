//! Failed reads, for reports on the health of a store.

use super::format::{Handle, RunId, read_frame};
use crate::files::Object;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of unreadable frames that are remembered.
const MAX_UNREADABLE: usize = 1000;

/// Failed reads since the folder was opened.
#[derive(Default)]
pub(crate) struct FailedReads {
    count: AtomicU64,
    /// Frames whose reads failed and have not succeeded since.
    unreadable: Mutex<BTreeMap<(RunId, u64), Unreadable>>,
}

struct Unreadable {
    file: Arc<dyn Object>,
    handle: Handle,
    error: String,
}

impl FailedReads {
    /// Returns the number of failed reads.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the error of a failed read that would still fail, or `None` if there is none.
    pub(crate) fn error(&self) -> Option<String> {
        self.unreadable.lock().values().next().map(|failed| failed.error.clone())
    }

    /// Returns whether a read of `run` failed and would still fail.
    pub(crate) fn is_in(&self, run: RunId) -> bool {
        self.unreadable.lock().range((run, 0)..=(run, u64::MAX)).next().is_some()
    }

    pub(super) fn note(&self, file: &Arc<dyn Object>, run: RunId, handle: Handle, error: &io::Error) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut unreadable = self.unreadable.lock();
        if unreadable.len() < MAX_UNREADABLE {
            let failed = Unreadable { file: Arc::clone(file), handle, error: error.to_string() };
            unreadable.insert((run, handle.offset), failed);
        }
    }

    /// Repeats failed reads, up to the first that fails again.
    pub(crate) fn read_again(&self) {
        loop {
            let first =
                |((run, _), failed): (&(RunId, u64), &Unreadable)| (*run, failed.handle, Arc::clone(&failed.file));
            let Some((run, handle, file)) = self.unreadable.lock().iter().next().map(first) else { return };
            if file.size().and_then(|size| read_frame(&*file, size, run, handle)).is_err() {
                return;
            }
            self.unreadable.lock().remove(&(run, handle.offset));
        }
    }

    /// Removes the failures of runs that no longer exist.
    pub(crate) fn forget(&self, exists: impl Fn(RunId) -> bool) {
        self.unreadable.lock().retain(|(run, _), _| exists(*run));
    }
}
