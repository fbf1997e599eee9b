//! Copying a folder while it is in use.
//!
//! A copy is what a crash at one moment would have left: the database after a commit, and the entries of the log that
//! the database does not have. Opening the copy repeats the changes of these entries, as after a crash. So the chain
//! may change while rows are copied; writers wait only while the few entries are read.

use super::meta::{META, Meta, RECORDS, SIDE_BLOCKS};
use super::open::{CHECKSUMS, DATABASE};
use super::{Shared, Store};
use crate::error::StoreError;
use crate::files::{DatabaseFile, DiskFolder, Folder, FolderError, LOCK_FILE, create_folder, sync_folder};
use crate::keys::Table;
use crate::rows::definition;
use crate::wal::{self, Wal, WalError};
use node_core::block::BlockRef;
use node_core::context::{Context, Interrupted};
use redb::{
    Database, Key as RowKey, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Bytes of rows per commit of the copy, which is how much is in memory at a time.
const COMMIT_BYTES: usize = 16 << 20;

/// Number of rows after which the thread yields, reports progress and checks for cancellation. Without yielding, a
/// thread occupies its core for milliseconds even if its priority is low.
const STEP: u64 = 64;

/// A finished copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The newest block of the copy.
    pub head: BlockRef,
    /// Number of rows that were copied.
    pub rows: u64,
    /// Number of entries of the log that the copy's database does not have.
    pub log_entries: u64,
}

/// The progress of a copy.
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
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum BackupError {
    /// The destination exists and is not an empty folder.
    #[error("{path} exists and is not an empty folder")]
    Exists { path: PathBuf },
    /// The destination is inside the folder that is copied.
    #[error("{path} is inside the folder {folder} that would be copied")]
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
    /// Copies the folder to `dest`, which must not exist or be an empty folder. The copy is of one moment after the
    /// call, with every change that was acknowledged before. Until it is complete and durable, its name ends with
    /// `.part`. Others may read and write meanwhile, and wait for milliseconds.
    ///
    /// Calls `progress` regularly.
    ///
    /// # Errors
    /// After an error, nothing of the copy is left. If the process is killed, it leaves a folder with the name of an
    /// unfinished copy, which the next backup to the same destination replaces.
    pub fn backup(
        &self,
        dest: &Path,
        context: &Context,
        progress: impl FnMut(BackupProgress),
    ) -> Result<Backup, BackupError> {
        let place = Place::new(dest, self.folder().path())?;
        let folder = place.begin()?;
        let copied = self.backup_in(folder.clone(), context, progress);
        let done = copied.map_err(|failure| place.explain(failure)).and_then(|backup| {
            place.finish()?;
            Ok(backup)
        });
        if done.is_err() {
            // All errors of the destination are known by now. The lock is held until here, so that the errors are not
            // about another copy.
            let _ = fs::remove_dir_all(&place.part);
        }
        done
    }

    /// Copies into an empty folder.
    pub(crate) fn backup_in(
        &self,
        dest: Arc<dyn Folder>,
        context: &Context,
        mut progress: impl FnMut(BackupProgress),
    ) -> Result<Backup, Failure> {
        let StoreSnapshot { transaction, meta, tail, head } = self.shared.snapshot().map_err(Failure::Read)?;
        let log = Wal::open(Arc::clone(&dest), meta.logged, self.shared.options.log).map_err(written)?;
        for entry in &tail {
            log.append(entry).map_err(written)?;
        }
        log.sync().map_err(written)?;
        drop(log);

        let of = rows_of(&transaction).map_err(Failure::Read)?;
        let file = DatabaseFile::open(&*dest, DATABASE, CHECKSUMS).map_err(StoreError::File).map_err(Failure::Write)?;
        let mut builder = Database::builder();
        let database = builder.set_cache_size(4 * COMMIT_BYTES).create_with_backend(file).map_err(written)?;
        let mut copy = Copy { from: &transaction, to: &database, context, progress: &mut progress, rows: 0, of };
        for table in Table::ALL {
            copy.table(definition(table))?;
        }
        copy.table(SIDE_BLOCKS)?;
        copy.table(RECORDS)?;
        // `meta`, which marks the database as complete, comes last.
        copy.table(META)?;
        let rows = copy.rows;
        drop(database);
        dest.sync().map_err(StoreError::File).map_err(Failure::Write)?;
        Ok(Backup { head, rows, log_entries: tail.len() as u64 })
    }
}

struct StoreSnapshot {
    transaction: ReadTransaction,
    meta: Meta,
    /// The entries of the log that the database does not have.
    tail: Vec<Vec<u8>>,
    head: BlockRef,
}

impl Shared {
    /// Takes a snapshot. Writes memory to the database first, so that few entries of the log remain.
    fn snapshot(&self) -> Result<StoreSnapshot, StoreError> {
        self.flush()?;
        let mut writer = self.writer.lock();
        self.wait_for_flusher(&mut writer);
        self.check(&writer)?;
        self.log.sync()?;
        let transaction = self.database().begin_read()?;
        let meta = Meta::read(&transaction.open_table(META)?)?.ok_or(StoreError::Missing { table: "meta" })?;
        // No commit can drop these entries, because it would need the lock.
        let entries = self.log.entries_after(meta.logged);
        let tail = entries.map(|entry| entry.map(|entry| entry.payload)).collect::<Result<_, WalError>>()?;
        let head = self.current.read().head;
        Ok(StoreSnapshot { transaction, meta, tail, head })
    }
}

fn rows_of(transaction: &ReadTransaction) -> Result<u64, StoreError> {
    let mut rows = 0;
    for table in transaction.list_tables()? {
        rows += transaction.open_untyped_table(table)?.len()?;
    }
    Ok(rows)
}

/// A batch of rows to copy.
struct Copy<'a> {
    from: &'a ReadTransaction,
    to: &'a Database,
    context: &'a Context,
    progress: &'a mut dyn FnMut(BackupProgress),
    rows: u64,
    of: u64,
}

impl Copy<'_> {
    fn table<K: RowKey + 'static>(&mut self, table: TableDefinition<'static, K, &'static [u8]>) -> Result<(), Failure> {
        let rows = self.from.open_table(table).map_err(read)?;
        let mut rows = rows.iter().map_err(read)?.peekable();
        loop {
            let mut transaction = self.to.begin_write().map_err(written)?;
            // `DatabaseFile` requires commits with two phases, which quick repair implies.
            transaction.set_quick_repair(true);
            {
                let mut copy = transaction.open_table(table).map_err(written)?;
                let mut bytes = 0;
                while bytes < COMMIT_BYTES {
                    let Some(row) = rows.next() else { break };
                    let (key, value) = row.map_err(read)?;
                    let (key, value) = (key.value(), value.value());
                    bytes += K::as_bytes(&key).as_ref().len() + value.len();
                    copy.insert(&key, value).map_err(written)?;
                    self.rows += 1;
                    if self.rows.is_multiple_of(STEP) {
                        thread::yield_now();
                        self.context.check().map_err(Failure::Interrupted)?;
                        (self.progress)(BackupProgress { rows: self.rows, of: self.of });
                    }
                }
            }
            transaction.commit().map_err(written)?;
            if rows.peek().is_none() {
                return Ok(());
            }
        }
    }
}

fn read(error: impl Into<StoreError>) -> Failure {
    Failure::Read(error.into())
}

fn written(error: impl Into<StoreError>) -> Failure {
    Failure::Write(error.into())
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
        let dest = std::path::absolute(dest).map_err(failed)?;
        let exists = || BackupError::Exists { path: dest.clone() };
        let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else { return Err(exists()) };
        let refuse_inside = |real: &Path| match source.filter(|source| real.starts_with(source)) {
            Some(folder) => Err(BackupError::Inside { path: dest.clone(), folder: folder.to_owned() }),
            None => Ok(()),
        };
        // Checked before any folder is created.
        if let Some(there) = parent.ancestors().find_map(|folder| folder.canonicalize().ok()) {
            refuse_inside(&there)?;
        }
        create_folder(parent, &mut sync_folder).map_err(failed)?;
        let real = parent.canonicalize().map_err(failed)?.join(name);
        refuse_inside(&real)?;
        let dest = real;
        match fs::symlink_metadata(&dest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failure(&dest, StoreError::File(error))),
            Ok(found) if found.is_dir() && fs::read_dir(&dest).is_ok_and(|mut files| files.next().is_none()) => {}
            Ok(_) => return Err(BackupError::Exists { path: dest }),
        }
        let mut part = dest.clone().into_os_string();
        part.push(".part");
        Ok(Self { dest, part: part.into() })
    }

    /// Creates the folder, or empties the one that a killed process left.
    fn begin(&self) -> Result<Arc<DiskFolder>, BackupError> {
        let folder = DiskFolder::open(&self.part).map_err(|error| match error {
            FolderError::Locked { path } => BackupError::Running { path },
            error => failure(&self.part, error.into()),
        })?;
        let failed = |source| failure(&self.part, StoreError::File(source));
        let files: Vec<_> = folder.list().map_err(failed)?.into_iter().filter(|name| name != LOCK_FILE).collect();
        let is_ours = |name: &str| [DATABASE, CHECKSUMS].contains(&name) || wal::is_log_file(name);
        if let Some(file) = files.iter().find(|name| !is_ours(name)) {
            return Err(BackupError::Foreign { path: self.part.clone(), file: file.clone() });
        }
        files.iter().try_for_each(|name| folder.remove(name)).map_err(failed)?;
        Ok(Arc::new(folder))
    }

    /// Renames the copy durably.
    fn finish(&self) -> Result<(), BackupError> {
        let renamed = fs::rename(&self.part, &self.dest).and_then(|()| match self.dest.parent() {
            Some(parent) => fs::File::open(parent)?.sync_all(),
            None => Ok(()),
        });
        renamed.map_err(|source| failure(&self.dest, StoreError::File(source)))
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
