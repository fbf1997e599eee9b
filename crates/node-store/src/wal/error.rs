//! Errors of the log.

use super::Sequence;
use crate::files::REMEDY;
use std::io;
use std::sync::Arc;

/// Why an operation on the log failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalError {
    /// The disk reported an error. If a sync failed, its entries may or may not exist after the log is opened again.
    #[error("cannot {action} {file}")]
    Io { action: &'static str, file: String, source: Arc<io::Error> },
    /// An earlier write or sync failed, so nothing may be appended until the log is rolled back.
    #[error("the log accepts no more entries, because an earlier write or sync failed")]
    Poisoned { source: Arc<io::Error> },
    /// Acknowledged entries are damaged.
    #[error("{file} is damaged at byte {offset}: entry {expected} was durable and cannot be read; {REMEDY}")]
    Corrupt { file: String, offset: u64, expected: Sequence },
    /// The log has no segments.
    #[error("the log is missing: no file wal-….log is in the folder; {REMEDY}")]
    NoSegments,
    /// Acknowledged entries are missing: a segment was removed or truncated.
    #[error("durable entries {from} to {through} are missing from the log; {REMEDY}")]
    Missing { from: Sequence, through: Sequence },
    /// A segment begins with an entry that an earlier one also contains, so they are not parts of one log.
    #[error("{file} repeats entries: the log file before it ends with entry {last}; {REMEDY}")]
    Repeated { file: String, last: Sequence },
    /// The segment has a different layout version.
    #[error(
        "{file} has layout {found}, but this version supports only layout {supported}; export the chain with the \
        version that wrote it, and import it into a new folder"
    )]
    UnsupportedLayout { file: String, found: u32, supported: u32 },
    /// The payload exceeds the maximum length.
    #[error("an entry of {size} bytes is larger than the limit of {limit}")]
    TooLarge { size: usize, limit: usize },
}

impl WalError {
    pub(super) fn io(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { action, file, source: Arc::new(source) }
    }
}
