//! The parts of a run's file: frames, their handles, and the footer.

use crate::codec::put_varint;
use crate::files::{Object, damage};
use std::io;
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// Identifies a run within its folder and in copies of it. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId(pub(crate) u64);

impl RunId {
    pub(crate) fn file_name(self) -> String {
        format!("run-{:012}.rows", self.0)
    }

    /// Returns the run whose file has this name, or `None` if it is not the name of a run.
    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let number = name.strip_prefix("run-")?.strip_suffix(".rows")?;
        let id = Self(number.parse().ok()?);
        (id.file_name() == name).then_some(id)
    }

    /// Returns the seed for the checksum of the frame at `offset`. With it, a frame in the wrong place or of another
    /// run is detected.
    pub(super) fn seed(self, offset: u64) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset
    }
}

/// The location of a frame in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Handle {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.length);
    }
}

/// The content is not compressed.
const PLAIN: u8 = 0;
/// The content is its uncompressed length (4 bytes, little-endian) followed by LZ4 data.
const LZ4: u8 = 1;

/// Length of the checksum at the end of a frame.
const CHECKSUM: usize = 8;

/// Appends the frame of `content`: a byte for its encoding, the content, a checksum.
pub(super) fn put_frame(out: &mut Vec<u8>, run: RunId, offset: u64, content: &[u8]) {
    let start = out.len();
    let compressed = lz4_flex::block::compress_prepend_size(content);
    // If the content hardly shrinks, decompression costs more than it saves.
    if compressed.len() < content.len() / 16 * 15 {
        out.push(LZ4);
        out.extend_from_slice(&compressed);
    } else {
        out.push(PLAIN);
        out.extend_from_slice(content);
    }
    let sum = XxHash3_64::oneshot_with_seed(run.seed(offset), &out[start..]);
    out.extend_from_slice(&sum.to_be_bytes());
}

/// Maximum size of uncompressed LZ4 data to that of the compressed data, according to its format.
const MAX_RATIO: usize = 255;

/// Decompresses a content straight into its place in memory.
fn decompress(content: &[u8]) -> Option<Arc<[u8]>> {
    let (size, compressed) = lz4_flex::block::uncompressed_size(content).ok()?;
    if size > compressed.len().saturating_mul(MAX_RATIO) {
        return None;
    }
    let mut out: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
    let written = lz4_flex::block::decompress_into(compressed, Arc::get_mut(&mut out)?).ok()?;
    (written == size).then_some(out)
}

/// Returns the content of the frame at `offset`.
pub(super) fn open_frame(run: RunId, offset: u64, frame: &[u8]) -> io::Result<Arc<[u8]>> {
    let open = || {
        let (rest, sum) = frame.split_last_chunk::<CHECKSUM>()?;
        if XxHash3_64::oneshot_with_seed(run.seed(offset), rest) != u64::from_be_bytes(*sum) {
            return None;
        }
        let (encoding, content) = rest.split_first()?;
        match *encoding {
            PLAIN => Some(Arc::from(content)),
            LZ4 => decompress(content),
            _ => None,
        }
    };
    open().ok_or_else(|| {
        damage(format_args!(
            "{} is damaged: the {} bytes at {offset} do not match their checksum",
            run.file_name(),
            frame.len()
        ))
    })
}

/// Reads the content of a frame. `size` is the length of the file. If it is a copy that is damaged, reads it once more.
pub(super) fn read_frame(file: &dyn Object, size: u64, run: RunId, handle: Handle) -> io::Result<Arc<[u8]>> {
    let mut content = Err(io::ErrorKind::UnexpectedEof.into());
    let is_inside = handle.offset.checked_add(handle.length).is_some_and(|end| end <= size);
    let Some(length) = usize::try_from(handle.length).ok().filter(|_| is_inside) else { return content };
    file.visit_at(handle.offset, length, &mut |frame| content = open_frame(run, handle.offset, frame))?;
    if content.is_err() && file.forget(handle.offset, length) {
        file.visit_at(handle.offset, length, &mut |frame| content = open_frame(run, handle.offset, frame))?;
    }
    content
}

/// Magic number at the end of a file.
const MAGIC: [u8; 8] = *b"NODE-RUN";

/// Length of the footer: offset and length of the frame of properties (8 each), magic number (8), checksum of these
/// (8).
pub(super) const FOOTER: usize = 32;

/// Encodes the footer of a file whose properties are at `properties`.
pub(super) fn footer(run: RunId, properties: Handle) -> [u8; FOOTER] {
    let mut out = [0; FOOTER];
    out[..8].copy_from_slice(&properties.offset.to_be_bytes());
    out[8..16].copy_from_slice(&properties.length.to_be_bytes());
    out[16..24].copy_from_slice(&MAGIC);
    let sum = XxHash3_64::oneshot_with_seed(run.seed(u64::MAX), &out[..24]);
    out[24..].copy_from_slice(&sum.to_be_bytes());
    out
}

/// Decodes the footer. `None` if it is damaged.
pub(super) fn read_footer(run: RunId, footer: &[u8; FOOTER]) -> Option<Handle> {
    let (rest, sum) = footer.split_last_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (length, magic) = rest.split_first_chunk()?;
    let intact = XxHash3_64::oneshot_with_seed(run.seed(u64::MAX), &footer[..24]) == u64::from_be_bytes(*sum);
    let handle = Handle { offset: u64::from_be_bytes(*offset), length: u64::from_be_bytes(*length) };
    (intact && magic == MAGIC).then_some(handle)
}
