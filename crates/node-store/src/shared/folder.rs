//! Objects in a folder of the operating system.

use super::objects::{Creation, Fault, Objects, ObjectsError, PAGE, short};
use crate::files::{Object, create_folder, sync_folder};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The folder of files that are being written.
const UNFINISHED: &str = "unfinished";

/// Time after which a file that is still being written was left by a process that ended.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of bytes copied at a time.
const COPY: usize = 1 << 20;

/// The [`Objects`] port in a folder. Several processes may use it at the same time, also from several machines if the
/// file system creates hard links atomically, as NFS does.
///
/// An object is written to a file of another name, which is synced and then linked to its own name. The link fails if
/// the name exists.
#[derive(Debug)]
pub struct FolderObjects {
    path: PathBuf,
    /// Number of files that this value began to write.
    begun: AtomicU64,
    /// The folders that exist. One that disappears is not created again: the store was removed, or its file system is no
    /// longer mounted, and whoever goes on writing would write to a place that no one reads.
    existing: Mutex<BTreeSet<PathBuf>>,
}

impl FolderObjects {
    /// Opens the folder. Creates nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), begun: AtomicU64::new(0), existing: Mutex::default() }
    }

    /// Removes files that processes left when they were killed.
    ///
    /// # Errors
    /// If the operating system reports an error.
    pub fn remove_abandoned(&self) -> io::Result<()> {
        let files = match fs::read_dir(self.path.join(UNFINISHED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            files => files?,
        };
        for file in files {
            let file = file?;
            let age = SystemTime::now().duration_since(file.metadata()?.modified()?);
            if age.is_ok_and(|age| age > ABANDONED) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, ObjectsError> {
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('\0');
        if name.split('/').all(is_plain) {
            Ok(self.path.join(name))
        } else {
            Err(ObjectsError::new(Fault::Permanent, "access", name, "it is not the name of an object"))
        }
    }

    /// Creates a folder, unless it has existed before.
    fn require_folder(&self, folder: &Path) -> io::Result<()> {
        let mut existing = self.existing.lock();
        if folder.is_dir() {
            if !existing.contains(folder) {
                existing.insert(folder.to_owned());
            }
            return Ok(());
        }
        if existing.contains(folder) {
            let text = format!("the folder {} no longer exists", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        create_folder(folder, &mut sync_folder)?;
        existing.insert(folder.to_owned());
        Ok(())
    }

    /// Writes an object with `write`, and links it to its name.
    fn link(&self, path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<Creation> {
        let (folder, unfinished) = (path.parent().unwrap_or(&self.path), self.path.join(UNFINISHED));
        for folder in [&self.path, folder, &unfinished] {
            self.require_folder(folder)?;
        }
        // A process of another machine may have the same number.
        let (temporary, mut file) = loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let temporary = unfinished.join(format!("{}-{number}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => break (temporary, file?),
            }
        };
        let linked = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&temporary, path));
        let removed = fs::remove_file(&temporary);
        let creation = match linked {
            Ok(()) => Creation::Created,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Creation::Exists,
            Err(error) => return Err(error),
        };
        // If the name exists, the process that created it may not have synced it yet.
        sync_folder(folder)?;
        removed?;
        Ok(creation)
    }
}

/// Returns the error of writing an object. A folder that has disappeared does not return by itself.
fn failure(action: &'static str, name: &str, error: io::Error) -> ObjectsError {
    match error.kind() {
        io::ErrorKind::NotFound => ObjectsError::new(Fault::Permanent, action, name, error),
        _ => ObjectsError::io(action, name, error),
    }
}

/// Returns `None` if the file was not found.
fn found<T>(action: &'static str, name: &str, result: io::Result<T>) -> Result<Option<T>, ObjectsError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some).map_err(|error| ObjectsError::io(action, name, error)),
    }
}

impl Objects for FolderObjects {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        let path = self.path_of(name)?;
        let created = match path.try_exists() {
            // Saves writing the bytes.
            Ok(true) => sync_folder(path.parent().unwrap_or(&self.path)).map(|()| Creation::Exists),
            _ => self.link(&path, |file| file.write_all(bytes)),
        };
        created.map_err(|error| failure("create", name, error))
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        let path = self.path_of(name)?;
        let failed = |error| failure("upload", name, error);
        let size = content.size().map_err(failed)?;
        if self.size(name)? == Some(size) {
            return sync_folder(path.parent().unwrap_or(&self.path)).map_err(failed);
        }
        let copy = |file: &mut File| {
            let mut buffer = vec![0; COPY.min(size as usize)];
            let mut offset = 0;
            while offset < size {
                let length = usize::try_from(size - offset).map_or(COPY, |left| left.min(COPY));
                content.read_at(offset, &mut buffer[..length])?;
                file.write_all(&buffer[..length])?;
                offset += length as u64;
            }
            Ok(())
        };
        match self.link(&path, copy).map_err(failed)? {
            // Another process uploaded it in the meantime.
            Creation::Exists if self.size(name)? != Some(size) => {
                Err(ObjectsError::new(Fault::Permanent, "upload", name, "an object of another size has this name"))
            }
            _ => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        found("read", name, fs::read(self.path_of(name)?))
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        let Some(file) = found("read", name, File::open(self.path_of(name)?))? else { return Ok(None) };
        let size = file.metadata().map_err(|error| ObjectsError::io("read", name, error))?.len();
        let part = |range: &Range<u64>| {
            // The length is checked before memory is allocated for it.
            let length = range.end.checked_sub(range.start).filter(|_| range.end <= size);
            let mut bytes = vec![0; length.ok_or_else(|| short(name))? as usize];
            file.read_exact_at(&mut bytes, range.start).map_err(|error| ObjectsError::io("read", name, error))?;
            Ok(bytes)
        };
        ranges.iter().map(part).collect::<Result<_, _>>().map(Some)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        Ok(found("read", name, fs::metadata(self.path_of(name)?))?.map(|metadata| metadata.len()))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        let Some(files) = found("list", folder, fs::read_dir(self.path_of(folder)?))? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for file in files {
            let file = file.map_err(|error| ObjectsError::io("list", folder, error))?;
            // The names of objects are valid UTF-8.
            let name = file.file_name().into_string().map(|name| format!("{folder}/{name}"));
            names.extend(name.ok().filter(|name| after.is_none_or(|after| name.as_str() > after)));
        }
        names.sort_unstable();
        names.truncate(PAGE);
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        found("delete", name, fs::remove_file(self.path_of(name)?)).map(drop)
    }
}
