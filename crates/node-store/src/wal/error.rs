//! What the log refuses, and why.

use super::Sequence;
use std::io;
use std::sync::Arc;

/// Why the log did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WalError {
    /// The disk refused. From a sync, the entries it should have made durable may or may not be there after the log is
    /// opened again.
    #[error("cannot {action} {file}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// The answer of the operating system.
        #[source]
        source: Arc<io::Error>,
    },
    /// An earlier write or sync failed, so that nothing may follow it. Opening the log again recovers what is there.
    #[error("the log takes no more entries, because a write or sync failed before")]
    Poisoned {
        /// The first failure.
        #[source]
        source: Arc<io::Error>,
    },
    /// Entries that were acknowledged are damaged.
    #[error("{file} is damaged at byte {offset}: entry {expected} was durable and cannot be read")]
    Corrupt {
        /// The segment.
        file: String,
        /// Where the damage starts.
        offset: u64,
        /// The entry that should be there.
        expected: Sequence,
    },
    /// All segments are gone.
    #[error("the log is missing: no file wal-….log is in the folder")]
    NoSegments,
    /// Entries that were acknowledged are gone: a segment was removed, or cut off.
    #[error("entries {from} to {through} were durable and are missing from the log")]
    Missing {
        /// The first of them.
        from: Sequence,
        /// The last of them.
        through: Sequence,
    },
    /// The segment was written by another version of this program.
    #[error(
        "{file} has layout {found}, and this version reads and writes layout {supported}; docs/operations.md, \
        \"From one storage layout to the next\", says how to move"
    )]
    UnsupportedLayout {
        /// The segment.
        file: String,
        /// Its layout.
        found: u32,
        /// The layout that can be read.
        supported: u32,
    },
    /// The payload is larger than an entry may be.
    #[error("an entry of {size} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Bytes of the payload.
        size: usize,
        /// The most bytes a payload may have.
        limit: usize,
    },
}

impl WalError {
    pub(super) fn io(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { action, file, source: Arc::new(source) }
    }
}
