//! Checks that every request must pass before any work is done for it.

use crate::config::HttpConfig;
use crate::encode;
use crate::hosts;
use crate::problem::HttpError;
use crate::rate;
use crate::service::Service;
use crate::url::Origin;
use actix_web::HttpRequest;
use actix_web::http::header::AUTHORIZATION;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// How many bytes of a refused host name are repeated in the error.
const HOST_EXCERPT: usize = 64;

/// Whether a route requires a bearer token when the server is configured with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No: the route reveals nothing about the chain.
    Open,
    /// Yes.
    Guarded,
}

/// Checks host, size, rate and token of a request. Returns the permit that counts it as in progress.
pub(crate) fn admit(
    request: &HttpRequest,
    service: &Service,
    access: Access,
) -> Result<OwnedSemaphorePermit, HttpError> {
    let config = &service.config;
    check_host(request, config)?;
    if head_is_longer_than(request, config.max_headers) {
        return Err(HttpError::HeadersTooLong { limit: config.max_headers });
    }
    if let Some(limiter) = &service.rate_limiter
        && let Some(client) = rate::client(request, config.trusted_proxies)
    {
        limiter.check(client).map_err(HttpError::TooFast)?;
    }
    if let (Access::Guarded, Some(tokens)) = (access, &config.tokens) {
        let shown = request.headers().get(AUTHORIZATION);
        if !shown.is_some_and(|shown| tokens.accept(shown.as_bytes())) {
            return Err(HttpError::Unauthorized);
        }
    }
    let permit = Arc::clone(&service.requests).try_acquire_owned();
    permit.map_err(|_| HttpError::TooManyRequests { limit: config.max_requests })
}

/// Allows operations that control the chain only to clients on this machine: not over the network (unless
/// `remote_control` is set), and not from a page of another origin in a local browser.
pub(crate) fn may_control(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    if !has_allowed_origin(request, config, |_| false) {
        return Err(HttpError::ForeignOrigin);
    }
    if config.host.is_loopback() || config.remote_control {
        Ok(())
    } else {
        Err(HttpError::ControlRefused(config.host))
    }
}

/// Refuses pages of origins that are not allowed. Needed for WebSockets only: browsers enforce CORS for other requests.
pub(crate) fn may_read(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    if has_allowed_origin(request, config, Origin::is_any) { Ok(()) } else { Err(HttpError::ForeignOrigin) }
}

/// Whether the request has no `Origin`, or that of this server, or a configured one. `also` may accept a configured
/// origin that differs from the request's.
fn has_allowed_origin(request: &HttpRequest, config: &HttpConfig, also: impl Fn(&Origin) -> bool) -> bool {
    let header = |name: &str| request.headers().get(name).map(|value| value.as_bytes());
    let Some(origin) = header("origin") else { return true };
    config.cors_origins.iter().any(|allowed| allowed.as_str().as_bytes() == origin || also(allowed))
        || origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://")) == header("host")
}

/// Counts `more` requests against the client's rate limit: those of a JSON-RPC batch after the first.
pub(crate) fn count_requests(request: &HttpRequest, service: &Service, more: usize) -> Result<(), HttpError> {
    match (&service.rate_limiter, rate::client(request, service.config.trusted_proxies)) {
        (Some(limiter), Some(client)) => limiter.check_many(client, more).map_err(HttpError::TooFast),
        _ => Ok(()),
    }
}

/// Refuses host names that are not allowed. Requests without a host are accepted: browsers always send one.
fn check_host(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    match encode::requested_authority(request) {
        Some(name)
            if !name.is_empty() && !hosts::is_allowed(&config.allowed_hosts, name, config.public_url.as_ref()) =>
        {
            let end = name.floor_char_boundary(HOST_EXCERPT);
            Err(HttpError::HostRefused { host: name[..end].to_owned() })
        }
        _ => Ok(()),
    }
}

/// Whether path, query and headers together are longer than `limit` bytes.
fn head_is_longer_than(request: &HttpRequest, limit: usize) -> bool {
    let uri = request.uri();
    let target = uri.path().len() + uri.query().map_or(0, str::len);
    // Four bytes for the colon, the space and the line break.
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + headers.sum::<usize>() > limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn path_query_and_headers_count_towards_the_limit() {
        let request = TestRequest::with_uri("/1234?56").insert_header(("a", "bc")).to_http_request();
        assert!(!head_is_longer_than(&request, 14));
        assert!(head_is_longer_than(&request, 13));
    }

    #[test]
    fn refuses_other_host_names() {
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
