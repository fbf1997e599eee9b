//! Identifiers of requests in responses, in the log and in problems.

use actix_web::http::header::{HeaderMap, HeaderName};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Maximum length in bytes of an id that is copied from a request.
const MAX_LENGTH: usize = 128;

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestId {
    Made(Uuid),
    /// From the header `X-Request-Id` of the request.
    Sent(Arc<str>),
}

impl RequestId {
    /// Generates a new id.
    pub(crate) fn new() -> Self {
        Self::Made(Uuid::new_v4())
    }

    /// Returns the id in `headers` if it is valid, and otherwise generates a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(|id| is_valid(id));
        sent.map_or_else(Self::new, |id| Self::Sent(id.into()))
    }

    /// Returns the URI that identifies the request in a problem.
    pub(crate) fn instance(&self) -> String {
        match self {
            Self::Sent(id) if id.len() != uuid::fmt::Hyphenated::LENGTH || Uuid::try_parse(id).is_err() => {
                format!("urn:request-id:{id}")
            }
            id => format!("urn:uuid:{id}"),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(id) => id.fmt(f),
            Self::Sent(id) => id.fmt(f),
        }
    }
}

/// Returns whether `id` is short enough, and can be part of a URI and of a log line without quoting.
fn is_valid(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:+/=@".contains(&byte);
    (1..=MAX_LENGTH).contains(&id.len()) && id.bytes().all(allowed)
}

/// The trace that a request belongs to (W3C Trace Context, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The header `traceparent`.
    pub(crate) parent: String,
}

impl Trace {
    /// Reads `traceparent`. Returns `None` if it is missing or invalid.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let parent = headers.get(TRACEPARENT)?.to_str().ok()?;
        let mut parts = parent.split('-');
        let mut hex = |length: usize| {
            let part = parts.next()?;
            let is_hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            (part.len() == length && is_hex).then_some(part)
        };
        let (version, trace, span, _flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        // Version 0 has no more parts. Later versions may have more, and are read in the same way.
        let is_complete = version != "00" || parts.next().is_none();
        let is_valid =
            version != "ff" && !is_zero(trace) && !is_zero(span) && is_complete && parent.len() <= MAX_LENGTH;
        is_valid.then(|| Self { parent: parent.to_owned() })
    }

    /// Returns the id of the trace: 32 hexadecimal digits.
    pub(crate) fn id(&self) -> &str {
        self.part(1)
    }

    /// Returns the id of the span that sent the request: 16 hexadecimal digits.
    pub(crate) fn span(&self) -> &str {
        self.part(2)
    }

    /// Returns the flags: two hexadecimal digits, whose lowest bit is whether the sender records the trace.
    pub(crate) fn flags(&self) -> &str {
        self.part(3)
    }

    fn part(&self, index: usize) -> &str {
        self.parent.split('-').nth(index).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        headers
    }

    #[test]
    fn takes_over_valid_ids() {
        let uuid = "5d9c3f6e-9f0c-4a53-8a53-0f3f6f0c2a11";
        let long = "a".repeat(MAX_LENGTH);
        let cases = [
            (uuid, format!("urn:uuid:{uuid}")),
            ("5d9c3f6e9f0c4a538a530f3f6f0c2a11", "urn:request-id:5d9c3f6e9f0c4a538a530f3f6f0c2a11".to_owned()),
            ("Root=1-67/a:b@c", "urn:request-id:Root=1-67/a:b@c".to_owned()),
            (&long, format!("urn:request-id:{long}")),
        ];
        for (sent, instance) in cases {
            let id = RequestId::of(&headers(REQUEST_ID, sent));
            assert_eq!((id.to_string(), id.instance()), (sent.to_owned(), instance));
        }
        for sent in ["", "a b", "a\"b", "a\u{1b}", "ü", "<a>", &format!("{long}a")] {
            let id = RequestId::of(&headers(REQUEST_ID, &sent.replace('\u{1b}', "\t")));
            assert!(matches!(id, RequestId::Made(_)), "{sent}");
        }
        assert!(matches!(RequestId::of(&HeaderMap::new()), RequestId::Made(_)));
    }

    #[test]
    fn takes_over_valid_traces() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let read = |text: &str| Trace::of(&headers(TRACEPARENT, text)).map(|trace| trace.id().to_owned());
        for valid in [format!("00-{trace}-{span}-01"), format!("01-{trace}-{span}-01-more")] {
            assert_eq!(read(&valid).as_deref(), Some(trace), "{valid}");
        }
        let zeros = "0".repeat(32);
        for invalid in [
            String::new(),
            trace.to_owned(),
            format!("ff-{trace}-{span}-01"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{zeros}-{span}-01"),
            format!("00-{trace}-{}-01", &zeros[..16]),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-1"),
        ] {
            assert_eq!(read(&invalid), None, "{invalid}");
        }
    }
}
