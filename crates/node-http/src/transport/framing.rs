//! Passing the requests of a connection to actix-http one at a time.
//!
//! actix-http decodes requests that were sent ahead during the work on an earlier one, and then writes the response to
//! the earlier one as if the last request had been `HEAD`, HTTP/1.0 or the end of the connection. It also processes
//! requests after the end of the connection, and each request takes 7 KB of memory until it has been processed.

use std::io;
use std::mem;
use std::task::{Poll, ready};
use tokio::io::ReadBuf;

/// Maximum number of bytes after a request that are read before its response begins. Some are read so that the end of
/// the connection is noticed, which cancels the work on the request.
const READ_AHEAD: usize = 8 * 1024;

/// Number of bytes of a line that matter: those of the headers about the length of the body.
const MAX_LINE: usize = 128;

/// The requests in the bytes of a connection.
#[derive(Default)]
pub(crate) struct Framing {
    /// The part of a request to which the next byte that is passed on belongs.
    part: Part,
    /// Bytes after the current request.
    ahead: Vec<u8>,
    /// Whether the connection has ended after `ahead`.
    has_ended: bool,
}

enum Part {
    Head(Head),
    /// A body, or the data of a chunk, of which this many bytes are missing.
    Data {
        missing: u64,
        is_chunk: bool,
    },
    /// The line with the size of a chunk.
    ChunkSize(Vec<u8>),
    /// The lines after the last chunk.
    Trailers(Vec<u8>),
    /// The request is complete.
    End,
    /// Bytes of another protocol.
    Upgraded,
}

impl Default for Part {
    fn default() -> Self {
        Self::Head(Head::default())
    }
}

/// What the head of a request says about the length of its body.
#[derive(Default)]
struct Head {
    /// The beginning of the current line.
    line: Vec<u8>,
    /// Whether a line that is not blank was received.
    has_lines: bool,
    /// Whether a byte was received.
    has_begun: bool,
    length: u64,
    is_chunked: bool,
}

impl Framing {
    /// Returns whether all bytes of the current request have been passed on.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.part, Part::End)
    }

    /// Returns whether the head of a request has been passed on in part.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(&self.part, Part::Head(head) if head.has_begun)
    }

    /// Returns whether the client has sent something after the current request.
    pub(crate) fn is_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Begins the next request.
    pub(crate) fn begin(&mut self) {
        self.part = Part::default();
    }

    /// Passes everything on from now on, because the protocol is no longer HTTP.
    pub(crate) fn upgrade(&mut self) {
        self.part = Part::Upgraded;
    }

    /// Appends bytes of the current request to `buf`, and keeps those after it. New ones are provided by `read`.
    pub(crate) fn read(
        &mut self,
        buf: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() && !self.has_ended {
            let start = buf.filled().len();
            ready!(read(buf))?;
            let new = &buf.filled()[start..];
            let passed = self.part.pass(new);
            self.ahead = new[passed..].to_vec();
            buf.set_filled(start + passed);
        } else {
            let ahead = mem::take(&mut self.ahead);
            let passed = self.part.pass(&ahead[..buf.remaining().min(ahead.len())]);
            buf.put_slice(&ahead[..passed]);
            self.ahead = ahead[passed..].to_vec();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads bytes after the current request, with `read`. Returns `Ready` if the connection has ended, and nothing was
    /// sent before that.
    pub(crate) fn read_ahead(
        &mut self,
        mut read: impl FnMut(&mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let mut space = [0; 1_024];
        while self.ahead.len() < READ_AHEAD && !self.has_ended {
            let mut buf = ReadBuf::new(&mut space);
            ready!(read(&mut buf))?;
            self.ahead.extend_from_slice(buf.filled());
            self.has_ended = buf.filled().is_empty();
        }
        if self.has_ended && self.ahead.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl Part {
    /// Returns how many of `bytes` belong to the current request, and continues after them.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        while passed < bytes.len() {
            let rest = &bytes[passed..];
            passed += match self {
                Self::End => break,
                Self::Upgraded => rest.len(),
                Self::Data { missing, .. } => {
                    let length = usize::try_from(*missing).unwrap_or(usize::MAX).min(rest.len());
                    *missing -= length as u64;
                    length
                }
                Self::Head(Head { line, has_begun, .. }) => {
                    *has_begun = true;
                    add_line(line, rest)
                }
                Self::ChunkSize(line) | Self::Trailers(line) => add_line(line, rest),
            };
            self.advance();
        }
        passed
    }

    /// Continues with the next part if this one is complete.
    fn advance(&mut self) {
        let complete = |line: &mut Vec<u8>| line.ends_with(b"\n").then(|| mem::take(line));
        *self = match self {
            Self::Data { missing: 0, is_chunk: true } => Self::ChunkSize(Vec::new()),
            Self::Data { missing: 0, is_chunk: false } => Self::End,
            Self::Head(head) if !head.line.ends_with(b"\n") => return,
            // Blank lines before a request are ignored (RFC 9112, section 2.2).
            Self::Head(head) if !head.has_lines || !head.line.trim_ascii().is_empty() => return head.end_line(),
            Self::Head(head) => match *head {
                Head { is_chunked: true, .. } => Self::ChunkSize(Vec::new()),
                Head { length: 0, .. } => Self::End,
                Head { length, .. } => Self::Data { missing: length, is_chunk: false },
            },
            Self::ChunkSize(line) => match complete(line).map(|line| chunk_size(&line)) {
                Some(Some(0)) => Self::Trailers(Vec::new()),
                // A line break follows the data.
                Some(Some(size)) => Self::Data { missing: size.saturating_add(2), is_chunk: true },
                // actix-http refuses the request.
                Some(None) => Self::End,
                None => return,
            },
            Self::Trailers(line) => match complete(line) {
                Some(line) if line.trim_ascii().is_empty() => Self::End,
                _ => return,
            },
            _ => return,
        };
    }
}

impl Head {
    /// Reads the current line, and begins the next one. If it is invalid, actix-http refuses the request (RFC 9112,
    /// section 6.3).
    fn end_line(&mut self) {
        self.has_lines |= !self.line.trim_ascii().is_empty();
        if let Some(colon) = self.line.iter().position(|byte| *byte == b':') {
            let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                self.length = str::from_utf8(value).ok().and_then(|value| value.parse().ok()).unwrap_or(0);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                self.is_chunked = true;
            }
        }
        self.line.clear();
    }
}

/// Adds bytes to `line` up to the end of the line, as far as they matter: without spaces before the value and leading
/// zeros, of which there may be any number. Returns how many belong to the line.
fn add_line(line: &mut Vec<u8>, bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let length = end.map_or(bytes.len(), |end| end + 1);
    for byte in &bytes[..length] {
        if line.len() >= MAX_LINE {
            break;
        }
        let is_padding = match byte {
            b' ' | b'\t' => line.ends_with(b":"),
            b'0' => line == b"0" || line.ends_with(b":0"),
            _ => false,
        };
        if !is_padding {
            line.push(*byte);
        }
    }
    if end.is_some() && !line.ends_with(b"\n") {
        line.push(b'\n');
    }
    length
}

/// Returns the size in the first line of a chunk, without its extensions (RFC 9112, section 7.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the requests in `sent`, of which `received` bytes are available at a time, and the bytes after them.
    fn requests(sent: &[u8], received: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut framing, mut chunks, mut requests) = (Framing::default(), sent.chunks(received), vec![Vec::new()]);
        loop {
            let mut space = [0; 32 * 1024];
            let mut buf = ReadBuf::new(&mut space);
            let result = framing.read(&mut buf, |buf| {
                buf.put_slice(chunks.next().unwrap_or_default());
                Poll::Ready(Ok(()))
            });
            assert!(matches!(result, Poll::Ready(Ok(()))));
            if buf.filled().is_empty() {
                return (requests, framing.ahead);
            }
            requests.last_mut().unwrap().extend_from_slice(buf.filled());
            if framing.is_complete() {
                framing.begin();
                requests.push(Vec::new());
            }
        }
    }

    #[test]
    fn requests_are_passed_on_one_at_a_time() {
        let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "x".repeat(500));
        let body = [&b"POST / HTTP/1.1\r\ncontent-length:20000 \r\n\r\n"[..], &[b'\n'; 20_000]].concat();
        let padded = format!("POST / HTTP/1.1\r\nContent-Length:{}{}3 \r\n\r\nabc", " \t".repeat(200), "0".repeat(200));
        let zeros = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", "0".repeat(300));
        let chunks = "0".repeat(200);
        let chunks =
            format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}3\r\nabc\r\n{chunks}\r\n\r\n");
        let all: [&[u8]; 12] = [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\nHost: localhost\n\n",
            b"\r\n\r\nHEAD / HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            long.as_bytes(),
            padded.as_bytes(),
            zeros.as_bytes(),
            chunks.as_bytes(),
            &body,
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n0A ; name=\"x\"\r\n0123456789\r\n1\r\n!\r\n00\r\nA: b\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ];
        let sent = all.concat();
        for received in [1, 2, 3, 7, 100, 8_000, sent.len()] {
            let (got, ahead) = requests(&sent, received);
            assert_eq!((&got[..12], &got[12..], ahead), (&all.map(<[u8]>::to_vec)[..], &[Vec::new()][..], Vec::new()));
        }
    }

    #[test]
    fn bytes_after_an_upgrade_are_passed_on() {
        let mut framing = Framing { ahead: b"GET / HTTP/1.1\r\n\r\nrest".to_vec(), ..Framing::default() };
        let mut space = [0; 100];
        let mut read = |framing: &mut Framing| {
            let mut buf = ReadBuf::new(&mut space);
            assert!(framing.read(&mut buf, |_| Poll::Pending).is_ready());
            buf.filled().to_vec()
        };
        assert_eq!(read(&mut framing), b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(read(&mut framing), b"");
        framing.upgrade();
        assert_eq!(read(&mut framing), b"rest");
    }

    #[test]
    fn the_end_of_a_connection_is_noticed_during_the_work_on_a_request() {
        let mut framing = Framing { part: Part::End, ..Framing::default() };
        assert!(framing.read_ahead(|_| Poll::Pending).is_pending());
        assert!(framing.read_ahead(|_| Poll::Ready(Ok(()))).is_ready(), "the end");

        // Requests before the end are processed.
        let mut framing = Framing { part: Part::End, ..Framing::default() };
        let mut sent = [&b"GET"[..], b""].into_iter();
        let read = |buf: &mut ReadBuf<'_>| {
            buf.put_slice(sent.next().unwrap());
            Poll::Ready(Ok(()))
        };
        assert!(framing.read_ahead(read).is_pending());
        framing.begin();
        for expected in [&b"GET"[..], b""] {
            let mut space = [0; 100];
            let mut buf = ReadBuf::new(&mut space);
            assert!(framing.read(&mut buf, |_| Poll::Pending).is_ready());
            assert_eq!(buf.filled(), expected);
        }
    }

    #[test]
    fn little_is_read_ahead() {
        let mut framing = Framing { part: Part::End, ..Framing::default() };
        let fill = |buf: &mut ReadBuf<'_>| {
            buf.put_slice(&vec![b'x'; buf.remaining()]);
            Poll::Ready(Ok(()))
        };
        assert!(framing.read_ahead(fill).is_pending());
        assert_eq!(framing.ahead.len(), READ_AHEAD);
    }
}
