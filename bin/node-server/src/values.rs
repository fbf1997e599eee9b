//! Parsers for the values of options.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use ureq::http::Uri;

/// Returns the address at which a client on this machine reaches a server that listens on `address`.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Parses an http or https URL.
pub(crate) fn http_url(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err("expected a URL that starts with http:// or https://".to_owned()),
    }
}

/// Returns a URL without its user name and password.
pub(crate) fn without_credentials(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]).into(),
        None => url.into(),
    }
}

/// Parses an amount in ether.
pub(crate) fn ether(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number of ether, such as 10000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_urls() {
        for (url, expected) in [
            ("http://user:p@ss@host:1/a@b", "http://host:1/a@b"),
            ("https://user@host?a", "https://host?a"),
            ("http://host/user@host", "http://host/user@host"),
            ("some@text", "some@text"),
        ] {
            assert_eq!(without_credentials(url), expected);
        }
    }
}
