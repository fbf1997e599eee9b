//! One HTTP request and its response.
//!
//! [`input`] reads the request, [`operation`] runs an operation of the node and responds with its output, and
//! [`response`] writes responses of every kind.

mod input;
mod negotiation;
mod operation;
mod response;

pub(crate) use input::DecodeBody;
pub(crate) use operation::{Job, Reply};

use crate::admission::{self, Access};
use crate::caching::Caching;
use crate::config::HttpConfig;
use crate::encode;
use crate::problem::HttpError;
use crate::report::Reporter;
use crate::request_log::Failure;
use crate::sent::Sent;
use crate::service::Service;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue, VARY};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, web};
use node_core::context::ViewOf;
use std::cell::Cell;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// A request on its way through a handler, with what is known of its response so far.
pub(crate) struct Exchange {
    operation: &'static str,
    request: HttpRequest,
    payload: Option<web::Payload>,
    /// The body, if it was read and is short.
    sent_body: Option<Bytes>,
    service: web::Data<Service>,
    id: Uuid,
    started: Instant,
    /// Whether the handler read the query. If not, the operation has no query parameters.
    query_read: Cell<bool>,
    /// How the response may be cached.
    caching: Caching,
    /// The view that the response was read from.
    view: Option<ViewOf>,
    /// Additional headers of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Why the request failed, for the log.
    failure: Option<Failure>,
    /// The permit that counts this request as in progress.
    permit: Option<OwnedSemaphorePermit>,
}

impl Exchange {
    /// Starts an exchange for `operation`, whose name appears in metrics, logs and schema addresses.
    pub(crate) fn new(operation: &'static str, request: HttpRequest, payload: Option<web::Payload>) -> Self {
        let service = Service::of(&request);
        let started = Instant::now();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        Self {
            operation,
            request,
            payload,
            sent_body: None,
            service,
            id: Uuid::new_v4(),
            started,
            query_read: Cell::new(false),
            caching: if reads { Caching::Revalidate } else { Caching::Unspecified },
            view: None,
            headers: Vec::new(),
            failure: None,
            permit: None,
        }
    }

    /// Admits the request: checks its host, size, rate and token, and counts it as in progress.
    ///
    /// # Errors
    /// The first check that fails; the caller then responds with it.
    pub(crate) fn admit(&mut self, access: Access) -> Result<(), HttpError> {
        self.permit = Some(admission::admit(&self.request, &self.service, access)?);
        Ok(())
    }

    /// Forbids caches to store the response, because the request creates or advances something.
    pub(crate) fn no_store(mut self) -> Self {
        self.caching = Caching::NoStore;
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

    /// Replaces the operation, once the body has shown which one is requested.
    pub(crate) fn set_operation(&mut self, operation: &'static str) {
        self.operation = operation;
    }

    /// Records why the request failed, although its HTTP status does not show it.
    pub(crate) fn set_failure(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Records the view that the response was read from.
    pub(crate) fn set_view(&mut self, view: Option<ViewOf>) {
        self.view = view;
    }

    pub(crate) fn service(&self) -> &web::Data<Service> {
        &self.service
    }

    pub(crate) fn config(&self) -> &HttpConfig {
        &self.service.config
    }

    pub(crate) fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Takes the unread body; `None` if it was taken before.
    pub(crate) fn take_payload(&mut self) -> Option<web::Payload> {
        self.payload.take()
    }

    /// Whether the server is shutting down.
    pub(crate) fn is_closing(&self) -> bool {
        *self.service.closing.borrow()
    }

    /// The address of the schema `name`.
    pub(crate) fn schema_url(&self, name: &str) -> String {
        encode::schema_url(&self.base_url(), name)
    }

    /// The reporter for problems of this exchange.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter {
            operation: self.operation,
            id: self.id,
            base_url: self.base_url(),
            sent: Sent::new(self.operation, &self.request, self.sent_body.clone()),
        }
    }

    fn base_url(&self) -> String {
        encode::base_url(&self.request, &self.service.config, &self.service.listening)
    }
}
