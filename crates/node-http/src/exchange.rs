//! One request and its answer.

use crate::body;
use crate::config::HttpConfig;
use crate::dispatch::{self, Place};
use crate::encode;
use crate::events::{EventBody, StreamKind};
use crate::parameters::{Parameters, is_decodable};
use crate::problem::HttpError;
use crate::report::{self, Reporter};
use crate::server::Service;
use actix_web::body::MessageBody;
use actix_web::http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, HeaderName, HeaderValue, LINK, RETRY_AFTER, VARY,
};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use node_core::context::Context;
use node_core::node::{Node, NodeError};
use node_types::wire::{self, BodyError, Decode, ErrorDetail, EventsInput};
use serde::Serialize;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";
const EVENT_STREAM: &str = "text/event-stream";
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
    /// Further headers of the answer.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Exchange {
    /// Begins to answer `request`, which is for `operation`.
    pub(crate) fn new(operation: &'static str, request: HttpRequest, payload: Option<web::Payload>) -> Self {
        let service = Service::of(&request);
        let started = Instant::now();
        Self {
            operation,
            request,
            payload,
            service,
            id: Uuid::new_v4(),
            started,
            query_read: Cell::new(false),
            headers: Vec::new(),
        }
    }

    /// Forbids caches to keep the answer: the request creates or advances something.
    pub(crate) fn no_store(mut self) -> Self {
        self.headers.push((CACHE_CONTROL, HeaderValue::from_static("no-store")));
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

    /// Decodes the body.
    pub(crate) async fn body<I: Decode + Send + 'static>(&mut self) -> Result<I, HttpError> {
        let Some(payload) = self.payload.take() else { return Err(HttpError::Body(BodyError::Empty)) };
        let body = body::read_json(&self.request, payload, &self.service.config, &self.service.body_memory).await?;
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
        self.answer_page(input, place, move |node, context, input| Ok((work(node, context, input)?, None))).await
    }

    /// Answers with a page: `work` also tells where the next one is, relative to the base of all paths.
    pub(crate) async fn answer_page<I, O>(
        mut self,
        input: Result<I, HttpError>,
        place: impl FnOnce(&I) -> Place,
        work: impl Fn(&Node, &Context, I) -> Result<(O, Option<String>), NodeError> + Send + 'static,
    ) -> HttpResponse
    where
        I: Clone + Send + 'static,
        O: Serialize,
    {
        let input = match self.without_query(input) {
            Ok(input) => input,
            Err(error) => return self.fail(&error),
        };
        let schema = encode::schema_url(&self.base_url(), &["Output_", self.operation].concat());
        let described_by = described_by(&schema);
        let service = self.service.clone();
        let place = place(&input);
        let answer = move |context: &Context, input| {
            let (answer, next) = work(&service.node, context, input)?;
            Ok((encode::with_schema(&schema, &answer)?, next))
        };
        match dispatch::run(&self.service.pools, place, self.service.context(), input, answer).await {
            Ok((body, next)) => {
                let next =
                    next.map(|next| format!("<{}/{next}>; rel=\"next\"", self.service.config.base_path.as_str()));
                let next = next.and_then(|next| HeaderValue::try_from(next).ok());
                self.headers.extend(described_by.into_iter().chain(next).map(|link| (LINK, link)));
                self.respond(StatusCode::OK, JSON, body)
            }
            Err(error) => self.fail(&error),
        }
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
                let body = EventBody::new(self.service.clone(), kind, stream, self.reporter(), permit);
                self.headers.push((HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")));
                // Nothing follows on this connection, so that an end of the server need not wait for it.
                self.headers.push((CONNECTION, HeaderValue::from_static("close")));
                self.respond(StatusCode::OK, EVENT_STREAM, body)
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Answers with a problem.
    pub(crate) fn fail(mut self, error: &HttpError) -> HttpResponse {
        let (status, body) = self.reporter().problem(error);
        match error {
            HttpError::Overloaded | HttpError::TooManyStreams { .. } => {
                self.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
            }
            HttpError::MethodNotAllowed { allow } => self.headers.push((ALLOW, HeaderValue::from_static(allow))),
            _ => {}
        }
        let schema = report::schema_url(&self.base_url());
        self.headers.extend(described_by(&schema).map(|link| (LINK, link)));
        self.respond(status, PROBLEM_JSON, body)
    }

    /// Answers with a body that is no operation's.
    pub(crate) fn respond(
        self,
        status: StatusCode,
        media_type: &'static str,
        body: impl MessageBody + 'static,
    ) -> HttpResponse {
        let mut id = [0; uuid::fmt::Hyphenated::LENGTH];
        let id = self.id.hyphenated().encode_lower(&mut id);
        let mut response = HttpResponse::build(status);
        response.insert_header((actix_web::http::header::CONTENT_TYPE, HeaderValue::from_static(media_type)));
        if let Ok(id) = HeaderValue::from_str(id) {
            response.insert_header((REQUEST_ID, id));
        }
        for header in self.headers {
            response.append_header(header);
        }
        tracing::debug!(
            id,
            operation = self.operation,
            status = status.as_u16(),
            micros = self.started.elapsed().as_micros(),
            "request"
        );
        response.body(body).map_into_boxed_body()
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
    match allow {
        _ if !is_decodable(request.uri().path()) => Exchange::new("none", request, None).fail(&HttpError::Path),
        Some(allow) if request.method() == Method::OPTIONS => {
            HttpResponse::NoContent().insert_header((ALLOW, HeaderValue::from_static(allow))).finish()
        }
        Some(allow) => Exchange::new("none", request, None).fail(&HttpError::MethodNotAllowed { allow }),
        None => Exchange::new("none", request, None).fail(&HttpError::UnknownRoute),
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
