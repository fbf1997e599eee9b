//! Passing the bytes of an HTTP/1.1 connection to actix-http in turns.
//!
//! actix-http decodes all requests in the bytes that it is given, even if 15 are waiting already, and each takes 7 KB
//! until it has been processed. It is given a few at a time, so that clients cannot make it hold many by sending them
//! at once.

use std::io;
use std::task::Poll;
use tokio::io::ReadBuf;

/// Number of requests after which a turn ends.
const REQUESTS: usize = 4;

/// Minimum number of bytes in a turn with this many requests. The blank lines of a body count as ends of requests, and
/// must not make turns too short.
const MIN_BYTES: usize = 128;

/// Maximum number of bytes in a turn.
const MAX_BYTES: usize = 8 * 1024;

/// The current turn of a connection.
#[derive(Default)]
pub(crate) struct Turns {
    /// Number of requests passed on in this turn.
    requests: usize,
    /// Number of bytes passed on in this turn.
    bytes: usize,
    /// Whether a request is being worked on.
    is_working: bool,
    /// Bytes that were received after the end of this turn.
    rest: Vec<u8>,
}

impl Turns {
    /// Returns whether the turn is over. actix-http must then process the bytes that it has before it is given more.
    ///
    /// During the work on a request a single turn is read. It is not left out, so that the end of the connection is
    /// noticed, which cancels the work.
    pub(crate) fn is_over(&mut self, is_working: bool) -> bool {
        let work_begins = is_working && !self.is_working;
        self.is_working = is_working;
        if work_begins {
            self.begin();
        }
        let is_over = self.bytes >= MAX_BYTES || self.is_complete(self.bytes);
        if is_over && !is_working {
            self.begin();
        }
        is_over
    }

    /// Appends bytes of the current turn to `buf`: those that were received before, or otherwise new ones, which `read`
    /// provides. The turn must not be over.
    pub(crate) fn read(
        &mut self,
        buf: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let limit = buf.remaining().min(MAX_BYTES - self.bytes);
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let passed = self.pass(&rest[..limit.min(rest.len())]);
            buf.put_slice(&rest[..passed]);
            self.rest = rest[passed..].to_vec();
            return Poll::Ready(Ok(()));
        }
        let mut new = ReadBuf::new(buf.initialize_unfilled_to(limit));
        let result = read(&mut new);
        let passed = self.pass(new.filled());
        self.rest = new.filled()[passed..].to_vec();
        buf.advance(passed);
        if result.is_pending() && !self.is_working {
            // actix-http processes what it has before it reads again.
            self.begin();
        }
        result
    }

    fn begin(&mut self) {
        (self.requests, self.bytes) = (0, 0);
    }

    /// Returns whether a turn of `bytes` ends after the requests counted so far.
    fn is_complete(&self, bytes: usize) -> bool {
        self.requests >= REQUESTS && bytes >= MIN_BYTES
    }

    /// Returns how many of `bytes` belong to this turn, and counts them.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut passed = bytes.len();
        for end in ends_of_heads(bytes) {
            self.requests += 1;
            if self.is_complete(self.bytes + end) {
                passed = end;
                break;
            }
        }
        self.bytes += passed;
        passed
    }
}

/// Returns the offsets after the blank lines in `bytes`, which include the ends of the heads of requests. A line break
/// at the beginning counts, because the line may have begun earlier.
fn ends_of_heads(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut start = 0;
    let line_breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    line_breaks.filter_map(move |(at, _)| {
        let line = &bytes[start..at];
        start = at + 1;
        matches!(line, b"" | b"\r").then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the turns in which `sent` is passed on if `received` bytes are available at a time.
    fn turns(sent: &[u8], received: usize) -> Vec<Vec<u8>> {
        let (mut turns, mut chunks, mut all) = (Turns::default(), sent.chunks(received), vec![Vec::new()]);
        loop {
            if turns.is_over(false) {
                all.push(Vec::new());
            }
            let mut space = [0; 32 * 1024];
            let mut buf = ReadBuf::new(&mut space);
            let mut is_at_end = false;
            let result = turns.read(&mut buf, |buf| {
                match chunks.next() {
                    Some(chunk) => buf.put_slice(chunk),
                    None => is_at_end = true,
                }
                Poll::Ready(Ok(()))
            });
            assert!(matches!(result, Poll::Ready(Ok(()))));
            if is_at_end {
                return all;
            }
            all.last_mut().unwrap().extend_from_slice(buf.filled());
        }
    }

    #[test]
    fn a_turn_has_few_requests_and_nothing_is_lost() {
        for request in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], b"GET / HTTP/1.1\n\n", b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{}"]
        {
            let sent = request.repeat(100);
            for received in [1, 7, 100, 8_000] {
                let turns = turns(&sent, received);
                assert_eq!(turns.concat(), sent);
                for turn in turns {
                    assert!(turn.len() <= MIN_BYTES.next_multiple_of(request.len()) + request.len(), "{}", turn.len());
                }
            }
        }
    }

    #[test]
    fn a_body_is_passed_on_in_long_turns() {
        let sent = [b"POST / HTTP/1.1\r\nContent-Length: 20000\r\n\r\n".to_vec(), vec![b'x'; 20_000]].concat();
        let lengths: Vec<_> = turns(&sent, 8_192).iter().map(Vec::len).collect();
        assert_eq!(lengths, [8_192, 8_192, sent.len() - 2 * 8_192]);
        let blank = vec![b'\n'; 20_000];
        let turns = turns(&blank, 8_192);
        assert_eq!(turns.concat(), blank);
        assert!(turns.iter().rev().skip(1).all(|turn| turn.len() >= MIN_BYTES));
    }

    #[test]
    fn a_wait_for_bytes_begins_a_turn() {
        let mut turns = Turns { requests: 3, bytes: 500, ..Turns::default() };
        let mut space = [0; 100];
        let result = turns.read(&mut ReadBuf::new(&mut space), |_| Poll::Pending);
        assert!(result.is_pending());
        assert_eq!((turns.requests, turns.bytes), (0, 0));
    }

    #[test]
    fn one_turn_is_read_during_the_work_on_a_request() {
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let sent = request.repeat(100);
        let mut turns = Turns { requests: 2, ..Turns::default() };
        let mut passed = 0;
        // A request arrives at a time, and actix-http waits for more after each.
        while !turns.is_over(true) {
            let mut space = [0; 1_024];
            let mut buf = ReadBuf::new(&mut space);
            let first = turns.read(&mut buf, |buf| {
                buf.put_slice(&sent[passed..passed + request.len()]);
                Poll::Ready(Ok(()))
            });
            passed += buf.filled().len();
            assert!(first.is_ready() && turns.read(&mut buf, |_| Poll::Pending).is_pending());
        }
        assert_eq!(passed, REQUESTS * request.len());
        assert!(turns.is_over(true) && turns.is_over(false) && !turns.is_over(false));
    }
}
