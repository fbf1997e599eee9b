//! Reading a log that another process writes.

use super::entries::Entry;
use super::format::parse_segment_name;
use super::mark::read_mark;
use super::segment::{SegmentReader, Step};
use super::{Sequence, WalError};
use crate::files::Folder;

/// Reads the durable entries of a log, in order, while another process appends to it.
#[derive(Debug)]
pub(crate) struct LogTail {
    reader: Option<SegmentReader>,
    next: Sequence,
}

impl LogTail {
    /// Begins after `sequence`.
    pub(crate) fn after(sequence: Sequence) -> Self {
        Self { reader: None, next: sequence.next() }
    }

    /// Returns the last entry of the log in `folder` that is known to be durable. Later ones must not be read: a failed
    /// write removes them, and their numbers are used again.
    pub(crate) fn durable(folder: &dyn Folder) -> Result<Sequence, WalError> {
        let marked = read_mark(folder)?;
        // A segment is created only when all entries before it are durable.
        let proven = segments(folder)?.last().copied().unwrap_or_default().previous();
        Ok(marked.max(proven))
    }

    /// Returns the next entry up to and including `through`, which must be durable; `None` if there is no further one.
    ///
    /// # Errors
    /// [`WalError::Missing`] if the entry was dropped, because runs have it.
    pub(crate) fn read(&mut self, folder: &dyn Folder, through: Sequence) -> Result<Option<Entry>, WalError> {
        if self.next > through {
            return Ok(None);
        }
        let missing = || WalError::Missing { from: self.next, through };
        let mut payload = Vec::new();
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => {
                let first = segments(folder)?.into_iter().rfind(|first| *first <= self.next).ok_or_else(missing)?;
                SegmentReader::open(folder, first)?.ok_or_else(missing)?
            }
        };
        loop {
            reader.look_again()?;
            let is_wanted = reader.expected() == self.next;
            payload.clear();
            let step = reader.step(|piece| {
                if is_wanted {
                    payload.extend_from_slice(piece);
                }
            })?;
            match step {
                Step::Entry(sequence) if is_wanted => {
                    (self.reader, self.next) = (Some(reader), sequence.next());
                    return Ok(Some(Entry { sequence, payload }));
                }
                Step::Entry(_) => {}
                Step::End => {
                    let first = reader.expected();
                    // The entry is durable, so it is in the next segment, unless that was dropped.
                    if first == reader.first() || !segments(folder)?.contains(&first) {
                        return Err(missing());
                    }
                    reader = SegmentReader::open(folder, first)?.ok_or_else(missing)?;
                }
                Step::Damaged => return Err(reader.corrupt()),
            }
        }
    }
}

/// Returns the first entries of the segments, ascending.
fn segments(folder: &dyn Folder) -> Result<Vec<Sequence>, WalError> {
    let names = folder.list().map_err(WalError::io("list", "the folder"))?;
    let mut segments: Vec<_> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
    segments.sort_unstable();
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;
    use crate::wal::{Wal, WalOptions};

    /// The payloads of the entries that are durable now.
    fn read(tail: &mut LogTail, folder: &dyn Folder) -> Result<Vec<Vec<u8>>, WalError> {
        let through = LogTail::durable(folder)?;
        let mut payloads = Vec::new();
        while let Some(entry) = tail.read(folder, through)? {
            payloads.push(entry.payload);
        }
        Ok(payloads)
    }

    #[test]
    fn follows_the_durable_entries_through_segments_and_restarts() {
        let disk = FaultyDisk::new();
        let folder = disk.folder();
        let options = WalOptions { segment_bytes: 300, ..WalOptions::default() };
        let (mut tail, mut log, mut number) = (LogTail::after(Sequence(0)), None, 0u8);
        for round in 0..40u8 {
            if round % 7 == 0 {
                drop(log.take());
            }
            let log = log.get_or_insert_with(|| Wal::open(disk.folder(), Sequence(0), options).unwrap());
            let mut expected = Vec::new();
            for _ in 0..round % 4 {
                number += 1;
                log.append(&[number; 40]).unwrap();
                expected.push(vec![number; 40]);
            }
            // What is not synced is not seen.
            assert_eq!(read(&mut tail, &*folder).unwrap(), Vec::<Vec<u8>>::new(), "round {round}");
            log.sync().unwrap();
            assert_eq!(read(&mut tail, &*folder).unwrap(), expected, "round {round}");
        }
        let mut other = LogTail::after(Sequence(u64::from(number) - 3));
        assert_eq!(read(&mut other, &*folder).unwrap().len(), 3);
    }

    #[test]
    fn dropped_entries_are_missing() {
        let disk = FaultyDisk::new();
        let options = WalOptions { segment_bytes: 100, ..WalOptions::default() };
        let log = Wal::open(disk.folder(), Sequence(0), options).unwrap();
        for number in 1..=9u8 {
            log.append(&[number; 60]).unwrap();
            log.sync().unwrap();
        }
        log.drop_through(Sequence(5)).unwrap();
        let error = read(&mut LogTail::after(Sequence(2)), &*disk.folder()).unwrap_err();
        assert!(matches!(error, WalError::Missing { from: Sequence(3), .. }), "{error}");
        assert_eq!(read(&mut LogTail::after(Sequence(5)), &*disk.folder()).unwrap().len(), 4);
    }
}
