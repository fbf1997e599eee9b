//! Paths, URLs and origins in the configuration.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A prefix for every path: empty, or `/` and segments without a trailing slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// Returns the prefix, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for BasePath {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let path = text.trim_matches('/');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        // Clients resolve `.` and `..` before they send a path.
        let relative = path.split('/').any(|segment| matches!(segment, "." | ".."));
        if !path.bytes().all(plain) || path.contains("//") || relative {
            return Err(InvalidUrl::Path);
        }
        Ok(Self(if path.is_empty() { String::new() } else { format!("/{path}") }))
    }
}

/// The URL at which clients reach the server, such as `https://node.example/v1`: scheme, authority, and the path prefix
/// that a proxy adds, if any. Has no trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Returns the URL. The [`BasePath`], unless the URL ends with it, and the path of an operation are appended to
    /// it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the scheme, `http` or `https`.
    pub(crate) fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Returns the host, without a port.
    pub fn host(&self) -> &str {
        host_of(self.authority())
    }

    /// Returns whether only clients on the server's machine can use the URL: its host is `localhost` or a loopback
    /// address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Returns the host, with a port if there is one.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.0.split_once("://").map_or(self.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Returns the URL of paths under `base`, which is appended unless the URL already ends with it.
    pub(crate) fn with_base(&self, base: &BasePath) -> String {
        let path = self.0.splitn(4, '/').nth(3).map_or_else(String::new, |path| format!("/{path}"));
        let base = if path.ends_with(base.as_str()) { "" } else { base.as_str() };
        [&self.0, base].concat()
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PublicUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or(InvalidUrl::Scheme)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if !is_authority(authority) {
            return Err(InvalidUrl::Authority);
        }
        path.parse::<BasePath>()?;
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

/// Web pages that may use the server, in addition to its own pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `*`: pages of every origin.
    Any,
    /// `loopback`: pages served on the same machine as the browser, at any port.
    Loopback,
    /// `extensions`: pages of browser extensions, such as wallets.
    Extensions,
    /// `none`: no pages.
    None,
    /// Pages of one origin in the form that browsers send, such as `https://wallet.example`.
    Page(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "*",
            Self::Loopback => "loopback",
            Self::Extensions => "extensions",
            Self::None => "none",
            Self::Page(origin) => origin,
        })
    }
}

impl FromStr for Origin {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        match text {
            "*" => return Ok(Self::Any),
            "loopback" => return Ok(Self::Loopback),
            "extensions" => return Ok(Self::Extensions),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let (scheme, authority) = text.split_once("://").ok_or(InvalidUrl::OriginScheme)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(plain) {
            return Err(InvalidUrl::OriginScheme);
        }
        let authority = authority.to_ascii_lowercase();
        if !is_authority(&authority) {
            let is_longer = authority.split_once('/').is_some_and(|(authority, _)| is_authority(authority));
            return Err(if is_longer { InvalidUrl::Origin } else { InvalidUrl::Authority });
        }
        Ok(Self::Page(format!("{scheme}://{authority}")))
    }
}

/// Returns the host in `host`, `host:port`, `[v6]` or `[v6]:port`, without brackets.
pub(crate) fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    }
}

/// Returns whether `text` is a host with or without a port. Such text needs no escaping in URIs and JSON strings.
pub(crate) fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => (1..=253).contains(&host.len()) && host.bytes().all(plain),
    };
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok();
    is_host && port.is_none_or(is_port)
}

/// Why a path, URL or origin in the configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// The scheme of a URL is missing or not allowed.
    #[error("the address must start with http:// or https://")]
    Scheme,
    /// The scheme of an origin is missing or invalid.
    #[error("an origin must start with a scheme, such as https://")]
    OriginScheme,
    /// The host is missing or invalid.
    #[error("the address has no valid host")]
    Authority,
    /// Something follows the host of an origin.
    #[error("an origin ends with its host or port, without a slash")]
    Origin,
    /// What pages of an origin may do is neither `read` nor `control`.
    #[error("an origin may be followed by =read or =control, except none")]
    Right,
    /// The path has characters other than letters, digits, `-._~` and single slashes, or a segment `.` or `..`.
    #[error("the path may contain only letters, digits, - . _ ~ and single slashes, and no segment . or ..")]
    Path,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_base_paths() {
        let cases = [
            ("", Ok("")),
            ("/", Ok("")),
            ("v1", Ok("/v1")),
            ("/v1/", Ok("/v1")),
            ("/a/b", Ok("/a/b")),
            ("/a.b/..c", Ok("/a.b/..c")),
            ("/a/../b", Err(InvalidUrl::Path)),
            ("/a/./b", Err(InvalidUrl::Path)),
            ("..", Err(InvalidUrl::Path)),
            ("/a//b", Err(InvalidUrl::Path)),
            ("/{x}", Err(InvalidUrl::Path)),
            ("/a b", Err(InvalidUrl::Path)),
        ];
        for (text, expected) in cases {
            let got = text.parse::<BasePath>();
            assert_eq!(got.as_ref().map(BasePath::as_str), expected.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn parses_origins() {
        let cases = [
            ("*", Ok("*")),
            ("loopback", Ok("loopback")),
            ("extensions", Ok("extensions")),
            ("https://wallet.example", Ok("https://wallet.example")),
            ("http://LOCALHOST:3000", Ok("http://localhost:3000")),
            ("chrome-extension://abcdef", Ok("chrome-extension://abcdef")),
            ("wallet.example", Err(InvalidUrl::OriginScheme)),
            ("://wallet.example", Err(InvalidUrl::OriginScheme)),
            ("https://wallet.example/", Err(InvalidUrl::Origin)),
            ("https:///", Err(InvalidUrl::Authority)),
            ("https://", Err(InvalidUrl::Authority)),
            ("null", Err(InvalidUrl::OriginScheme)),
        ];
        for (text, expected) in cases {
            let got = text.parse::<Origin>();
            assert_eq!(got.map(|origin| origin.to_string()), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn extracts_the_host_of_a_public_url() {
        for (url, host) in [("https://Node.example:8/x", "Node.example"), ("http://[::1]:80", "::1"), ("http://a", "a")]
        {
            assert_eq!(url.parse::<PublicUrl>().unwrap().host(), host, "{url}");
        }
    }

    #[test]
    fn a_public_url_may_contain_the_base_path() {
        let cases = [
            ("https://node.example", "", "https://node.example"),
            ("https://node.example", "/v1", "https://node.example/v1"),
            ("https://node.example/v1/", "/v1", "https://node.example/v1"),
            ("https://node.example/proxy", "/v1", "https://node.example/proxy/v1"),
            ("https://node.example/proxy/v1", "/v1", "https://node.example/proxy/v1"),
            ("https://node.example/xv1", "/v1", "https://node.example/xv1/v1"),
            ("https://v1", "/v1", "https://v1/v1"),
        ];
        for (url, base, expected) in cases {
            let url: PublicUrl = url.parse().unwrap();
            assert_eq!(url.with_base(&base.parse().unwrap()), expected, "{url:?} {base}");
        }
    }

    #[test]
    fn parses_public_urls() {
        let cases = [
            ("https://node.example", Ok("https://node.example")),
            ("http://[::1]:80/v1/", Ok("http://[::1]:80/v1")),
            ("node.example", Err(InvalidUrl::Scheme)),
            ("ftp://node.example", Err(InvalidUrl::Scheme)),
            ("http://", Err(InvalidUrl::Authority)),
            ("http://a\"b", Err(InvalidUrl::Authority)),
            ("http://[::1", Err(InvalidUrl::Authority)),
            ("http://host:65536", Err(InvalidUrl::Authority)),
            ("http://host:", Err(InvalidUrl::Authority)),
            ("http://user@host", Err(InvalidUrl::Authority)),
            ("http://host/?q", Err(InvalidUrl::Path)),
        ];
        for (text, expected) in cases {
            let got = text.parse::<PublicUrl>();
            assert_eq!(got.as_ref().map(PublicUrl::as_str), expected.as_ref().copied(), "{text}");
        }
    }
}
