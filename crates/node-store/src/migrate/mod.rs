//! Migration of a folder of layout 1 to layout 2, which this version reads and writes like layout 3.

#[cfg(any(test, feature = "layout-1"))]
mod copy;
#[cfg(any(test, feature = "layout-1"))]
mod file;

#[cfg(test)]
pub(crate) use copy::migrate_in;

use crate::files::rename_folder;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Context;
use std::fs;
use std::io;
use std::path::Path;

/// The content that a finished migration has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The newest block in runs. Later ones are in the log.
    pub head: BlockRef,
    /// Number of rows.
    pub rows: u64,
    /// Number of entries of the log.
    pub log_entries: u64,
}

/// Progress of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationProgress {
    /// Number of rows that were written.
    pub rows: u64,
    /// Number of rows to write.
    pub of: u64,
}

/// The file that identifies the chain from which the files of a migration were written.
const SOURCE: &str = "source";

/// Renames the finished migration `to` to `dest`, which is then a folder like any other.
///
/// # Errors
/// Those of the operating system. If `to` was not renamed, [`migrate`] can continue with it.
pub fn finish_migration(to: &Path, dest: &Path) -> io::Result<()> {
    rename_folder(to, dest)?;
    // Last, because without this file `migrate` refuses the folder. A process that is killed before this leaves a file
    // that nothing reads.
    fs::remove_file(dest.join(SOURCE))
}

/// Writes the content of the folder `from`, which has layout 1, to the folder `to`. The old folder is not changed, and
/// no process may use it in the meantime. If the migration is interrupted, calling this function again continues with
/// the first incomplete table, or starts over if the old folder has changed. If the migration was complete already, no
/// rows are written. Until the migration is complete, there is no chain in `to`. After an error, `to` remains: a later
/// call may be able to continue. Calls `progress` regularly.
///
/// # Errors
///
/// [`StoreError::NotLayout1`](crate::StoreError::NotLayout1) if `from` is not a folder of layout 1,
/// [`StoreError::NotEmpty`](crate::StoreError::NotEmpty) if `to` has other content, [`BackendError::Interrupted`] if
/// `context` is, and [`StoreError::WithoutLayout1`](crate::StoreError::WithoutLayout1) without the feature `layout-1`.
#[cfg_attr(not(any(test, feature = "layout-1")), allow(unused_variables))]
pub fn migrate(
    from: &Path,
    to: &Path,
    context: &Context,
    progress: impl FnMut(MigrationProgress),
) -> Result<Migrated, BackendError> {
    #[cfg(any(test, feature = "layout-1"))]
    return copy::migrate(from, to, context, progress);
    #[cfg(not(any(test, feature = "layout-1")))]
    return Err(crate::StoreError::WithoutLayout1.into());
}
