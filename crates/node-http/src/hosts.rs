//! Under which names the server may be asked.
//!
//! A page of any site can have its own name resolve to 127.0.0.1, and then ask the server as if it were of the same origin
//! (DNS rebinding). What it cannot do is to name another host than its own, so that names nobody allowed are refused. An
//! attack needs a name: addresses are always allowed.

use crate::config::HttpConfig;
use crate::url::{PublicUrl, host_of};
use std::net::IpAddr;
use std::str::FromStr;

/// Names under which the server may be asked, besides addresses, `localhost`, and the host of its public address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    any: bool,
    names: Vec<String>,
}

impl AllowedHosts {
    /// Allows each of `hosts`, among which `*` allows all.
    pub fn new(hosts: impl IntoIterator<Item = AllowedHost>) -> Self {
        let names: Vec<_> = hosts.into_iter().map(|host| host.0).collect();
        Self { any: names.iter().any(|name| name == "*"), names }
    }

    fn allows(&self, name: &str) -> bool {
        self.any || self.names.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
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

/// The text is no host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name without scheme and port, or *")]
pub struct InvalidHost;

/// Whether a request may name `authority`, a host with or without a port.
pub(crate) fn is_allowed(authority: &str, config: &HttpConfig) -> bool {
    let host = host_of(authority);
    // A dot at the end makes a name absolute, and changes nothing else.
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_local = || {
        let last = name.rsplit('.').next().unwrap_or(name);
        last.eq_ignore_ascii_case("localhost")
    };
    let is_public =
        || config.public_url.as_ref().map(PublicUrl::host).is_some_and(|host| host.eq_ignore_ascii_case(name));
    name.parse::<IpAddr>().is_ok() || is_local() || is_public() || config.allowed_hosts.allows(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_allowed_and_addresses_always_are() {
        let allowed = |names: &[&str]| HttpConfig {
            allowed_hosts: AllowedHosts::new(names.iter().map(|name| name.parse().unwrap())),
            public_url: Some("https://public.example/x".parse().unwrap()),
            ..HttpConfig::default()
        };
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
            assert_eq!(is_allowed(authority, &allowed(names)), expected, "{names:?} {authority}");
        }
    }

    #[test]
    fn host_names() {
        for (text, valid) in
            [("*", true), ("a.b-c_d", true), ("", false), ("a:80", false), ("http://a", false), ("*.a", false)]
        {
            assert_eq!(text.parse::<AllowedHost>().is_ok(), valid, "{text}");
        }
    }
}
