//! Why a command failed.

use node_chain::{ExportError, FileError, GenesisError, ImportError};
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::node::NodeError;
use node_core::producer::ProducerError;
use node_core::protocol::Relaxations;
pub(crate) use node_core::sources::Sources;
use node_dev::DevNodeError;
use node_http::{InvalidTls, InvalidTokens, MetricsError, ServeError};
use node_store::{BackupError, Difference};
use node_types::BlockNumber;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why a command failed or ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} exists; --force overwrites it", .path.display())]
    Exists { path: PathBuf },
    #[error("genesis file {}", .path.display())]
    Genesis { path: PathBuf, source: GenesisError },
    #[error("token file {}", .path.display())]
    Tokens { path: PathBuf, source: InvalidTokens },
    #[error("certificate {} with key {}", .certificate.display(), .key.display())]
    Tls { certificate: PathBuf, key: PathBuf, source: InvalidTls },
    #[error(
        "no folder for the chain: neither XDG_DATA_HOME nor HOME is set to an absolute path; specify a folder or :memory: with --data-dir"
    )]
    NoHome,
    #[error("{needed_by} needs a folder, but --data-dir is :memory:")]
    InMemory { needed_by: &'static str },
    #[error("data folder {}", .path.display())]
    Store { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("chain file {} was not imported completely; the head is block {head}", .path.display())]
    Import { path: PathBuf, head: BlockNumber, source: FileError },
    #[error("chain file {}: blocks up to {durable} are durable, later ones may be lost", .path.display())]
    NotDurable { path: PathBuf, durable: BlockNumber, source: FileError },
    #[error("a signal ended the import at block {head}")]
    Stopped { head: BlockNumber },
    #[error("a signal ended the command")]
    Interrupted,
    #[error("--head")]
    Head(#[source] ImportError),
    #[error("{option} {block} is above the head, block {head}")]
    AboveHead { option: &'static str, block: BlockNumber, head: BlockNumber },
    #[error("--from {from} is above --to {to}")]
    EmptyRange { from: BlockNumber, to: BlockNumber },
    #[error(
        "block {block} was edited by hand, so other nodes would reject it; use --to to export the blocks before it"
    )]
    Edited { block: BlockRef },
    #[error("other clients would reject the chain: its rules allow {0}")]
    Relaxed(Relaxations),
    #[error(
        "--code-size-limit {given} is below the limit under which the blocks in the folder were produced, {recorded} bytes"
    )]
    CodeSizeLimit { given: u64, recorded: u64 },
    #[error("--json and the chain cannot both go to standard output")]
    TwoOutputs,
    #[error("verification failed: {0}")]
    Difference(Box<Difference>),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("{url} does not respond")]
    NoResponse { url: String, source: Box<ureq::Error> },
    #[cfg(not(feature = "tls"))]
    #[error(transparent)]
    NoTls(InvalidTls),
    #[cfg(feature = "tls")]
    #[error("certificates {}", .path.display())]
    Certificates { path: PathBuf, source: Box<ureq::Error> },
    #[error("{url} returned status {status}: {body}")]
    NotReady { url: String, status: u16, body: String },
    #[error(transparent)]
    Dev(#[from] DevNodeError),
    #[error(transparent)]
    Producer(#[from] ProducerError),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("the first socket of LISTEN_FDS does not listen for TCP")]
    Socket(#[source] io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
}

impl CommandError {
    /// Returns the error for a store at `path` that failed with `error`.
    pub(crate) fn store(path: &Path, error: BackendError) -> Self {
        let source = match error {
            BackendError::Interrupted(_) => return Self::Interrupted,
            BackendError::Storage(source) => source,
            other => Box::new(other),
        };
        Self::Store { path: path.to_owned(), source }
    }
}
