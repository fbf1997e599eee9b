//! Reading a segment through a window of fixed size, so that lengths on disk do not determine how much memory is
//! allocated.

use super::format::{Checksum, FrameHeader, LAYOUT, SegmentHeader, segment_name};
use super::{Sequence, WalError};
use crate::files::{File, Folder};
use std::io;
use std::sync::Arc;

/// Number of bytes that are read at once.
const WINDOW: usize = 64 << 10;

/// Reads the frames of a segment in order.
#[derive(Debug)]
pub(super) struct SegmentReader {
    window: Window,
    name: String,
    first: Sequence,
    salt: u64,
    /// Offset of the next frame.
    offset: u64,
    /// The sequence that the next frame must have.
    expected: Sequence,
}

/// What is at the reader's position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An intact entry. The reader has moved past it.
    Entry(Sequence),
    /// The end of the file.
    End,
    /// Bytes that are not an intact frame with the expected sequence. The reader has not moved.
    Damaged,
}

impl SegmentReader {
    /// Opens the segment that starts with `first`. Returns `None` if its header was never completed: the header is
    /// durable before the first frame is written, so such a file has no entries.
    pub(super) fn open(folder: &dyn Folder, first: Sequence) -> Result<Option<Self>, WalError> {
        let name = segment_name(first);
        let file = folder.open(&name).map_err(WalError::io("open", &name))?;
        let size = file.size().map_err(WalError::io("read", &name))?;
        let mut window = Window { file, size, start: 0, bytes: Vec::new() };
        let header =
            window.array(0).map_err(WalError::io("read", &name))?.and_then(|bytes| SegmentHeader::decode(&bytes));
        match header {
            Some(SegmentHeader { layout, .. }) if layout != LAYOUT => {
                Err(WalError::UnsupportedLayout { file: name, found: layout, supported: LAYOUT })
            }
            Some(header) if header.first == first => Ok(Some(Self {
                window,
                name,
                first,
                salt: header.salt,
                offset: SegmentHeader::SIZE as u64,
                expected: first,
            })),
            None if size <= SegmentHeader::SIZE as u64 => Ok(None),
            _ => Err(WalError::Corrupt { file: name, offset: 0, expected: first }),
        }
    }

    /// Reads what was appended since the segment was opened. Bytes that were read before that may be incomplete.
    pub(super) fn look_again(&mut self) -> Result<(), WalError> {
        let size = self.window.file.size().map_err(WalError::io("read", &self.name))?;
        if size != self.window.size {
            self.window.size = size;
            self.window.bytes.clear();
        }
        Ok(())
    }

    /// Returns the offset of the next frame, or of the damage.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the sequence that the next frame must have.
    pub(super) fn expected(&self) -> Sequence {
        self.expected
    }

    pub(super) fn first(&self) -> Sequence {
        self.first
    }

    /// Returns the error to report if the damaged entry was durable.
    pub(super) fn corrupt(&self) -> WalError {
        WalError::Corrupt { file: self.name.clone(), offset: self.offset, expected: self.expected }
    }

    /// Returns the file, for repairs.
    pub(super) fn file(&self) -> &dyn File {
        &*self.window.file
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reads one entry and passes its payload to `sink` in pieces. The pieces are valid only if the result is an entry.
    pub(super) fn step(&mut self, mut sink: impl FnMut(&[u8])) -> Result<Step, WalError> {
        if self.offset == self.window.size {
            return Ok(Step::End);
        }
        let Some(header) = self.frame_at(self.offset)? else { return Ok(Step::Damaged) };
        let payload = self.offset + FrameHeader::SIZE as u64;
        if header.sequence != self.expected || u64::from(header.length) > self.window.size - payload {
            return Ok(Step::Damaged);
        }
        let end = payload + u64::from(header.length);
        let mut sum = Checksum::new(self.salt);
        let mut at = payload;
        while at < end {
            let piece = self.window.at(at).map_err(WalError::io("read", &self.name))?;
            let wanted = usize::try_from(end - at).map_or(piece.len(), |left| left.min(piece.len()));
            let piece = &piece[..wanted];
            sum.add(piece);
            sink(piece);
            at += piece.len() as u64;
        }
        if sum.finish() != header.payload_sum {
            return Ok(Step::Damaged);
        }
        self.offset = end;
        self.expected = header.sequence.next();
        Ok(Step::Entry(header.sequence))
    }

    /// Returns whether a later frame proves that an entry after `sequence` was durable. Searches at every byte after
    /// the damage.
    pub(super) fn proves_durable_after_damage(&mut self, sequence: Sequence) -> Result<bool, WalError> {
        let frame = FrameHeader::SIZE as u64;
        let after_last = self.window.size.saturating_sub(frame - 1);
        for offset in self.offset + 1..after_last {
            let Some(header) = self.frame_at(offset)? else { continue };
            if header.sequence > self.expected && header.synced > sequence {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn frame_at(&mut self, offset: u64) -> Result<Option<FrameHeader>, WalError> {
        let bytes = self.window.array(offset).map_err(WalError::io("read", &self.name))?;
        Ok(bytes.and_then(|bytes| FrameHeader::decode(&bytes, self.salt)))
    }
}

/// A part of the file in memory.
#[derive(Debug)]
struct Window {
    file: Arc<dyn File>,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns the bytes at `offset`, at least one and at most a window. `offset` must be before the end of the file.
    fn at(&mut self, offset: u64) -> io::Result<&[u8]> {
        let within = offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        match within.filter(|skip| *skip < self.bytes.len()) {
            Some(skip) => Ok(&self.bytes[skip..]),
            None => {
                self.load(offset)?;
                Ok(&self.bytes)
            }
        }
    }

    /// Returns the `N` bytes at `offset`, or `None` if the file ends before.
    fn array<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        if self.size.saturating_sub(offset) < N as u64 {
            return Ok(None);
        }
        if self.at(offset)?.len() < N {
            self.load(offset)?;
        }
        Ok(self.at(offset)?.first_chunk().copied())
    }

    fn load(&mut self, offset: u64) -> io::Result<()> {
        let left = self.size.saturating_sub(offset);
        let length = usize::try_from(left).map_or(WINDOW, |left| left.min(WINDOW));
        // The window is empty in case the read fails.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(length, 0);
        self.file.read_at(offset, &mut bytes)?;
        self.start = offset;
        self.bytes = bytes;
        Ok(())
    }
}
