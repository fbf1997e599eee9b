//! One HTTP request and its response.
//!
//! [`input`] reads the request, [`operation`] runs an operation of the node and responds with its output, and
//! [`response`] writes responses of every kind.

pub(crate) mod body;
pub(crate) mod caching;
pub(crate) mod compress;
pub(crate) mod encode;
pub(crate) mod forward;
mod input;
mod min_head;
mod negotiation;
mod operation;
pub(crate) mod parameters;
pub(crate) mod request_id;
pub(crate) mod request_log;
mod response;
pub(crate) mod streaming;
pub(crate) mod transfer;
mod unpack;

pub(crate) use input::DecodeBody;
pub(crate) use operation::Job;

use crate::admission::clients::Permit;
use crate::admission::sender::{self, Sender};
use crate::admission::{self, Access};
use crate::config::HttpConfig;
use crate::exchange::caching::Caching;
use crate::exchange::parameters::PathParameters;
use crate::exchange::request_id::{RequestId, Trace};
use crate::exchange::transfer::CompleteBody;
use crate::problem::HttpError;
use crate::problem::report::Reporter;
use crate::problem::sent::Sent;
use crate::service::Service;
use crate::transport::phase::Phase;
use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue, VARY};
use actix_web::{HttpRequest, web};
use node_core::context::Context;
use node_rpc::CallReport;
use std::cell::Cell;
use std::time::Instant;

/// A request that is being handled, with the parts of its response that are known so far.
pub(crate) struct Exchange {
    operation: &'static str,
    /// The properties of the body, if it is an object with known ones.
    properties: &'static [&'static str],
    request: HttpRequest,
    payload: Option<Payload>,
    /// The parameters in the path.
    parameters: PathParameters,
    /// The body, if it was read for an operation.
    sent_body: Option<CompleteBody>,
    service: web::Data<Service>,
    id: RequestId,
    trace: Option<Trace>,
    started: Instant,
    /// Whether the handler read the query. If not, the operation has no query parameters.
    query_read: Cell<bool>,
    /// How the response may be cached.
    caching: Caching,
    /// The context in which the response was computed.
    context: Option<Context>,
    /// Additional headers of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The detail of the problem that is the response, for the log.
    problem: Option<String>,
    /// Length in bytes of the body of the response before compression, if it is compressed.
    uncompressed: Option<usize>,
    /// The outcomes of the JSON-RPC requests in the body.
    calls: Vec<CallReport>,
    sender: Sender,
    /// Length of path, query and headers in bytes.
    head_length: usize,
    /// Counts this request as in progress.
    _permit: Option<Permit>,
}

impl Exchange {
    /// Starts an exchange for `operation`, whose name appears in metrics, logs and schema URLs.
    pub(crate) fn new(
        operation: &'static str,
        service: web::Data<Service>,
        request: HttpRequest,
        payload: Payload,
    ) -> Self {
        let started = Instant::now();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let (head_length, is_forwarded) = sender::measure_head(&request);
        let sender = Sender::new(&request, is_forwarded, &service.config, &service.clients);
        Self {
            operation,
            properties: &[],
            id: RequestId::of(request.headers()),
            trace: Trace::of(request.headers()),
            request,
            payload: Some(payload),
            parameters: PathParameters::default(),
            sent_body: None,
            service,
            started,
            query_read: Cell::new(false),
            caching: if reads { Caching::Revalidate } else { Caching::Unspecified },
            context: None,
            headers: Vec::new(),
            problem: None,
            uncompressed: None,
            calls: Vec::new(),
            sender,
            head_length,
            _permit: None,
        }
    }

    /// Sets the parameters in the path.
    pub(crate) fn with_parameters(self, parameters: PathParameters) -> Self {
        Self { parameters, ..self }
    }

    /// Sets the properties that the body may have.
    pub(crate) fn with_properties(self, properties: &'static [&'static str]) -> Self {
        Self { properties, ..self }
    }

    /// Admits the request: checks its host, size, rate and token, and counts it as in progress.
    ///
    /// # Errors
    /// The first check that fails; the caller then responds with it.
    pub(crate) fn admit(&mut self, access: Access) -> Result<(), HttpError> {
        self._permit = Some(admission::admit(&self.request, &self.service, &self.sender, self.head_length, access)?);
        if let Some(host) = self.sender.host(&self.request) {
            self.sender.connection.set_base_url(host, || self.base_url());
        }
        Ok(())
    }

    /// Refuses the request if it may not control the chain.
    pub(crate) fn check_control(&self) -> Result<(), HttpError> {
        let allowed = admission::may_control(&self.request, &self.service, &self.sender);
        let origin = admission::origin(&self.request);
        allowed.inspect_err(|error| admission::report_refusal(error, origin, &self.service))
    }

    /// Refuses the request if it is from a page whose origin may not read.
    pub(crate) fn check_origin(&self) -> Result<(), HttpError> {
        admission::may_read(&self.request, &self.service, &self.sender)
    }

    /// Forbids caches to store the response, because the request creates or advances something.
    pub(crate) fn no_store(mut self) -> Self {
        self.caching = Caching::NoStore;
        self
    }

    /// Allows caches to store the output forever, because it belongs to a block that the request identifies by hash.
    pub(crate) fn immutable(mut self) -> Self {
        self.caching = Caching::Immutable;
        self
    }

    /// Adds a header to the response.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Marks the response as depending on the `Accept` header.
    pub(crate) fn varying_by_accept(self) -> Self {
        self.with_header(VARY, HeaderValue::from_static("accept"))
    }

    /// Replaces the operation once the body has shown which one is requested.
    pub(crate) fn set_operation(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    /// Records the outcomes of the JSON-RPC requests in the body.
    pub(crate) fn set_calls(&mut self, calls: Vec<CallReport>) {
        self.calls = calls;
    }

    /// Records the context in which the response was computed.
    pub(crate) fn set_context(&mut self, context: Context) {
        self.context = Some(context);
    }

    pub(crate) fn service(&self) -> &web::Data<Service> {
        &self.service
    }

    pub(crate) fn config(&self) -> &HttpConfig {
        &self.service.config
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Returns a context for this request, which starts now.
    pub(crate) fn context(&self) -> Context {
        self.service.context(&self.sender.client)
    }

    pub(crate) fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Takes the unread body. Returns `None` if it was already taken.
    pub(crate) fn take_payload(&mut self) -> Option<Payload> {
        self.payload.take()
    }

    /// Returns whether the server is shutting down.
    pub(crate) fn is_closing(&self) -> bool {
        self.service.phases.current() > Phase::Serving
    }

    pub(crate) fn schema_url(&self, name: &str) -> String {
        encode::schema_url(&self.base_url(), name)
    }

    /// Returns the reporter for problems of this exchange.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter {
            operation: self.operation,
            id: self.id.clone(),
            base_url: self.base_url(),
            sent: Sent::new(self.properties, &self.request, self.sent_body.as_ref().map(CompleteBody::bytes))
                .with_path(self.parameters.clone()),
        }
    }

    /// Returns the URL at which the client reaches the server.
    pub(crate) fn base_url(&self) -> String {
        if let Some(known) = self.sender.base_url(&self.request) {
            return known.to_owned();
        }
        let forwarded = self.sender.forwarded.as_deref();
        encode::base_url(&self.request, forwarded, &self.service.config, &self.service.listening)
    }
}
