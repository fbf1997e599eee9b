//! Snapshots of a folder that another process may be changing.

use super::manifest;
use super::publish::MARKER_NAME;
use crate::files::{File, Folder, LOCK_FILE, MemoryFolder, open_read_only, read_whole};
use crate::wal;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Maximum number of attempts to open a folder that changes in the meantime, and the time between two attempts. An
/// attempt takes a millisecond. During imports, manifests change a few times per second, otherwise seldom.
const ATTEMPTS: u32 = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// Maximum size in bytes of a log file or a manifest. A log file ends after an entry with which it is full, and an entry
/// has at most [`wal::MAX_PAYLOAD`] bytes.
const MAX_IN_MEMORY: u64 = 2 * wal::MAX_PAYLOAD as u64;

/// The content of a folder as a crash at one moment would leave it. Changes are kept in memory: nothing is written to
/// the folder, and it is not locked.
#[derive(Debug)]
pub(super) struct SnapshotFolder {
    /// `None` if this is not a folder.
    path: Option<PathBuf>,
    /// The runs, kept open so that they can be read even after they are removed.
    runs: Mutex<BTreeMap<String, Arc<dyn File>>>,
    /// The log, the manifests, the marker, and files created through this folder.
    memory: Arc<MemoryFolder>,
}

impl SnapshotFolder {
    /// Returns a folder with these runs, and with the files in `memory`.
    pub(super) fn of(runs: BTreeMap<String, Arc<dyn File>>, memory: Arc<MemoryFolder>) -> Self {
        Self { path: None, runs: Mutex::new(runs), memory }
    }

    /// Reads the log and the manifests of a folder, and opens its other files.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        for _ in 0..ATTEMPTS {
            match Self::attempt(&path) {
                Ok(Some(folder)) => return Ok(folder),
                Ok(None) => {}
                // A file was removed after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            thread::sleep(PAUSE);
        }
        Err(io::Error::other("its files change too fast to be read"))
    }

    /// Tries to take a snapshot. Returns `None` if its files may be from different moments.
    fn attempt(path: &Path) -> io::Result<Option<Self>> {
        // The mark is the entry up to which the log must be complete, so it is read first. Entries that are added
        // later do no harm.
        let mark = match fs::read(path.join(wal::MARK_NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            mark => Some(mark?),
        };
        let before = names(path)?;
        let mut files = Vec::new();
        for name in before.iter().filter(|name| *name != wal::MARK_NAME && *name != LOCK_FILE) {
            files.push((name.clone(), open_read_only(&path.join(name))?));
        }
        // Files that only an old manifest needs are removed after it was replaced.
        let manifests = |names: Vec<String>| names.into_iter().filter_map(|name| manifest::number_of(&name));
        if !manifests(before).eq(manifests(names(path)?)) {
            return Ok(None);
        }
        let memory = Arc::new(MemoryFolder::default());
        if let Some(mark) = mark {
            memory.create(wal::MARK_NAME)?.write_at(0, &mark)?;
        }
        let mut runs = BTreeMap::new();
        for (name, file) in files {
            if wal::is_log_file(&name) || name == MARKER_NAME || manifest::number_of(&name).is_some() {
                let content = read_whole(&*file, &name, MAX_IN_MEMORY)?;
                memory.create(&name)?.write_at(0, &content)?;
            } else {
                runs.insert(name, file);
            }
        }
        Ok(Some(Self { path: Some(path.to_owned()), runs: Mutex::new(runs), memory }))
    }
}

/// Returns the names of the files in a folder, in ascending order.
fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    names.sort_unstable();
    Ok(names)
}

impl Folder for SnapshotFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.runs.lock().get(name) {
            return Ok(Arc::clone(file));
        }
        self.memory.open(name).map_err(|error| {
            let found = self.path.as_ref().and_then(|path| path.join(name).symlink_metadata().ok());
            match found {
                Some(metadata) if !metadata.is_file() => io::Error::other("it is not a file"),
                _ => error,
            }
        })
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.runs.lock().remove(name);
        self.memory.create(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.memory.list()?;
        names.extend(self.runs.lock().keys().cloned());
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.runs.lock().remove(name) {
            Some(_) => Ok(()),
            None => self.memory.remove(name),
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn is_volatile(&self) -> bool {
        false
    }
}
