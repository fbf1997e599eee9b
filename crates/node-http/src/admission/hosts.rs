//! Host names that requests may use for the server.
//!
//! This is a defense against DNS rebinding: a web site can make its own name resolve to 127.0.0.1, and its pages then
//! reach the server as if it had the same origin. The browser still sends the site's name as `Host`, so requests with
//! names that are not allowed are refused. IP addresses are always allowed, because the attack needs a name.

use crate::url::{PublicUrl, host_of, is_authority};
use std::net::IpAddr;
use std::str::FromStr;

/// Returns whether `authority` is empty, or a host name or address with or without a port, which may be empty
/// (RFC 9112, section 3.2). Percent-encoded characters, and those that other programs may treat as the end of the
/// name, are invalid.
pub(crate) fn is_valid(authority: &str) -> bool {
    authority.is_empty() || is_authority(authority.strip_suffix(':').unwrap_or(authority))
}

/// Returns whether a request may be addressed to `authority`, a valid host with or without a port. IP addresses,
/// `localhost` and the host of the public URL are accepted in addition to `hosts`.
pub(crate) fn is_allowed(hosts: &[AllowedHost], authority: &str, public_url: Option<&PublicUrl>) -> bool {
    let host = host_of(authority);
    // A trailing dot marks the name as fully qualified, and has no other meaning.
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_local = || {
        let last = name.rsplit('.').next().unwrap_or(name);
        last.eq_ignore_ascii_case("localhost")
    };
    let is_public = || public_url.is_some_and(|url| url.host().eq_ignore_ascii_case(name));
    let is_listed = || hosts.iter().any(|allowed| allowed.0 == "*" || allowed.0.eq_ignore_ascii_case(name));
    name.parse::<IpAddr>().is_ok() || is_local() || is_public() || is_listed()
}

/// A host name without a port, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost(String);

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if text == "*" || (1..=253).contains(&text.len()) && text.bytes().all(plain) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(InvalidHost)
        }
    }
}

/// The text is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name without scheme or port, or *")]
pub struct InvalidHost;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_addresses_local_names_and_listed_names() {
        let public_url = "https://public.example/x".parse().unwrap();
        let hosts = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
        let cases = [
            (&[][..], "127.0.0.1:8545", true),
            (&[], "10.1.2.3", true),
            (&[], "[::1]:8545", true),
            (&[], "[::1]", true),
            (&[], "localhost", true),
            (&[], "LocalHost.:80", true),
            (&[], "app.localhost:80", true),
            (&[], "notlocalhost", false),
            (&[], "localhost.evil.example", false),
            (&[], "public.example:443", true),
            (&[], "evil.example", false),
            (&[], "127.0.0.1.evil.example", false),
            (&[], "", false),
            (&["node.internal"], "NODE.internal:1", true),
            (&["node.internal"], "other.internal", false),
            (&["node.internal"], "x.node.internal", false),
            (&["*"], "evil.example", true),
        ];
        for (names, authority, expected) in cases {
            assert_eq!(is_allowed(&hosts(names), authority, Some(&public_url)), expected, "{names:?} {authority}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        let valid = [
            "",
            "localhost",
            "localhost:",
            "LocalHost.:80",
            "a-b_c.example:65535",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:",
            "[::1]:80",
        ];
        let invalid = [
            "[::1].evil",
            "[::1]evil:80",
            "[::1",
            "[localhost]",
            "::1",
            "evil.example#.localhost",
            "evil.example/.localhost",
            "evil.example\\.localhost",
            "evil.example?.localhost",
            "evil.example%2f.localhost",
            "evil@localhost",
            "a b.localhost",
            "a,b.localhost",
            "localhost:80:80",
            "localhost:x",
            "localhost::",
            ":80",
            ":",
            "evil\u{e9}.localhost",
        ];
        for (hosts, expected) in [(&valid[..], true), (&invalid, false)] {
            for host in hosts {
                assert_eq!(is_valid(host), expected, "{host}");
            }
        }
    }

    #[test]
    fn parses_host_names_without_scheme_and_port() {
        for (text, valid) in
            [("*", true), ("a.b-c_d", true), ("", false), ("a:80", false), ("http://a", false), ("*.a", false)]
        {
            assert_eq!(text.parse::<AllowedHost>().is_ok(), valid, "{text}");
        }
    }
}
