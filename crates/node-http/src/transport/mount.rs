//! Mounting the routes in another actix-web application.

use crate::admission::api::{self, ApiName};
use crate::config::HttpConfig;
use crate::metrics::readings;
use crate::openapi;
use crate::problem::report::ProblemResponse;
use crate::routes::{self, table::Table};
use crate::service::Service;
use crate::transport::phase::Phase;
use crate::transport::server::ServeError;
use actix_web::dev::{HttpServiceFactory, ServiceRequest};
use actix_web::http::StatusCode;
use actix_web::{ResponseError, web};
use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use node_core::node::Node;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

/// Prepares the routes of `node` for an actix-web application: starts the thread pools. All workers of the
/// application share them and the limits of `options`.
///
/// The options about connections are not used, because the application accepts the connections: `port`, `tls`,
/// `max_connections`, `header_timeout`, `keep_alive`, `write_timeout`, `shutdown_timeout` and `workers`. `host`
/// should be the address on which the application listens, because only clients on the same machine may control the
/// chain and have no rate limit by default.
///
/// # Errors
/// [`ServeError::Start`] if a thread cannot be started.
///
/// # Examples
/// ```
/// use actix_web::{App, HttpResponse, HttpServer, middleware, web};
/// use node_core::node::Node;
/// use node_http::HttpConfig;
/// use std::sync::Arc;
///
/// fn serve(node: Arc<Node>) -> Result<(), Box<dyn std::error::Error>> {
///     let mut options = HttpConfig::default();
///     options.listen.base_path = "/node".parse()?;
///     let routes = node_http::configure(node, options)?;
///     let app = move || {
///         App::new()
///             .wrap(middleware::DefaultHeaders::new().add(("x-served-by", "example")))
///             .route("/hello", web::get().to(HttpResponse::Ok))
///             .configure(|app| routes.add_to(app))
///     };
///     actix_web::rt::System::new().block_on(HttpServer::new(app).bind("127.0.0.1:8080")?.run())?;
///     Ok(())
/// }
/// ```
pub fn configure(node: Arc<Node>, options: HttpConfig) -> Result<Routes, ServeError> {
    let address = options.address();
    Ok(Routes { service: shared(node, options, address)? })
}

/// Creates the service that the routes use in a server that listens on `address`.
pub(crate) fn shared(
    node: Arc<Node>,
    options: HttpConfig,
    address: SocketAddr,
) -> Result<web::Data<Service>, ServeError> {
    let metrics = options.metrics.clone();
    check_values(&options)?;
    let interface = openapi::documents(&options, node.producer().is_some() || options.writer.is_some());
    let service = web::Data::new(Service::new(node, options, address, interface).map_err(ServeError::Start)?);
    readings::register(&metrics, &service);
    Ok(service)
}

/// Checks that a server with these options could start: that its values are valid, and that it can listen on its
/// addresses now. For programs that create files, or take long, before they serve.
///
/// # Errors
/// [`ServeError::UnknownApi`], [`ServeError::Zero`] and [`ServeError::Bind`].
pub fn check(options: &HttpConfig) -> Result<(), ServeError> {
    check_values(options)?;
    let public = options.listen.listener.is_none().then(|| options.address());
    for address in public.into_iter().chain(options.access.control_listen) {
        TcpListener::bind(address).map_err(|source| ServeError::Bind { address, source })?;
    }
    Ok(())
}

fn check_values(options: &HttpConfig) -> Result<(), ServeError> {
    if let Some(name) = options.access.api.iter().find(|name| !is_known(name)) {
        return Err(ServeError::UnknownApi { name: name.to_string(), namespaces: namespaces() });
    }
    options.zero_limit().map_or(Ok(()), |limit| Err(ServeError::Zero(limit)))
}

/// Returns the namespaces that can be enabled, sorted.
fn namespaces() -> String {
    let table = node_rpc::table();
    let of_methods = table.iter().filter_map(|method| Some(method.name().split_once('_')?.0));
    let all: BTreeSet<_> = of_methods.chain([api::REST, api::DEVELOPMENT]).collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns whether `name` selects anything.
fn is_known(name: &ApiName) -> bool {
    node_rpc::table().iter().any(|method| name.selects_method(method.name()))
        || routes::operations(true)
            .iter()
            .any(|operation| name.selects_operation(operation.name(), operation.controls()))
}

/// The routes of a node for actix-web applications; see [`configure`].
#[derive(Clone)]
pub struct Routes {
    service: web::Data<Service>,
}

impl Routes {
    /// Adds all routes to an application, under [`base_path`](crate::ListenOptions::base_path). Without a base path they match
    /// every path that no earlier route matches, so the application's own routes must be added first. For a scope,
    /// use [`add_to_scope`](Self::add_to_scope).
    pub fn add_to(&self, app: &mut web::ServiceConfig) {
        app.service(self.scope(self.service.config.listen.base_path.as_str()));
    }

    /// Adds all routes to a scope. [`base_path`](crate::ListenOptions::base_path) must be the full path of the scope, including
    /// enclosing scopes, because links in responses begin with it. If it is a different path, every response is a
    /// problem with status 500 that reports this.
    pub fn add_to_scope(&self, scope: &mut web::ServiceConfig) {
        scope.service(self.scope(""));
    }

    /// Ends all event streams and WebSockets, and new ones as soon as they are opened, so that the application can
    /// shut down.
    pub fn close(&self) {
        self.service.phases.enter(Phase::Closing);
    }

    pub(crate) fn service(&self) -> &web::Data<Service> {
        &self.service
    }

    fn scope(&self, prefix: &str) -> impl HttpServiceFactory + use<> {
        let service = self.service.clone();
        let table = Rc::new(Table::new(service.controls()));
        web::scope(prefix).wrap_fn(move |request, _| {
            let misplaced = misplacement(&request, service.config.listen.base_path.as_str());
            match misplaced {
                Some(problem) => Either::Left(ready(Ok(request.into_response(problem.error_response())))),
                None => {
                    let found = table.find(request.match_info().unprocessed());
                    Either::Right(Table::respond(service.clone(), request, found).map(Ok))
                }
            }
        })
    }
}

/// Returns a problem unless the routes that `request` has reached are mounted under `base`, with which links in
/// responses begin.
fn misplacement(request: &ServiceRequest, base: &str) -> Option<ProblemResponse> {
    let path = request.match_info();
    let mounted = path.as_str().strip_suffix(path.unprocessed()).unwrap_or_default().trim_end_matches('/');
    if mounted == base {
        return None;
    }
    let detail = format!("the routes are below {mounted:?} in this application, but the option base_path is {base:?}");
    tracing::error!("{detail}");
    Some(ProblemResponse::plain(StatusCode::INTERNAL_SERVER_ERROR, detail))
}
