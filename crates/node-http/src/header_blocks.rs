//! Bounds the headers of HTTP/2 (RFC 9113, sections 4.1 and 6.10).
//!
//! The library below collects a header block of up to 16 MiB before anybody sees it, and has no setting for it. So the frames
//! are followed as they are read: a block that grows too long ends the connection.

/// The length of what a connection begins with, in front of the first frame.
const PREFACE: usize = 24;

/// The head of a frame: length, type, flags, stream.
const HEAD: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Follows the frames that a client sends.
#[derive(Debug)]
pub(crate) struct HeaderBlocks {
    limit: usize,
    /// Bytes to pass over before the next head of a frame.
    skip: usize,
    head: [u8; HEAD],
    /// Bytes of `head` that have come.
    filled: usize,
    /// Bytes of the block that has not ended.
    block: usize,
}

impl HeaderBlocks {
    /// Blocks may be of `limit` bytes, as they are sent.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, skip: PREFACE, head: [0; HEAD], filled: 0, block: 0 }
    }

    /// Follows `bytes`. Answers whether all blocks are short enough.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let passed = self.skip.min(bytes.len());
            self.skip -= passed;
            bytes = &bytes[passed..];
            let taken = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEAD && !self.frame() {
                return false;
            }
        }
        true
    }

    fn frame(&mut self) -> bool {
        let [a, b, c, kind, flags, ..] = self.head;
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
        frame.resize(HEAD + length, 7);
        frame
    }

    #[test]
    fn long_blocks_are_found_however_they_come() {
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
                let mut blocks = HeaderBlocks::new(100);
                assert_eq!(bytes.chunks(size).all(|piece| blocks.follow(piece)), expected, "{frames:?} by {size}");
            }
        }
    }
}
