//! One URL of an upstream, and what was learned about it.

use crate::message::{self, Fault, Meaning, Reply, Unexpected};
use crate::options::UpstreamOptions;
use crate::pace::Pace;
use parking_lot::Mutex;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, Uri};
use ureq::{Agent, Body};

/// The maximum time for which an endpoint is left alone.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    url: Uri,
    /// Host and port, without what may be secret: user, password, path and query.
    name: String,
    agent: Agent,
    headers: HeaderMap,
    response_bytes: usize,
    pub(crate) pace: Pace,
    /// The maximum number of requests in a batch; 1 if batches are refused.
    batch: AtomicUsize,
    refuses_hashes: AtomicBool,
    /// When the endpoint may be asked again.
    rests_until: Mutex<Instant>,
    reputation: Mutex<Reputation>,
}

/// Whether other endpoints are preferred.
#[derive(Debug)]
struct Reputation {
    /// Number of failures since the last response, not counting those of requests that were under way together.
    failures: u32,
    avoided_until: Instant,
}

/// Why an exchange brought no replies.
#[derive(Debug)]
pub(crate) enum Broken {
    /// No proper response, but the same request may succeed later: after this time, if the endpoint stated it.
    Failed { reason: String, wait: Option<Duration> },
    /// The request or the response is too large.
    TooLarge,
    /// The endpoint does not accept this batch.
    Batch(Fault),
}

impl Endpoint {
    /// Creates an endpoint at an HTTP URL.
    ///
    /// # Errors
    /// If the text is not such a URL.
    pub(crate) fn new(url: &str, options: &UpstreamOptions) -> Result<Self, InvalidUrl> {
        let uri: Uri = url.parse().map_err(|_| InvalidUrl::Url)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") if cfg!(feature = "tls") => {}
            Some("https") => return Err(InvalidUrl::NoTls),
            _ => return Err(InvalidUrl::Scheme),
        }
        let authority = uri.authority().ok_or(InvalidUrl::Url)?.as_str();
        let name = authority.rsplit('@').next().unwrap_or_default().to_owned();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirected POST may become a GET, and headers with secrets must not be sent elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections_per_host(options.connections)
            .timeout_global(Some(options.timeout))
            .user_agent(concat!("node-upstream/", env!("CARGO_PKG_VERSION")))
            .build();
        let mut headers: HeaderMap =
            options.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        headers.insert("content-type", ureq::http::HeaderValue::from_static("application/json"));
        Ok(Self {
            url: uri,
            name,
            agent: config.new_agent(),
            headers,
            response_bytes: options.response_bytes,
            pace: Pace::new(options.compute_units_per_second, options.no_rate_limit),
            batch: AtomicUsize::new(options.batch.max(1)),
            refuses_hashes: AtomicBool::new(false),
            rests_until: Mutex::new(Instant::now()),
            reputation: Mutex::new(Reputation { failures: 0, avoided_until: Instant::now() }),
        })
    }

    /// Returns host and port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum number of requests in a batch.
    pub(crate) fn batch(&self) -> usize {
        self.batch.load(Ordering::Relaxed)
    }

    /// Records that the endpoint refused a batch of `length` requests.
    pub(crate) fn batch_refused(&self, length: usize, fault: &Fault) {
        let limit = if fault.meaning == Meaning::TooLarge { (length / 2).max(1) } else { 1 };
        tracing::debug!(
            endpoint = self.name,
            limit,
            reason = fault.message,
            "the endpoint accepts only shorter batches"
        );
        self.batch.fetch_min(limit, Ordering::Relaxed);
    }

    /// Returns whether the endpoint refuses the hashes of blocks where a state is read.
    pub(crate) fn refuses_hashes(&self) -> bool {
        self.refuses_hashes.load(Ordering::Relaxed)
    }

    /// Records that the endpoint refuses the hashes of blocks.
    pub(crate) fn record_that_it_refuses_hashes(&self) {
        self.refuses_hashes.store(true, Ordering::Relaxed);
    }

    /// Returns the time until the endpoint may be asked.
    pub(crate) fn ready_in(&self) -> Duration {
        let now = Instant::now();
        self.rests_until.lock().saturating_duration_since(now).max(self.pace.delay(now))
    }

    /// Returns for how long other endpoints are preferred.
    pub(crate) fn avoided_for(&self) -> Duration {
        self.reputation.lock().avoided_until.saturating_duration_since(Instant::now())
    }

    /// Records that a request failed. Other endpoints are preferred for the time that `backoff` returns for the number of
    /// earlier failures.
    pub(crate) fn record_failure(&self, backoff: impl Fn(u32) -> Duration) {
        let (mut reputation, now) = (self.reputation.lock(), Instant::now());
        if reputation.avoided_until <= now {
            reputation.avoided_until = now + backoff(reputation.failures);
            reputation.failures += 1;
        }
    }

    /// Records that there was a proper response.
    pub(crate) fn record_response(&self) {
        self.reputation.lock().failures = 0;
    }

    /// Records that a response was wrong. Other endpoints are preferred for a minute.
    pub(crate) fn record_lie(&self) {
        self.reputation.lock().avoided_until = Instant::now() + MAX_WAIT;
    }

    /// Leaves the endpoint alone for this time.
    pub(crate) fn rest(&self, time: Duration) {
        let until = Instant::now() + time.min(MAX_WAIT);
        let mut rests_until = self.rests_until.lock();
        *rests_until = until.max(*rests_until);
    }

    /// Sends `body`, which consists of `count` requests, and returns the replies in their order.
    pub(crate) fn exchange(&self, body: &str, count: usize) -> Result<Vec<Reply>, Broken> {
        let failed = |error: ureq::Error| Broken::Failed { reason: format!("{}: {error}", self.name), wait: None };
        let mut request = self.agent.post(&self.url);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        let (head, response) = request.send(body).map_err(failed)?.into_parts();
        let status = head.status.as_u16();
        let wait = head.headers.get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let failed = |reason| Broken::Failed { reason, wait: wait.map(Duration::from_secs) };
        match status {
            429 => {
                self.pace.slow_down();
                return Err(failed(format!("{}: too many requests (HTTP status 429)", self.name)));
            }
            413 => return Err(Broken::TooLarge),
            // Some servers return the errors of methods with this status.
            500 => {
                let replies = self.read(response).ok().and_then(|body| message::replies(&body, count).ok());
                return replies.ok_or_else(|| failed(format!("{}: HTTP status 500", self.name)));
            }
            408 | 501.. => return Err(failed(format!("{}: HTTP status {status}", self.name))),
            _ => {}
        }
        match (message::replies(&self.read(response)?, count), status) {
            (Ok(replies), _) => Ok(replies),
            (Err(Unexpected::Batch(fault)), _) => Err(Broken::Batch(fault)),
            (Err(Unexpected::Garbage(reason)), 200) => Err(failed(format!("{}: {reason}", self.name))),
            (Err(Unexpected::Garbage(_)), _) if count > 1 => Err(Broken::Batch(Fault::of_status(status))),
            (Err(Unexpected::Garbage(_)), _) => Ok(vec![Reply::Error(Fault::of_status(status))]),
        }
    }

    /// Reads a body of limited length. ureq's own limit applies before decompression.
    fn read(&self, body: Body) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        let mut reader = body.into_reader().take(self.response_bytes as u64 + 1);
        let read = reader.read_to_end(&mut bytes);
        read.map_err(|error| Broken::Failed { reason: format!("{}: {error}", self.name), wait: None })?;
        if bytes.len() > self.response_bytes { Err(Broken::TooLarge) } else { Ok(bytes) }
    }
}

/// Why a URL cannot be that of an endpoint. The error does not repeat the URL, which may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    #[error("the text is not a URL")]
    Url,
    #[error("expected a URL that starts with http:// or https://")]
    Scheme,
    #[error("https needs a program that was built with the feature tls")]
    NoTls,
    #[error("expected 1 to {} URLs", crate::flight::Endpoints::MAX)]
    Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, InvalidUrl> {
        Endpoint::new(url, &UpstreamOptions::default())
    }

    #[test]
    fn names_have_no_secrets() {
        for (url, name) in [
            ("http://user:p%40ss@host:1/v2/key?token=s", "host:1"),
            ("http://host/v3/s3cret", "host"),
            ("http://[::1]:8545", "[::1]:8545"),
        ] {
            assert_eq!(endpoint(url).unwrap().name(), name);
        }
    }

    #[test]
    fn urls_are_of_http() {
        for url in ["", "host", "ws://host", "/path", "file:///x"] {
            assert!(matches!(endpoint(url), Err(InvalidUrl::Url | InvalidUrl::Scheme)), "{url}");
        }
        assert_eq!(endpoint("https://host").is_ok(), cfg!(feature = "tls"));
    }
}
