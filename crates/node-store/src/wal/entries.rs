//! Reading durable entries.

use super::format::FrameHeader;
use super::segment::{SegmentReader, Step};
use super::{Sequence, WalError};
use crate::files::Folder;
use std::sync::Arc;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub sequence: Sequence,
    pub payload: Vec<u8>,
}

impl Entry {
    /// Returns the number of bytes that it takes in the log.
    pub(crate) fn logged_bytes(&self) -> u64 {
        (FrameHeader::SIZE + self.payload.len()) as u64
    }
}

/// An iterator over durable entries in order, read from the disk one at a time. Ends after the first error.
#[derive(Debug)]
pub struct Entries {
    folder: Arc<dyn Folder>,
    /// The segments that have not been opened yet, the oldest first.
    segments: std::vec::IntoIter<Sequence>,
    reader: Option<SegmentReader>,
    next: Sequence,
    /// The last entry to return.
    through: Sequence,
}

impl Entries {
    /// Returns the entries after `after` up to and including `through`, all of which must be durable in `segments`.
    pub(super) fn new(
        folder: Arc<dyn Folder>,
        mut segments: Vec<Sequence>,
        after: Sequence,
        through: Sequence,
    ) -> Self {
        let next = after.next();
        // The segment with the next entry is the last one that begins at or before it.
        let passed = segments.partition_point(|first| *first <= next).saturating_sub(1);
        segments.drain(..passed);
        Self { folder, segments: segments.into_iter(), reader: None, next, through }
    }

    fn read(&mut self) -> Result<Entry, WalError> {
        let mut payload = Vec::new();
        loop {
            let Some(reader) = &mut self.reader else {
                let missing = WalError::Missing { from: self.next, through: self.through };
                let first = self.segments.next().filter(|first| *first <= self.next).ok_or(missing.clone())?;
                self.reader = Some(SegmentReader::open(&*self.folder, first)?.ok_or(missing)?);
                continue;
            };
            let wanted = reader.expected() == self.next;
            let step = reader.step(|piece| {
                if wanted {
                    payload.extend_from_slice(piece);
                }
            })?;
            match step {
                Step::Entry(sequence) if wanted => {
                    self.next = sequence.next();
                    return Ok(Entry { sequence, payload });
                }
                Step::Entry(_) => {}
                Step::End => self.reader = None,
                Step::Damaged => return Err(reader.corrupt()),
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, WalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.through {
            return None;
        }
        let entry = self.read();
        if entry.is_err() {
            self.next = self.through.next();
        }
        Some(entry)
    }
}
