//! A folder of the operating system that another process may have open.

use super::{File, Folder, naming, open_read_only};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that is only read, while another process may write to it. It is not locked, and needs only permission to read.
#[derive(Debug)]
pub struct ReadOnlyFolder {
    path: PathBuf,
    /// Device and number of the folder.
    identity: (u64, u64),
}

impl ReadOnlyFolder {
    /// Opens the folder.
    ///
    /// # Errors
    /// If there is no folder, or it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    }

    /// Returns whether the path still leads to the same folder.
    pub(crate) fn is_current(&self) -> io::Result<bool> {
        let found = fs::metadata(&self.path)?;
        Ok((found.dev(), found.ino()) == self.identity)
    }

    fn refused<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the folder is open for reading only"))
    }
}

impl Folder for ReadOnlyFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        open_read_only(&self.path.join(name)).map_err(|error| naming(name, &error))
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn File>> {
        Self::refused()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Self::refused()
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_volatile(&self) -> bool {
        false
    }
}
