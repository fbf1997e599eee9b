//! Access by pages of other origins (CORS: Fetch Standard, section 3.3).

use crate::url::{InvalidUrl, Origin, host_of};
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderName, HeaderValue,
};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Response headers that pages may read, in addition to those that they always may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("etag, link, retry-after, x-request-id, x-head-number, x-head-hash");

/// The response to a preflight request: allowed methods and headers, and the validity in seconds.
const PREFLIGHT: [(HeaderName, HeaderValue); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST")),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "accept, authorization, content-type, content-encoding, if-none-match, last-event-id, prefer, traceparent, x-min-head, x-request-id",
        ),
    ),
    (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600")),
];

const ASKS_FOR_METHOD: &str = "access-control-request-method";
const ASKS_FOR_NETWORK: &str = "access-control-request-private-network";
const ALLOWS_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Web pages that may use the server, and for what.
///
/// Its text is that of the origin, optionally followed by `=read` or `=control`. Without either, pages on this machine
/// and pages of a listed origin may also control a development chain; extensions and `*` may only read.
///
/// # Examples
/// ```
/// use node_http::AllowedOrigin;
///
/// let wallet: AllowedOrigin = "https://wallet.example=read".parse()?;
/// assert!(!wallet.controls);
/// assert!("loopback".parse::<AllowedOrigin>()?.controls);
/// # Ok::<(), node_http::InvalidUrl>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin {
    pub origin: Origin,
    /// Whether the pages may control a development chain, besides reading responses and using JSON-RPC.
    pub controls: bool,
}

impl From<Origin> for AllowedOrigin {
    /// Returns the origin with what it allows unless its text says otherwise.
    fn from(origin: Origin) -> Self {
        let controls = matches!(origin, Origin::Loopback | Origin::Page(_));
        Self { origin, controls }
    }
}

impl FromStr for AllowedOrigin {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let Some((origin, right)) = text.split_once('=') else { return Ok(Self::from(text.parse::<Origin>()?)) };
        let origin = origin.parse()?;
        match right {
            "read" if origin != Origin::None => Ok(Self { origin, controls: false }),
            "control" if origin != Origin::None => Ok(Self { origin, controls: true }),
            _ => Err(InvalidUrl::Right),
        }
    }
}

impl fmt::Display for AllowedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, controls } = self;
        match origin {
            Origin::None => write!(f, "{origin}"),
            _ => write!(f, "{origin}={}", if *controls { "control" } else { "read" }),
        }
    }
}

/// Returns whether a page of `origin` may read responses and use JSON-RPC.
pub(crate) fn may_read(allowed: &[AllowedOrigin], origin: &[u8]) -> bool {
    allowed.iter().any(|allowed| includes(&allowed.origin, origin))
}

/// Returns whether a page of `origin` may control a chain.
pub(crate) fn may_control(allowed: &[AllowedOrigin], origin: &[u8]) -> bool {
    allowed.iter().any(|allowed| allowed.controls && includes(&allowed.origin, origin))
}

fn includes(allowed: &Origin, origin: &[u8]) -> bool {
    match allowed {
        Origin::Any => true,
        Origin::Loopback => is_loopback(origin),
        Origin::Extensions => is_extension(origin),
        Origin::None => false,
        Origin::Page(page) => page.as_bytes().eq_ignore_ascii_case(origin),
    }
}

/// Returns whether `origin` is that of a page served on the same machine as the browser.
fn is_loopback(origin: &[u8]) -> bool {
    let origin = String::from_utf8_lossy(origin).to_ascii_lowercase();
    let Some(authority) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else {
        return false;
    };
    let host = host_of(authority);
    host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
}

/// Returns whether `origin` is that of a browser extension, such as a wallet.
fn is_extension(origin: &[u8]) -> bool {
    let schemes: [&[u8]; 3] = [b"chrome-extension://", b"moz-extension://", b"safari-web-extension://"];
    schemes.iter().any(|scheme| origin.starts_with(scheme))
}

pub(crate) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key("origin") && headers.contains_key(ASKS_FOR_METHOD)
}

/// Returns the headers of the response to a preflight request from an origin that may read.
pub(crate) fn preflight_headers(request: &HeaderMap) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let network = request.contains_key(ASKS_FOR_NETWORK).then(|| (ALLOWS_NETWORK, HeaderValue::from_static("true")));
    PREFLIGHT.into_iter().chain(network)
}

/// Returns the headers that allow a page of `origin` to read a response.
pub(crate) fn headers(allowed: &[AllowedOrigin], origin: &HeaderValue) -> [(HeaderName, HeaderValue); 2] {
    let origin = if allows_any(allowed) { HeaderValue::from_static("*") } else { origin.clone() };
    [(ACCESS_CONTROL_ALLOW_ORIGIN, origin), (ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)]
}

/// Returns whether responses depend on the origin of the requesting page.
pub(crate) fn varies(allowed: &[AllowedOrigin]) -> bool {
    !allowed.is_empty() && !allows_any(allowed)
}

fn allows_any(allowed: &[AllowedOrigin]) -> bool {
    allowed.iter().any(|allowed| allowed.origin == Origin::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_and_control_as_the_list_says() {
        let parse = |text: &str| -> Vec<AllowedOrigin> {
            text.split(',').filter(|text| !text.is_empty()).map(|origin| origin.parse().unwrap()).collect()
        };
        let cases = [
            ("", "http://localhost:3000", false, false),
            ("none", "http://localhost:3000", false, false),
            ("loopback", "http://localhost:3000", true, true),
            ("loopback", "https://app.localhost", true, true),
            ("loopback", "HTTP://LocalHost:3000", true, true),
            ("http://localhost", "HTTP://LOCALHOST", true, true),
            ("loopback", "http://127.0.0.1:5173", true, true),
            ("loopback", "http://[::1]:5173", true, true),
            ("loopback", "http://localhost.evil.example", false, false),
            ("loopback", "http://127.0.0.1.evil.example", false, false),
            ("loopback", "http://evillocalhost", false, false),
            ("loopback", "null", false, false),
            ("loopback", "file://", false, false),
            ("loopback", "chrome-extension://abc", false, false),
            ("extensions", "chrome-extension://abc", true, false),
            ("extensions", "moz-extension://1-2", true, false),
            ("extensions", "http://localhost", false, false),
            ("https://a.example,loopback", "https://a.example", true, true),
            ("https://a.example", "https://a.example:444", false, false),
            ("*", "null", true, false),
            ("*", "https://a.example", true, false),
            ("loopback=read", "http://localhost:3000", true, false),
            ("loopback=control", "http://localhost:3000", true, true),
            ("loopback=control", "https://a.example", false, false),
            ("extensions=control", "chrome-extension://abc", true, true),
            ("https://a.example=read", "https://a.example", true, false),
            ("https://a.example=read,https://a.example", "https://a.example", true, true),
            ("*=read,loopback", "https://a.example", true, false),
            ("*=read,loopback", "http://[::1]", true, true),
            ("*=control", "null", true, true),
        ];
        for (allowed, origin, reads, controls) in cases {
            let allowed = parse(allowed);
            let got = (may_read(&allowed, origin.as_bytes()), may_control(&allowed, origin.as_bytes()));
            assert_eq!(got, (reads, controls), "{allowed:?} {origin}");
        }
    }

    #[test]
    fn texts_round_trip_and_others_are_refused() {
        for (text, full) in [
            ("loopback", "loopback=control"),
            ("extensions", "extensions=read"),
            ("*", "*=read"),
            ("none", "none"),
            ("https://a.example:444=read", "https://a.example:444=read"),
        ] {
            let allowed: AllowedOrigin = text.parse().unwrap();
            assert_eq!((allowed.to_string(), full.parse().unwrap()), (full.to_owned(), allowed), "{text}");
        }
        for text in ["loopback=", "loopback=write", "none=read", "=read", "loopback=read=control", "a.example=read"] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
    }
}
