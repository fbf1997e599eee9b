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

/// Why a command did not do what it was to do, or ended early.
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
    /// A file is there already.
    #[error("{} exists; --force overwrites it", .path.display())]
    Exists { path: PathBuf },
    /// The genesis file is none.
    #[error("genesis file {}", .path.display())]
    Genesis {
        path: PathBuf,
        #[source]
        source: GenesisError,
    },
    /// The tokens cannot be used.
    #[error("token file {}", .path.display())]
    Tokens {
        path: PathBuf,
        #[source]
        source: InvalidTokens,
    },
    /// The server cannot speak TLS with what it was given.
    #[error("certificate {} with key {}", .certificate.display(), .key.display())]
    Tls {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: InvalidTls,
    },
    /// No folder was chosen, and there is none to choose.
    #[error(
        "no folder for the chain: neither XDG_DATA_HOME nor HOME names one; choose one, or :memory:, with --data-dir"
    )]
    NoHome,
    /// A folder is needed.
    #[error("{needed_by} needs a folder: a chain in memory is gone when the program ends")]
    InMemory { needed_by: &'static str },
    /// The folder of the chain cannot be used.
    #[error("data folder {}", .path.display())]
    Store {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A chain file was not imported to its end.
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
    /// A signal ended a command that changes nothing.
    #[error("a signal ended the command")]
    Interrupted,
    /// The block of `--head` cannot be the head.
    #[error("--head")]
    Head(#[source] ImportError),
    /// A block is asked for that is not there.
    #[error("{option} {block} is above the head, block {head}")]
    AboveHead { option: &'static str, block: BlockNumber, head: BlockNumber },
    /// The first block is above the last.
    #[error("--from {from} is above --to {to}")]
    EmptyRange { from: BlockNumber, to: BlockNumber },
    /// Nobody else would take the chain for valid.
    #[error(
        "block {block} was edited by hand, so that no other node would import it; --to exports the blocks before it"
    )]
    Edited { block: BlockRef },
    /// Two things would be written to standard output.
    #[error("--json and the chain cannot both go to standard output")]
    TwoOutputs,
    /// What is stored is not what it must be.
    #[error("verification failed: {0}")]
    Difference(Box<Difference>),
    /// The chain cannot be copied.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The folder is in use, and its user takes no requests.
    #[error("the folder {} is in use by a process that takes no requests", .path.display())]
    NoControl {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The process that has the folder open refuses a request.
    #[error("the process that has the folder open: {message}")]
    Refused { message: String },
    /// The process that has the folder open ended before it was done.
    #[error("the process that has the folder open ended before the copy was whole")]
    ServerGone,
    /// A path cannot be told to another process.
    #[error("the path {} is not UTF-8", .path.display())]
    NotText { path: PathBuf },
    /// A server does not answer.
    #[error("{url} does not answer")]
    NoAnswer {
        url: String,
        #[source]
        source: io::Error,
    },
    /// A server answers that it is not ready.
    #[error("{url} answers {status}: {body}")]
    NotReady { url: String, status: u16, body: String },
    /// There is no such development chain.
    #[error(transparent)]
    Dev(#[from] DevNodeError),
    /// The chain is not as it is to be.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The chain cannot be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The backend does not work.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The node does not answer.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The server does not run.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// What was asked for cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// The interface cannot be described.
    #[error("cannot write the description of the interface")]
    Description(#[source] io::Error),
    /// Nobody can be told of metrics.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl CommandError {
    /// The folder at `path` cannot be used.
    pub(crate) fn store(path: &Path, error: BackendError) -> Self {
        let source = match error {
            BackendError::Storage(source) => source,
            other => Box::new(other),
        };
        Self::Store { path: path.to_owned(), source }
    }

    /// Whether another process has the folder open.
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
