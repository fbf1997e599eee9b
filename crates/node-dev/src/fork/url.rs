//! URLs of servers of the other chain.

use super::ForkPoint;
use node_upstream::{InvalidUrl, check_url};
use std::fmt;
use std::str::FromStr;

/// A URL, with the block to begin with if it ends with `@` and one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForkUrl {
    pub(super) url: String,
    pub(super) point: Option<ForkPoint>,
}

/// Why a text is not the URL of a server. Of the text, the error contains at most host and port, because the rest may be
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidForkUrl {
    #[error("{host}{reason}")]
    Url { host: UrlHost, reason: InvalidUrl },
    #[error(
        "{host}expected a block after the @: a number, a hash, a tag such as latest, or a negative number; a URL with a user \
         must end with /, and an @ after the host is written %40"
    )]
    Block { host: UrlHost },
}

/// The host of a URL and its port, if it has one, before a message. Nothing if the text has no host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlHost(Option<String>);

impl fmt::Display for UrlHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |host| write!(f, "{host}: "))
    }
}

impl UrlHost {
    fn of(text: &str) -> Self {
        let rest = text.split_once("://").map(|(_, rest)| rest);
        let authority = rest.unwrap_or(text).split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        // Without a scheme, the text may be anything.
        let is_shown = !host.is_empty() && (rest.is_some() || is_host(host));
        Self(is_shown.then(|| host.to_owned()))
    }
}

impl FromStr for ForkUrl {
    type Err = InvalidForkUrl;

    fn from_str(text: &str) -> Result<Self, InvalidForkUrl> {
        let (url, point) = match text.rsplit_once('@') {
            None => (text, None),
            Some((url, block)) => match block.parse() {
                Ok(block) => (url, Some(ForkPoint::At(block))),
                Err(_) if is_user(url, block) => (text, None),
                Err(_) => return Err(InvalidForkUrl::Block { host: UrlHost::of(url) }),
            },
        };
        check_url(url).map_err(|reason| InvalidForkUrl::Url { host: UrlHost::of(url), reason })?;
        Ok(Self { url: url.to_owned(), point })
    }
}

/// Returns whether what comes before an `@` in a URL is a user, and not the URL of a server.
fn is_user(before: &str, after: &str) -> bool {
    let user = before.split_once("://").map_or(before, |(_, rest)| rest);
    if user.contains(['/', '?', '#']) {
        return false;
    }
    let is_name = !after.contains(['.', ':', '/', '?', '#']);
    let has_password = user.contains(':') && port(user).is_none();
    after.contains(['/', '?']) || !is_host(user) && (has_password || !is_name)
}

/// Returns whether a text is an address, or a name with a dot, with or without a port.
fn is_host(text: &str) -> bool {
    let name = match text.rsplit_once(':') {
        Some((name, _)) if port(text).is_some() => name,
        Some(_) => return text.starts_with('[') && text.ends_with(']'),
        None => text,
    };
    name == "localhost" || name.starts_with('[') || name.contains('.')
}

fn port(text: &str) -> Option<u16> {
    text.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::producer::ForkBlock;
    use node_types::BlockId;

    #[test]
    fn urls_may_end_with_a_block() {
        let number = |number: u64| Some(ForkPoint::At(ForkBlock::Id(BlockId::number(number))));
        for (text, url, point) in [
            ("http://a", "http://a", None),
            ("http://a@17", "http://a", number(17)),
            ("http://a:1/b?c=d@0x11", "http://a:1/b?c=d", number(17)),
            ("ws://a@latest", "ws://a", Some(ForkPoint::At(ForkBlock::default()))),
            ("http://name:word@a@-5", "http://name:word@a", Some(ForkPoint::At(ForkBlock::Back(5)))),
            ("http://name:word@a/@5", "http://name:word@a/", number(5)),
            // Users.
            ("http://name:word@a.example/x", "http://name:word@a.example/x", None),
            ("http://name:word@a", "http://name:word@a", None),
            ("http://name:word@a:1", "http://name:word@a:1", None),
            ("http://name@a.example", "http://name@a.example", None),
            ("http://name@a/", "http://name@a/", None),
            ("http://name.of:1@a/", "http://name.of:1@a/", None),
        ] {
            let expected = ForkUrl { url: url.to_owned(), point };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_neither_a_block_nor_a_host_is_refused() {
        for (text, host) in [
            ("http://localhost@latst", "localhost: "),
            ("http://a.example@junk", "a.example: "),
            ("http://127.0.0.1:8545@junk", "127.0.0.1:8545: "),
            ("http://127.0.0.1:8545@1.5", "127.0.0.1:8545: "),
            ("http://node:8545@junk", "node:8545: "),
            ("http://[::1]:8545@junk", "[::1]:8545: "),
            ("http://[::1]@junk", "[::1]: "),
            ("http://node@junk", "node: "),
            ("http://name:word@a.example/key@junk", "a.example: "),
            ("http://a.example/key?secret=b@junk", "a.example: "),
        ] {
            let error = text.parse::<ForkUrl>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{host}expected a block")), "{text}: {error}");
        }
        for (text, host) in [
            ("ftp://name:word@a.example/key", "a.example: "),
            ("127.0.0.1:8545", "127.0.0.1:8545: "),
            ("ftp://a@7", "a: "),
            ("secret", ""),
            ("", ""),
        ] {
            let error = text.parse::<ForkUrl>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{host}expected a URL")), "{text}: {error}");
        }
    }
}
