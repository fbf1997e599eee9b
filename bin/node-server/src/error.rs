//! Why a command failed.

use node_chain::{ExportError, FileError, GenesisError, ImportError};
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::node::NodeError;
use node_core::producer::ProducerError;
use node_dev::DevNodeError;
use node_http::{InvalidTls, InvalidTokens, MetricsError, ServeError};
use node_store::files::FolderError;
use node_store::{BackupError, Difference, StoreError};
use node_types::BlockNumber;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a command failed or ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The output file already exists.
    #[error("{} exists; --force overwrites it", .path.display())]
    Exists { path: PathBuf },
    /// The genesis file is invalid.
    #[error("genesis file {}", .path.display())]
    Genesis {
        path: PathBuf,
        #[source]
        source: GenesisError,
    },
    /// The token file is invalid.
    #[error("token file {}", .path.display())]
    Tokens {
        path: PathBuf,
        #[source]
        source: InvalidTokens,
    },
    /// Certificate and key cannot be used for TLS.
    #[error("certificate {} with key {}", .certificate.display(), .key.display())]
    Tls {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: InvalidTls,
    },
    /// No folder was specified, and there is no default.
    #[error(
        "no folder for the chain: neither XDG_DATA_HOME nor HOME is set to an absolute path; specify a folder or :memory: with --data-dir"
    )]
    NoHome,
    /// The command does not work on a chain in memory.
    #[error("{needed_by} needs a folder, but --data-dir is :memory:")]
    InMemory { needed_by: &'static str },
    /// The data folder cannot be used.
    #[error("data folder {}", .path.display())]
    Store {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The import of a chain file failed.
    #[error("chain file {} was imported up to block {head} only", .path.display())]
    Import {
        path: PathBuf,
        head: BlockNumber,
        #[source]
        source: FileError,
    },
    /// A signal ended an import.
    #[error("a signal ended the import at block {head}")]
    Stopped { head: BlockNumber },
    /// A signal ended a read-only command.
    #[error("a signal ended the command")]
    Interrupted,
    /// The block of `--head` cannot become the head.
    #[error("--head")]
    Head(#[source] ImportError),
    /// An option refers to a block that does not exist.
    #[error("{option} {block} is above the head, block {head}")]
    AboveHead { option: &'static str, block: BlockNumber, head: BlockNumber },
    /// The first block is above the last.
    #[error("--from {from} is above --to {to}")]
    EmptyRange { from: BlockNumber, to: BlockNumber },
    /// The chain contains a block whose state was edited, which other nodes would reject.
    #[error(
        "block {block} was edited by hand, so other nodes would reject it; use --to to export the blocks before it"
    )]
    Edited { block: BlockRef },
    /// The chain and JSON would both be written to standard output.
    #[error("--json and the chain cannot both go to standard output")]
    TwoOutputs,
    /// Stored data is wrong.
    #[error("verification failed: {0}")]
    Difference(Box<Difference>),
    /// The backup failed.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The folder is in use by a process without a control socket.
    #[error("the folder {} is in use by a process that does not accept requests", .path.display())]
    NoControl {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The process that uses the folder refused the request.
    #[error("the process that uses the folder refused the backup: {message}")]
    Refused { message: String },
    /// The process that uses the folder ended before the backup was complete.
    #[error("the process that uses the folder ended before the backup was complete")]
    ServerGone,
    /// A path cannot be sent to another process.
    #[error("the path {} is not UTF-8", .path.display())]
    NotText { path: PathBuf },
    /// The server does not respond.
    #[error("{url} does not respond")]
    NoResponse {
        url: String,
        #[source]
        source: Box<ureq::Error>,
    },
    /// The file of trusted certificates is invalid.
    #[cfg(feature = "tls")]
    #[error("certificates {}", .path.display())]
    Certificates {
        path: PathBuf,
        #[source]
        source: Box<ureq::Error>,
    },
    /// The server responds that it is not ready.
    #[error("{url} returned status {status}: {body}")]
    NotReady { url: String, status: u16, body: String },
    /// The development chain cannot be created or opened.
    #[error(transparent)]
    Dev(#[from] DevNodeError),
    /// The block producer failed.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The export failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// An operation of the node failed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The server cannot run.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// The OpenAPI document cannot be serialized.
    #[error("cannot write the OpenAPI document")]
    Description(#[source] io::Error),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl CommandError {
    /// The error for a store at `path` that failed with `error`.
    pub(crate) fn store(path: &Path, error: BackendError) -> Self {
        let source = match error {
            BackendError::Storage(source) => source,
            other => Box::new(other),
        };
        Self::Store { path: path.to_owned(), source }
    }

    /// Whether another process uses the folder.
    pub(crate) fn is_locked(&self) -> bool {
        let Self::Store { source, .. } = self else { return false };
        matches!(source.downcast_ref(), Some(StoreError::Folder(FolderError::Locked { .. })))
    }
}

/// An error with all its sources, on one line.
pub(crate) struct Sources<'a>(pub(crate) &'a dyn Error);

impl fmt::Display for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
