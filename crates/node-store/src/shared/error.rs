//! Errors of a shared store.

use super::inventory::RunFault;
use super::names::{Epoch, LogNumber, RunName};
use super::objects::ObjectsError;
use crate::wal::Sequence;

/// Why an operation on a shared store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SharedError {
    /// The medium failed. A change whose outcome is unknown is finished by the next call.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// An object cannot be decoded.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Another writer has taken over. This one must not acknowledge anything any longer.
    #[error("another server has become the writer of the shared store{}", by.map_or_else(String::new, |by| format!(" (epoch {by})")))]
    Fenced {
        /// The epoch of the other writer, or `None` if its first object could not be determined.
        by: Option<Epoch>,
    },
    /// What the reader needs next was deleted, because it has not followed the log for a long time. It must be opened
    /// again.
    #[error("object {0} of the log was deleted; the reader is too far behind and must open the store again")]
    Collected(LogNumber),
    /// An object does not continue the one before it.
    #[error("object {0} of the log does not continue the one before it")]
    Discontinuous(LogNumber),
    /// An object does not exist that the writer cannot have deleted.
    #[error(
        "{object} is missing from the shared store, although {found} exists; somebody else than the writer has deleted it"
    )]
    Missing {
        /// Its name.
        object: String,
        /// The name of an object that cannot exist without it.
        found: String,
    },
    /// Runs that the newest manifest lists are missing or have another length: somebody else than the writer has deleted or
    /// replaced them.
    #[error("the shared store lacks runs that its manifest lists: {}", list(.0))]
    Runs(Vec<RunFault>),
    /// A run that the manifest lists cannot be read although it has the right length.
    #[error("{} is damaged in the shared store", run.object())]
    DamagedRun {
        run: RunName,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store has disappeared while it was used.
    #[error(
        "the shared store no longer has object {0} of the log, which is never deleted: the store was removed, or another one \
        took its place"
    )]
    Vanished(LogNumber),
    /// The end of the log was not found, because the store kept changing or its listings were outdated.
    #[error("the end of the log was not found in {attempts} attempts")]
    Restless { attempts: usize },
    /// An entry does not follow the last one in the store.
    #[error("entry {found} does not continue the log of the shared store, which ends with entry {last}")]
    Gap { last: Sequence, found: Sequence },
    /// A manifest would have fewer entries in its runs than the one before it.
    #[error("the runs have the entries up to {found}, but those of the shared store have {stored}")]
    Behind { stored: Sequence, found: Sequence },
    /// A manifest would list a run that may be deleted at any time: it was uploaded by an earlier writer and is not in
    /// the newest manifest.
    #[error("run {} was not uploaded by this writer", .0.object())]
    ForeignRun(RunName),
}

fn list(faults: &[RunFault]) -> String {
    faults.iter().map(RunFault::to_string).collect::<Vec<_>>().join(", ")
}

/// Why an object cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The content does not match its checksum, or is malformed in spite of it.
    #[error("{name} is damaged")]
    Damaged { name: String },
    /// The object was written by another program.
    #[error("{name} was written by another program")]
    Foreign { name: String },
    /// The object has the content of another one.
    #[error("{name} has the content of another object")]
    Misplaced { name: String },
    /// This version does not support the layout of the object.
    #[error("{name} has layout {found}, but this version supports only layout {supported}")]
    UnsupportedLayout { name: String, found: u32, supported: u32 },
}
