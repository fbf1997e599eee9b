//! The routes: every operation, JSON-RPC, and the pages for people.
//!
//! An operation is declared in the file of its family, in one row. How to add one: `ARCHITECTURE.md`.

mod blocks;
mod calls;
mod chain;
mod development;
mod documents;
mod events;
mod filters;
mod health;
mod logs;
mod messages;
pub(crate) mod operation;
mod pages;
pub(crate) mod spelling;
mod state;
#[cfg(test)]
mod tests;
mod transactions;

use crate::admission::{self, Access};
use crate::exchange::Exchange;
use crate::fallback;
use actix_web::http;
use actix_web::{HttpRequest, HttpResponse, Route, guard, web};
use node_types::wire::schema::Documents;
use operation::{Content, Handler, Method, Operation};
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Groups of operations, in the order of the documentation.
pub(crate) const TAGS: [(&str, &str); 8] = [
    ("State", "Accounts, storage and proofs, as of any block whose state is stored."),
    ("Calls", "Executing code without a transaction."),
    ("Blocks", "Blocks and their contents."),
    ("Transactions", "Signed transactions and their receipts."),
    ("Logs", "Logs, filters for polling, and event streams."),
    ("Chain", "The head, fees, and this server."),
    (DEVELOPMENT, "Control of a chain that this node produces. Only on such nodes, and only from the same machine."),
    ("Server", "Health checks, and the documents that responses refer to."),
];

/// The group of the operations that control a chain.
pub(crate) const DEVELOPMENT: &str = "Development";

/// Every operation.
pub(crate) fn operations() -> Vec<Operation> {
    let families = [
        ("State", state::operations()),
        ("Calls", calls::operations()),
        ("Blocks", blocks::operations()),
        ("Transactions", transactions::operations()),
        ("Logs", logs::operations()),
        ("Logs", filters::operations()),
        ("Logs", events::operations()),
        ("Chain", chain::operations()),
        (DEVELOPMENT, development::operations()),
        ("Server", health::operations()),
    ];
    let tagged =
        |(tag, family): (&'static str, Vec<Operation>)| family.into_iter().map(move |operation| operation.tagged(tag));
    let mut operations: Vec<_> = families.into_iter().flat_map(tagged).collect();
    let documents = documents::operations(schemas(&operations).into_keys());
    operations.extend(documents.into_iter().map(|operation| operation.tagged("Server")));
    operations
}

/// The JSON Schema documents of `operations` and of the types that they share, by name.
pub(crate) fn schemas(operations: &[Operation]) -> BTreeMap<String, Value> {
    let mut documents = Documents::shared();
    for operation in operations {
        if let Some(body) = &operation.body {
            (body.document)(&mut documents, &format!("Input_{}", operation.name()));
        }
        if let Content::Output(document) = operation.content {
            document(&mut documents, &format!("Output_{}", operation.name()));
        }
    }
    documents.into_map()
}

/// Registers every route under the path `base`; operations that control a chain only if the node is `producing` one.
pub(crate) fn configure(app: &mut web::ServiceConfig, base: &str, producing: bool) {
    let mut routes = Routes { app, base };
    messages::register(&mut routes);
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for operation in operations().into_iter().filter(|operation| producing || !operation.controls()) {
        paths.entry(operation.path).or_default().push(Endpoint::from(operation));
    }
    // Paths are compared one after the other, and those with parameters by regular expressions, so fixed paths come first.
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by_key(|(path, endpoints)| (path.contains('{'), endpoints[0].methods));
    for (path, endpoints) in paths {
        // The health checks are also served with a slash at the end.
        if !path.ends_with('/') && !path.contains(['.', '{']) {
            routes.serve(&[path, "/"].concat(), endpoints.clone());
        }
        routes.serve(path, endpoints);
    }
    pages::register(&mut routes);
    routes.app.default_service(web::to(|request: HttpRequest| fallback::refuse(request, None)));
}

/// Registers routes under a base path.
struct Routes<'a> {
    app: &'a mut web::ServiceConfig,
    base: &'a str,
}

/// The methods of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Methods {
    Post,
    /// GET and HEAD.
    Get,
    /// GET without HEAD, because it changes something.
    GetOnly,
}

/// A handler for some methods of a path.
#[derive(Clone)]
struct Endpoint {
    /// The name in metrics and logs.
    operation: &'static str,
    methods: Methods,
    access: Access,
    /// Whether caches may store the response.
    storable: bool,
    /// Whether it controls a chain.
    controls: bool,
    handler: Handler,
}

impl From<Operation> for Endpoint {
    fn from(operation: Operation) -> Self {
        let methods = match operation.method {
            Method::Post => Methods::Post,
            Method::Get if operation.accepts_head() => Methods::Get,
            Method::Get => Methods::GetOnly,
        };
        Self {
            operation: operation.name(),
            methods,
            access: operation.access,
            storable: operation.storable,
            controls: operation.controls(),
            handler: operation.handler,
        }
    }
}

impl Endpoint {
    fn new<F, R>(operation: &'static str, methods: Methods, access: Access, handler: F) -> Self
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        let handler: Handler = Rc::new(move |exchange| Box::pin(handler(exchange)));
        Self { operation, methods, access, storable: true, controls: false, handler }
    }

    fn route(self) -> Route {
        let methods = self.methods;
        let accepted = guard::fn_guard(move |context| methods.accept(&context.head().method));
        let endpoint = Rc::new(self);
        web::route().guard(accepted).to(move |request: HttpRequest, payload: web::Payload| {
            let endpoint = Rc::clone(&endpoint);
            async move { endpoint.respond(request, payload).await }
        })
    }

    async fn respond(&self, request: HttpRequest, payload: web::Payload) -> HttpResponse {
        let mut exchange = Exchange::new(self.operation, request, Some(payload));
        if let Err(error) = exchange.admit(self.access) {
            return exchange.fail(&error);
        }
        if !self.storable {
            exchange = exchange.no_store();
        }
        if self.controls
            && let Err(error) = admission::may_control(exchange.request(), exchange.config())
        {
            return exchange.fail(&error);
        }
        (self.handler)(exchange).await
    }
}

impl Methods {
    fn accept(self, method: &http::Method) -> bool {
        match *method {
            http::Method::POST => self == Self::Post,
            http::Method::GET => self != Self::Post,
            http::Method::HEAD => self == Self::Get,
            _ => false,
        }
    }
}

/// The value of `Allow` for endpoints that share a path.
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
    fn page<F, R>(&mut self, path: &str, name: &'static str, handler: F)
    where
        F: Fn(Exchange) -> R + 'static,
        R: Future<Output = HttpResponse> + 'static,
    {
        self.serve(path, vec![Endpoint::new(name, Methods::Get, Access::Open, handler)]);
    }

    /// Serves `endpoints` at `path`, and refuses other methods there.
    fn serve(&mut self, path: &str, endpoints: Vec<Endpoint>) {
        let allow = allow(&endpoints);
        let refuse = move |request: HttpRequest| fallback::refuse(request, Some(allow));
        let resource = web::resource([self.base, path].concat());
        let resource = endpoints.into_iter().fold(resource, |resource, endpoint| resource.route(endpoint.route()));
        self.app.service(resource.default_service(web::to(refuse)));
    }
}
