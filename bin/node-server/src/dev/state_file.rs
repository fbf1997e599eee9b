//! Files with the accounts and blocks of a chain, in the format of anvil's state dumps.

use crate::error::{CommandError, Sources};
use crate::files::{self, Access};
use node_core::context::Context;
use node_core::producer::Producer;
use node_rpc::{Dump, WriteDumpError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The name of the file if a folder is specified.
const IN_FOLDER: &str = "state.json";

/// A file to which the chain is written.
#[derive(Clone)]
pub(super) struct StateFile {
    producer: Arc<Producer>,
    path: PathBuf,
}

/// Reads a file.
pub(super) fn read(path: &Path, context: &Context) -> Result<Dump, CommandError> {
    let path = in_folder(path);
    let (file, _) = files::open(&path, context)?;
    node_rpc::read_dump(file, u64::MAX).map_err(|error| match context.check() {
        Err(_) => CommandError::Interrupted,
        Ok(()) => CommandError::Read { path: path.clone(), source: io::Error::new(io::ErrorKind::InvalidData, error) },
    })
}

/// Returns `path`, or the file in it if it is a folder.
pub(super) fn in_folder(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(IN_FOLDER) } else { path.to_owned() }
}

impl StateFile {
    /// Fails if no file can be created at `path`, or if the chain cannot be read, which would otherwise show at
    /// exit.
    pub(super) fn new(producer: Arc<Producer>, path: &Path) -> Result<Self, CommandError> {
        let file = Self { producer, path: in_folder(path) };
        files::check_replaceable(&file.path).map_err(|source| file.unwritable(source))?;
        let context = Context::unbounded();
        let read = || file.producer.dump_chain()?.accounts(&context, |_| Ok(()))?.next_account().map(drop);
        read().map_err(|error| file.unwritable(io::Error::other(error)))?;
        Ok(file)
    }

    fn unwritable(&self, source: io::Error) -> CommandError {
        CommandError::Write { path: self.path.clone(), source }
    }

    /// Writes the chain, replacing the whole file.
    pub(super) fn write(&self) -> Result<(), CommandError> {
        let chain = self.producer.dump_chain().map_err(|error| self.unwritable(io::Error::other(error)))?;
        let write = |file: &mut dyn io::Write| {
            let written = node_rpc::write_dump(file, &chain, &Context::unbounded(), |_| Ok(()));
            written.map_err(|error| match error {
                WriteDumpError::Chain(error) => self.unwritable(io::Error::other(error)),
                WriteDumpError::Output(source) => self.unwritable(source),
            })
        };
        files::replace(&self.path, Access::Default, write).map(drop)
    }

    /// Writes the chain at an interval until the returned value is dropped.
    pub(super) fn write_every(self, interval: Duration) -> io::Result<Writing> {
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().name("state-file".to_owned());
        let thread = thread.spawn(move || self.run(interval, &stopped))?;
        Ok(Writing { _stop: Some(stop), thread: Some(thread) })
    }

    fn run(&self, interval: Duration, stopped: &Receiver<()>) {
        while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = self.write() {
                tracing::error!(error = %Sources(&error), "the state could not be written");
            }
        }
    }
}

/// The running thread that writes a file.
pub(super) struct Writing {
    _stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self._stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
