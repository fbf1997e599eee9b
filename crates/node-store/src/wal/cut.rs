//! Removing the last entries of a log.

use super::format::{SegmentHeader, parse_segment_name, segment_name};
use super::mark::MARK_NAME;
use super::recovery::remove_segments;
use super::segment::{SegmentReader, Step};
use super::{Sequence, WalError};
use crate::files::Folder;
use std::io;

/// Durably removes the entries after `last` from the log of a folder. It must not be open. Returns how many these were.
///
/// If this is interrupted, the log has the entries up to `last`, and maybe some of those after it.
///
/// # Errors
/// If the log cannot be read or written.
pub(crate) fn remove_after(folder: &dyn Folder, last: Sequence) -> Result<u64, WalError> {
    let names = folder.list().map_err(WalError::io("list", "the folder"))?;
    let mut segments: Vec<Sequence> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    segments.sort_unstable();
    // The segment that continues with the next entry remains: a folder without a segment has no log.
    let kept = segments.partition_point(|first| *first <= last.next());
    let Some(newest) = kept.checked_sub(1).map(|index| segments[index]) else { return Ok(0) };
    let mut found = last;
    for first in &segments[kept - 1..] {
        if let Some(mut reader) = SegmentReader::open(folder, *first)? {
            while let Step::Entry(sequence) = reader.step(|_| ())? {
                found = found.max(sequence);
            }
        }
    }
    let sync = || folder.sync().map_err(WalError::io("sync", "the folder"));
    // The mark and the names of later segments would prove that entries are missing, so they are removed first, the last
    // one at the beginning. The next sync writes the mark again.
    match folder.remove(MARK_NAME) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WalError::io("remove", MARK_NAME)(error)),
        _ => sync()?,
    }
    for first in segments[kept..].iter().rev() {
        remove_segments(folder, &[*first])?;
        sync()?;
    }
    if let Some(mut reader) = SegmentReader::open(folder, newest)? {
        let mut end = SegmentHeader::SIZE as u64;
        while reader.expected() <= last && matches!(reader.step(|_| ())?, Step::Entry(_)) {
            end = reader.offset();
        }
        let cut = reader.file().set_len(end).and_then(|()| reader.file().sync_data());
        cut.map_err(WalError::io("truncate", segment_name(newest)))?;
    }
    Ok(found.0 - last.0)
}
