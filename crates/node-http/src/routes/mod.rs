//! The routes, by resource. A handler decodes, names an operation of the node, and leaves the rest to its exchange.

mod blocks;
mod calls;
mod chain;
mod control;
mod documents;
mod events;
mod fees;
mod filters;
mod health;
mod logs;
mod messages;
mod pages;
mod state;
mod transactions;

use crate::admission::Access;
use crate::exchange::Exchange;
use crate::fallback;
use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, Route, guard, web};

/// A path that is served, and by which methods.
#[derive(Clone, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests compare the routes with the description of the interface"))]
pub(crate) struct Described {
    pub(crate) path: String,
    pub(crate) methods: Methods,
}

/// Adds every route, each behind `base`; those that control the chain if it is `controlled`. Answers what was added.
pub(crate) fn configure(app: &mut web::ServiceConfig, base: &str, controlled: bool) -> Vec<Described> {
    let mut routes = Routes { app, base, added: Vec::new() };
    // Static paths are compared one after the other, and dynamic ones need a regular expression each, so that the
    // ones asked for most come first.
    messages::all(&mut routes);
    health::gets(&mut routes);
    state::posts(&mut routes);
    calls::posts(&mut routes);
    fees::posts(&mut routes);
    logs::posts(&mut routes);
    transactions::posts(&mut routes);
    filters::posts(&mut routes);
    chain::gets(&mut routes);
    fees::gets(&mut routes);
    blocks::gets(&mut routes);
    transactions::gets(&mut routes);
    filters::gets(&mut routes);
    events::gets(&mut routes);
    state::gets(&mut routes);
    documents::gets(&mut routes);
    pages::gets(&mut routes);
    if controlled {
        control::all(&mut routes);
    }
    routes.app.default_service(web::to(|request: HttpRequest| fallback::refuse(request, None)));
    routes.added
}

/// Methods that an operation answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// GET, and HEAD as GET without a body.
    Get,
    /// GET without HEAD: what is read is gone.
    GetOnly,
    Post,
    /// GET or POST, each of which creates something.
    GetOrPost,
}

impl Methods {
    fn accept(self, method: &Method) -> bool {
        match *method {
            Method::POST => matches!(self, Self::Post | Self::GetOrPost),
            Method::GET => !matches!(self, Self::Post),
            Method::HEAD => matches!(self, Self::Get),
            _ => false,
        }
    }

    fn allow(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::GetOnly => "GET, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::GetOrPost => "GET, POST, OPTIONS",
        }
    }
}

/// Takes operations and the paths that lead to them.
struct Routes<'a> {
    app: &'a mut web::ServiceConfig,
    base: &'a str,
    added: Vec<Described>,
}

impl Routes<'_> {
    fn get<F: AsyncOperation>(&mut self, operation: &'static str, parameters: &str, handler: F) {
        self.add(Methods::Get, operation, parameters, handler);
    }

    fn post<F: AsyncOperation>(&mut self, operation: &'static str, handler: F) {
        self.add(Methods::Post, operation, "", handler);
    }

    /// `/{operation}{parameters}/`, without the slash at the end and with the prefix `node_` too.
    fn add<F: AsyncOperation>(&mut self, methods: Methods, operation: &'static str, parameters: &str, handler: F) {
        for (prefix, slash) in [("", "/"), ("", ""), ("node_", "/"), ("node_", "")] {
            let path = format!("{}/{prefix}{operation}{parameters}{slash}", self.base);
            self.document(methods, operation, &path, handler.clone());
        }
    }

    /// `/{folder}/{operation}/`, and without the slash at the end.
    fn add_under<F: AsyncOperation>(&mut self, folder: &str, methods: Methods, operation: &'static str, handler: F) {
        for slash in ["/", ""] {
            let path = format!("{}/{folder}/{operation}{slash}", self.base);
            self.document(methods, operation, &path, handler.clone());
        }
    }

    /// Exactly `path`, which includes the base, for clients with a token.
    fn document<F: AsyncOperation>(&mut self, methods: Methods, operation: &'static str, path: &str, handler: F) {
        self.serve(Access::Guarded, methods, operation, path, handler);
        self.added.push(Described { path: path.to_owned(), methods });
    }

    /// Exactly `path`, which includes the base, for everybody: it tells nothing of the chain.
    fn open<F: AsyncOperation>(&mut self, operation: &'static str, path: &str, handler: F) {
        self.serve(Access::Open, Methods::Get, operation, path, handler);
        self.added.push(Described { path: path.to_owned(), methods: Methods::Get });
    }

    /// A page for people or a file of one, which is for everybody, and no part of the interface that is described.
    fn page<F: AsyncOperation>(&mut self, operation: &'static str, path: &str, handler: F) {
        self.serve(Access::Open, Methods::Get, operation, path, handler);
    }

    /// A page for everybody, and beside it what clients with a token may post to the same path.
    fn page_and_post<P: AsyncOperation, F: AsyncOperation>(
        &mut self,
        path: &str,
        (page, show): (&'static str, P),
        (operation, handler): (&'static str, F),
    ) {
        let page = route(Access::Open, Methods::Get, page, show);
        let post = route(Access::Guarded, Methods::Post, operation, handler);
        let refuse = |request: HttpRequest| fallback::refuse(request, Some("GET, HEAD, POST, OPTIONS"));
        self.app.service(web::resource(path).route(page).route(post).default_service(web::to(refuse)));
    }

    fn serve<F: AsyncOperation>(
        &mut self,
        access: Access,
        methods: Methods,
        operation: &'static str,
        path: &str,
        handler: F,
    ) {
        let answer = route(access, methods, operation, handler);
        let refuse = move |request: HttpRequest| fallback::refuse(request, Some(methods.allow()));
        self.app.service(web::resource(path).route(answer).default_service(web::to(refuse)));
    }
}

/// Lets requests by some methods in, and leads them to a handler.
fn route<F: AsyncOperation>(access: Access, methods: Methods, operation: &'static str, handler: F) -> Route {
    let accepted = guard::fn_guard(move |context| methods.accept(&context.head().method));
    let answer = move |request: HttpRequest, payload: web::Payload| {
        let handler = handler.clone();
        async move {
            let mut exchange = Exchange::new(operation, request, Some(payload));
            match exchange.admit(access) {
                Ok(()) => handler(exchange).await,
                Err(error) => exchange.fail(&error),
            }
        }
    };
    web::route().guard(accepted).to(answer)
}

/// An asynchronous function from an exchange to its answer.
trait AsyncOperation: Fn(Exchange) -> Self::Answer + Clone + 'static {
    type Answer: Future<Output = HttpResponse> + 'static;
}

impl<F, R> AsyncOperation for F
where
    F: Fn(Exchange) -> R + Clone + 'static,
    R: Future<Output = HttpResponse> + 'static,
{
    type Answer = R;
}
