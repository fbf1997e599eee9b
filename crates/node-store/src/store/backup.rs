//! Backup of a folder while it is in use.
//!
//! A backup is a copy of what a crash at one moment would have left: all runs, and the log entries that are not in
//! runs. Opening the copy applies these entries, as after a crash. Runs never change, so the chain may change while
//! they are copied; writers wait only while the few entries are read. Runs that an older backup has, in a folder beside
//! the new one, are not copied: both get the same files, by hard links.

use super::manifest::{self, Listed, Manifest};
use super::{BASE_FOLDER, Shared, Store};
use crate::error::StoreError;
use crate::files::{
    DiskFolder, Folder, FolderError, LOCK_FILE, ReadOnlyFolder, create_folder, open_read_only, rename_folder,
    sync_folder,
};
use crate::rows::{Part, Tables};
use crate::runs::{Run, RunId, RunsShared};
use crate::wal::{self, Wal, WalError};
use node_core::block::BlockRef;
use node_core::context::{Context, Interrupted};
use node_types::H256;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Bytes after which the thread yields, reports progress and checks for cancellation. Without yielding, a thread keeps
/// its core for milliseconds even if its priority is low.
const STEP: usize = 64 << 10;

/// Rows that are read before a thread yields and checks for cancellation.
const ROWS_STEP: u64 = 512;

/// The content of a finished backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The newest block of the copy.
    pub head: BlockRef,
    /// Number of rows that were copied.
    pub rows: u64,
    /// Number of log entries in the copy, which are not in its runs.
    pub log_entries: u64,
    /// Bytes of the runs that the copy shares with an older one.
    pub shared_bytes: u64,
}

/// The progress of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// Number of rows that were copied.
    pub rows: u64,
    /// Number of rows to copy.
    pub of: u64,
}

/// Why a backup failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The destination exists and is not an empty folder.
    #[error("{path} exists and is not an empty folder; choose a new folder, beside older copies to share their files")]
    Exists { path: PathBuf },
    /// The destination is a mounted file system.
    #[error("{path} is a mount point, which the finished copy cannot replace; choose a folder inside it")]
    MountPoint { path: PathBuf },
    /// The destination is inside the folder of the chain.
    #[error("{path} is inside the folder {folder} of the chain")]
    Inside { path: PathBuf, folder: PathBuf },
    /// The folder of the unfinished copy contains another file.
    #[error("{path} contains the file {file}, which is not part of an unfinished backup")]
    Foreign { path: PathBuf, file: String },
    /// Another backup to the same destination is running.
    #[error("another backup is being written to {path}")]
    Running { path: PathBuf },
    /// The disk of the destination is full.
    #[error("there is no space left for {path}")]
    NoSpace { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// The copy cannot be written.
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// The store cannot be read.
    #[error("cannot read the chain")]
    Read(#[source] StoreError),
    /// The backup was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// The failed operation.
#[derive(Debug)]
pub(crate) enum Failure {
    Read(StoreError),
    Write(StoreError),
    Interrupted(Interrupted),
}

impl Store {
    /// Copies the folder to `dest`, which must either not exist or be an empty folder. The copy is a consistent
    /// snapshot taken after the call, with every change that was acknowledged before it. Until it is complete and
    /// durable, its name ends with `.part`. Others may read and write in the meantime, and are delayed by a
    /// few milliseconds at most.
    ///
    /// If the folder that contains `dest` has an older backup of the same chain, files that did not change since are not
    /// copied but hard-linked, after their content was compared. Either backup can be deleted.
    ///
    /// Calls `progress` regularly.
    ///
    /// # Errors
    /// A [`BackupError`], after which nothing of the copy is left. If the process is killed, an unfinished copy
    /// remains, which the next backup to the same destination replaces.
    pub fn backup(
        &self,
        dest: &Path,
        context: &Context,
        progress: impl FnMut(BackupProgress),
    ) -> Result<Backup, BackupError> {
        self.backup_with(dest, context, progress, |_| Ok(()))
    }

    /// Like [`Self::backup`], and calls `add` with the path of the unfinished copy once the chain is in it. It may add the
    /// folder [`BASE_FOLDER`], which becomes part of the copy: all of it is there, or nothing is.
    ///
    /// # Errors
    /// Those of [`Self::backup`], and [`BackupError::Write`] with the error of `add`.
    pub fn backup_with(
        &self,
        dest: &Path,
        context: &Context,
        progress: impl FnMut(BackupProgress),
        add: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Backup, BackupError> {
        let place = Place::new(dest, self.folder().path())?;
        let folder = place.begin()?;
        let older = Older::beside(&place, self.folder().path(), self.shared.archive.meta().map(|meta| meta.genesis));
        let copied = self.backup_in(folder.clone(), &older, context, progress);
        let done = copied.map_err(|failure| place.explain(failure)).and_then(|backup| {
            add(&place.part).map_err(|source| failure(&place.dest, StoreError::File(source)))?;
            place.finish()?;
            Ok(backup)
        });
        if done.is_err() {
            // The lock is held until all errors of the destination are known, so that they are not caused by another
            // copy.
            let _ = fs::remove_dir_all(&place.part);
        }
        done
    }

    /// Copies into an empty folder.
    pub(crate) fn backup_in(
        &self,
        dest: Arc<dyn Folder>,
        older: &Older,
        context: &Context,
        mut progress: impl FnMut(BackupProgress),
    ) -> Result<Backup, Failure> {
        let StoreSnapshot { manifest, tables, tail, head } = self.shared.snapshot().map_err(Failure::Read)?;
        let log = Wal::open(Arc::clone(&dest), manifest.meta.logged, self.shared.options.log).map_err(written)?;
        for entry in &tail {
            log.append(entry).map_err(written)?;
        }
        log.sync().map_err(written)?;
        drop(log);

        let rows = tables.parts().map(rows_of).sum();
        let (mut copied, mut shared_bytes) = (0, 0);
        for part in tables.parts() {
            let mut check = |share| {
                context.check().map_err(Failure::Interrupted)?;
                progress(BackupProgress { rows: copied + share, of: rows });
                Ok(())
            };
            if older.link(&part.run, &*dest, || check(0))? {
                shared_bytes += part.run.size();
            } else {
                copy(part, &*dest, check)?;
            }
            copied += rows_of(part);
        }
        dest.sync().map_err(StoreError::File).map_err(Failure::Write)?;
        // The manifest comes last, because it makes the folder a store.
        manifest.write(&*dest).map_err(StoreError::File).map_err(Failure::Write)?;
        Ok(Backup { head, rows, log_entries: tail.len() as u64, shared_bytes })
    }
}

/// Older backups of the same chain, whose runs a new one may share.
#[derive(Default)]
pub(crate) struct Older {
    /// Their folders, the newest first, each with the runs in it.
    folders: Vec<(PathBuf, Vec<Listed>)>,
}

impl Older {
    /// Finds the backups beside `place` of the chain with the genesis block `genesis`. The folder `source` of the chain
    /// itself is not one of them: a fault of its disk must not reach a backup.
    fn beside(place: &Place, source: Option<&Path>, genesis: Option<H256>) -> Self {
        let others = place.dest.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten();
        let paths = others.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
        let mut found: Vec<_> = paths
            .filter(|path| path.is_dir() && Some(&**path) != source && path.extension() != Some("part".as_ref()))
            .filter_map(|path| {
                // Folders that are not backups are left out.
                let manifest = Manifest::read(&ReadOnlyFolder::open(&path).ok()?).ok()??;
                (Some(manifest.meta.genesis) == genesis).then_some((manifest, path))
            })
            .collect();
        found.sort_by_key(|(manifest, _)| std::cmp::Reverse(manifest.number));
        let runs = |(manifest, path): (Manifest, PathBuf)| (path, [manifest.numbered, manifest.keyed].concat());
        Self { folders: found.into_iter().map(runs).collect() }
    }

    /// Links the file of `run` to `dest`, if an older backup has the same one. Returns whether it does. Runs never
    /// change, but another process may have used the same id, or a disk may have damaged the older file; so the contents
    /// are compared. Calls `check` regularly.
    fn link(
        &self,
        run: &Run,
        dest: &dyn Folder,
        mut check: impl FnMut() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Some(dest) = dest.path() else { return Ok(false) };
        let name = run.id().file_name();
        let has = |runs: &[Listed]| runs.iter().any(|listed| listed.id == run.id() && listed.size == run.size());
        for (folder, _) in self.folders.iter().filter(|(_, runs)| has(runs)) {
            let file = folder.join(&name);
            // A file system without hard links gets a copy.
            if is_same(run, &file, &mut check)? && fs::hard_link(&file, dest.join(&name)).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns whether `file` has the content of `run`.
fn is_same(run: &Run, file: &Path, check: &mut dyn FnMut() -> Result<(), Failure>) -> Result<bool, Failure> {
    let Ok(file) = open_read_only(file) else { return Ok(false) };
    if file.size().ok() != Some(run.size()) {
        return Ok(false);
    }
    let [mut ours, mut theirs] = [vec![0; STEP], vec![0; STEP]];
    let mut at = 0;
    while at < run.size() {
        let length = usize::try_from(run.size() - at).unwrap_or(usize::MAX).min(STEP);
        run.read_at(at, &mut ours[..length]).map_err(read)?;
        if file.read_at(at, &mut theirs[..length]).is_err() || ours[..length] != theirs[..length] {
            return Ok(false);
        }
        at += length as u64;
        thread::yield_now();
        check()?;
    }
    Ok(true)
}

struct StoreSnapshot {
    manifest: Manifest,
    tables: Arc<Tables>,
    /// The log entries that are not in runs.
    tail: Vec<Vec<u8>>,
    head: BlockRef,
}

impl Shared {
    /// Takes a snapshot. Writes memory to runs first, so that few entries of the log remain.
    fn snapshot(&self) -> Result<StoreSnapshot, StoreError> {
        self.flush()?;
        let mut writer = self.writer.lock();
        self.wait_for_flusher(&mut writer);
        self.check(&writer)?;
        self.log.sync()?;
        let (manifest, tables) = self.archive.listed().ok_or(StoreError::NoChain)?;
        // No flush can drop these entries, because it would need the lock.
        let entries = self.log.entries_after(manifest.meta.logged);
        let tail = entries.map(|entry| entry.map(|entry| entry.payload)).collect::<Result<_, WalError>>()?;
        let head = self.current.read().head;
        Ok(StoreSnapshot { manifest, tables, tail, head })
    }
}

fn rows_of(part: &Part) -> u64 {
    part.run.properties().tables.iter().map(|size| size.rows).sum()
}

/// Copies the file of a run durably, and reads all rows of the copy, because the run may be damaged. Calls `check`
/// regularly with the approximate number of copied rows.
fn copy(part: &Part, dest: &dyn Folder, mut check: impl FnMut(u64) -> Result<(), Failure>) -> Result<(), Failure> {
    let (run, rows) = (&part.run, rows_of(part));
    let file = dest.create(&run.id().file_name()).map_err(written)?;
    let mut buffer = vec![0; STEP];
    let mut at = 0;
    while at < run.size() {
        let left = usize::try_from(run.size() - at).unwrap_or(usize::MAX);
        let bytes = &mut buffer[..left.min(STEP)];
        run.read_at(at, bytes).map_err(read)?;
        file.write_at(at, bytes).map_err(written)?;
        at += bytes.len() as u64;
        thread::yield_now();
        check((u128::from(rows) * u128::from(at) / u128::from(run.size())) as u64)?;
    }
    file.sync_data().map_err(written)?;
    let copy = Arc::new(Run::read(file, run.id(), RunsShared::new(0)).map_err(read)?);
    let mut cursor = copy.scan(&[]).map_err(read)?;
    let mut seen = 0;
    while let Some(row) = &mut cursor {
        seen += 1;
        if seen % ROWS_STEP == 0 {
            thread::yield_now();
            check(rows)?;
        }
        if !row.advance().map_err(read)? {
            return Ok(());
        }
    }
    Ok(())
}

fn read(error: impl Into<StoreError>) -> Failure {
    Failure::Read(error.into())
}

fn written(error: impl Into<StoreError>) -> Failure {
    Failure::Write(error.into())
}

/// Checks that `dest` can become a copy of the folder `source`, whose symbolic links are resolved: that it does not
/// exist or is an empty folder that can be replaced, and is not inside `source`, which is `None` if the source is in
/// memory. Returns its absolute path without a separator at the end.
fn check_destination(dest: &Path, source: Option<&Path>) -> Result<PathBuf, BackupError> {
    let failed = |error| failure(dest, StoreError::File(error));
    let path = dest.to_owned();
    let place = std::path::absolute(dest).map_err(failed)?;
    let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(BackupError::Exists { path });
    };
    check_outside(dest, source)?;
    let place = parent.join(name);
    let found = match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(place),
        found => found.map_err(failed)?,
    };
    if !found.is_dir() || fs::read_dir(&place).map_err(failed)?.next().is_some() {
        return Err(BackupError::Exists { path });
    }
    // The finished copy is renamed to `dest`, which replaces an empty folder, but not a mounted file system.
    if fs::metadata(parent).map_err(failed)?.dev() != found.dev() {
        return Err(BackupError::MountPoint { path });
    }
    Ok(place)
}

/// Checks that `dest`, which need not exist, is not inside the folder `source`, whose symbolic links are resolved.
///
/// # Errors
/// [`BackupError::Inside`], and [`BackupError::Write`] if this cannot be determined.
pub fn check_outside(dest: &Path, source: Option<&Path>) -> Result<(), BackupError> {
    let place = std::path::absolute(dest).map_err(|error| failure(dest, StoreError::File(error)))?;
    let above = place.ancestors().skip(1).find_map(|above| above.canonicalize().ok());
    match (source, above) {
        (Some(folder), Some(above)) if above.starts_with(folder) => {
            Err(BackupError::Inside { path: dest.to_owned(), folder: folder.to_owned() })
        }
        _ => Ok(()),
    }
}

struct Place {
    /// Path of the finished copy.
    dest: PathBuf,
    /// Path of the unfinished copy.
    part: PathBuf,
}

impl Place {
    fn new(dest: &Path, source: Option<&Path>) -> Result<Self, BackupError> {
        let failed = |source| failure(dest, StoreError::File(source));
        // Checked before any folder is created, and again for the real path of the folder.
        let dest = check_destination(dest, source)?;
        let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else {
            return Err(BackupError::Exists { path: dest });
        };
        create_folder(parent, &mut sync_folder).map_err(failed)?;
        let dest = check_destination(&parent.canonicalize().map_err(failed)?.join(name), source)?;
        let mut part = dest.clone().into_os_string();
        part.push(".part");
        Ok(Self { dest, part: part.into() })
    }

    /// Creates the folder, or empties the one left by a killed process.
    fn begin(&self) -> Result<Arc<DiskFolder>, BackupError> {
        let folder = DiskFolder::open(&self.part).map_err(|error| match error {
            FolderError::Locked { path } => BackupError::Running { path },
            error => failure(&self.part, error.into()),
        })?;
        let failed = |source| failure(&self.part, StoreError::File(source));
        let names = folder.list().map_err(failed)?.into_iter().filter(|name| name != LOCK_FILE);
        let (bases, files): (Vec<_>, Vec<_>) = names.partition(|name| name == BASE_FOLDER);
        let is_ours = |name: &str| {
            RunId::of_file_name(name).is_some() || manifest::number_of(name).is_some() || wal::is_log_file(name)
        };
        if let Some(file) = files.iter().find(|name| !is_ours(name)) {
            return Err(BackupError::Foreign { path: self.part.clone(), file: file.clone() });
        }
        bases.iter().try_for_each(|name| fs::remove_dir_all(self.part.join(name))).map_err(failed)?;
        files.iter().try_for_each(|name| folder.remove(name)).map_err(failed)?;
        Ok(Arc::new(folder))
    }

    /// Renames the copy durably.
    fn finish(&self) -> Result<(), BackupError> {
        rename_folder(&self.part, &self.dest).map_err(|source| failure(&self.dest, StoreError::File(source)))
    }

    fn explain(&self, error: Failure) -> BackupError {
        match error {
            Failure::Read(error) => BackupError::Read(error),
            Failure::Write(error) => failure(&self.dest, error),
            Failure::Interrupted(interrupted) => interrupted.into(),
        }
    }
}

/// Returns the error for a copy that cannot be written.
fn failure(path: &Path, error: StoreError) -> BackupError {
    let path = path.to_owned();
    match error.io().map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            BackupError::NoSpace { path, source: Box::new(error) }
        }
        _ => BackupError::Write { path, source: Box::new(error) },
    }
}
