//! The end of the log: the segment to which entries are written.

use super::format::{LAYOUT, SegmentHeader, segment_name};
use super::mark::Mark;
use super::recovery::Recovered;
use super::{Sequence, WalError};
use crate::files::{File, Folder};
use std::io;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Writer {
    folder: Arc<dyn Folder>,
    mark: Mark,
    /// The first sequences of all segments. The last one is being written.
    segments: Vec<Sequence>,
    file: Arc<dyn File>,
    name: String,
    /// The last entry that was written.
    through: Sequence,
    /// The length of the segment up to the last durable entry. Longer only after a failed write or sync.
    end: u64,
    salt: u64,
    segment_bytes: u64,
    /// Why a segment could not be created. Nothing is written until the log is rolled back: the segment may exist, and
    /// its name says that the entries before it are complete.
    failure: Option<WalError>,
}

impl Writer {
    /// Creates a segment after the recovered entries, because nothing must be written after a removed tail.
    pub(super) fn begin(
        folder: Arc<dyn Folder>,
        recovered: Recovered,
        salt: u64,
        segment_bytes: u64,
    ) -> Result<Self, WalError> {
        let through = recovered.last;
        let name = segment_name(through.next());
        let file = create_segment(&*folder, &name, through.next(), salt)?;
        let mut segments = recovered.segments;
        segments.push(through.next());
        let end = SegmentHeader::SIZE as u64;
        let mark = recovered.mark;
        Ok(Self { folder, mark, segments, file, name, through, end, salt, segment_bytes, failure: None })
    }

    /// Creates a segment after the written entries.
    fn begin_segment(&mut self) -> Result<(), WalError> {
        let first = self.through.next();
        let name = segment_name(first);
        let created = create_segment(&*self.folder, &name, first, self.salt);
        self.failure = created.as_ref().err().cloned();
        self.file = created?;
        self.name = name;
        if self.segments.last() != Some(&first) {
            self.segments.push(first);
        }
        self.end = SegmentHeader::SIZE as u64;
        Ok(())
    }

    pub(super) fn segments(&self) -> &[Sequence] {
        &self.segments
    }

    /// Writes and syncs `frames`: the entries after the last committed one, up to and including `through`. After an
    /// error, [`roll_back`](Self::roll_back) must succeed before the next call.
    pub(super) fn commit(&mut self, frames: &[u8], through: Sequence) -> Result<(), WalError> {
        if frames.is_empty() {
            return Ok(());
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.end >= self.segment_bytes {
            self.begin_segment()?;
        }
        self.file.write_at(self.end, frames).map_err(WalError::io("write", &self.name))?;
        self.file.sync_data().map_err(WalError::io("sync", &self.name))?;
        self.end += frames.len() as u64;
        self.through = through;
        // The entries are durable. If the mark cannot be written, the older one is still correct.
        let _ = self.mark.write(through);
        Ok(())
    }

    /// Durably removes everything after the last durable entry, and creates a segment for the next entry. Frames are
    /// never written after a failed write in the same file, nor to a segment older than one whose creation failed.
    pub(super) fn roll_back(&mut self) -> Result<(), WalError> {
        let truncated = self.file.set_len(self.end).and_then(|()| self.file.sync_data());
        truncated.map_err(WalError::io("truncate", &self.name))?;
        self.begin_segment()
    }

    /// Returns the newest segment if it has no entries and is not the only one.
    pub(super) fn empty_segment(&self) -> Option<Sequence> {
        let is_empty = self.segments.len() > 1 && self.end == SegmentHeader::SIZE as u64;
        self.segments.last().copied().filter(|_| is_empty)
    }

    /// Removes the segments without an entry after `sequence` from the list, and returns them, the oldest first.
    /// Creates a new segment if that would leave none.
    pub(super) fn forget_segments(&mut self, sequence: Sequence) -> Result<Vec<Sequence>, WalError> {
        if self.through <= sequence && self.end > SegmentHeader::SIZE as u64 {
            self.begin_segment()?;
        }
        // A segment ends where the next one begins.
        let dropped = self.segments.iter().skip(1).take_while(|next| next.previous() <= sequence).count();
        Ok(self.segments.drain(..dropped).collect())
    }
}

/// Creates a segment without entries. Its content and name are durable before any frame is written to it.
///
/// The existence of a segment proves that all entries before it are durable.
fn create_segment(folder: &dyn Folder, name: &str, first: Sequence, salt: u64) -> Result<Arc<dyn File>, WalError> {
    let create = || -> io::Result<Arc<dyn File>> {
        let file = folder.create(name)?;
        file.write_at(0, &SegmentHeader { layout: LAYOUT, first, salt }.encode())?;
        file.sync_data()?;
        folder.sync()?;
        Ok(file)
    };
    create().map_err(WalError::io("create", name))
}
