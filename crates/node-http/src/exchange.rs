//! One request and its answer.

use crate::admission::{self, Access};
use crate::block_cache::BlockKey;
use crate::body;
use crate::caching::{self, Caching, Lasts};
use crate::compress;
use crate::config::HttpConfig;
use crate::dispatch::{self, Place};
use crate::encode;
use crate::events::{StreamKind, Teller};
use crate::parameters::{Parameters, is_decodable};
use crate::problem::HttpError;
use crate::pulled::pulled;
use crate::report::{self, Reporter};
use crate::server::Service;
use actix_http::ConnectionType;
use actix_web::body::BoxBody;
use actix_web::http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, ContentEncoding, ETAG, HeaderName,
    HeaderValue, LINK, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT, UPGRADE, VARY, WWW_AUTHENTICATE,
};
use actix_web::http::{Method, StatusCode, Version};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use node_core::context::{Context, ViewOf};
use node_core::node::{Node, NodeError};
use node_types::wire::{self, BodyError, Data, Decode, ErrorDetail, EventsInput, GetBlockByHashInput};
use serde::Serialize;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";
const EVENT_STREAM: &str = "text/event-stream";
const BY_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
const HEAD_NUMBER: HeaderName = HeaderName::from_static("x-head-number");
const HEAD_HASH: HeaderName = HeaderName::from_static("x-head-hash");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request on its way through a handler.
pub(crate) struct Exchange {
    operation: &'static str,
    request: HttpRequest,
    payload: Option<web::Payload>,
    service: web::Data<Service>,
    id: Uuid,
    started: Instant,
    /// Whether the handler looked at the query; otherwise the operation takes none.
    query_read: Cell<bool>,
    /// What may be kept of the answer.
    caching: Caching,
    /// What the answer was read from.
    view: Option<ViewOf>,
    /// Further headers of the answer.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// One of the requests that there may be at a time.
    slot: Option<OwnedSemaphorePermit>,
}

/// What work made.
struct Made<O> {
    output: O,
    /// Where the next page is.
    next: Option<String>,
    lasts: Lasts,
}

impl<O> Made<O> {
    /// An answer without further pages that may change at any time.
    fn new(output: O) -> Self {
        Self { output, next: None, lasts: Lasts::Briefly }
    }
}

impl Exchange {
    /// Begins to answer `request`, which is for `operation`.
    pub(crate) fn new(operation: &'static str, request: HttpRequest, payload: Option<web::Payload>) -> Self {
        let service = Service::of(&request);
        let started = Instant::now();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        Self {
            operation,
            request,
            payload,
            service,
            id: Uuid::new_v4(),
            started,
            query_read: Cell::new(false),
            caching: if reads { Caching::Revalidate } else { Caching::Unsaid },
            view: None,
            headers: Vec::new(),
            slot: None,
        }
    }

    /// Takes the request in, if it may come in.
    pub(crate) fn admit(&mut self, access: Access) -> Result<(), HttpError> {
        self.slot = Some(admission::admit(&self.request, &self.service, access)?);
        Ok(())
    }

    /// Forbids caches to keep the answer: the request creates or advances something.
    pub(crate) fn no_store(mut self) -> Self {
        self.caching = Caching::NoStore;
        self
    }

    /// Adds a header to the answer.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Tells caches that the answer depends on the media types that the client accepts.
    pub(crate) fn varying_by_accept(mut self) -> Self {
        self.headers.push((VARY, HeaderValue::from_static("accept")));
        self
    }

    /// What else every request needs.
    pub(crate) fn service(&self) -> &web::Data<Service> {
        &self.service
    }

    /// What comes after the head of the request.
    pub(crate) fn take_payload(&mut self) -> Option<web::Payload> {
        self.payload.take()
    }

    /// Says what the request turned out to ask for.
    pub(crate) fn is_for(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    /// The node that answers.
    pub(crate) fn node(&self) -> &Node {
        &self.service.node
    }

    /// The settings of the server.
    pub(crate) fn config(&self) -> &HttpConfig {
        &self.service.config
    }

    /// The request.
    pub(crate) fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Whether the server is about to end.
    pub(crate) fn is_closing(&self) -> bool {
        *self.service.closing.borrow()
    }

    /// Does `work` at `place`, for answers that take more than one piece of it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        place: Place,
        work: impl Fn(&Node, &Context) -> Result<T, HttpError> + Send + 'static,
    ) -> Result<T, HttpError> {
        let service = self.service.clone();
        let work = move |context: &Context, ()| work(&service.node, context);
        dispatch::run(&self.service.pools, place, self.service.context(), (), work).await
    }

    /// Reads the body, which has to be JSON by its media type.
    pub(crate) async fn raw_body(&mut self) -> Result<Bytes, HttpError> {
        let Some(payload) = self.payload.take() else { return Err(HttpError::Body(BodyError::Empty)) };
        body::read_json(&self.request, payload, &self.service.config, &self.service.body_memory).await
    }

    /// Decodes the body.
    pub(crate) async fn body<I: Decode + Send + 'static>(&mut self) -> Result<I, HttpError> {
        let body = self.raw_body().await?;
        let place = Place::decoding(body.len());
        let decode = |_: &Context, body: Bytes| wire::decode_body(&body).map_err(HttpError::Body);
        dispatch::run(&self.service.pools, place, self.service.context(), body, decode).await
    }

    /// Decodes the body, which may be left out.
    pub(crate) async fn optional_body<I: Decode + Default + Send + 'static>(&mut self) -> Result<I, HttpError> {
        if body::is_declared_empty(&self.request) {
            return Ok(I::default());
        }
        match self.body().await {
            Err(HttpError::Body(BodyError::Empty)) => Ok(I::default()),
            input => input,
        }
    }

    /// Decodes path and query parameters, all of whose faults are reported.
    pub(crate) fn parameters<I>(
        &self,
        read: impl FnOnce(&mut Parameters<'_>) -> Result<I, Vec<ErrorDetail>>,
    ) -> Result<I, HttpError> {
        Parameters::read(&self.request, |parameters| {
            let input = read(parameters);
            self.query_read.set(parameters.query_read());
            input
        })
    }

    /// Adds to `input` what is wrong with the query, if the operation takes none.
    fn without_query<I>(&self, input: Result<I, HttpError>) -> Result<I, HttpError> {
        if self.query_read.get() || self.request.query_string().is_empty() {
            return input;
        }
        let unexpected = Parameters::no_query(&self.request);
        match input {
            input if unexpected.is_empty() => input,
            Ok(_) => Err(HttpError::Parameters(unexpected)),
            Err(HttpError::Parameters(faults) | HttpError::Body(BodyError::Invalid(faults))) => {
                Err(HttpError::Parameters([faults, unexpected].concat()))
            }
            Err(other) => Err(other),
        }
    }

    /// Whether the client prefers `preference` (RFC 7240).
    pub(crate) fn prefers(&self, preference: &str) -> bool {
        let mut headers = self.request.headers().get_all("prefer").filter_map(|value| value.to_str().ok());
        headers.any(|value| names_preference(value, preference))
    }

    /// Whether the client names `media_type` among those that it accepts.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        let mut headers = self.request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok());
        headers.any(|value| names_media_type(value, media_type))
    }

    /// The address of the schema `name`.
    pub(crate) fn schema_url(&self, name: &str) -> String {
        encode::schema_url(&self.base_url(), name)
    }

    /// Answers with what `work` makes of `input`, at the place that `place` names.
    pub(crate) async fn answer<I, O>(
        self,
        input: Result<I, HttpError>,
        place: impl FnOnce(&I) -> Place,
        work: impl Fn(&Node, &Context, I) -> Result<O, NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        self.answer_with(input, place, move |node, context, input| Ok(Made::new(work(node, context, input)?))).await
    }

    /// As [`answer`](Self::answer), of what stays as it is as long as `lasts` says.
    pub(crate) async fn answer_lasting<I, O>(
        self,
        input: Result<I, HttpError>,
        place: impl FnOnce(&I) -> Place,
        work: impl Fn(&Node, &Context, I) -> Result<O, NodeError> + Send + 'static,
        lasts: impl Fn(&I, &O) -> Lasts + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let work = move |node: &Node, context: &Context, input: I| {
            let output = work(node, context, input.clone())?;
            let lasts = lasts(&input, &output);
            Ok(Made { lasts, ..Made::new(output) })
        };
        self.answer_with(input, place, work).await
    }

    /// Answers with a page: `work` also tells where the next one is, relative to the base of all paths.
    pub(crate) async fn answer_page<I, O>(
        self,
        input: Result<I, HttpError>,
        place: impl FnOnce(&I) -> Place,
        work: impl Fn(&Node, &Context, I) -> Result<(O, Option<String>), NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let work = move |node: &Node, context: &Context, input: I| {
            let (output, next) = work(node, context, input)?;
            Ok(Made { next, ..Made::new(output) })
        };
        self.answer_with(input, place, work).await
    }

    async fn answer_with<I, O>(
        mut self,
        input: Result<I, HttpError>,
        place: impl FnOnce(&I) -> Place,
        work: impl Fn(&Node, &Context, I) -> Result<Made<O>, NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let input = match self.without_query(input) {
            Ok(input) => input,
            Err(error) => return self.fail(&error),
        };
        let schema = self.schema();
        let described_by = described_by(&schema);
        let service = self.service.clone();
        let place = place(&input);
        let answer = move |context: &Context, input| {
            let Made { output, next, lasts } = work(&service.node, context, input)?;
            Ok((encode::with_schema(&schema, &output)?, next, lasts))
        };
        let context = self.service.context();
        let made = dispatch::run(&self.service.pools, place, context.clone(), input, answer).await;
        self.view = context.view();
        match made {
            Ok((body, next, lasts)) => {
                let next =
                    next.map(|next| format!("<{}/{next}>; rel=\"next\"", self.service.config.base_path.as_str()));
                let next = next.and_then(|next| HeaderValue::try_from(next).ok());
                self.headers.extend(described_by.into_iter().chain(next).map(|link| (LINK, link)));
                self.lasts(lasts);
                self.respond(StatusCode::OK, JSON, body.into())
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Looks for which block is asked for, where the request arrived. None where there is none, or the request is at fault.
    pub(crate) fn find<I>(
        &mut self,
        input: &Result<I, HttpError>,
        find: impl Fn(&Node, &Context, &I) -> Result<Option<BlockKey>, NodeError>,
    ) -> Option<BlockKey> {
        let context = self.service.context();
        let found = find(&self.service.node, &context, input.as_ref().ok()?).ok().flatten();
        self.view = context.view();
        found
    }

    /// Answers with the block of `key`, which was [found](Self::find): as it was sent before, or as it is written now.
    pub(crate) async fn answer_block<I>(
        mut self,
        input: Result<I, HttpError>,
        key: BlockKey,
        lasts: Lasts,
    ) -> HttpResponse {
        if let Err(error) = self.without_query(input.map(drop)) {
            return self.fail(&error);
        }
        let schema = self.schema();
        let described_by = described_by(&schema);
        let body = match self.service.blocks.get(key) {
            Some(rest) => encode::with_rest(&schema, &rest),
            None => {
                let service = self.service.clone();
                let input = GetBlockByHashInput { hash: Data(key.hash), transaction_detail: key.detail };
                let place = Place::side_block(&input);
                let write = move |context: &Context, input: GetBlockByHashInput| {
                    let output = service.node.get_block_by_hash(context, input)?;
                    let body = encode::with_schema(&schema, &output)?;
                    if output.block.is_some() {
                        service.blocks.insert(key, Bytes::copy_from_slice(encode::rest_of(&schema, &body)));
                    }
                    Ok(body)
                };
                match dispatch::run(&self.service.pools, place, self.service.context(), input, write).await {
                    Ok(body) => body,
                    Err(error) => return self.fail(&error),
                }
            }
        };
        self.headers.extend(described_by.map(|link| (LINK, link)));
        self.lasts(lasts);
        self.respond(StatusCode::OK, JSON, body.into())
    }

    /// Answers with events, as long as the client stays.
    pub(crate) async fn tell(mut self, input: Result<EventsInput, HttpError>) -> HttpResponse {
        let permit = Arc::clone(&self.service.streams).try_acquire_owned();
        let input = match (self.without_query(input), permit) {
            (Ok(input), Ok(permit)) => Ok((input, permit)),
            (Err(error), _) => Err(error),
            (Ok(_), Err(_)) => Err(HttpError::TooManyStreams { limit: self.service.config.max_streams }),
        };
        let (input, permit) = match input {
            Ok(input) => input,
            Err(error) => return self.fail(&error),
        };
        let kind = StreamKind::of(&input);
        let service = self.service.clone();
        let begin = move |context: &Context, input| Ok(service.node.events(context, input)?);
        match dispatch::run(&self.service.pools, Place::Here, self.service.context(), input, begin).await {
            Ok(stream) => {
                let teller = Teller::new(self.service.clone(), kind, stream, self.reporter(), permit);
                self.headers.push((HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")));
                // Nothing follows on this connection, so that an end of the server need not wait for it. HTTP/2 knows no such
                // header: other streams may follow there.
                if self.request.version() < Version::HTTP_2 {
                    self.headers.push((CONNECTION, HeaderValue::from_static("close")));
                }
                let response = self.begin(StatusCode::OK, EVENT_STREAM);
                self.finish(response.set_body(pulled(teller, Teller::next)))
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Answers a message of JSON-RPC that was answered under `context`.
    pub(crate) fn respond_rpc(mut self, context: &Context, answer: Option<Vec<u8>>) -> HttpResponse {
        self.view = context.view();
        match answer {
            Some(answer) => self.respond(StatusCode::OK, JSON, answer.into()),
            None => {
                let mut response = self.begin(StatusCode::NO_CONTENT, JSON);
                response.headers_mut().remove(CONTENT_TYPE);
                self.finish(response)
            }
        }
    }

    /// Lets the connection speak WebSocket from now on (RFC 6455, section 4.2.2).
    pub(crate) fn upgrade(mut self, accept: HeaderValue, body: BoxBody) -> HttpResponse {
        let mut response = self.begin(StatusCode::SWITCHING_PROTOCOLS, JSON);
        response.head_mut().set_connection_type(ConnectionType::Upgrade);
        let headers = response.headers_mut();
        headers.remove(CONTENT_TYPE);
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        self.finish(response.set_body(body))
    }

    /// Answers with a problem.
    pub(crate) fn fail(mut self, error: &HttpError) -> HttpResponse {
        self.service.metrics.refused(error);
        let (status, body) = self.reporter().problem(error);
        if let Some(seconds) = error.retry_after() {
            self.headers.push((RETRY_AFTER, seconds.into()));
        }
        match error {
            HttpError::MethodNotAllowed { allow } => self.headers.push((ALLOW, HeaderValue::from_static(allow))),
            HttpError::NoWebSocket => self.headers.push((UPGRADE, HeaderValue::from_static("websocket"))),
            HttpError::Unauthorized => self.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ => {}
        }
        let schema = report::schema_url(&self.base_url());
        self.headers.extend(described_by(&schema).map(|link| (LINK, link)));
        if self.caching != Caching::Unsaid {
            self.caching = Caching::NoStore;
        }
        self.respond(status, PROBLEM_JSON, body.into())
    }

    /// Answers with a document that is the same for everybody until the server is another. It is compressed once.
    pub(crate) async fn respond_document(mut self, media_type: &'static str, body: Bytes) -> HttpResponse {
        self.caching = Caching::Revalidate;
        let digest = caching::digest(&body);
        if self.is_known(digest) {
            return self.not_modified(&body);
        }
        let Some(encoding) = self.encoding(&body) else { return self.send(StatusCode::OK, media_type, body) };
        let compressed = self.service.documents.get(encoding, digest, &body).await;
        self.headers.push((CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str())));
        self.headers.push((VARY, BY_ENCODING));
        let response = self.begin(StatusCode::OK, media_type);
        self.finish(response.set_body(BoxBody::new(compressed)))
    }

    /// Answers with a body that is there.
    pub(crate) fn respond(mut self, status: StatusCode, media_type: &'static str, body: Bytes) -> HttpResponse {
        if status == StatusCode::OK && self.caching.may_be_kept() && self.is_known(caching::digest(&body)) {
            return self.not_modified(&body);
        }
        match self.encoding(&body) {
            Some(encoding) => {
                let mut response = self.begin(status, media_type);
                // It tells caches by itself that the answer depends on what the client accepts.
                let body = compress::encode(encoding, response.head_mut(), body);
                self.finish(response.set_body(body))
            }
            None => self.send(status, media_type, body),
        }
    }

    /// Names the body of `digest`. Answers whether the client has it.
    fn is_known(&mut self, digest: u128) -> bool {
        let tag = caching::entity_tag(digest);
        self.headers.extend(caching::tag_value(&tag).map(|tag| (ETAG, tag)));
        caching::is_known(&self.request, &tag)
    }

    /// Tells the client that it has `body`.
    fn not_modified(mut self, body: &Bytes) -> HttpResponse {
        self.vary_by_encoding(body);
        let mut response = self.begin(StatusCode::NOT_MODIFIED, JSON);
        response.headers_mut().remove(CONTENT_TYPE);
        self.finish(response.set_body(BoxBody::new(())))
    }

    /// Sends `body` as it is.
    fn send(mut self, status: StatusCode, media_type: &'static str, body: Bytes) -> HttpResponse {
        self.vary_by_encoding(&body);
        let response = self.begin(status, media_type);
        self.finish(response.set_body(BoxBody::new(body)))
    }

    /// Tells caches that other clients may get `body` in an encoding, if they may.
    fn vary_by_encoding(&mut self, body: &Bytes) {
        if self.is_compressible(body) {
            self.headers.push((VARY, BY_ENCODING));
        }
    }

    /// In which encoding the client gets `body`; none as it is.
    fn encoding(&self, body: &Bytes) -> Option<ContentEncoding> {
        if self.is_compressible(body) { compress::negotiate(&self.request) } else { None }
    }

    fn is_compressible(&self, body: &Bytes) -> bool {
        self.service.config.compression && compress::is_worth_it(body.len())
    }

    /// The head of an answer.
    fn begin(&mut self, status: StatusCode, media_type: &'static str) -> HttpResponse {
        let mut response = HttpResponse::new(status);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        let mut id = [0; uuid::fmt::Hyphenated::LENGTH];
        if let Ok(id) = HeaderValue::from_str(self.id.hyphenated().encode_lower(&mut id)) {
            headers.insert(REQUEST_ID, id);
        }
        if let Some(ViewOf { head, .. }) = self.view {
            headers.insert(HEAD_NUMBER, head.number.into());
            if let Ok(hash) = HeaderValue::try_from(const_hex::encode_prefixed(head.hash)) {
                headers.insert(HEAD_HASH, hash);
            }
        }
        if let Some(control) = self.caching.control(self.service.config.tokens.is_none()) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(control));
        }
        for (name, value) in self.headers.drain(..) {
            headers.append(name, value);
        }
        response
    }

    /// Counts the answer, and writes its line to the log.
    fn finish(self, response: HttpResponse) -> HttpResponse {
        let (status, elapsed) = (response.status(), self.started.elapsed());
        self.service.metrics.answered(self.operation, status, elapsed);
        tracing::info!(
            target: "request",
            id = %self.id,
            operation = self.operation,
            status = status.as_u16(),
            micros = elapsed.as_micros() as u64,
        );
        response
    }

    /// What may be kept of an answer that lasts so long; a request that creates something stays what it is.
    fn lasts(&mut self, lasts: Lasts) {
        if self.caching.may_be_kept() {
            self.caching = lasts.caching(self.view);
        }
    }

    /// The address of the schema of the operation's answers.
    fn schema(&self) -> String {
        encode::schema_url(&self.base_url(), &["Output_", self.operation].concat())
    }

    fn reporter(&self) -> Reporter {
        Reporter { operation: self.operation, id: self.id, base_url: self.base_url() }
    }

    fn base_url(&self) -> String {
        encode::base_url(&self.request, &self.service.config, &self.service.listening)
    }
}

/// Whether the value of a `Prefer` header names `preference`, with whatever value and parameters (RFC 7240, section 2).
fn names_preference(header: &str, preference: &str) -> bool {
    let mut quoted = false;
    let mut wishes = header.split(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    });
    wishes.any(|wish| wish.split(['=', ';']).next().is_some_and(|name| name.trim().eq_ignore_ascii_case(preference)))
}

/// Whether the value of an `Accept` header names `media_type` itself, and not with a weight of zero.
fn names_media_type(header: &str, media_type: &str) -> bool {
    header.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        named
            && parts
                .filter_map(|part| part.strip_prefix("q="))
                .all(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

/// The value of a `Link` header that names the schema of the answer.
fn described_by(schema: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&["<", schema, ">; rel=\"describedBy\""].concat()).ok()
}

/// The answer to a request for a route that is not there, or by a method that it does not take.
pub(crate) async fn refuse(request: HttpRequest, allow: Option<&'static str>) -> HttpResponse {
    let decodable = is_decodable(request.uri().path());
    let asks = request.method() == Method::OPTIONS;
    let mut exchange = Exchange::new("none", request, None);
    if let Err(error) = exchange.admit(Access::Open) {
        return exchange.fail(&error);
    }
    match allow {
        _ if !decodable => exchange.fail(&HttpError::Path),
        Some(allow) if asks => {
            let mut exchange = exchange.with_header(ALLOW, HeaderValue::from_static(allow));
            let mut response = exchange.begin(StatusCode::NO_CONTENT, JSON);
            response.headers_mut().remove(CONTENT_TYPE);
            exchange.finish(response)
        }
        Some(allow) => exchange.fail(&HttpError::MethodNotAllowed { allow }),
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let cases = [
            ("text/html", true),
            ("application/json, Text/HTML;q=0.9, */*", true),
            ("text/html;level=1", true),
            ("*/*", false),
            ("text/*", false),
            ("text/html;q=0", false),
            ("text/html; q=0.0, text/plain", false),
            ("", false),
        ];
        for (header, expected) in cases {
            assert_eq!(names_media_type(header, "text/html"), expected, "{header}");
        }
    }

    #[test]
    fn preferences() {
        let cases = [
            ("page", true),
            ("Page", true),
            ("page; foo", true),
            ("page=1", true),
            ("page = 1 ; foo=2", true),
            ("wait=5, page", true),
            ("", false),
            ("pages", false),
            ("foo=page", false),
            ("foo; page", false),
            ("foo=\"a, page, b\"", false),
        ];
        for (header, expected) in cases {
            assert_eq!(names_preference(header, "page"), expected, "{header}");
        }
    }
}
