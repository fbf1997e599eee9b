//! The port to the disk or to memory: a folder of files without subfolders.
//!
//! Runs and the write-ahead log use the disk only through this port, so that tests can simulate power failures that
//! affect both at the same moment.

mod disk;
#[cfg(any(test, feature = "test-faults"))]
pub mod faults;
mod memory;
mod nowhere;
mod read_only;

pub use disk::{DiskFolder, FolderError};
pub(crate) use disk::{LOCK_FILE, create_folder, open_read_only, rename_folder, sync_folder};
pub use memory::MemoryFolder;
pub(crate) use nowhere::Nowhere;
pub use read_only::ReadOnlyFolder;

use std::cell::Cell;
use std::fmt::{self, Debug};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A folder of files. Names do not contain separators.
///
/// Created and removed names are durable only after [`sync`](Folder::sync).
///
/// # Errors
/// All methods fail if the operating system does.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait Folder: Debug + Send + Sync {
    /// Opens a file. Fails with [`io::ErrorKind::NotFound`] if it does not exist.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Creates an empty file, or truncates an existing one.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Returns the names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes a file. Fails with [`io::ErrorKind::NotFound`] if it does not exist.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable, but not the contents of the files.
    fn sync(&self) -> io::Result<()>;

    /// Returns the path with symbolic links resolved, or `None` if this is not a folder of the operating system.
    fn path(&self) -> Option<&Path>;

    /// Returns whether all files are lost when the process ends, in which case no log is kept.
    fn is_volatile(&self) -> bool;
}

/// What the operator must do if a run, the manifest or a segment of the log is damaged or missing. Errors that report
/// this end with it.
pub(crate) const REMEDY: &str = "restore a backup or import the chain again";

/// Returns the error for a damaged file.
pub(crate) fn damage(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}; {REMEDY}"))
}

/// Reads a whole file, which is damaged if it has more than `limit` bytes.
pub(crate) fn read_whole(file: &dyn Object, name: &str, limit: u64) -> io::Result<Vec<u8>> {
    let named = |error: io::Error| naming(name, &error);
    let size = file.size().map_err(named)?;
    if size > limit {
        return Err(damage(format_args!("{name} has {size} bytes, more than such a file can have")));
    }
    let mut content = vec![0; size as usize];
    file.read_at(0, &mut content).map_err(named)?;
    Ok(content)
}

/// Returns `error` with the name of the file, which those of the operating system lack.
pub(crate) fn naming(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Size in bytes up to which each thread keeps its buffer for reads.
const KEPT_BUFFER: usize = 1 << 20;

/// Fixed content that can be read in parts, such as an open file or an object in an object store. Threads may share
/// it.
///
/// # Errors
/// All methods fail if the operating system does.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait Object: Debug + Send + Sync {
    /// Returns the length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes at `offset`. Fails with [`io::ErrorKind::UnexpectedEof`] if the content ends
    /// before that, and with the error of [`waiting::refuse`](node_core::waiting::refuse) if this thread must not wait
    /// for them.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Calls `visit` once with the `length` bytes at `offset`, without copying them if they are in memory. Fails like
    /// [`read_at`](Object::read_at).
    fn visit_at(&self, offset: u64, length: usize, visit: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        thread_local! {
            static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        }
        let mut bytes = BUFFER.take();
        if bytes.len() < length {
            bytes.resize(length, 0);
        }
        let bytes_read = &mut bytes[..length];
        self.read_at(offset, bytes_read)?;
        visit(bytes_read);
        if bytes.len() <= KEPT_BUFFER {
            BUFFER.set(bytes);
        }
        Ok(())
    }

    /// Returns the bytes of several ranges, read at the same time where the medium can. Fails like
    /// [`read_at`](Object::read_at).
    fn read_many(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        let read = |range: &Range<u64>| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            self.read_at(range.start, &mut bytes)?;
            Ok(bytes)
        };
        ranges.iter().map(read).collect()
    }

    /// Returns whether these bytes can be read without waiting for another machine.
    fn is_near(&self, _range: &Range<u64>) -> bool {
        true
    }

    /// Returns whether some bytes cannot be read without waiting for another machine, or may be so later.
    fn is_remote(&self) -> bool {
        false
    }

    /// Announces that this value is read at random positions, so that nothing after them is worth reading in advance.
    /// Other values for the same content are not affected. Does nothing where this makes no difference.
    fn expect_random_reads(&self) {}

    /// Drops copies of these bytes, which turned out to be damaged. Returns whether they may be different when they are
    /// read again, because these were a copy, or came over a network.
    fn forget(&self, _offset: u64, _length: usize) -> bool {
        false
    }
}

/// An open file with positioned reads and writes. Threads may share it.
///
/// Written bytes are durable only after [`sync_data`](File::sync_data). Before that, a power failure may preserve any
/// part of them, in any order. After a failed sync nothing is known about the bytes written since the last successful
/// one, and another attempt proves nothing: the operating system may have dropped the pages and report success the
/// next time.
///
/// # Errors
/// All methods fail if the operating system does.
#[expect(clippy::missing_errors_doc, reason = "stated once for all methods")]
pub trait File: Object {
    /// Writes all of `data` at `offset`. Bytes between the old end and `offset` become zero. After an error, part of
    /// the data may have been written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, size: u64) -> io::Result<()>;

    /// Makes contents and length durable.
    fn sync_data(&self) -> io::Result<()>;
}
