//! Errors of a store.

use crate::codec::Malformed;
use crate::files::{FolderError, REMEDY};
use crate::shared::{Epoch, Fault, LogNumber, ObjectsError, SharedError};
use crate::wal::WalError;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Interrupted;
use node_types::consensus::DecodeError;
use node_types::{BlockNumber, H256};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Why a store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file cannot be read or written.
    #[error("a file of the store cannot be read or written")]
    File(#[source] std::io::Error),
    /// The log failed.
    #[error("the write-ahead log failed")]
    Log(#[from] WalError),
    /// A row, or an entry of the log, cannot be read.
    #[error("the stored data is damaged")]
    Malformed(#[from] Malformed),
    /// A consensus object within a row cannot be read.
    #[error("a stored consensus object is damaged")]
    Consensus(#[from] DecodeError),
    /// A row is missing although another row refers to it.
    #[error("a required row of table {table} is missing")]
    Missing { table: &'static str },
    /// The state that the chain continues could not be read.
    #[error(transparent)]
    Base(BackendError),
    /// The folder has a chain that continues the state of another one, which is not in the folder.
    #[error("the chain continues the state of another one as of block {0}, with which it must be opened")]
    NeedsBase(BlockNumber),
    /// The folder has a chain that begins with its genesis block.
    #[error("the folder has a chain that begins with its genesis block, not one that continues another chain")]
    NoBase,
    /// Readers of a shared store would not have the state that the chain continues.
    #[error("a chain that continues another one cannot be published")]
    Unpublishable,
    /// The folder is empty, or is not a data folder.
    #[error("there is no chain in the folder")]
    NoChain,
    /// The folder, or one that it is in, does not exist.
    #[error("the folder does not exist")]
    NoFolder,
    /// A chain was to be created in a folder that has other files: most likely, the path is wrong.
    #[error("there is no chain in the folder, but the file {file}; a chain is created only in an empty folder")]
    OtherFiles { file: String },
    /// The manifest of the folder is missing: it was removed or not copied, or the first start was interrupted.
    #[error("the folder has runs, but no manifest, which lists them; {REMEDY}")]
    NoManifest,
    /// The folder contains a different chain.
    #[error("the folder holds a chain with genesis {found:#x}, not {expected:#x}")]
    OtherGenesis { found: H256, expected: H256 },
    /// This version does not support the layout of the folder.
    #[error(
        "the folder has storage layout {found}, but this version supports only layout {supported}; export the chain with the \
        version that wrote it, and import it into a new folder"
    )]
    UnsupportedLayout { found: u64, supported: u64 },
    /// The chain is written by another process; see [`StoreReader`](crate::StoreReader).
    #[error("the chain is open for reading only")]
    ReadOnly,
    /// The store was closed.
    #[error("the store was closed")]
    Closed,
    /// The folder was written by another program.
    #[error("the folder was written by another program")]
    Foreign,
    /// The block cannot be stored: keys have room for 2^40 blocks with 2^24 logs each.
    #[error("block {0} exceeds the limits of the storage format")]
    BeyondLimits(BlockRef),
    /// Writes currently fail. They are retried regularly, and the change can be repeated once they succeed.
    #[error("writes fail at present: {reason}")]
    Unwritable {
        /// The failure, with its causes.
        reason: String,
    },
    /// An earlier write failed, so the content of the disk is unknown. Opening the folder again recovers it.
    #[error("an earlier write failed; the folder must be opened again")]
    Poisoned,
    /// The shared store cannot be read or written.
    #[error("the shared store failed")]
    Shared(#[source] SharedError),
    /// Another server has become the writer of the shared store, so this one must not change the chain any longer.
    #[error(
        "another server has become the writer of the shared store{}; this one takes no changes any longer",
        by.map_or_else(String::new, |by| format!(" (epoch {by})"))
    )]
    Fenced {
        /// The epoch of the other writer, or `None` if it is not known.
        by: Option<Epoch>,
    },
    /// The shared store has disappeared while this server was its writer.
    #[error("{}; this server takes no changes any longer", SharedError::Vanished(*.0))]
    Vanished(LogNumber),
    /// The change is in the folder, but the shared store could not be reached before the store was closed.
    #[error("the shared store could not be reached before the end; the change is published at the next start")]
    Unpublished,
    /// The chain is in memory, so it could not be continued after the end of the process.
    #[error("a chain in memory cannot be published")]
    Volatile,
    /// The shared store has a chain, and the folder has never been its writer.
    #[error("the shared store has a chain that was not published from this folder; {RESTORE}")]
    OtherFolder,
    /// The folder and the shared store have different changes after a point up to which they are the same.
    #[error("the folder has changes that the shared store does not have, and the other way round; {RESTORE}")]
    Diverged,
    /// The folder was to be restored, but has a chain.
    #[error("the folder has a chain, so it cannot be restored")]
    HasChain,
    /// The shared store has no chain.
    #[error("there is no chain in the shared store")]
    NothingPublished,
    /// The folder was being restored from a shared store, which was interrupted.
    #[error("the folder is not restored completely; restore it again (--restore)")]
    Unrestored,
    /// The shared store no longer has the changes that the folder lacks.
    #[error("the shared store has deleted changes that the folder lacks; {RESTORE}")]
    Outdated,
}

/// What the operator must do if a folder cannot become the writer of a shared store.
const RESTORE: &str = "restore the shared store into an empty folder (--restore), or publish to another place";

impl StoreError {
    /// Returns what a failure of the shared store means, or `None` if something else has failed.
    pub fn shared_fault(&self) -> Option<Fault> {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let shared = || error.downcast_ref::<Arc<io::Error>>().and_then(|error| error.get_ref());
            let of_read = || inner.or_else(shared)?.downcast_ref::<ObjectsError>();
            let found = match error.downcast_ref() {
                // It is transparent, so its source is that of the other error.
                Some(SharedError::Objects(error)) => Some(error),
                _ => of_read(),
            };
            if let Some(ObjectsError { fault, .. }) = found {
                return Some(*fault);
            }
            cause = error.source();
        }
        None
    }

    /// Returns the error for a part of the base that cannot be decoded, although it has the right hash.
    pub(crate) fn malformed_base(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Base(BackendError::Upstream(Box::new(error)))
    }

    /// Returns the error of the operating system that caused this error, or `None` if there is another cause.
    pub(crate) fn io(&self) -> Option<&io::Error> {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let shared = || error.downcast_ref::<Arc<io::Error>>().map(Arc::as_ref);
            if let Some(found) = error.downcast_ref::<io::Error>().or_else(shared) {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

impl From<StoreError> for BackendError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Folder(FolderError::Locked { path }) => Self::Locked { path },
            StoreError::Base(error) => error,
            error @ (StoreError::Fenced { .. } | StoreError::Vanished(_)) => Self::NotWriter(Box::new(error)),
            error if error.shared_fault() == Some(Fault::Cancelled) => Self::Interrupted(Interrupted::Cancelled),
            error => Self::Storage(Box::new(error)),
        }
    }
}

impl From<SharedError> for StoreError {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Fenced { by } => Self::Fenced { by },
            error => Self::Shared(error),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
