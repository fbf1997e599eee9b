//! The size of the data folder.

use super::Gauges;
use rustix::fs::statvfs;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Size in bytes of the blocks in `st_blocks`, which is independent of the file system's block size.
const BLOCK: u64 = 512;

/// Reads the disk usage of the files in `folder`, which may be sparse, and the free space. Values that cannot be read
/// stay the same.
pub(super) fn read(folder: &Path, gauges: &Gauges) {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    match usage(folder) {
        Ok(bytes) => {
            gauges.storage_bytes.set(signed(bytes));
        }
        Err(error) => tracing::debug!(%error, "cannot read the size of the data folder"),
    }
    match statvfs(folder) {
        Ok(system) => {
            gauges.storage_free.set(signed(system.f_bavail.saturating_mul(system.f_frsize)));
        }
        Err(error) => tracing::debug!(%error, "cannot read the free space of the data folder"),
    }
}

fn usage(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        // A file that was removed in the meantime has no size.
        if let Ok(metadata) = entry?.metadata() {
            bytes += metadata.blocks() * BLOCK;
        }
    }
    Ok(bytes)
}
