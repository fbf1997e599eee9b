//! The file of the contents: a header, then frames, each of which has a header of its own.
//!
//! Checksums depend on random bytes in the header of the file, so no content can be mistaken for frames.

use super::Kind;
use node_store::files::{File, Object};
use node_types::H256;
use std::io;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// The first bytes of the file. The last one is the version of the format.
const MAGIC: [u8; 8] = *b"ETHFORK\x01";

/// Length of the header of the file: the magic number, the salt, and a checksum of both.
pub(super) const FILE_HEADER: u64 = 24;

/// The first bytes of each frame, by which a reader finds the next one after damage.
const MARK: [u8; 4] = [0xf0, 0x5a, 0x9d, 0x1e];

/// Length of the header of a frame: mark, kind, key, length of the content, checksum of the content, checksum of the
/// header.
pub(super) const FRAME_HEADER: usize = 4 + 1 + 32 + 4 + 8 + 8;

/// Size of the part of the file that is read at once.
const WINDOW: usize = 256 << 10;

/// The random bytes that checksums depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Salt(u64);

impl Salt {
    pub(super) fn random() -> io::Result<Self> {
        getrandom::u64().map(Self).map_err(io::Error::other)
    }

    fn checksum(self, bytes: &[u8]) -> [u8; 8] {
        XxHash3_64::oneshot_with_seed(self.0, bytes).to_le_bytes()
    }

    /// Returns the header of the file.
    pub(super) fn file_header(self) -> [u8; FILE_HEADER as usize] {
        let mut header = [0; FILE_HEADER as usize];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&self.0.to_le_bytes());
        let checksum = self.checksum(&header[..16]);
        header[16..].copy_from_slice(&checksum);
        header
    }

    /// Reads the header of a file, which is not shorter.
    ///
    /// # Errors
    /// If it is damaged, or that of another format.
    pub(super) fn read(file: &dyn File) -> io::Result<Self> {
        let mut header = [0; FILE_HEADER as usize];
        file.read_at(0, &mut header)?;
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[8..16]);
        let salt = Self(u64::from_le_bytes(salt));
        if header == salt.file_header() {
            return Ok(salt);
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is damaged, or in another format; remove it, and it is fetched again",
        ))
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) key: H256,
    /// Length of the content.
    pub(super) length: u32,
    checksum: [u8; 8],
}

impl Frame {
    /// Returns the header of the frame with this content.
    pub(super) fn of(salt: Salt, kind: Kind, key: H256, content: &[u8]) -> Self {
        // Callers keep no content of 4 GiB.
        Self { kind, key, length: content.len() as u32, checksum: salt.checksum(content) }
    }

    /// Appends the header.
    pub(super) fn put(&self, salt: Salt, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MARK);
        out.push(self.kind as u8);
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.checksum);
        let checksum = salt.checksum(&out[start..]);
        out.extend_from_slice(&checksum);
    }

    /// Reads a header at the front of `bytes`. Returns `None` if there is none, or a damaged one.
    fn read(salt: Salt, bytes: &[u8]) -> Option<Self> {
        let (header, checksum) = bytes.get(..FRAME_HEADER)?.split_at(FRAME_HEADER - 8);
        let (mark, rest) = header.split_first_chunk::<4>()?;
        if *mark != MARK || salt.checksum(header) != *checksum {
            return None;
        }
        let (kind, rest) = rest.split_first()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let checksum = *rest.first_chunk::<8>()?;
        Some(Self { kind: Kind::from_byte(*kind)?, key: H256(*key), length: u32::from_le_bytes(*length), checksum })
    }

    /// Returns whether this is the header of a frame with this content.
    pub(super) fn has(&self, salt: Salt, content: &[u8]) -> bool {
        content.len() == self.length as usize && salt.checksum(content) == self.checksum
    }
}

/// Reads the frame at `offset` with a content of `length` bytes. Returns `None` if it is damaged, or another one.
pub(super) fn read_frame(
    file: &dyn Object,
    salt: Salt,
    kind: Kind,
    offset: u64,
    length: u32,
) -> io::Result<Option<(H256, Vec<u8>)>> {
    let mut bytes = vec![0; FRAME_HEADER + length as usize];
    match file.read_at(offset, &mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let Some(frame) = Frame::read(salt, &bytes) else { return Ok(None) };
    let content = bytes.split_off(FRAME_HEADER);
    Ok((frame.kind == kind && frame.has(salt, &content)).then_some((frame.key, content)))
}

/// What a scan of the file found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The frames, with the offsets of their headers. Their contents were not read.
    pub(super) frames: Vec<(u64, Frame)>,
    /// The end of the last whole frame.
    pub(super) end: u64,
    /// Parts before that which are no frames, because they are damaged.
    pub(super) damaged: Vec<Range<u64>>,
}

/// Finds the frames of a file of `size` bytes by their headers.
pub(super) fn scan(file: &dyn Object, salt: Salt, size: u64) -> io::Result<Scan> {
    let mut scan = Scan { end: FILE_HEADER, ..Scan::default() };
    let mut window = Window { file, size, start: 0, bytes: Vec::new() };
    let mut offset = FILE_HEADER;
    while size - offset >= FRAME_HEADER as u64 {
        let frame = Frame::read(salt, window.at(offset)?);
        let after = frame.map(|frame| (frame, offset + FRAME_HEADER as u64 + u64::from(frame.length)));
        match after {
            // A frame that does not end was being written when the process ended.
            Some((frame, end)) if end <= size => {
                if scan.end < offset {
                    scan.damaged.push(scan.end..offset);
                }
                scan.frames.push((offset, frame));
                (scan.end, offset) = (end, end);
            }
            _ => offset = window.next_mark(offset + 1)?,
        }
    }
    Ok(scan)
}

/// The part of the file that was read last.
struct Window<'a> {
    file: &'a dyn Object,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// Returns the bytes from `offset` on, which are at least those of a header of a frame unless the file ends before.
    fn at(&mut self, offset: u64) -> io::Result<&[u8]> {
        let end = (offset + FRAME_HEADER as u64).min(self.size);
        if offset < self.start || end > self.start + self.bytes.len() as u64 {
            let length = (self.size - offset).min(WINDOW as u64) as usize;
            self.bytes.resize(length, 0);
            self.start = offset;
            self.file.read_at(offset, &mut self.bytes)?;
        }
        Ok(&self.bytes[(offset - self.start) as usize..])
    }

    /// Returns the offset of the next mark from `offset` on, or the end of the file.
    fn next_mark(&mut self, mut offset: u64) -> io::Result<u64> {
        while offset + (MARK.len() as u64) <= self.size {
            let bytes = self.at(offset)?;
            if let Some(found) = bytes.windows(MARK.len()).position(|bytes| bytes == MARK) {
                return Ok(offset + found as u64);
            }
            // The mark may begin at the last bytes.
            offset += (bytes.len() - (MARK.len() - 1)) as u64;
        }
        Ok(self.size)
    }
}
