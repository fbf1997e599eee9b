//! Why a command failed.

use node_chain::{ExportError, FileError, GenesisError, ImportError};
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::node::NodeError;
use node_core::producer::ProducerError;
use node_core::protocol::Relaxations;
pub(crate) use node_core::sources::Sources;
use node_dev::DevNodeError;
use node_dev::fork::OpenForkError;
use node_http::{InvalidTls, InvalidTokens, MetricsError, ServeError};
use node_store::shared::{Fault, ObjectsError, SharedError};
use node_store::{BackupError, Difference, StoreError};
use node_types::BlockNumber;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

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
    #[error("{needed_by} needs --data-dir")]
    NoFolder { needed_by: &'static str },
    #[error("shared store {url}")]
    SharedStore { url: String, source: Box<dyn Error + Send + Sync> },
    #[error(
        "{url} is not a shared store but the data folder of a chain; use it with --data-dir {folder}, to serve it \
         beside another server with run --read-only",
        folder = .folder.display()
    )]
    DataFolder { url: String, folder: PathBuf },
    #[error("the shared store {url} and {} must not contain each other", .path.display())]
    Nested { url: String, path: PathBuf },
    #[error("data folder {}", .path.display())]
    Store { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("data folder {} must have a chain (--existing)", .path.display())]
    Absent { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("chain file {} was not imported completely; the head is block {head}", .path.display())]
    Import { path: PathBuf, head: BlockNumber, source: FileError },
    #[error("chain file {} has no blocks", .path.display())]
    NoBlocks { path: PathBuf },
    #[error("following {} ended; the head is block {head}", .path.display())]
    Follow { path: PathBuf, head: BlockNumber, source: FileError },
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
    #[error("the chain has no block after its first one")]
    OnlyFirst,
    #[error(
        "--from {from} is a block of the other chain, which the folder does not have; the fork begins with block {first}"
    )]
    BelowFirst { from: BlockNumber, first: BlockNumber },
    #[error("--from {from} is above --to {to}")]
    EmptyRange { from: BlockNumber, to: BlockNumber },
    #[error("block {block} was edited by hand, so other nodes would reject it; {}", before(*.first))]
    Edited { block: BlockRef, first: bool },
    #[error(
        "block {block} has changes that no transaction made, such as the ether of the fork's accounts, so other nodes would \
         reject it; {}, and a fork that is begun with --accounts 0 gives nobody ether",
        before(*.first)
    )]
    EditedFork { block: BlockRef, first: bool },
    #[error(
        "{} is the folder of a fork, which the command dev serves: ethnode dev --data-dir {}", .path.display(), .path.display()
    )]
    IsFork { path: PathBuf },
    #[error(
        "block {block} has no state root, because trie nodes of the other chain could not be had, so other nodes would reject it; \
        use --to to export the blocks before it"
    )]
    NoStateRoot { block: BlockNumber },
    #[error("other clients would reject the chain: its rules allow {0}")]
    Relaxed(Relaxations),
    #[error(
        "--code-size-limit {given} is below the limit under which the blocks in the folder were produced, which is {}",
        bytes_or_none(*.recorded)
    )]
    CodeSizeLimit {
        given: u64,
        /// The maximum if there is no limit.
        recorded: u64,
    },
    #[error(
        "--enable-tx-gas-limit has no effect: the blocks in the folder were produced without the limit of EIP-7825, \
         and a folder keeps its rules"
    )]
    NoTxGasLimit,
    #[error(
        "--offline, --fork-trust, --fork-block-number, --fork-transaction-hash and --fork-chain-id are for forks; \
         --fork-url starts one"
    )]
    NoForkUrl,
    #[error("a fork cannot be published to a shared store: it does not have the state that it begins with")]
    ForkShared,
    #[error(
        "what was read of the other chain is damaged in {}, entries: {damaged}; a start without --offline reads them again",
        path.display()
    )]
    DamagedFork { path: PathBuf, damaged: u64 },
    #[error(transparent)]
    Fork(#[from] OpenForkError),
    #[error("--json and the chain cannot both go to standard output")]
    TwoOutputs,
    #[error("verification failed: {0}")]
    Difference(Box<Difference>),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("with --port 0 the system chooses the port: pass the URL that the server prints, followed by /ready")]
    UnknownPort,
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
    /// Returns the exit status of a server: 2, as for invalid settings, if starting it again would fail in the same
    /// way, so that a supervisor need not try.
    pub(crate) fn exit_code_of_server(&self) -> ExitCode {
        if self.is_permanent() { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    /// Returns whether the error persists until somebody changes the settings, or files that they mention.
    fn is_permanent(&self) -> bool {
        let source: &(dyn Error + 'static) = match self {
            Self::NoHome | Self::InMemory { .. } | Self::AboveHead { .. } | Self::Genesis { .. } => return true,
            Self::CodeSizeLimit { .. } | Self::NoTxGasLimit => return true,
            Self::NoBlocks { .. } | Self::Tokens { .. } | Self::Tls { .. } | Self::Socket(_) => return true,
            Self::NoForkUrl | Self::ForkShared | Self::IsFork { .. } => return true,
            Self::Fork(error) => return error.is_mistake(),
            Self::NoFolder { .. } | Self::DataFolder { .. } | Self::Nested { .. } => return true,
            Self::SharedStore { source, .. } => source.as_ref(),
            Self::Dev(DevNodeError::Backend(BackendError::Storage(source))) | Self::Store { source, .. } => {
                source.as_ref()
            }
            Self::Dev(DevNodeError::Backend(error)) => error,
            Self::Dev(_) | Self::Producer(_) | Self::Head(_) => self,
            Self::Read { source, .. } | Self::Write { source, .. } => source,
            Self::Import { source, .. } | Self::Follow { source, .. } => source,
            Self::Serve(ServeError::Ready(error)) => error.as_ref(),
            Self::Serve(error) => error,
            Self::Metrics(error) => error,
            _ => return false,
        };
        let mut causes = std::iter::successors(Some(source), |error: &&(dyn Error + 'static)| (*error).source());
        !causes.any(is_temporary)
    }

    /// Returns the error for the shared store at `url` that failed with `error`.
    pub(crate) fn shared_store(url: &str, error: BackendError) -> Self {
        match Self::store(Path::new(""), error) {
            Self::Store { source, .. } => Self::SharedStore { url: url.to_owned(), source },
            other => other,
        }
    }

    /// Returns the error for a folder at `path` that must have a chain, but has none because of `error`.
    pub(crate) fn absent(path: &Path, error: BackendError) -> Self {
        match Self::store(path, error) {
            Self::Store { path, source } => Self::Absent { path, source },
            other => other,
        }
    }

    /// Returns the error for a store at `path` that failed with `error`.
    pub(crate) fn store(path: &Path, error: BackendError) -> Self {
        let source = match error {
            BackendError::Interrupted(_) => return Self::Interrupted,
            BackendError::Storage(source) | BackendError::NotWriter(source) => source,
            other => Box::new(other),
        };
        Self::Store { path: path.to_owned(), source }
    }
}

/// Returns what can be exported if `first`, or otherwise a later block, cannot.
fn before(first: bool) -> &'static str {
    if first { "there are no blocks before it to export" } else { "use --to to export the blocks before it" }
}

/// Returns the text of a limit in bytes, of which the maximum is none.
fn bytes_or_none(limit: u64) -> String {
    if limit == u64::MAX { "none".to_owned() } else { format!("{limit} bytes") }
}

/// Returns whether an error may be over by the next start: it does not come from settings or the content of files.
fn is_temporary(error: &(dyn Error + 'static)) -> bool {
    let shared = || error.downcast_ref::<Arc<io::Error>>().map(Arc::as_ref);
    if let Some(error) = error.downcast_ref::<io::Error>().or_else(shared) {
        return !matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::InvalidData
                | ErrorKind::InvalidInput
                | ErrorKind::FileTooLarge
                // A truncated file, such as one that gzip has compressed.
                | ErrorKind::UnexpectedEof
        );
    }
    if let Some(StoreError::Shared(SharedError::Objects(ObjectsError { fault, .. }))) = error.downcast_ref() {
        return matches!(fault, Fault::Transient | Fault::Cancelled);
    }
    matches!(error.downcast_ref(), Some(BackendError::Locked { .. } | BackendError::Interrupted(_)))
        || matches!(
            error.downcast_ref(),
            // A volume may be mounted later.
            Some(
                StoreError::NoChain
                    | StoreError::NoFolder
                    | StoreError::Unwritable { .. }
                    | StoreError::Poisoned
                    | StoreError::Closed
            )
        )
        || matches!(
            error.downcast_ref(),
            // Another server was starting.
            Some(
                StoreError::Fenced { .. }
                    | StoreError::Shared(SharedError::Restless { .. } | SharedError::Collected(_))
            )
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_store::files::FolderError;

    #[test]
    fn a_server_ends_with_2_if_starting_it_again_does_not_help() {
        let path = || PathBuf::from("/data");
        let read = |kind: ErrorKind| CommandError::Read { path: path(), source: kind.into() };
        let bind = |kind: ErrorKind| {
            CommandError::Serve(ServeError::Bind { address: ([127, 0, 0, 1], 80).into(), source: kind.into() })
        };
        let store = |error: StoreError| CommandError::store(&path(), error.into());
        let disk = |kind: ErrorKind| StoreError::Folder(FolderError::Io { path: path(), source: kind.into() });
        let cases = [
            (read(ErrorKind::NotFound), true),
            (read(ErrorKind::PermissionDenied), true),
            (read(ErrorKind::Other), false),
            (read(ErrorKind::UnexpectedEof), true),
            (CommandError::NoBlocks { path: path() }, true),
            (CommandError::NoTxGasLimit, true),
            (bind(ErrorKind::PermissionDenied), true),
            (bind(ErrorKind::AddrInUse), false),
            (CommandError::Serve(ServeError::Zero("max-logs")), true),
            (store(StoreError::NoManifest), true),
            (store(StoreError::UnsupportedLayout { found: 2, supported: 1 }), true),
            (store(disk(ErrorKind::PermissionDenied)), true),
            (store(disk(ErrorKind::StorageFull)), false),
            (store(StoreError::Folder(FolderError::Locked { path: path() })), false),
            (store(StoreError::Poisoned), false),
            (store(StoreError::NoChain), false),
            (store(StoreError::NoFolder), false),
            (CommandError::Dev(DevNodeError::Backend(StoreError::NoManifest.into())), true),
            (CommandError::Dev(DevNodeError::Backend(BackendError::Locked { path: path() })), false),
            (CommandError::Stopped { head: 7 }, false),
        ];
        for (error, expected) in cases {
            assert_eq!(error.is_permanent(), expected, "{error:?}");
        }
    }
}
