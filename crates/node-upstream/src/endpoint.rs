//! One URL of an upstream, and what was learned about it.

use crate::message::{self, Fault, Meaning, Reply, Unexpected};
use crate::options::UpstreamOptions;
use crate::pace::Pace;
use crate::socket::Sockets;
use node_core::remote::EndpointUse;
use parking_lot::Mutex;
use std::fmt;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, HeaderValue, Uri};
use ureq::{Agent, Body};

/// The maximum time for which an endpoint is left alone.
const MAX_WAIT: Duration = Duration::from_secs(60);

const USER_AGENT: &str = concat!("node-upstream/", env!("CARGO_PKG_VERSION"));

/// Precedes the reason why a response cannot be read.
const NOT_JSON_RPC: &str = "the response is not one of JSON-RPC: ";

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    transport: Transport,
    /// Host and port, without what may be secret: user, password, path and query.
    name: String,
    url: Uri,
    response_bytes: usize,
    /// Time limit of a request.
    timeout: Duration,
    pub(crate) pace: Pace,
    /// The maximum number of requests in a batch; 1 if batches are refused.
    batch: AtomicUsize,
    refuses_hashes: AtomicBool,
    /// When the endpoint may be asked again.
    rests_until: Mutex<Instant>,
    reputation: Mutex<Reputation>,
    requests: AtomicU64,
    failures: AtomicU64,
    bytes: AtomicU64,
    /// Why the last exchange failed; `None` if it did not.
    last_failure: Mutex<Option<String>>,
}

/// How messages are exchanged.
#[derive(Debug)]
enum Transport {
    Http { url: Uri, agent: Agent, headers: HeaderMap },
    WebSocket(Sockets),
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
    /// Creates an endpoint at a URL of HTTP or WebSocket.
    ///
    /// # Errors
    /// If the text is not such a URL.
    pub(crate) fn new(url: &str, options: &UpstreamOptions) -> Result<Self, InvalidUrl> {
        let Url { uri, name, is_socket } = Url::parse(url)?;
        let mut headers: HeaderMap =
            options.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        let transport = if is_socket {
            headers.insert("user-agent", HeaderValue::from_static(USER_AGENT));
            let UpstreamOptions { timeout, response_bytes, connections, .. } = *options;
            Transport::WebSocket(Sockets::new(uri.clone(), headers, timeout, response_bytes, connections))
        } else {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                // A redirected POST may become a GET, and headers with secrets must not be sent elsewhere.
                .max_redirects(0)
                .max_redirects_will_error(false)
                .max_idle_connections_per_host(options.connections)
                .timeout_global(Some(options.timeout))
                .user_agent(USER_AGENT)
                .build();
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            Transport::Http { url: uri.clone(), agent: config.new_agent(), headers }
        };
        Ok(Self {
            transport,
            name,
            url: uri,
            response_bytes: options.response_bytes,
            timeout: options.timeout,
            pace: Pace::new(options.compute_units_per_second, options.no_rate_limit),
            batch: AtomicUsize::new(options.batch.max(1)),
            refuses_hashes: AtomicBool::new(false),
            rests_until: Mutex::new(Instant::now()),
            reputation: Mutex::new(Reputation { failures: 0, avoided_until: Instant::now() }),
            requests: AtomicU64::default(),
            failures: AtomicU64::default(),
            bytes: AtomicU64::default(),
            last_failure: Mutex::default(),
        })
    }

    /// Returns host and port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.url.scheme_str().unwrap_or_default(), self.name)
    }

    /// Returns the whole URL, which may contain secrets.
    pub(crate) fn url(&self) -> &Uri {
        &self.url
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
        self.requests.fetch_add(count as u64, Ordering::Relaxed);
        let exchanged = match &self.transport {
            Transport::Http { url, agent, headers } => self.exchange_over_http(url, agent, headers, body, count),
            Transport::WebSocket(sockets) => self.exchange_over_socket(sockets, body, count),
        };
        let failure = match &exchanged {
            Err(Broken::Failed { reason, .. }) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                Some(reason.clone())
            }
            // It responds, and refuses everything.
            Ok(replies) => match &replies[..] {
                [Reply::Error(fault)] if (300..500).contains(&fault.code) => {
                    Some(format!("{}: {}", self.name, fault.message))
                }
                _ => None,
            },
            Err(Broken::TooLarge | Broken::Batch(_)) => None,
        };
        *self.last_failure.lock() = failure;
        exchanged
    }

    /// Returns how the endpoint was used so far.
    pub(crate) fn usage(&self) -> EndpointUse {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EndpointUse {
            name: self.name.clone(),
            requests: count(&self.requests),
            failures: count(&self.failures),
            bytes: count(&self.bytes),
            last_failure: self.last_failure.lock().clone(),
        }
    }

    fn exchange_over_socket(&self, sockets: &Sockets, body: &str, count: usize) -> Result<Vec<Reply>, Broken> {
        let failed =
            |reason: &dyn fmt::Display, wait| Broken::Failed { reason: format!("{}: {reason}", self.name), wait };
        let received = sockets.exchange(body).map_err(|error| match error {
            tungstenite::Error::Capacity(_) => Broken::TooLarge,
            // The server refuses the connection.
            tungstenite::Error::Http(response) => {
                let status = response.status().as_u16();
                if status == 429 {
                    self.pace.slow_down();
                }
                failed(&format_args!("HTTP status {status}"), stated_wait(response.headers()))
            }
            error => failed(&error, None),
        })?;
        self.bytes.fetch_add(received.len() as u64, Ordering::Relaxed);
        message::replies(&received, count).map_err(|unexpected| match unexpected {
            Unexpected::Batch(fault) => Broken::Batch(fault),
            Unexpected::Garbage(reason) => failed(&format_args!("{NOT_JSON_RPC}{reason}"), None),
        })
    }

    fn exchange_over_http(
        &self,
        url: &Uri,
        agent: &Agent,
        headers: &HeaderMap,
        body: &str,
        count: usize,
    ) -> Result<Vec<Reply>, Broken> {
        let failed = |error: ureq::Error| Broken::Failed { reason: self.reason(&error), wait: None };
        let mut request = agent.post(url);
        if let Some(all) = request.headers_mut() {
            all.extend(headers.clone());
        }
        let (head, response) = request.send(body).map_err(failed)?.into_parts();
        let status = head.status.as_u16();
        let wait = stated_wait(&head.headers);
        let failed = |reason| Broken::Failed { reason, wait };
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
            (Err(Unexpected::Garbage(reason)), 200) => Err(failed(format!("{}: {NOT_JSON_RPC}{reason}", self.name))),
            (Err(Unexpected::Garbage(_)), _) if count > 1 => Err(Broken::Batch(Fault::of_status(status))),
            (Err(Unexpected::Garbage(_)), _) => Ok(vec![Reply::Error(Fault::of_status(status))]),
        }
    }

    /// Returns why there is no response.
    fn reason(&self, error: &ureq::Error) -> String {
        match error {
            ureq::Error::Timeout(_) => format!("{}: no response within {:?}", self.name, self.timeout),
            error => format!("{}: {error}", self.name),
        }
    }

    /// Reads a body of limited length. ureq's own limit applies before decompression.
    fn read(&self, body: Body) -> Result<Vec<u8>, Broken> {
        let mut bytes = Vec::new();
        let mut reader = body.into_reader().take(self.response_bytes as u64 + 1);
        let read = reader.read_to_end(&mut bytes);
        let failed = |error: io::Error| Broken::Failed { reason: self.reason(&ureq::Error::from(error)), wait: None };
        read.map_err(failed)?;
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() > self.response_bytes { Err(Broken::TooLarge) } else { Ok(bytes) }
    }
}

/// The parts of a URL.
struct Url {
    uri: Uri,
    /// Host and port.
    name: String,
    /// Whether it is one of WebSocket.
    is_socket: bool,
}

impl Url {
    fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let uri: Uri =
            url.parse().map_err(|_| if url.contains("://") { InvalidUrl::Url } else { InvalidUrl::Scheme })?;
        let is_socket = match uri.scheme_str() {
            Some("http") => false,
            Some("https") if cfg!(feature = "tls") => false,
            Some("ws") => true,
            Some("wss") if cfg!(feature = "tls") => true,
            Some("https" | "wss") => return Err(InvalidUrl::NoTls),
            _ => return Err(InvalidUrl::Scheme),
        };
        let authority = uri.authority().ok_or(InvalidUrl::Url)?;
        if authority.port_u16() == Some(0) || authority.port().is_none() && has_port(authority.as_str()) {
            return Err(InvalidUrl::Port);
        }
        let authority = authority.as_str();
        let name = authority.rsplit('@').next().unwrap_or_default().to_owned();
        if is_socket && authority.contains('@') {
            return Err(InvalidUrl::User);
        }
        Ok(Self { uri, name, is_socket })
    }
}

/// Returns whether the authority of a URL ends with a colon and something.
fn has_port(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'))
}

/// Checks that a text is the URL of an endpoint.
///
/// # Errors
/// If it is not.
pub fn check_url(url: &str) -> Result<(), InvalidUrl> {
    Url::parse(url).map(drop)
}

/// Returns the time after which the endpoint wants to be asked again, if it states one.
fn stated_wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Why a URL cannot be that of an endpoint. The error does not repeat the URL, which may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    #[error("the text is not a URL")]
    Url,
    #[error("expected a URL that starts with http://, https://, ws:// or wss://")]
    Scheme,
    #[error("https and wss need a program that was built with the feature tls")]
    NoTls,
    #[error("a URL of a WebSocket cannot contain a user; send a header with the credentials")]
    User,
    #[error("the port of the URL is not a number from 1 to 65535")]
    Port,
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
    fn urls_are_of_http_or_websocket() {
        for url in ["", "host", "ftp://host", "/path", "file:///x", "wsx://host"] {
            assert!(matches!(endpoint(url), Err(InvalidUrl::Url | InvalidUrl::Scheme)), "{url}");
        }
        for (url, is_port) in [
            ("http://host:0", false),
            ("http://host:65535", true),
            ("http://host:65536", false),
            ("http://name:word@host:99999/path", false),
            ("http://name:word@host/path", true),
            ("http://[::1]", true),
            ("http://[::1]:8545", true),
            ("http://[::1]:99999", false),
            ("http://host:", true),
        ] {
            assert_eq!(endpoint(url).err(), (!is_port).then_some(InvalidUrl::Port), "{url}");
        }
        assert!(endpoint("ws://host/path").is_ok());
        assert_eq!(endpoint("ws://name:word@host").err(), Some(InvalidUrl::User));
        for url in ["https://host", "wss://host"] {
            assert_eq!(endpoint(url).err(), (!cfg!(feature = "tls")).then_some(InvalidUrl::NoTls));
        }
    }
}
