//! The end of a run's file, which suffices to open it.

use super::format::{FOOTER, RunId, read_footer, read_frame};
use crate::codec::Reader;
use crate::files::{Object, damage};
use std::io;

/// Returns the offset of the root of the run in `file`. The properties and the footer follow it.
pub(crate) fn ending(file: &dyn Object, id: RunId) -> io::Result<u64> {
    let size = file.size()?;
    let damaged = || damage(format_args!("{} is truncated or damaged", id.file_name()));
    let start = size.checked_sub(FOOTER as u64).ok_or_else(damaged)?;
    let mut footer = [0; FOOTER];
    file.read_at(start, &mut footer)?;
    let properties = read_frame(file, size, id, read_footer(id, &footer).ok_or_else(damaged)?)?;
    let root = Reader::new(&properties, "the properties of a run").varint().map_err(|_| damaged())?;
    if root <= start { Ok(root) } else { Err(damaged()) }
}
