//! The port to the disk: one folder of flat files.
//!
//! The database and the write-ahead log reach the disk through it and nothing else, so that a test can cut the power
//! under both at once.

mod checksums;
mod database;
mod disk;
#[cfg(any(test, feature = "test-faults"))]
pub mod faults;

pub use database::DatabaseFile;
pub use disk::{DiskFolder, FolderError};
pub(crate) use disk::{LOCK_FILE, create_folder, sync_folder};

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A folder of flat files. A name holds no separator.
///
/// What was created or removed is durable only after [`sync`](Folder::sync).
pub trait Folder: Debug + Send + Sync {
    /// Opens a file; [`io::ErrorKind::NotFound`] if there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Creates an empty file, or empties the one there is.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// The names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes a file; [`io::ErrorKind::NotFound`] if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable, not the content of the files.
    fn sync(&self) -> io::Result<()>;

    /// Where it is, with every link followed; none if it is no folder of the operating system.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// An open file with positioned reads and writes, which threads may share.
///
/// What was written is durable only after [`sync_data`](File::sync_data). Until then a power cut may keep any part
/// of it, in any order. After a failed sync nothing is known of what was written since the last one that succeeded,
/// and trying again proves nothing: the operating system may have dropped the pages and call the next sync a success.
pub trait File: Debug + Send + Sync {
    /// The length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data`; bytes between the old end and `offset` become zero. On an error a part may be written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, size: u64) -> io::Result<()>;

    /// Makes content and length durable.
    fn sync_data(&self) -> io::Result<()>;
}
