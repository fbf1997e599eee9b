//! Reading input files.

use crate::error::CommandError;
use node_core::context::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum length of a file of keys, certificates or tokens, in bytes.
const MAX_SMALL_FILE: u64 = 1 << 20;

/// How often a reader that waits for a pipe checks whether it should stop.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A file that is read until a context is cancelled, even if it is a pipe to which nothing is written.
pub(crate) struct Input {
    file: File,
    context: Context,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.context.check().map_err(io::Error::other)?;
            // Regular files are always ready.
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&WAIT)).map_err(io::Error::from) {
                Ok(0) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => match self.file.read(buffer) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    read => return read,
                },
            }
        }
    }
}

/// Reads a file. The command is interrupted if `context` is cancelled.
pub(crate) fn read(path: &Path, context: &Context) -> Result<Vec<u8>, CommandError> {
    let (mut file, _) = open(path, context)?;
    let mut bytes = Vec::new();
    match file.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) if context.check().is_err() => Err(CommandError::Interrupted),
        Err(source) => Err(CommandError::Read { path: path.to_owned(), source }),
    }
}

/// Fails if a file cannot be read. Called before anything is created. A pipe is not opened, because its writer would
/// notice.
pub(crate) fn check(path: &Path) -> Result<(), CommandError> {
    let metadata = path.metadata();
    let checked = metadata.and_then(|found| if found.is_file() { File::open(path).map(drop) } else { Ok(()) });
    checked.map_err(|source| CommandError::Read { path: path.to_owned(), source })
}

/// Reads a file of at most `limit` bytes. Returns `None` if it is longer.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit))
}

/// Reads a small text file: keys, certificates or tokens.
pub(crate) fn read_small_text(path: &Path) -> Result<String, CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    let refused = |kind, message: String| unreadable(io::Error::new(kind, message));
    let bytes = read_at_most(path, MAX_SMALL_FILE).map_err(unreadable)?;
    let bytes = bytes
        .ok_or_else(|| refused(io::ErrorKind::FileTooLarge, format!("it is longer than {MAX_SMALL_FILE} bytes")))?;
    String::from_utf8(bytes).map_err(|_| refused(io::ErrorKind::InvalidData, "it is not valid UTF-8".to_owned()))
}

/// Opens a file, to be read until `context` is cancelled. Returns it with its length in bytes.
pub(crate) fn open(path: &Path, context: &Context) -> Result<(Input, u64), CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    // Opening a pipe would otherwise wait for a writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    Ok((Input { file, context: context.clone() }, length))
}
