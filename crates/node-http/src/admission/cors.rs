//! Access by pages of other origins (CORS: Fetch Standard, section 3.3).

use crate::url::{Origin, host_of};
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderName, HeaderValue,
};
use std::net::IpAddr;

/// Response headers that pages may read, in addition to those that they always may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("etag, link, retry-after, x-request-id, x-head-number, x-head-hash");

/// The response to a preflight request: allowed methods and headers, and the validity in seconds.
const PREFLIGHT: [(HeaderName, HeaderValue); 3] = [
    (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST")),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "accept, authorization, content-type, content-encoding, if-none-match, last-event-id, prefer, traceparent, x-request-id",
        ),
    ),
    (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600")),
];

const ASKS_FOR_METHOD: &str = "access-control-request-method";
const ASKS_FOR_NETWORK: &str = "access-control-request-private-network";
const ALLOWS_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Returns whether a page of `origin` may read responses and use JSON-RPC.
pub(crate) fn may_read(allowed: &[Origin], origin: &[u8]) -> bool {
    allowed.iter().any(|allowed| match allowed {
        Origin::Any => true,
        Origin::Loopback => is_loopback(origin),
        Origin::Extensions => is_extension(origin),
        Origin::None => false,
        Origin::Page(page) => page.as_bytes().eq_ignore_ascii_case(origin),
    })
}

/// Returns whether a page of `origin` may control a chain, which requires that the origin is listed explicitly.
pub(crate) fn may_control(allowed: &[Origin], origin: &[u8]) -> bool {
    allowed.iter().any(|allowed| matches!(allowed, Origin::Page(page) if page.as_bytes().eq_ignore_ascii_case(origin)))
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
pub(crate) fn headers(allowed: &[Origin], origin: &HeaderValue) -> [(HeaderName, HeaderValue); 2] {
    let any = allowed.iter().any(|allowed| matches!(allowed, Origin::Any));
    let origin = if any { HeaderValue::from_static("*") } else { origin.clone() };
    [(ACCESS_CONTROL_ALLOW_ORIGIN, origin), (ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED)]
}

/// Returns whether responses depend on the origin of the requesting page.
pub(crate) fn varies(allowed: &[Origin]) -> bool {
    !allowed.is_empty() && !allowed.iter().any(|allowed| matches!(allowed, Origin::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_read_by_list_or_kind_and_control_by_list() {
        let parse = |text: &str| -> Vec<Origin> {
            text.split(',').filter(|text| !text.is_empty()).map(|origin| origin.parse().unwrap()).collect()
        };
        let cases = [
            ("", "http://localhost:3000", false, false),
            ("none", "http://localhost:3000", false, false),
            ("loopback", "http://localhost:3000", true, false),
            ("loopback", "https://app.localhost", true, false),
            ("loopback", "HTTP://LocalHost:3000", true, false),
            ("http://localhost", "HTTP://LOCALHOST", true, true),
            ("loopback", "http://127.0.0.1:5173", true, false),
            ("loopback", "http://[::1]:5173", true, false),
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
        ];
        for (allowed, origin, reads, controls) in cases {
            let allowed = parse(allowed);
            let got = (may_read(&allowed, origin.as_bytes()), may_control(&allowed, origin.as_bytes()));
            assert_eq!(got, (reads, controls), "{allowed:?} {origin}");
        }
    }
}
