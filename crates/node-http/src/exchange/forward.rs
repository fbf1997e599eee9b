//! Passing requests on to the server that writes the chain.

use super::Exchange;
use super::request_id::REQUEST_ID;
use super::response::JSON;
use crate::admission::sender::Sender;
use crate::config::HttpConfig;
use crate::exchange::transfer::CompleteBody;
use crate::problem::HttpError;
use crate::problem::report::PROBLEM_JSON;
use crate::writer::{Writer, WriterRequest, WriterResponse};
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION, ORIGIN, RETRY_AFTER, VIA,
    WWW_AUTHENTICATE,
};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, Bytes};
use node_core::producer::Producer;
use node_types::wire::BodyError;
use std::sync::Arc;
use std::time::Duration;

/// The name under which a server that forwards a request adds itself to `Via`.
const NAME: &str = "ethnode";

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Time that the writer has in addition to its own time limit.
const GRACE: Duration = Duration::from_secs(1);

/// The headers of a client that are passed on.
const PASSED_ON: [HeaderName; 4] = [ACCEPT, AUTHORIZATION, ORIGIN, PREFER];

/// The headers of a response that are passed back.
const PASSED_BACK: [HeaderName; 6] = [
    LINK,
    LOCATION,
    RETRY_AFTER,
    WWW_AUTHENTICATE,
    HeaderName::from_static("x-head-number"),
    HeaderName::from_static("x-head-hash"),
];

impl Exchange {
    /// Passes the request on, and responds with the response. `controls` is whether it controls a development chain.
    pub(crate) async fn forward(mut self, writer: &Arc<dyn Writer>, controls: bool) -> HttpResponse {
        let body = match *self.request.method() {
            Method::POST => match self.raw_body().await {
                Err(HttpError::Body(BodyError::Empty)) => Ok(Bytes::new()),
                body => body,
            },
            _ => Ok(Bytes::new()),
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => return self.fail(&error),
        };
        let path = self.request.path().strip_prefix(self.config().listen.base_path.as_str()).unwrap_or_default();
        let target = match self.request.query_string() {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let request = WriterRequest {
            method: self.request.method().clone(),
            target,
            headers: self.headers_to_pass_on(),
            body,
            timeout: timeout(self.config(), controls),
        };
        let writer = Arc::clone(writer);
        let sent = web::block(move || send(&*writer, request)).await.unwrap_or(Err(HttpError::Overloaded));
        match sent {
            Ok(response) => {
                for name in PASSED_BACK {
                    let value = response.header(name.as_str()).and_then(|value| HeaderValue::from_bytes(value).ok());
                    self.headers.extend(value.map(|value| (name, value)));
                }
                let mut exchange = self.no_store();
                let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
                exchange.problem = (!status.is_success()).then(|| format!("the writer responded with status {status}"));
                if response.body.is_empty() {
                    return exchange.respond_empty(status);
                }
                let media_type = match response.header(CONTENT_TYPE.as_str()) {
                    Some(b"application/problem+json") => PROBLEM_JSON,
                    _ => JSON,
                };
                exchange.respond(status, media_type, CompleteBody::uncounted(response.body.into()))
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Returns the headers that the writer needs.
    fn headers_to_pass_on(&self) -> HeaderMap {
        let mut headers = passed_on(&self.request, &self.sender);
        let text = |text: &str| HeaderValue::from_str(text).ok();
        let (scheme, host) = self.base_url().split_once("://").map_or_else(Default::default, |(scheme, rest)| {
            (scheme.to_owned(), rest.split('/').next().unwrap_or_default().to_owned())
        });
        let described = [(FORWARDED_HOST, text(&host)), (FORWARDED_PROTO, text(&scheme))];
        for (name, value) in described {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        if let Ok(id) = self.id.to_header() {
            headers.insert(REQUEST_ID, id);
        }
        headers
    }
}

/// Returns the headers of a client that are passed on with its requests.
pub(crate) fn passed_on(request: &HttpRequest, sender: &Sender) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in PASSED_ON {
        for value in request.headers().get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Ok(address) = HeaderValue::from_str(&sender.client.network().to_string()) {
        headers.insert(FORWARDED_FOR, address);
    }
    let via = request.headers().get_all(VIA).filter_map(|via| via.to_str().ok()).collect::<Vec<_>>().join(", ");
    if let Ok(via) = HeaderValue::from_str(&via) {
        headers.insert(VIA, via);
    }
    headers
}

/// Returns how long a request may wait for the writer, which itself ends most requests after its own time limit.
pub(crate) fn timeout(config: &HttpConfig, controls: bool) -> Duration {
    let times = if controls { Producer::MINING_TIMEOUTS } else { 1 };
    config.requests.call_timeout.saturating_mul(times).saturating_add(GRACE)
}

/// Sends a request to the writer, and waits for the response.
///
/// # Errors
/// [`HttpError::WriterUnreachable`] if there is no response, and [`HttpError::ForwardedTwice`] if another server has already
/// passed the request on.
pub(crate) fn send(writer: &dyn Writer, mut request: WriterRequest) -> Result<WriterResponse, HttpError> {
    let via = request.headers.remove(VIA).next();
    let via = via.as_ref().and_then(|via| via.to_str().ok()).unwrap_or_default();
    if via.split(',').any(|server| server.trim().ends_with(NAME)) {
        return Err(HttpError::ForwardedTwice);
    }
    let separator = if via.is_empty() { "" } else { ", " };
    if let Ok(via) = HeaderValue::from_str(&format!("{via}{separator}1.1 {NAME}")) {
        request.headers.insert(VIA, via);
    }
    if request.method == Method::POST {
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    writer.send(request).map_err(|reason| {
        tracing::warn!("the server that writes the chain did not respond: {reason}");
        HttpError::WriterUnreachable
    })
}
