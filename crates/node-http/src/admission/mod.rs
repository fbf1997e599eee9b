//! Checks that every request must pass before any work is done for it.

pub(crate) mod api;
pub(crate) mod clients;
pub(crate) mod cors;
pub(crate) mod forwarded;
pub(crate) mod hosts;
pub(crate) mod notices;
pub(crate) mod rate;
pub(crate) mod sender;
pub(crate) mod tokens;

use crate::admission::clients::Permit;
use crate::admission::cors::AllowedOrigin;
use crate::admission::sender::{Origin, Sender};
use crate::admission::tokens::{Grant, Role, Tokens};
use crate::config::HttpConfig;
use crate::exchange::encode;
use crate::problem::HttpError;
use crate::service::Service;
use crate::url::{PublicUrl, host_of};
use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, ORIGIN};

/// Maximum number of bytes of a refused host name or origin that errors and the log repeat.
const EXCERPT: usize = 64;

/// What a route requires of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing, not even that the client is within its rate limit. For health checks.
    Probe,
    /// No token: the route reveals nothing about the chain.
    Open,
    /// A bearer token, if the server is configured with tokens.
    Guarded,
    /// Like `Guarded`, with a token that has the role `send`.
    Sending,
}

/// Checks form, host, size, rate and token of a request whose head is `length` bytes long. Returns the permit that
/// counts it as in progress.
pub(crate) fn admit(
    request: &HttpRequest,
    service: &Service,
    sender: &Sender,
    length: usize,
    access: Access,
) -> Result<Permit, HttpError> {
    let config = &service.config;
    check_form(request)?;
    if sender.base_url(request).is_none() {
        check_host(request, config).inspect_err(|error| report_host(error, service))?;
    }
    if length > config.requests.max_headers {
        return Err(HttpError::HeadersTooLong { limit: config.requests.max_headers });
    }
    if access != Access::Probe {
        count_requests(sender, service, 1)?;
    }
    if matches!(access, Access::Guarded | Access::Sending)
        && let Some(tokens) = &config.access.tokens
    {
        match granted(request, tokens) {
            None => return Err(HttpError::Unauthorized),
            Some(Role::Metrics) => return Err(HttpError::RoleMissing("read")),
            Some(Role::Read) if access == Access::Sending => return Err(HttpError::RoleMissing("send")),
            Some(_) => {}
        }
    }
    Ok(service.requests.take(&sender.client, 1)?)
}

/// Counts `requests` requests against the client's rate limit. Those of a JSON-RPC batch are counted at once.
pub(crate) fn count_requests(sender: &Sender, service: &Service, requests: usize) -> Result<(), HttpError> {
    match &service.rate_limiter {
        Some(limiter) if limiter.applies_to(sender) => {
            limiter.check(sender.client.network(), requests).map_err(HttpError::TooFast)
        }
        _ => Ok(()),
    }
}

/// Returns the role of the token in a request, or `None` if it has no valid token.
fn granted(request: &HttpRequest, tokens: &Tokens) -> Option<Role> {
    tokens.role(request.headers().get(AUTHORIZATION)?.as_bytes())
}

/// Returns what the token of a request that stays open grants, or `None` if it needs no token.
pub(crate) fn grant(request: &HttpRequest, service: &Service) -> Result<Option<Grant>, HttpError> {
    let Some(tokens) = &service.config.access.tokens else { return Ok(None) };
    let header = request.headers().get(AUTHORIZATION);
    // The tokens may have been replaced since the request was admitted.
    header.and_then(|header| tokens.grant(header.as_bytes())).map(Some).ok_or(HttpError::Unauthorized)
}

/// Returns whether the request needs a token, and its token does not allow sending transactions.
pub(crate) fn reads_only(request: &HttpRequest, service: &Service) -> bool {
    service.config.access.tokens.as_ref().is_some_and(|tokens| granted(request, tokens) <= Some(Role::Read))
}

/// Allows operations that control the chain only for programs on this machine: not over the network, unless
/// `remote_control` is set or the request was sent to the control address, and not from a page of an origin in a local
/// browser that may not. If there are tokens with the role `control`, one of them is required and sufficient.
pub(crate) fn may_control(request: &HttpRequest, service: &Service, sender: &Sender) -> Result<(), HttpError> {
    let config = &service.config;
    if !has_origin(request, sender, config, cors::may_control) {
        return Err(HttpError::ControlFromPage);
    }
    if config.access.no_control {
        return Err(HttpError::ControlOff);
    }
    if config.access.control_listen.is_some() && !sender.is_at_control {
        return Err(HttpError::ControlOnOtherAddress);
    }
    if let Some(tokens) = config.access.tokens.as_ref().filter(|tokens| tokens.reserve(Role::Control)) {
        let may = granted(request, tokens) == Some(Role::Control);
        return if may { Ok(()) } else { Err(HttpError::RoleMissing("control")) };
    }
    if config.access.remote_control || sender.is_at_control {
        return Ok(());
    }
    if !config.listen.host.is_loopback() {
        return Err(HttpError::ControlExposed);
    }
    match sender.origin {
        Origin::ThisMachine => Ok(()),
        Origin::UntrustedProxy(proxy) => Err(HttpError::ControlForwarded(proxy)),
        _ => Err(HttpError::ControlRefused),
    }
}

/// Logs why control was refused for a request from a page of `origin`, with the option that would allow it.
pub(crate) fn report_refusal(error: &HttpError, origin: Option<&str>, service: &Service) {
    match error {
        HttpError::ControlFromPage => report_origin(origin, service, Use::Control),
        HttpError::ControlForwarded(proxy) => service.notices.warn(&proxy.to_string(), || {
            tracing::warn!(
                %proxy,
                "refused control of the chain, because a proxy forwarded the request; --trusted-proxies makes its clients known, \
                 --force-control allows all of them to control the chain"
            );
        }),
        _ => {}
    }
}

/// Refuses requests from pages of origins that may not read. Needed where a request takes effect before browsers
/// enforce CORS: WebSockets, event streams, all GET requests that create or advance something, and all POST requests
/// that need no preflight because they are not declared as JSON.
pub(crate) fn may_read(request: &HttpRequest, service: &Service, sender: &Sender) -> Result<(), HttpError> {
    if has_origin(request, sender, &service.config, cors::may_read) {
        return Ok(());
    }
    report_origin(origin(request), service, Use::Read);
    Err(HttpError::ForeignOrigin)
}

/// Returns whether the request is not from a web page, or from a page of this server or of an origin that
/// `is_allowed` accepts.
fn has_origin(
    request: &HttpRequest,
    sender: &Sender,
    config: &HttpConfig,
    is_allowed: impl Fn(&[AllowedOrigin], &[u8]) -> bool,
) -> bool {
    let mut origins = request.headers().get_all(ORIGIN);
    match (origins.next(), origins.next()) {
        (Some(origin), None) => {
            is_own(origin, request, sender, config) || is_allowed(&config.access.cors_origins, origin.as_bytes())
        }
        // Browsers send no origin with requests for images, links and similar.
        (None, _) => !is_of_another_site(request.headers()) || is_allowed(&config.access.cors_origins, b""),
        // No browser sends two, and only one of them could be the true one.
        (Some(_), Some(_)) => false,
    }
}

/// Returns whether `origin` is that of this server's own pages: the scheme, host and port to which the request was
/// sent, or those of the public URL. If the scheme is unknown, because a proxy may have added TLS, either one is
/// accepted.
fn is_own(origin: &HeaderValue, request: &HttpRequest, sender: &Sender, config: &HttpConfig) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    if !matches!(scheme, "http" | "https") || authority.is_empty() {
        return false;
    }
    let is_same = |own: &str| own.eq_ignore_ascii_case(authority);
    let public = config.listen.public_url.as_ref().filter(|url| is_same(url.authority())).map(PublicUrl::scheme);
    if public == Some(scheme) {
        return true;
    }
    let forwarded = sender.forwarded.as_deref();
    let addressed = forwarded.and_then(|by| by.host.as_deref()).or_else(|| encode::requested_authority(request));
    let own_scheme = forwarded.and_then(|by| by.scheme).or(public).or(sender.scheme);
    addressed.is_some_and(is_same) && own_scheme.is_none_or(|own| own == scheme)
}

/// Returns whether the browser reports that a page of another site caused the request (Fetch Metadata).
fn is_of_another_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// Returns the origin of the page that sent a request, or `None` if the request does not have a valid `Origin`.
pub(crate) fn origin(request: &HttpRequest) -> Option<&str> {
    request.headers().get(ORIGIN)?.to_str().ok()
}

/// What a page of another origin tried to do.
#[derive(Clone, Copy)]
enum Use {
    Read,
    Control,
}

/// Logs the refused origin of a page, with the option that would allow it.
fn report_origin(origin: Option<&str>, service: &Service, wanted: Use) {
    let Some(origin) = origin.map(excerpt) else { return };
    let is_named = matches!(origin.parse(), Ok(crate::url::Origin::Page(_)));
    let (subject, text) = match (wanted, is_named) {
        (Use::Read, true) => {
            (origin.to_owned(), "refused a page of another origin; add the origin to --cors-origins to allow it")
        }
        (Use::Read, false) => {
            (origin.to_owned(), "refused a page of an origin without a name; only --cors-origins '*' allows it to read")
        }
        // The same page may have been refused for reading before.
        (Use::Control, true) => {
            let text =
                "refused control of the chain to a page; add its origin with =control to --cors-origins to allow it";
            ([origin, " controls"].concat(), text)
        }
        (Use::Control, false) => (
            [origin, " controls"].concat(),
            "refused control of the chain to a page of an origin without a name; only --cors-origins '*=control' allows it",
        ),
    };
    service.notices.warn(&subject, || tracing::warn!(origin, "{text}"));
}

/// Logs the origin of a page that the browser will prevent from reading the response.
pub(crate) fn report_unreadable(request: &HttpRequest, service: &Service, sender: &Sender) {
    let config = &service.config;
    if let Some(origin) = request.headers().get(ORIGIN)
        && !is_own(origin, request, sender, config)
    {
        report_origin(self::origin(request), service, Use::Read);
    }
}

/// Refuses requests that other programs may understand differently (RFC 9112, section 3.2; RFC 9110, section 8.6).
/// actix-http refuses most of them, but accepts any `Host`. Other servers that these routes are mounted in may refuse
/// none.
pub(crate) fn check_form(request: &HttpRequest) -> Result<(), HttpError> {
    let (headers, uri) = (request.headers(), request.uri());
    let is_repeated = |name| headers.get_all(name).nth(1).is_some();
    if is_repeated(HOST) {
        return Err(HttpError::Malformed("it has more than one header Host"));
    }
    if is_repeated(CONTENT_LENGTH) {
        return Err(HttpError::Malformed("it has more than one header Content-Length"));
    }
    if uri.authority().is_some_and(|authority| !hosts::is_valid(authority.as_str())) {
        return Err(HttpError::Malformed("its authority is not a host name or address with or without a port"));
    }
    if uri.scheme_str().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
        return Err(HttpError::Malformed("its scheme is neither http nor https"));
    }
    Ok(())
}

/// Refuses hosts that are invalid or not allowed. Requests without a host are accepted: browsers always send one.
pub(crate) fn check_host(request: &HttpRequest, config: &HttpConfig) -> Result<(), HttpError> {
    check_form_of_host(request)?;
    match encode::requested_authority(request) {
        Some(name)
            if !name.is_empty()
                && !hosts::is_allowed(&config.access.allowed_hosts, name, config.listen.public_url.as_ref()) =>
        {
            Err(HttpError::HostRefused { host: excerpt(name).to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_form_of_host(request: &HttpRequest) -> Result<(), HttpError> {
    if request.headers().get(HOST).is_some_and(|host| !host.to_str().is_ok_and(hosts::is_valid)) {
        return Err(HttpError::Malformed("its header Host is not a host name or address with or without a port"));
    }
    Ok(())
}

/// Reports a host that was refused.
fn report_host(error: &HttpError, service: &Service) {
    if let HttpError::HostRefused { host } = error {
        service.notices.warn(host, || {
            let host = host_of(host);
            tracing::warn!(host, "refused a request for another host; add the host to --allowed-hosts to allow it");
        });
    }
}

fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn requests_to_an_invalid_host_are_malformed() {
        let valid = |request: TestRequest| {
            let request = request.to_http_request();
            check_form(&request).and_then(|()| check_form_of_host(&request)).is_ok()
        };
        let cases: [(&[u8], bool); 6] = [
            (b"", true),
            (b"localhost:80", true),
            (b"evil.example", true),
            (b"evil.example/.localhost", false),
            (b"a b.localhost", false),
            (b"evil\xe9", false),
        ];
        for (host, expected) in cases {
            let value = HeaderValue::from_bytes(host).unwrap();
            assert_eq!(valid(TestRequest::default().insert_header((HOST, value))), expected, "{host:?}");
        }
        for (uri, expected) in [("/", true), ("http://localhost/", true), ("http://evil@localhost/", false)] {
            assert_eq!(valid(TestRequest::with_uri(uri)), expected, "{uri}");
        }
    }
}
