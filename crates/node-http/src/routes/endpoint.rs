//! Endpoints: a handler for some methods of a path, with the checks that precede it.

use super::fallback;
use super::operation::{Handler, Method, Operation};
use crate::admission::Access;
use crate::admission::api;
use crate::exchange::Exchange;
use crate::exchange::body;
use crate::problem::HttpError;
use actix_web::dev::RequestHead;
use actix_web::http::header::UPGRADE;
use actix_web::{HttpRequest, HttpResponse, Resource, Route, Scope, guard, http, web};
use std::rc::Rc;

/// Registers routes under a base path.
pub(super) struct Routes<'a> {
    pub(super) app: &'a mut web::ServiceConfig,
    pub(super) base: &'a str,
}

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
    operation: &'static str,
    /// The properties of the body.
    properties: &'static [&'static str],
    pub(super) methods: Methods,
    access: Access,
    /// Whether caches may store the response.
    storable: bool,
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

    pub(super) fn new<F, R>(operation: &'static str, methods: Methods, access: Access, handler: F) -> Self
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        let handler: Handler = Rc::new(move |exchange| Box::pin(handler(exchange)));
        Self { operation, properties: &[], methods, access, storable: true, guard: Guard::None, switch: None, handler }
    }

    fn route(self) -> Route {
        let methods = self.methods;
        let accepted = guard::fn_guard(move |context| methods.accept(context.head()));
        let endpoint = Rc::new(self);
        web::route().guard(accepted).to(move |request: HttpRequest, payload: web::Payload| {
            let endpoint = Rc::clone(&endpoint);
            async move { endpoint.respond(request, payload).await }
        })
    }

    async fn respond(&self, request: HttpRequest, payload: web::Payload) -> HttpResponse {
        let mut exchange = Exchange::new(self.operation, request, Some(payload)).with_properties(self.properties);
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
    fn accept(self, head: &RequestHead) -> bool {
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
fn allow(endpoints: &[Endpoint]) -> &'static str {
    let any = |methods| endpoints.iter().any(|endpoint| endpoint.methods == methods);
    match (any(Methods::Get), any(Methods::GetOnly), any(Methods::Post)) {
        (true, _, true) => "GET, HEAD, POST, OPTIONS",
        (true, _, false) => "GET, HEAD, OPTIONS",
        (false, true, true) => "GET, POST, OPTIONS",
        (false, true, false) => "GET, OPTIONS",
        (false, false, _) => "POST, OPTIONS",
    }
}

impl Routes<'_> {
    /// Serves a page or a file of one at `path`.
    pub(super) fn page<F, R>(&mut self, path: &str, name: &'static str, handler: F)
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        self.serve(path, vec![Endpoint::new(name, Methods::Get, Access::Open, handler)]);
    }

    /// Serves `endpoints` at `path`, and refuses other methods there.
    pub(super) fn serve(&mut self, path: &str, endpoints: Vec<Endpoint>) {
        self.app.service(resource(&[self.base, path].concat(), endpoints));
    }

    /// Serves endpoints at paths below `path`, like [`serve`](Self::serve).
    pub(super) fn serve_below(&mut self, path: &str, endpoints: Vec<(&str, Vec<Endpoint>)>) {
        let scope = web::scope(&[self.base, path].concat());
        let resources = endpoints.into_iter().map(|(path, endpoints)| resource(path, endpoints));
        self.app.service(resources.fold(scope, Scope::service));
    }
}

/// Returns a resource with `endpoints`, which refuses other methods.
fn resource(path: &str, endpoints: Vec<Endpoint>) -> Resource {
    let allow = allow(&endpoints);
    let refuse = move |request: HttpRequest, payload: web::Payload| fallback::refuse(request, payload, Some(allow));
    let resource =
        endpoints.into_iter().fold(web::resource(path), |resource, endpoint| resource.route(endpoint.route()));
    resource.default_service(web::to(refuse))
}
