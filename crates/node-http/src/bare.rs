//! Responses of actix-http to what is not a request: a status and no body, before any code of this crate runs.
//!
//! They are recognized as they are written, and problems are sent in their place.

use crate::config::HttpConfig;
use crate::problem::HttpError;

/// Where in `bytes`, which actix-http writes to a connection of HTTP/1.1, such a response begins, and its status. It is the last
/// one of its connection.
pub(crate) fn find(bytes: &[u8]) -> Option<(usize, u16)> {
    // The responses of this crate to invalid requests end with their bodies.
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let start = bytes.windows(10).rposition(|window| window == b"HTTP/1.1 4")?;
    let head = std::str::from_utf8(&bytes[start..]).ok()?;
    let status = head[9..].split(' ').next()?.parse().ok()?;
    (head.contains("\r\ncontent-length: 0\r\n") && !head.contains("\r\nx-request-id: ")).then_some((start, status))
}

/// Why actix-http refuses a request with `status`.
pub(crate) fn error(status: u16, config: &HttpConfig) -> HttpError {
    match status {
        408 => HttpError::HeadersTimeout,
        431 => HttpError::HeadersTooLong { limit: config.max_headers },
        _ => HttpError::NotHttp,
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
