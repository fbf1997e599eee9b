//! `run --follow`: takes further blocks from a growing file, a pipe or a folder of files while the chain is served.

mod file;
mod folder;
mod pipe;

use crate::error::{CommandError, Sources};
use crate::files;
use folder::FollowedFolder;
use node_chain::{BlockImporter, FileError, ImportError, Imported, PreparedBlock, RawBlock, StreamError};
use node_core::context::Context;
use node_http::Metrics;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two looks for more bytes.
const POLL: Duration = Duration::from_millis(100);

/// Number of bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// A thread that follows a path. Dropping it ends the thread.
pub(crate) struct Following {
    context: Context,
    thread: Option<JoinHandle<()>>,
}

/// Fails if a path cannot be followed. `-` means standard input.
pub(crate) fn check(path: &Path) -> Result<(), CommandError> {
    if is_standard_input(path) { Ok(()) } else { files::check(path) }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Following {
    /// Starts importing the blocks of `path`, until `context` is cancelled or a block is invalid. That is logged and
    /// counted in `metrics`, which expect blocks from now on; the chain up to the block is still served.
    pub(crate) fn begin(
        path: &Path,
        importer: BlockImporter,
        metrics: Metrics,
        context: &Context,
    ) -> Result<Self, CommandError> {
        metrics.expect_blocks();
        let follower = Follower { path: path.to_owned(), importer, metrics: metrics.clone(), context: context.clone() };
        let follow = move || {
            if let Err(error) = follower.follow()
                && follower.context.check().is_ok()
            {
                tracing::error!("{}; the chain is served up to there", Sources(&error));
                metrics.set_follow_failed();
            }
        };
        let thread = thread::Builder::new().name("follow".to_owned()).spawn(follow).map_err(CommandError::Thread)?;
        Ok(Self { context: context.clone(), thread: Some(thread) })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.context.cancel();
        self.thread.take().map(JoinHandle::join);
    }
}

/// Imports the blocks of a path, one by one.
struct Follower {
    path: PathBuf,
    importer: BlockImporter,
    metrics: Metrics,
    context: Context,
}

impl Follower {
    fn follow(&self) -> Result<(), CommandError> {
        tracing::info!("following {}", self.path.display());
        if is_standard_input(&self.path) {
            let input = files::standard_input(&self.context);
            return self.follow_input(input.map_err(|source| self.unreadable(source))?);
        }
        let metadata = self.path.metadata().map_err(|source| self.unreadable(source))?;
        if metadata.is_dir() {
            FollowedFolder::new(self).follow()
        } else if metadata.is_file() {
            self.follow_file()
        } else {
            self.follow_pipe()
        }
    }

    fn unreadable(&self, source: std::io::Error) -> CommandError {
        CommandError::Read { path: self.path.clone(), source }
    }

    /// Imports a block. If it cannot be stored, waits until it can be.
    fn take(&self, block: &RawBlock) -> Result<(), FileError> {
        let backend = self.importer.backend();
        let failed = |source| FileError::Import { offset: block.offset, source: Box::new(source) };
        loop {
            self.context.check().map_err(|error| failed(error.into()))?;
            let failed_writes = backend.health().failed_writes;
            match self.import(block) {
                Ok(()) => return Ok(()),
                // The storage logs failures of writing, and `/ready` reports them.
                Err(_) if backend.health().failed_writes > failed_writes => {
                    while backend.health().write_failure.is_some() && self.context.check().is_ok() {
                        thread::sleep(POLL);
                    }
                }
                Err(ImportError::Decode(source)) => return Err(FileError::Decode { offset: block.offset, source }),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn import(&self, block: &RawBlock) -> Result<(), ImportError> {
        if self.importer.canonical_number(&block.bytes)?.is_some() {
            return Ok(());
        }
        let prepared = PreparedBlock::decode(&block.bytes, &**self.importer.senders()).map_err(ImportError::Decode)?;
        let gas = prepared.header.gas_used;
        if self.importer.import(&self.context, prepared)? != Imported::AlreadyKnown {
            self.metrics.record_import(1, gas);
        }
        Ok(())
    }

    /// Returns the error that ends following.
    fn ended(&self, path: &Path, source: FileError) -> CommandError {
        match self.importer.backend().view() {
            Ok(view) => CommandError::Follow { path: path.to_owned(), head: view.head().number, source },
            Err(error) => error.into(),
        }
    }

    fn damaged(&self, path: &Path, source: StreamError) -> CommandError {
        self.ended(path, FileError::Stream(source))
    }
}
