//! What can be set about the HTTP interface.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZero;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

/// More than one, so that a few long requests do not stop the short ones.
const THREADS_A_CORE: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(3);

/// Settings of the HTTP interface. The defaults are those of the command line.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Whether the chain of a node that produces blocks may be controlled though others can reach the server.
    pub remote_control: bool,
    /// In front of every path.
    pub base_path: BasePath,
    /// Where clients reach the server, when it is not the host they name: behind a proxy.
    pub public_url: Option<PublicUrl>,
    /// Longest body taken, in bytes.
    pub max_body: usize,
    /// Time for the headers of a request to arrive.
    pub header_timeout: Duration,
    /// Time for the body of a request to arrive.
    pub body_timeout: Duration,
    /// Time that the work of one request may take, waiting for a thread included.
    pub call_timeout: Duration,
    /// Time that an idle connection is kept open.
    pub keep_alive: Duration,
    /// Time that a client may take nothing of what it is sent, where the system can tell; then its connection is closed.
    pub write_timeout: Duration,
    /// Most clients that are told of events at a time.
    pub max_streams: usize,
    /// Time after which a client that is told of events is sent a sign of life.
    pub stream_keep_alive: Duration,
    /// Time that running requests get to finish at the end.
    pub shutdown_timeout: Duration,
    /// Threads that serve connections.
    pub workers: NonZero<usize>,
    /// Threads for work that can be long.
    pub pool_threads: NonZero<usize>,
    /// Threads, of low priority, for code that clients name: calls, estimates, the pending block.
    pub call_threads: NonZero<usize>,
    /// Requests that may wait for a thread of each kind; more are refused.
    pub pool_queue: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let cores = available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 8545,
            remote_control: false,
            base_path: BasePath::default(),
            public_url: None,
            max_body: 5 * 1024 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
            write_timeout: Duration::from_secs(60),
            max_streams: 256,
            stream_keep_alive: Duration::from_secs(15),
            shutdown_timeout: Duration::from_secs(10),
            workers: cores,
            pool_threads: cores.saturating_mul(THREADS_A_CORE),
            call_threads: cores.saturating_mul(THREADS_A_CORE),
            pool_queue: 64,
        }
    }
}

/// A path in front of all others: empty, or `/` and segments without a slash at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// The path as it stands in front of others.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BasePath {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let path = text.trim_matches('/');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if !path.bytes().all(plain) || path.contains("//") {
            return Err(InvalidUrl::Path);
        }
        Ok(Self(if path.is_empty() { String::new() } else { format!("/{path}") }))
    }
}

/// Scheme and authority, and a path if a proxy adds one, without a slash at the end: `https://node.example/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The address, to which [`BasePath`] and the path of an operation are added.
    pub fn as_str(&self) -> &str {
        &self.0
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

/// Whether `text` is a host, with or without a port, that can stand in a URI and a JSON string as it is.
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

/// Why a path or address in the settings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// Another scheme, or none.
    #[error("the address must begin with http:// or https://")]
    Scheme,
    /// The host holds what no host name has.
    #[error("the address has no usable host")]
    Authority,
    /// The path holds more than letters, digits, `-._~` and single slashes.
    #[error("the path may only hold letters, digits, - . _ ~ and single slashes")]
    Path,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_paths() {
        let cases = [
            ("", Ok("")),
            ("/", Ok("")),
            ("v1", Ok("/v1")),
            ("/v1/", Ok("/v1")),
            ("/a/b", Ok("/a/b")),
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
    fn public_urls() {
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
