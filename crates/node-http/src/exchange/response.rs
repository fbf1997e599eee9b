//! Writing the response: status, headers, caching and compression.

use super::Exchange;
use crate::admission;
use crate::admission::cors;
use crate::exchange::caching::{self, Caching};
use crate::exchange::compress;
use crate::exchange::request_id::{REQUEST_ID, TRACEPARENT};
use crate::exchange::request_log::Responded;
use crate::exchange::streaming;
use crate::exchange::transfer::CompleteBody;
use crate::problem::report::{self, PROBLEM_JSON};
use crate::problem::{self, ENCODINGS, HttpError};
use actix_http::ConnectionType;
use actix_web::HttpResponse;
use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ContentEncoding, ETAG, HeaderMap, HeaderName, HeaderValue,
    LINK, ORIGIN, RETRY_AFTER, UPGRADE, VARY, WWW_AUTHENTICATE,
};
use actix_web::http::{StatusCode, Version};
use actix_web::web::Bytes;
use futures_util::{FutureExt, StreamExt};
use node_core::context::Context;

pub(super) const JSON: &str = "application/json";
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
const HEAD_NUMBER: HeaderName = HeaderName::from_static("x-head-number");
const HEAD_HASH: HeaderName = HeaderName::from_static("x-head-hash");

impl Exchange {
    /// Responds to a browser with a page instead of the problem that describes `error`.
    pub(crate) fn fail_with(mut self, error: &HttpError, media_type: &'static str, page: String) -> HttpResponse {
        self.problem = Some(problem::detail(error));
        self.caching = Caching::NoStore;
        self.respond(problem::status(error), media_type, CompleteBody::uncounted(page.into()))
    }

    /// Responds with the problem that describes `error`.
    pub(crate) fn fail(mut self, error: &HttpError) -> HttpResponse {
        if let Some(limit) = error.limit() {
            self.service.metrics.record_refusal(limit);
        }
        let (status, body) = self.reporter().problem(error);
        self.problem = Some(problem::detail(error));
        if let Some(seconds) = error.retry_after() {
            self.headers.push((RETRY_AFTER, seconds.into()));
        }
        match error {
            HttpError::MethodNotAllowed { allow } => self.headers.push((ALLOW, HeaderValue::from_static(allow))),
            HttpError::NoWebSocket => self.headers.push((UPGRADE, HeaderValue::from_static("websocket"))),
            HttpError::ContentEncoding => {
                self.headers.push((HeaderName::from_static("accept-encoding"), HeaderValue::from_static(ENCODINGS)));
            }
            HttpError::Unauthorized => self.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ => {}
        }
        let schema = report::schema_url(&self.base_url());
        self.headers.extend(described_by(&schema).map(|link| (LINK, link)));
        if self.caching != Caching::Unspecified {
            self.caching = Caching::NoStore;
        }
        self.respond(status, PROBLEM_JSON, CompleteBody::uncounted(body.into()))
    }

    /// Responds with JSON that needs no schema.
    pub(crate) fn respond_json(self, body: CompleteBody) -> HttpResponse {
        self.respond(StatusCode::OK, JSON, body)
    }

    /// Responds with `status` and no body.
    pub(crate) fn respond_empty(mut self, status: StatusCode) -> HttpResponse {
        let mut response = self.start(status, JSON);
        response.headers_mut().remove(CONTENT_TYPE);
        self.finish(response)
    }

    /// Responds with a document that does not change while the server runs. Each encoding of it is compressed once.
    pub(crate) async fn respond_document(mut self, media_type: &'static str, body: Bytes) -> HttpResponse {
        self.caching = Caching::Revalidate;
        let digest = caching::digest(&body);
        if self.is_known(digest) {
            return self.not_modified(&body);
        }
        let Some(encoding) = self.encoding(&body) else { return self.send(StatusCode::OK, media_type, body) };
        self.uncompressed = Some(body.len());
        let compressed = self.service.documents.get(encoding, digest, &body).await;
        self.headers.push((CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str())));
        self.headers.push((VARY, ACCEPT_ENCODING));
        let response = self.start(StatusCode::OK, media_type);
        self.finish(response.set_body(streaming::body(compressed)))
    }

    /// Responds with a complete body, compressed if the client accepts it, or with 304 if the client already has it.
    pub(crate) fn respond(mut self, status: StatusCode, media_type: &'static str, body: CompleteBody) -> HttpResponse {
        if status == StatusCode::OK && self.caching.is_storable() && self.is_known(caching::digest(&body)) {
            return self.not_modified(&body);
        }
        let body = body.send(&self.service, &self.sender);
        // If there is not enough memory to compress the response, it is sent as it is.
        let encoder = self.encoding(&body).and_then(|encoding| {
            let permit = self.service.transfers.take(&self.sender.client, compress::memory(encoding)).ok()?;
            Some((encoding, permit))
        });
        match encoder {
            Some((encoding, permit)) => {
                self.uncompressed = Some(body.len());
                let mut response = self.start(status, media_type);
                // The encoder adds `Vary` itself.
                let body = compress::encode(encoding, response.head_mut(), body, permit);
                self.finish(response.set_body(body))
            }
            None => self.send(status, media_type, body),
        }
    }

    /// Adds the entity tag of the body with this digest to the response. Returns whether the client already has that
    /// body.
    fn is_known(&mut self, digest: u128) -> bool {
        let tag = caching::entity_tag(digest);
        self.headers.extend(caching::tag_value(&tag).map(|tag| (ETAG, tag)));
        caching::is_known(&self.request, &tag)
    }

    /// Responds with 304 instead of `body`.
    fn not_modified(mut self, body: &[u8]) -> HttpResponse {
        self.vary_by_encoding(body);
        self.respond_empty(StatusCode::NOT_MODIFIED)
    }

    /// Responds with `body` uncompressed.
    fn send(mut self, status: StatusCode, media_type: &'static str, body: Bytes) -> HttpResponse {
        self.vary_by_encoding(&body);
        let response = self.start(status, media_type);
        self.finish(response.set_body(streaming::body(body)))
    }

    /// Adds `Vary: accept-encoding` if another client could get `body` compressed.
    fn vary_by_encoding(&mut self, body: &[u8]) {
        if self.is_compressible(body) {
            self.headers.push((VARY, ACCEPT_ENCODING));
        }
    }

    /// Returns the encoding in which to send `body`, or `None` to send it uncompressed. The length of a compressed body
    /// is not known in advance, and HTTP/1.0 has no chunks.
    fn encoding(&self, body: &[u8]) -> Option<ContentEncoding> {
        let may_compress = self.is_compressible(body) && self.request.version() >= Version::HTTP_11;
        if may_compress { compress::negotiate(&self.request) } else { None }
    }

    fn is_compressible(&self, body: &[u8]) -> bool {
        !self.service.config.performance.no_compression && compress::is_worthwhile(body.len())
    }

    /// Creates a response without a body, with the headers that every response has.
    pub(crate) fn start(&mut self, status: StatusCode, media_type: &'static str) -> HttpResponse {
        let mut response = HttpResponse::new(status);
        if self.is_closing() {
            self.end_connection(&mut response);
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        if let Ok(id) = self.id.to_header() {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(Ok(parent)) = self.trace.as_ref().map(|trace| HeaderValue::from_str(&trace.parent)) {
            headers.insert(TRACEPARENT, parent);
        }
        if let Some(head) = self.context.as_ref().and_then(Context::head) {
            headers.insert(HEAD_NUMBER, head.number.into());
            if let Ok(hash) = HeaderValue::try_from(const_hex::encode_prefixed(head.hash)) {
                headers.insert(HEAD_HASH, hash);
            }
        }
        if let Some(control) = self.caching.control(self.service.config.access.tokens.is_none()) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(control));
        }
        for (name, value) in self.headers.drain(..) {
            headers.append(name, value);
        }
        self.add_cors_headers(headers);
        response
    }

    /// Announces the end of the connection.
    pub(crate) fn end_connection(&self, response: &mut HttpResponse) {
        response.head_mut().set_connection_type(ConnectionType::Close);
        self.sender.connection.end();
    }

    /// Returns whether a part of the body has not been read, so that the connection must end.
    fn has_unread_body(&mut self) -> bool {
        // Most requests have no body, or one that was read.
        self.payload
            .take()
            .is_some_and(|mut payload| !matches!(payload.next().now_or_never(), Some(None | Some(Err(_)))))
    }

    /// Adds the headers that allow a page of another origin to read the response.
    fn add_cors_headers(&self, headers: &mut HeaderMap) {
        let allowed = &self.service.config.access.cors_origins;
        if self.caching.is_storable() && cors::varies(allowed) {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = self.request.headers().get(ORIGIN) else { return };
        if cors::may_read(allowed, origin.as_bytes()) {
            for (name, value) in cors::headers(allowed, origin) {
                headers.insert(name, value);
            }
        } else {
            admission::report_unreadable(&self.request, &self.service, &self.sender);
        }
    }

    /// Records the response in the metrics and in the log.
    pub(crate) fn finish(mut self, mut response: HttpResponse) -> HttpResponse {
        if self.has_unread_body() {
            self.end_connection(&mut response);
        }
        let bytes = match response.body().size() {
            BodySize::None => Some(0),
            BodySize::Sized(bytes) => Some(bytes),
            BodySize::Stream => None,
        };
        // RFC 9112, section 6.1. The end of the connection is the end of the body.
        if bytes.is_none() && self.request.version() < Version::HTTP_11 {
            response.head_mut().no_chunking(true);
            self.end_connection(&mut response);
        }
        Responded {
            id: &self.id,
            trace: self.trace.as_ref(),
            client: self.sender.client.network(),
            line: Some((self.request.method().as_str(), self.request.path())),
            operation: self.operation,
            status: response.status(),
            problem: self.problem.as_deref(),
            calls: &self.calls,
            bytes: self.uncompressed.map(|length| length as u64).or(bytes),
            elapsed: self.started.elapsed(),
            remote: self.context.as_ref().map(Context::remote_reads).unwrap_or_default(),
        }
        .record(&self.service.metrics);
        response
    }
}

/// Returns the value of a `Link` header that points to the schema of the body.
pub(super) fn described_by(schema: &str) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(Bytes::from(["<", schema, ">; rel=\"describedBy\""].concat())).ok()
}
