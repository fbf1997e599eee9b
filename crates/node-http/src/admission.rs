//! What every request has to pass before anything is done for it.

use crate::config::HttpConfig;
use crate::encode;
use crate::hosts;
use crate::problem::HttpError;
use crate::rate;
use crate::server::Service;
use crate::url::Origin;
use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// How much of a host that is refused is repeated, in bytes.
const REPEATED: usize = 64;

/// Who may have what a route answers, where clients need a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody: it tells nothing of the chain.
    Open,
    /// Clients with a token.
    Guarded,
}

/// Takes a request in, as one of those that there may be at a time.
pub(crate) fn admit(
    request: &HttpRequest,
    service: &Service,
    access: Access,
) -> Result<OwnedSemaphorePermit, HttpError> {
    let config = &service.config;
    check_host(request, config)?;
    if longer_than(request, config.max_headers) {
        return Err(HttpError::HeadersTooLong { limit: config.max_headers });
    }
    if let Some(rates) = &service.rates
        && let Some(client) = rate::client(request, config.trusted_proxies)
    {
        rates.check(client).map_err(HttpError::TooFast)?;
    }
    if let (Access::Guarded, Some(tokens)) = (access, &config.tokens) {
        let shown = request.headers().get(AUTHORIZATION);
        if !shown.is_some_and(|shown| tokens.accept(shown.as_bytes())) {
            return Err(HttpError::Unauthorized);
        }
    }
    let slot = Arc::clone(&service.requests).try_acquire_owned();
    slot.map_err(|_| HttpError::TooManyRequests { limit: config.max_requests })
}

/// Refuses control where others than those on this machine could have it: by the network, or through a page of theirs that a
/// browser on this machine shows.
pub(crate) fn may_control(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    if !is_of_origin(request, config, |_| false) {
        return Err(HttpError::ForeignOrigin);
    }
    if config.host.is_loopback() || config.remote_control {
        Ok(())
    } else {
        Err(HttpError::ControlRefused(config.host))
    }
}

/// Refuses pages of other origins that may not read answers. Browsers keep answers from them, but not what comes over a
/// WebSocket.
pub(crate) fn may_read(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    if is_of_origin(request, config, Origin::is_any) { Ok(()) } else { Err(HttpError::ForeignOrigin) }
}

/// Whether no page asks, or one of this server, of an origin that is listed, or of one that `further` is for.
fn is_of_origin(request: &HttpRequest, config: &HttpConfig, further: impl Fn(&Origin) -> bool) -> bool {
    let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes());
    let Some(origin) = header("origin") else { return true };
    config.cors_origins.iter().any(|allowed| allowed.as_str().as_bytes() == origin || further(allowed))
        || origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://")) == header("host")
}

/// Counts what a message asks for beyond the one request that was counted when it came.
pub(crate) fn count_requests(request: &HttpRequest, service: &Service, further: usize) -> Result<(), HttpError> {
    match (&service.rates, rate::client(request, service.config.trusted_proxies)) {
        (Some(rates), Some(client)) => rates.check_many(client, further).map_err(HttpError::TooFast),
        _ => Ok(()),
    }
}

/// A request that names no host, or nothing as its host, is none of a browser.
fn check_host(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    match encode::named_authority(request) {
        Some(named) if !named.is_empty() && !hosts::is_allowed(named, config) => {
            let end = named.floor_char_boundary(REPEATED);
            Err(HttpError::HostRefused { host: named[..end].to_owned() })
        }
        _ => Ok(()),
    }
}

fn longer_than(request: &HttpRequest, limit: usize) -> bool {
    let uri = request.uri();
    let target = uri.path().len() + uri.query().map_or(0, str::len);
    // A colon, a blank and the end of the line.
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + headers.sum::<usize>() > limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_whole_head_counts() {
        let request = TestRequest::with_uri("/1234?56").insert_header(("a", "bc")).to_http_request();
        assert!(!longer_than(&request, 14));
        assert!(longer_than(&request, 13));
    }

    #[test]
    fn other_hosts_are_refused() {
        let config = HttpConfig::default();
        let long = "x".repeat(500);
        for (host, refused) in [
            (None, None),
            (Some(""), None),
            (Some("127.0.0.1:1"), None),
            (Some("a.b:80"), Some("a.b:80")),
            (Some(&*long), Some(&long[..64])),
        ] {
            let mut request = TestRequest::default();
            if let Some(host) = host {
                request = request.insert_header(("host", host));
            }
            match (check_host(&request.to_http_request(), &config), refused) {
                (Ok(()), None) => {}
                (Err(HttpError::HostRefused { host }), Some(expected)) => assert_eq!(host, expected),
                (got, _) => panic!("{host:?}: {got:?}"),
            }
        }
    }
}
