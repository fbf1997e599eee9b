//! `node-server backup`: a copy of a folder.

use crate::cli::BackupOptions;
use crate::error::CommandError;

pub(crate) fn run(_options: &BackupOptions) -> Result<(), CommandError> {
    Err(CommandError::NoHome)
}
