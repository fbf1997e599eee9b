//! The frames of HTTP/2 (RFC 9113, section 4.1), found in the bytes of a connection.

/// Length of a frame header (length, type, flags, stream identifier), in bytes.
pub(crate) const FRAME_HEADER: usize = 9;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

/// Flag of DATA and HEADERS.
pub(crate) const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION.
pub(crate) const END_HEADERS: u8 = 4;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Length of the payload in bytes.
    pub(crate) length: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// 0 for the connection itself.
    pub(crate) stream: u32,
}

impl Frame {
    pub(crate) fn decode(header: [u8; FRAME_HEADER]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = header;
        Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The first bit is reserved.
            stream: u32::from_be_bytes([s & 0x7f, t, u, v]),
        }
    }

    pub(crate) fn encode(self) -> [u8; FRAME_HEADER] {
        // Lengths have 24 bits.
        let [_, _, _, _, _, a, b, c] = (self.length as u64).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }
}

/// Finds the frames in one direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Bytes left to skip before the next frame header.
    skip: usize,
    header: [u8; FRAME_HEADER],
    /// Bytes of `header` received so far.
    filled: usize,
}

impl Frames {
    /// Creates a parser for a connection whose frames begin after `skip` bytes.
    pub(crate) fn after(skip: usize) -> Self {
        Self { skip, ..Self::default() }
    }

    /// Returns the next frame whose header ends in `bytes`, and advances `bytes` past it. Returns `None` once all
    /// bytes were read.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        *bytes = &bytes[skipped..];
        let taken = (FRAME_HEADER - self.filled).min(bytes.len());
        self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        *bytes = &bytes[taken..];
        if self.filled < FRAME_HEADER {
            return None;
        }
        let frame = Frame::decode(self.header);
        (self.filled, self.skip) = (0, frame.length);
        Some(frame)
    }

    /// Returns whether the next byte is the first of a frame.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.skip == 0 && self.filled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_frames_however_the_bytes_are_split() {
        let frames = [
            Frame { length: 0, kind: SETTINGS, flags: 0, stream: 0 },
            Frame { length: 70_000, kind: DATA, flags: END_STREAM, stream: 0x7fff_ffff },
            Frame { length: 3, kind: HEADERS, flags: END_HEADERS, stream: 1 },
        ];
        let bytes: Vec<u8> =
            frames.iter().flat_map(|frame| [&frame.encode()[..], &vec![7; frame.length]].concat()).collect();
        for size in [1, 8, 9, 10, 1_000, bytes.len()] {
            let mut reader = Frames::default();
            let mut found = Vec::new();
            for mut piece in bytes.chunks(size) {
                while let Some(frame) = reader.next(&mut piece) {
                    found.push(frame);
                }
            }
            assert_eq!(found, frames, "by {size}");
            assert!(reader.is_between_frames());
        }
    }
}
