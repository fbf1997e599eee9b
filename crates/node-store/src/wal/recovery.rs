//! Opening a log after a crash or damage.
//!
//! After a crash there may be any mixture of written bytes after the last durable entry. Recovery removes them.
//! Damage to a durable entry must not be mistaken for such a tail. Three things prove that an entry was durable:
//!
//! - the mark, which is written after each sync;
//! - any later frame, which contains the number of the last entry that was durable when it was appended;
//! - the name of any later segment, because a segment is created only when all entries before it are durable.
//!
//! A durable entry without such a proof can only be one that was synced within the last seconds before a power
//! failure.

use super::format::{parse_segment_name, segment_name};
use super::mark::Mark;
use super::segment::{SegmentReader, Step};
use super::{Sequence, WalError};
use crate::files::Folder;
use std::io;

/// A log whose entries are all intact and durable.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) mark: Mark,
    /// The first sequences of the segments with entries after the flushed ones.
    pub(super) segments: Vec<Sequence>,
    /// The first sequences of the segments to remove, all of whose entries are flushed.
    pub(super) removed: Vec<Sequence>,
    /// The last entry, or the last flushed one if that is later.
    pub(super) last: Sequence,
}

/// Reads the whole log and repairs its end. Changes nothing if durable entries after `flushed` are damaged or
/// missing.
///
/// Of the segments whose entries are all flushed, those without an entry after `removable` are to be removed.
pub(super) fn recover(folder: &dyn Folder, flushed: Sequence, removable: Sequence) -> Result<Recovered, WalError> {
    let (mark, marked) = Mark::open(folder)?;
    let names = folder.list().map_err(WalError::io("list", "the folder"))?;
    let mut segments: Vec<Sequence> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    segments.sort_unstable();
    // A segment ends where the next one begins.
    let ended_by = |last: Sequence| segments.iter().skip(1).take_while(|next| next.previous() <= last).count();
    let (passed, passed_removable) = (ended_by(flushed), ended_by(removable.min(flushed)));
    let mut kept: Vec<Sequence> = segments.drain(..passed).collect();
    let mut removed: Vec<Sequence> = kept.drain(..passed_removable).collect();

    let scan = scan(folder, &segments, flushed, marked)?;
    if let Some(reader) = scan.newest {
        make_durable(folder, reader, scan.durable)?;
    }
    // If the newest segment has no entries, a new one with the same name is created.
    segments.retain(|first| *first <= scan.last);
    if scan.last <= flushed.min(removable) {
        removed.append(&mut segments);
    }
    kept.append(&mut segments);
    let segments = kept;
    Ok(Recovered { mark, segments, removed, last: scan.last.max(flushed) })
}

/// Returns whether the folder has a log.
pub(super) fn has_segments(folder: &dyn Folder) -> Result<bool, WalError> {
    let names = folder.list().map_err(WalError::io("list", "the folder"))?;
    Ok(names.iter().any(|name| parse_segment_name(name).is_some()))
}

/// The result of reading the segments.
struct Scan {
    /// The last intact entry.
    last: Sequence,
    /// The last entry that is known to be durable.
    durable: Sequence,
    /// The newest segment, positioned at its end or at its damage.
    newest: Option<SegmentReader>,
}

fn scan(folder: &dyn Folder, segments: &[Sequence], flushed: Sequence, marked: Sequence) -> Result<Scan, WalError> {
    let proven_by_names = segments.last().copied().unwrap_or_default().previous();
    let durable = marked.max(proven_by_names);
    let mut last = segments.first().map_or(flushed, |first| first.previous());
    let mut newest = None;
    if last > flushed {
        return Err(WalError::Missing { from: flushed.next(), through: last });
    }
    for &first in segments {
        if first <= last {
            return Err(WalError::Repeated { file: segment_name(first), last });
        }
        if first > last.next() {
            return Err(WalError::Missing { from: last.next(), through: first.previous() });
        }
        newest = SegmentReader::open(folder, first)?;
        let Some(reader) = &mut newest else { continue };
        loop {
            match reader.step(|_| ())? {
                Step::Entry(sequence) => last = sequence,
                Step::End => break,
                Step::Damaged => {
                    let needed = last.max(flushed);
                    if durable > needed || reader.proves_durable_after_damage(needed)? {
                        return Err(reader.corrupt());
                    }
                    break;
                }
            }
        }
    }
    if durable > last.max(flushed) {
        return Err(WalError::Missing { from: last.max(flushed).next(), through: durable });
    }
    Ok(Scan { last, durable, newest })
}

/// Removes the damage from the end of the newest segment and makes the entries before it durable.
///
/// Entries that are not known to be durable are written again: if their sync failed, the operating system may still
/// have them in memory, and might not write them on another sync.
fn make_durable(folder: &dyn Folder, reader: SegmentReader, durable: Sequence) -> Result<(), WalError> {
    let name = reader.name().to_owned();
    let end = reader.offset();
    let size = reader.file().size().map_err(WalError::io("read", &name))?;
    if size == end && reader.expected().previous() <= durable {
        return Ok(());
    }
    let Some(mut walk) = SegmentReader::open(folder, reader.first())? else { return Ok(()) };
    while walk.expected() <= durable && matches!(walk.step(|_| ())?, Step::Entry(_)) {}
    let repair = || -> io::Result<()> {
        let mut piece = vec![0; 64 << 10];
        let mut at = walk.offset();
        while at < end {
            let length = usize::try_from(end - at).map_or(piece.len(), |left| left.min(piece.len()));
            walk.file().read_at(at, &mut piece[..length])?;
            walk.file().write_at(at, &piece[..length])?;
            at += length as u64;
        }
        walk.file().set_len(end)?;
        walk.file().sync_data()
    };
    repair().map_err(WalError::io("repair", name))
}

/// Removes segments, the oldest first. A missing segment is not an error.
pub(super) fn remove_segments(folder: &dyn Folder, segments: &[Sequence]) -> Result<(), WalError> {
    for first in segments {
        let name = segment_name(*first);
        match folder.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(WalError::io("remove", name)(error)),
            _ => {}
        }
    }
    Ok(())
}
