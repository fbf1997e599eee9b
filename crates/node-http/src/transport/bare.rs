//! Handling of the responses that actix-http sends to malformed requests: a status without a body, before any code of
//! this crate runs.
//!
//! They are recognized when they are written, and replaced with problems.

use crate::config::HttpConfig;
use crate::problem::HttpError;

/// Finds such a response in `bytes`, which actix-http is writing to an HTTP/1.1 connection. Returns its offset and
/// its status. It is the last response on its connection.
pub(crate) fn find(bytes: &[u8]) -> Option<(usize, u16)> {
    // This crate's own responses to invalid requests end with a body.
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let start = bytes.windows(10).rposition(|window| window == b"HTTP/1.1 4")?;
    let head = std::str::from_utf8(&bytes[start..]).ok()?;
    let status = head[9..].split(' ').next()?.parse().ok()?;
    (head.contains("\r\ncontent-length: 0\r\n") && !head.contains("\r\nx-request-id: ")).then_some((start, status))
}

/// The bytes received on a connection since the last write.
#[derive(Default)]
pub(crate) struct Received {
    /// Up to [`MAX_HEAD`](Self::MAX_HEAD) of the first bytes.
    head: Vec<u8>,
    bytes: usize,
}

impl Received {
    /// Enough for the request line and the headers at the beginning of most requests.
    const MAX_HEAD: usize = 2_048;

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        let missing = Self::MAX_HEAD - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
    }

    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.bytes = 0;
    }

    /// Returns the error for which actix-http refuses the request with `status`.
    pub(crate) fn error(&self, status: u16, config: &HttpConfig) -> HttpError {
        let limit = config.requests.max_headers;
        let is_whole = self.head.windows(4).any(|window| window == b"\r\n\r\n");
        match status {
            408 => HttpError::HeadersTimeout,
            431 => HttpError::HeadersTooLong { limit },
            _ if !is_whole && self.bytes > limit => HttpError::HeadersTooLong { limit },
            _ => HttpError::NotHttp(self.fault(is_whole)),
        }
    }

    fn fault(&self, is_whole: bool) -> &'static str {
        if self.head.starts_with(b"\x16\x03") {
            return "it is TLS, which this port does not expect";
        }
        let mut lines = self.head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let request_line: Vec<_> = lines.next().unwrap_or_default().split(|byte| *byte == b' ').collect();
        if !matches!(request_line[..], [_, _, b"HTTP/1.1" | b"HTTP/1.0"]) {
            return "it must begin with a method, a path and HTTP/1.1";
        }
        let is_host = |line: &&[u8]| line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
        match lines.take_while(|line| !line.is_empty()).filter(is_host).count() {
            0 if is_whole => "it has no header Host",
            2.. => "it has more than one header Host",
            _ => "its path or a header has characters that are not allowed, or the length of its body is ambiguous",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_last_response_if_it_is_bare() {
        let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let own = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let head = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nx-request-id: 1\r\n\r\n";
        let cases = [
            (bare.to_owned(), Some((0, 400))),
            ([own, bare].concat(), Some((own.len(), 400))),
            (own.to_owned(), None),
            ([bare, own].concat(), None),
            (head.to_owned(), None),
            ("HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(), None),
            (String::new(), None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(find(bytes.as_bytes()), expected, "{bytes:?}");
        }
    }
}
