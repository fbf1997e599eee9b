//! A limit on the size of HTTP/2 header blocks (RFC 9113, sections 4.1 and 6.10).
//!
//! The h2 crate buffers header blocks of up to 16 MiB, and actix-http does not expose its setting for this. So the frames
//! are parsed as they are read from the connection, and a header block above the limit ends it.

/// Length of the connection preface, which precedes the first frame, in bytes.
const PREFACE: usize = 24;

/// Length of a frame header (length, type, flags, stream identifier), in bytes.
const FRAME_HEADER: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Tracks the size of the header blocks in the frames that a client sends.
#[derive(Debug)]
pub(crate) struct HeaderLimit {
    limit: usize,
    /// Bytes left to skip before the next frame header.
    skip: usize,
    frame_header: [u8; FRAME_HEADER],
    /// Bytes of `frame_header` received so far.
    filled: usize,
    /// Bytes of the unfinished header block.
    block: usize,
}

impl HeaderLimit {
    /// Accepts header blocks of up to `limit` bytes, as they are sent (compressed by HPACK).
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, skip: PREFACE, frame_header: [0; FRAME_HEADER], filled: 0, block: 0 }
    }

    /// Processes the next `bytes` of the connection. Returns whether every header block is within the limit.
    pub(crate) fn accept(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (FRAME_HEADER - self.filled).min(bytes.len());
            self.frame_header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == FRAME_HEADER && !self.accept_frame() {
                return false;
            }
        }
        true
    }

    fn accept_frame(&mut self) -> bool {
        let [a, b, c, kind, flags, ..] = self.frame_header;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        self.filled = 0;
        self.skip = length;
        if kind == HEADERS || kind == CONTINUATION {
            self.block = if kind == HEADERS { length } else { self.block.saturating_add(length) };
            if self.block > self.limit {
                return false;
            }
            if flags & END_HEADERS != 0 {
                self.block = 0;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type, flags, length.
    type Frame = (u8, u8, usize);

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let [_, a, b, c] = u32::try_from(length).unwrap().to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags, 0, 0, 0, 1];
        frame.resize(FRAME_HEADER + length, 7);
        frame
    }

    #[test]
    fn rejects_header_blocks_above_the_limit_however_they_are_split() {
        let cases: [(&[Frame], bool); 7] = [
            (&[], true),
            (&[(HEADERS, END_HEADERS, 100), (HEADERS, END_HEADERS, 100)], true),
            (&[(HEADERS, END_HEADERS, 101)], false),
            (&[(HEADERS, 0, 60), (CONTINUATION, 0, 40)], true),
            (&[(HEADERS, 0, 60), (CONTINUATION, END_HEADERS, 41)], false),
            (&[(0, 0, 5_000), (4, 0, 6), (HEADERS, END_HEADERS, 1)], true),
            (&[(HEADERS, 0, 90), (CONTINUATION, END_HEADERS, 10), (HEADERS, 0, 90)], true),
        ];
        for (frames, expected) in cases {
            let mut bytes = vec![b'P'; PREFACE];
            bytes.extend(frames.iter().flat_map(|&(kind, flags, length)| frame(kind, flags, length)));
            for size in [1, 7, 9, 64, bytes.len()] {
                let mut limit = HeaderLimit::new(100);
                assert_eq!(bytes.chunks(size).all(|piece| limit.accept(piece)), expected, "{frames:?} by {size}");
            }
        }
    }
}
