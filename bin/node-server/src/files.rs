//! Reading input files.

use crate::error::CommandError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum length of a file of keys, certificates or tokens, in bytes.
const MAX_SMALL_FILE: u64 = 1 << 20;

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path).map_err(|source| CommandError::Read { path: path.to_owned(), source })
}

/// Reads a file of at most `limit` bytes. Returns `None` if it is longer.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit))
}

/// Reads a small text file: keys, certificates or tokens.
pub(crate) fn read_small_text(path: &Path) -> Result<String, CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    let refused = |kind, message: String| unreadable(io::Error::new(kind, message));
    let bytes = read_at_most(path, MAX_SMALL_FILE).map_err(unreadable)?;
    let bytes = bytes
        .ok_or_else(|| refused(io::ErrorKind::FileTooLarge, format!("it is longer than {MAX_SMALL_FILE} bytes")))?;
    String::from_utf8(bytes)
        .map_err(|_| refused(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8".to_owned()))
}

/// Opens a file. Returns it with its length in bytes.
pub(crate) fn open(path: &Path) -> Result<(File, u64), CommandError> {
    let unreadable = |source| CommandError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    Ok((file, length))
}
