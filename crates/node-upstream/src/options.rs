//! How endpoints are used.

#[cfg(feature = "clap")]
use node_core::values;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue};

/// How the endpoints of an upstream are used.
///
/// With the feature `clap`, this is a group of command-line options with the names and defaults that users of anvil
/// know. Fields that are not options can only be set in code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Upstream"))]
pub struct UpstreamOptions {
    /// HTTP header of each request, such as "Authorization: Bearer TOKEN"; may be given more than once
    #[cfg_attr(feature = "clap", arg(id = "fork_header", long = "fork-header", value_name = "NAME: VALUE"))]
    pub headers: Vec<HttpHeader>,
    /// Time before a request that failed at every URL is repeated; it doubles with each further repetition. Without a
    /// unit, in milliseconds
    #[cfg_attr(feature = "clap", arg(id = "fork_retry_backoff", long = "fork-retry-backoff", value_name = "TIME", value_parser = milliseconds, default_value = values::text(Self::default().retry_backoff)))]
    pub retry_backoff: Duration,
    /// How often a request that failed at every URL is repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "COUNT", default_value_t = Self::default().retries))]
    pub retries: u32,
    /// Time limit of each request. Without a unit, in milliseconds
    #[cfg_attr(feature = "clap", arg(id = "fork_timeout", long = "fork-timeout", visible_alias = "timeout", value_name = "TIME", value_parser = milliseconds, default_value = values::text(Self::default().timeout)))]
    pub timeout: Duration,
    /// Compute units that each URL allows per second, with Alchemy's costs of methods [default: no limit until a URL
    /// refuses a request because of its rate, then 330]
    #[cfg_attr(feature = "clap", arg(long, value_name = "UNITS", value_parser = values::at_least_one::<u64>))]
    pub compute_units_per_second: Option<u64>,
    /// Do not limit the rate of requests
    #[cfg_attr(
        feature = "clap",
        arg(long, visible_alias = "no-rpc-rate-limit", conflicts_with = "compute_units_per_second")
    )]
    pub no_rate_limit: bool,
    /// Maximum number of requests under way at once, over all endpoints. A batch counts as one.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().connections))]
    pub connections: usize,
    /// Maximum number of requests in a batch. Endpoints that accept fewer are detected.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().batch))]
    pub batch: usize,
    /// Maximum size of a batch in bytes. A single request may be larger.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().batch_bytes))]
    pub batch_bytes: usize,
    /// Maximum size of a response in bytes, after decompression. What is requested in one batch is split if its
    /// response is larger.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().response_bytes))]
    pub response_bytes: usize,
    /// Maximum number of slots that are proven in one request.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().slots))]
    pub slots: usize,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            retry_backoff: Duration::from_secs(1),
            retries: 5,
            timeout: Duration::from_secs(45),
            compute_units_per_second: None,
            no_rate_limit: false,
            connections: 8,
            // Many providers accept no more.
            batch: 100,
            batch_bytes: 256 << 10,
            // The receipts of a full block can take 10 MiB.
            response_bytes: 32 << 20,
            slots: 256,
        }
    }
}

/// An HTTP header of requests. `Debug` does not show its value, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpHeader {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FromStr for HttpHeader {
    type Err = InvalidHeader;

    /// Parses `NAME: VALUE`.
    fn from_str(text: &str) -> Result<Self, InvalidHeader> {
        let (name, value) = text.split_once(':').ok_or(InvalidHeader)?;
        let name = name.trim().parse().map_err(|_| InvalidHeader)?;
        let value = value.trim().parse().map_err(|_| InvalidHeader)?;
        Ok(Self { name, value })
    }
}

/// The text is not an HTTP header. The error does not repeat it, because it may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the name of an HTTP header, a colon and its value")]
pub struct InvalidHeader;

/// Parses a duration above zero as [`values::time`] does, but in milliseconds if it has no unit, as anvil does.
#[cfg(feature = "clap")]
fn milliseconds(text: &str) -> Result<Duration, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { values::time(&format!("{text}ms")) } else { values::time(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_name_and_a_value_and_hide_it() {
        let header: HttpHeader = "Authorization:  Bearer s3cret ".parse().unwrap();
        assert_eq!((header.name.as_str(), header.value.to_str().unwrap()), ("authorization", "Bearer s3cret"));
        assert!(!format!("{header:?}").contains("s3cret"));
        for text in ["", "Authorization", "a b: c", ": c", "a: b\r\nc: d"] {
            assert_eq!(text.parse::<HttpHeader>(), Err(InvalidHeader), "{text:?}");
        }
    }

    #[cfg(feature = "clap")]
    #[test]
    fn options_have_the_names_and_units_of_anvil() {
        use clap::{Args, Command, FromArgMatches};

        let read = |arguments: &[&str]| {
            let command = UpstreamOptions::augment_args(Command::new("x").no_binary_name(true));
            let matches = command.try_get_matches_from(arguments)?;
            UpstreamOptions::from_arg_matches(&matches)
        };
        assert_eq!(read(&[]).unwrap(), UpstreamOptions::default());
        let given =
            read(&["--fork-retry-backoff", "250", "--timeout", "5s", "--retries", "0", "--fork-header", "A: b"]);
        let expected = UpstreamOptions {
            headers: vec!["a: b".parse().unwrap()],
            retry_backoff: Duration::from_millis(250),
            timeout: Duration::from_secs(5),
            retries: 0,
            ..UpstreamOptions::default()
        };
        assert_eq!(given.unwrap(), expected);
        assert!(read(&["--no-rate-limit", "--compute-units-per-second", "100"]).is_err());
        assert!(read(&["--timeout", "0"]).is_err() && read(&["--compute-units-per-second", "0"]).is_err());
    }
}
