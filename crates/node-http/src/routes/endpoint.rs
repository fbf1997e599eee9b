//! Endpoints: a handler for some methods of a path, with the checks that precede it.

use super::operation::{Handler, Method, Operation};
use crate::admission::Access;
use crate::admission::api;
use crate::exchange::Exchange;
use crate::exchange::body;
use crate::exchange::parameters::PathParameters;
use crate::problem::HttpError;
use crate::service::Service;
use actix_web::dev::{Payload, RequestHead};
use actix_web::http::header::UPGRADE;
use actix_web::{HttpRequest, HttpResponse, http, web};
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Methods {
    Post,
    /// GET and HEAD.
    Get,
    /// GET without HEAD, for requests that change something.
    GetOnly,
    /// GET that requests an upgrade to WebSocket. HTTP/1.0 has none (RFC 9110, section 7.8).
    Upgrade,
}

/// The requirements of an endpoint on requests from web pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// None for reading, because browsers prevent pages of other origins from reading responses. A POST must be
    /// declared as JSON, which browsers announce with a preflight, or have an origin that is allowed to read.
    None,
    /// The origin must be allowed to read.
    Origin,
    /// The origin and the sender must be allowed to control the chain.
    Control,
}

/// A handler for some methods of a path.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// The name in metrics and logs.
    pub(super) operation: &'static str,
    /// The properties of the body.
    properties: &'static [&'static str],
    pub(super) methods: Methods,
    access: Access,
    /// Whether caches may store the response.
    storable: bool,
    by_writer: bool,
    guard: Guard,
    /// Set if the operator may switch the endpoint off.
    switch: Option<Switch>,
    handler: Handler,
}

/// An operation that the operator may switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    controls: bool,
}

impl Endpoint {
    /// Returns the endpoints of an operation, one for each of its methods.
    pub(super) fn of(operation: &Operation) -> impl Iterator<Item = Self> {
        operation.methods().iter().map(|method| Self::by(*method, operation))
    }

    fn by(method: Method, operation: &Operation) -> Self {
        Self {
            operation: operation.name(),
            properties: operation.body.as_ref().map_or(&[], |body| body.properties),
            methods: match method {
                Method::Post => Methods::Post,
                Method::Get if operation.accepts_head() => Methods::Get,
                Method::Get => Methods::GetOnly,
            },
            access: operation.access,
            storable: operation.storable,
            by_writer: operation.by_writer,
            guard: match method {
                _ if operation.controls() => Guard::Control,
                // Pages of any site can make a browser send a GET request.
                Method::Get if !operation.accepts_head() => Guard::Origin,
                _ => Guard::None,
            },
            switch: operation.is_guarded().then(|| Switch { controls: operation.controls() }),
            handler: Rc::clone(&operation.handler),
        }
    }

    /// Returns the endpoint of a page, or of a file of one.
    pub(super) fn page<F, R>(name: &'static str, handler: F) -> Self
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        Self::new(name, Methods::Get, Access::Open, handler)
    }

    pub(super) fn new<F, R>(operation: &'static str, methods: Methods, access: Access, handler: F) -> Self
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        let handler: Handler = Rc::new(move |exchange| Box::pin(handler(exchange)));
        Self {
            operation,
            properties: &[],
            methods,
            access,
            storable: true,
            by_writer: false,
            guard: Guard::None,
            switch: None,
            handler,
        }
    }

    pub(super) async fn respond(
        &self,
        service: web::Data<Service>,
        request: HttpRequest,
        payload: Payload,
        parameters: PathParameters,
    ) -> HttpResponse {
        let mut exchange = Exchange::new(self.operation, service, request, payload).with_parameters(parameters);
        exchange = exchange.with_properties(self.properties);
        if let Err(error) = exchange.admit(self.access) {
            return exchange.fail(&error);
        }
        if !self.storable {
            exchange = exchange.no_store();
        }
        if self.access != Access::Probe
            && !exchange.config().serve_while_starting
            && let Some(progress) = exchange.config().starting.current()
        {
            return exchange.fail(&HttpError::NotReady(progress));
        }
        if let Some(Switch { controls }) = self.switch
            && !api::has_operation(&exchange.config().access.api, self.operation, controls)
        {
            return exchange.fail(&HttpError::SwitchedOff(self.operation));
        }
        if self.by_writer
            && let Some(writer) = exchange.config().writer.clone()
        {
            // The writer checks who may control the chain.
            return exchange.forward(&writer, self.guard == Guard::Control).await;
        }
        if let Err(error) = exchange.wait_for_head().await {
            return exchange.fail(&error);
        }
        let allowed = match self.guard {
            Guard::None if self.methods != Methods::Post || body::is_json(exchange.request()) => Ok(()),
            Guard::None | Guard::Origin => exchange.check_origin(),
            Guard::Control => exchange.check_control(),
        };
        if let Err(error) = allowed {
            return exchange.fail(&error);
        }
        (self.handler)(exchange).await
    }
}

impl Methods {
    pub(super) fn accept(self, head: &RequestHead) -> bool {
        let upgrade = || head.headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        match head.method {
            http::Method::POST => self == Self::Post,
            http::Method::GET if self == Self::Upgrade => head.version >= http::Version::HTTP_11 && upgrade(),
            http::Method::GET => self != Self::Post,
            http::Method::HEAD => self == Self::Get,
            _ => false,
        }
    }
}

/// Returns the value of `Allow` for endpoints that share a path.
pub(super) fn allow(endpoints: &[Endpoint]) -> &'static str {
    let any = |methods| endpoints.iter().any(|endpoint| endpoint.methods == methods);
    match (any(Methods::Get), any(Methods::GetOnly), any(Methods::Post)) {
        (true, _, true) => "GET, HEAD, POST, OPTIONS",
        (true, _, false) => "GET, HEAD, OPTIONS",
        (false, true, true) => "GET, POST, OPTIONS",
        (false, true, false) => "GET, OPTIONS",
        (false, false, _) => "POST, OPTIONS",
    }
}
