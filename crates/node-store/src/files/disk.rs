//! The [`Folder`] port on a folder of the operating system.

use super::{File, Folder, Object};
#[cfg(target_os = "linux")]
use node_core::waiting;
#[cfg(target_os = "linux")]
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that is locked to exclude other processes. It remains when the folder is closed; only the lock matters.
pub(crate) const LOCK_FILE: &str = "lock";

/// A folder of the operating system, open in one process at a time.
///
/// If the folder is moved or removed while it is open, opening, creating, listing, removing and syncing fail, even if
/// another folder has taken its path. They succeed again when it is moved back. Files that are already open can be read
/// and written in either case.
#[derive(Debug)]
pub struct DiskFolder {
    path: PathBuf,
    /// The folder itself. Its lock ends when this is closed.
    folder: fs::File,
    /// Kept open for its lock.
    _lock_file: fs::File,
}

impl DiskFolder {
    /// Opens the folder, creating it and its parents if necessary, and locks it until this value is dropped.
    ///
    /// # Errors
    /// [`FolderError::Locked`] if another process has the folder open, and [`FolderError::Io`] if the operating
    /// system reports an error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let path = path.into();
        let failed = |source| FolderError::Io { path: path.clone(), source };
        create_folder(&path, &mut sync_folder).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        // Somebody may remove the lock file, and another process would then lock a new one. The folder cannot be
        // removed as long as it has files. File systems that cannot lock folders, such as NFS, still lock the file.
        let folder = fs::File::open(&path).map_err(failed)?;
        if matches!(folder.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(FolderError::Locked { path });
        }
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).open(path.join(LOCK_FILE)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, folder, _lock_file: lock }),
            Err(TryLockError::WouldBlock) => Err(FolderError::Locked { path }),
            Err(TryLockError::Error(source)) => Err(FolderError::Io { path, source }),
        }
    }

    /// Returns the path of the folder, with symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path, after checking that it leads to the locked folder: another process may have locked a folder
    /// that took its place.
    fn locked_path(&self) -> io::Result<&Path> {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let locked = identity(self.folder.metadata()?);
        match fs::metadata(&self.path).map(identity) {
            Ok(found) if found == locked => Ok(&self.path),
            // Not `NotFound`, which would mean that a file is missing.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(io::Error::other(format!(
                "{} was moved, removed or replaced while it was open",
                self.path.display()
            ))),
        }
    }
}

impl Folder for DiskFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(self.locked_path()?.join(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.locked_path()?.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.locked_path()?)? {
            // The names of the store's files are valid UTF-8.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.locked_path()?.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        // If the folder was replaced after a file was created, the file may be in the other folder.
        self.locked_path()?;
        self.folder.sync_all()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn is_volatile(&self) -> bool {
        false
    }
}

/// Creates a folder and its missing parents. Each new name is synced, by calling `sync` with the folder that contains
/// it, before the next one is created. The name of the innermost existing folder is synced as well, because an
/// interrupted call may have created it.
pub(crate) fn create_folder(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    let mut existing = &*path;
    while !existing.is_dir() {
        missing.push(existing);
        let Some(parent) = existing.parent() else { break };
        existing = parent;
    }
    // Symbolic links are resolved, because the name of a folder is in the parent of the real folder.
    if let Some(parent) = existing.canonicalize()?.parent() {
        match sync(parent) {
            // This process did not create a folder that it cannot read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            done => done?,
        }
    }
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            created => created?,
        }
        if let Some(parent) = folder.parent() {
            sync(parent)?;
        }
    }
    Ok(())
}

/// Renames a folder durably.
pub(crate) fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    std::path::absolute(to)?.parent().map_or(Ok(()), sync_folder)
}

pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

pub(crate) fn open_read_only(path: &Path) -> io::Result<Arc<dyn File>> {
    Ok(Arc::new(DiskFile(fs::File::open(path)?)))
}

/// Fills `buffer` from the page cache. Returns whether all of it was there, or `None` if the file system cannot tell,
/// or the read fails.
#[cfg(target_os = "linux")]
fn read_cached(file: &fs::File, offset: u64, buffer: &mut [u8]) -> Option<bool> {
    let length = buffer.len();
    match rustix::io::preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) => Some(read == length),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

#[derive(Debug)]
struct DiskFile(fs::File);

impl Object for DiskFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !waiting::is_allowed() {
            match read_cached(&self.0, offset, buffer) {
                Some(true) => return Ok(()),
                Some(false) => return Err(waiting::refuse()),
                None => {}
            }
        }
        self.0.read_exact_at(buffer, offset)
    }

    /// A row is in a few kilobytes. The kernel would read several times as much around it, and drop other pages for it.
    #[cfg(target_os = "linux")]
    fn expect_random_reads(&self) {
        // Where the file system refuses the hint, reads are only slower.
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::Random);
    }
}

impl File for DiskFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Why a folder cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Another process, or another part of this process, has opened it.
    #[error("the folder is in use by another process")]
    Locked { path: PathBuf },
    /// The operating system reported an error.
    #[error("cannot open the folder")]
    Io { path: PathBuf, source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_cannot_be_opened_twice_at_once() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("above").join("data");
        let first = DiskFolder::open(&path).unwrap();
        let refused = DiskFolder::open(&path).unwrap_err();
        assert!(matches!(refused, FolderError::Locked { .. }), "{refused:?}");
        // Whichever of the two is locked.
        fs::remove_file(path.join(LOCK_FILE)).unwrap();
        let refused = DiskFolder::open(&path).unwrap_err();
        assert!(matches!(refused, FolderError::Locked { .. }), "{refused:?}");
        drop(first);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(path.join(LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        let refused = DiskFolder::open(&path).unwrap_err();
        assert!(matches!(refused, FolderError::Locked { .. }), "{refused:?}");
        drop(lock);
        DiskFolder::open(&path).unwrap();
    }

    #[test]
    fn a_folder_that_was_moved_or_replaced_fails_until_it_is_back() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        let [path, moved, other] = ["data", "moved", "other"].map(|name| root.join(name));
        let folder = DiskFolder::open(&path).unwrap();
        let file = folder.create("a").unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a"), "theirs").unwrap();
        let fails = || {
            let failures = [
                folder.open("a").err(),
                folder.create("a").err(),
                folder.create("b").err(),
                folder.list().err(),
                folder.remove("a").err(),
                folder.sync().err(),
            ];
            let text = format!("{} was moved, removed or replaced while it was open", path.display());
            for failure in failures {
                let failure = failure.unwrap();
                assert_eq!((failure.kind(), failure.to_string()), (io::ErrorKind::Other, text.clone()));
            }
        };

        fs::rename(&path, &moved).unwrap();
        fails();
        fs::rename(&other, &path).unwrap();
        fails();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "theirs");
        file.write_at(0, b"ours").unwrap();
        assert_eq!(fs::read_to_string(moved.join("a")).unwrap(), "ours");

        fs::rename(&path, &other).unwrap();
        fs::rename(&moved, &path).unwrap();
        folder.create("b").unwrap();
        folder.remove("a").unwrap();
        folder.sync().unwrap();
        folder.open("b").unwrap();
        assert_eq!(folder.list().unwrap().len(), 2);
    }

    #[test]
    fn the_name_of_each_new_folder_is_synced_after_it_was_created() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        let path = root.join("a").join("b").join("c");
        let mut synced = Vec::new();
        create_folder(&path, &mut |folder| {
            let names: Vec<_> = fs::read_dir(folder)?.map(|entry| entry.unwrap().file_name()).collect();
            synced.push((folder.to_owned(), names));
            Ok(())
        })
        .unwrap();
        assert_eq!(synced.remove(0).0, root.parent().unwrap());
        let expected = [(root.clone(), "a"), (root.join("a"), "b"), (root.join("a/b"), "c")];
        assert_eq!(synced, expected.map(|(folder, name)| (folder, vec![name.into()])));

        let mut synced = Vec::new();
        create_folder(&path, &mut |folder| {
            synced.push(folder.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(synced, [root.join("a/b")]);

        fs::write(root.join("file"), []).unwrap();
        assert!(create_folder(&root.join("file").join("d"), &mut sync_folder).is_err());
    }

    #[test]
    fn creates_lists_and_removes_files() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = DiskFolder::open(temporary.path()).unwrap();
        assert_eq!(folder.open("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = folder.create("a").unwrap();
        file.write_at(3, b"xyz").unwrap();
        file.sync_data().unwrap();
        folder.sync().unwrap();
        let mut read = [9; 6];
        folder.open("a").unwrap().read_at(0, &mut read).unwrap();
        assert_eq!(&read, b"\0\0\0xyz");
        assert_eq!(file.read_at(1, &mut read).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        file.set_len(4).unwrap();
        assert_eq!(file.size().unwrap(), 4);
        assert_eq!(folder.create("a").unwrap().size().unwrap(), 0);
        folder.remove("a").unwrap();
        assert_eq!(folder.list().unwrap(), [LOCK_FILE]);
        assert_eq!(folder.remove("a").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
