//! Listens, and hands connections to the routes.

use crate::block_cache::BlockCache;
use crate::body;
use crate::compress::Compressed;
use crate::config::HttpConfig;
use crate::cors;
use crate::dispatch::Pools;
use crate::encode;
use crate::listen;
use crate::metrics::{Metrics, State};
use crate::openapi;
use crate::problem::HttpError;
use crate::rate::Rates;
use crate::report::Reporter;
use crate::routes;
use crate::signal::Signal;
use crate::tls::Tls;
use actix_http::{HttpService, Request};
use actix_server::ServerHandle;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, ServiceResponse};
use actix_web::middleware::Condition;
use actix_web::web::{self, Bytes};
use actix_web::{App, Error, HttpRequest};
use node_core::context::Context;
use node_core::node::Node;
use node_rpc::Rpc;
use node_types::wire;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

/// How long a client whose connection is closed has to take the last answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// What every request needs.
pub(crate) struct Service {
    pub(crate) node: Arc<Node>,
    pub(crate) rpc: Rpc,
    pub(crate) pools: Pools,
    pub(crate) metrics: Metrics,
    /// Connections that there may still be.
    pub(crate) connections: Arc<Semaphore>,
    /// Clients that may still be told that there are too many.
    pub(crate) farewells: Semaphore,
    /// Requests that there may still be at a time.
    pub(crate) requests: Arc<Semaphore>,
    /// Memory for bodies on their way, a permit a byte.
    pub(crate) body_memory: Semaphore,
    /// Streams of events that there may still be.
    pub(crate) streams: Arc<Semaphore>,
    /// None where clients may send any number of requests.
    pub(crate) rates: Option<Rates>,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Blocks as they were sent.
    pub(crate) blocks: BlockCache,
    /// Documents as they were compressed.
    pub(crate) documents: Compressed,
    /// Heard whenever the head has changed.
    pub(crate) head_changes: Arc<Signal>,
    /// Heard whenever a transaction came into the pool.
    pub(crate) arrivals: Arc<Signal>,
    /// True once streams have to end.
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) config: HttpConfig,
    /// Address and port, for clients that name none.
    pub(crate) listening: String,
    /// The JSON Schema documents by name, each without its address.
    pub(crate) schemas: BTreeMap<String, Value>,
    /// The description of the interface, as JSON and as YAML.
    pub(crate) openapi: (Bytes, Bytes),
}

impl Service {
    pub(crate) fn new(node: Arc<Node>, config: HttpConfig, listening: SocketAddr) -> io::Result<Self> {
        let pools = Pools::new(&config)?;
        let openapi = openapi::openapi(&config.base_path, node.producer().is_some());
        let yaml = openapi::openapi_yaml(&openapi)?;
        let openapi = (openapi.to_string().into(), yaml.into());
        let (head_changes, arrivals) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        node.backend().subscribe(head_changes.clone());
        node.backend().subscribe(Arc::new(config.metrics.clone()));
        node.pool().subscribe(arrivals.clone());
        let permits = |limit: usize| Semaphore::new(limit.min(Semaphore::MAX_PERMITS));
        Ok(Self {
            rpc: Rpc::new(node.clone(), config.rpc),
            node,
            pools,
            metrics: config.metrics.clone(),
            connections: Arc::new(permits(config.max_connections)),
            farewells: permits(listen::FAREWELLS),
            requests: Arc::new(permits(config.max_requests)),
            body_memory: body::memory(&config),
            streams: Arc::new(permits(config.max_streams)),
            rates: Rates::new(&config),
            tls: config.tls.as_ref().map(Tls::acceptor),
            blocks: BlockCache::new(config.body_cache),
            documents: Compressed::new(),
            head_changes,
            arrivals,
            closing: watch::Sender::new(false),
            listening: listening.to_string(),
            schemas: wire::schema::schemas(),
            openapi,
            config,
        })
    }

    /// The service that answers `request`.
    pub(crate) fn of(request: &HttpRequest) -> web::Data<Self> {
        request.app_data::<web::Data<Self>>().expect("every app is built with its service").clone()
    }

    /// Bounds for a request that begins now.
    pub(crate) fn context(&self) -> Context {
        Context::unbounded().with_timeout(self.config.call_timeout)
    }

    /// The same for a message of JSON-RPC, all of which reads one view.
    pub(crate) fn message_context(&self) -> Context {
        Context::holding_view().with_timeout(self.config.call_timeout)
    }

    /// A whole answer of HTTP/1.1 to a client whose request is not read.
    pub(crate) fn canned(&self, error: &HttpError) -> Vec<u8> {
        let base_url = encode::own_url(&self.config, &self.listening);
        let reporter = Reporter { operation: "none", id: Uuid::new_v4(), base_url };
        let (status, body) = reporter.problem(error);
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
             x-request-id: {}\r\nretry-after: {}\r\nconnection: close\r\n\r\n",
            body.len(),
            reporter.id,
            error.retry_after().unwrap_or(1),
        );
        [head.as_bytes(), &body].concat()
    }
}

/// A server that listens.
pub struct Server {
    server: actix_server::Server,
    service: web::Data<Service>,
    address: SocketAddr,
}

/// Stops a server from elsewhere.
#[derive(Clone)]
pub struct Handle {
    server: ServerHandle,
    service: web::Data<Service>,
}

impl Handle {
    /// Stops the server. With `graceful`, running requests may finish; streams of events end in any case.
    pub async fn stop(&self, graceful: bool) {
        self.service.closing.send_replace(true);
        self.server.stop(graceful).await;
    }
}

impl Server {
    /// Listens as `config` says. Requests are answered once [`run`](Self::run) is awaited.
    ///
    /// # Errors
    /// When the address cannot be bound, or threads cannot be started.
    pub fn bind(node: Arc<Node>, config: HttpConfig) -> Result<Self, ServeError> {
        let wanted = SocketAddr::new(config.host, config.port);
        let listener = bind(wanted).map_err(|source| ServeError::Bind { address: wanted, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Bind { address: wanted, source })?;
        let settings = config.clone();
        let service = web::Data::new(Service::new(node, config, address).map_err(ServeError::Start)?);
        settings.metrics.observe(State::of(&service));
        let builder = actix_server::Server::build()
            .workers(settings.workers.get())
            // Those that are too many are told so, and so have to be accepted.
            .max_concurrent_connections(settings.max_connections.saturating_add(listen::FAREWELLS))
            // Whole seconds are all that it knows.
            .shutdown_timeout(u64::try_from(settings.shutdown_timeout.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX))
            .disable_signals();
        let ending = builder.graceful_shutdown_signal();
        let shared = service.clone();
        let serve = move || {
            let (service, ending) = (shared.clone(), ending.clone());
            let accepting = service.clone();
            let http = HttpService::build()
                .keep_alive(settings.keep_alive)
                .client_request_timeout(settings.header_timeout)
                .client_disconnect_timeout(FAREWELL)
                // The end of a client's stream means that it has left, and its work is given up.
                .h1_allow_half_closed(false)
                .graceful_shutdown_signal(move || {
                    let ending = ending.clone();
                    async move { ending.notified().await }
                })
                .finish(map_config(app(service), |()| AppConfig::default()));
            fn_service(move |socket| listen::accept(socket, accepting.clone())).and_then(http)
        };
        let server = builder.listen("http", listener, serve).map_err(ServeError::Start)?.run();
        Ok(Self { server, service, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server from elsewhere.
    pub fn handle(&self) -> Handle {
        Handle { server: self.server.handle(), service: self.service.clone() }
    }

    /// Answers requests until the server is stopped.
    ///
    /// # Errors
    /// When a worker thread cannot be started.
    pub async fn run(self) -> Result<(), ServeError> {
        self.server.await.map_err(ServeError::Start)
    }
}

/// All routes.
fn app(
    service: web::Data<Service>,
) -> impl ServiceFactory<
    Request,
    Config = AppConfig,
    Response = ServiceResponse<impl MessageBody>,
    Error = Error,
    InitError = (),
> {
    let base = service.config.base_path.clone();
    let controlled = service.node.producer().is_some();
    let cors = cors::rules(&service.config);
    App::new()
        .wrap(Condition::new(cors.is_some(), cors.unwrap_or_default()))
        .app_data(service)
        .configure(|app| {
            routes::configure(app, base.as_str(), controlled);
        })
        .into_factory()
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Threads cannot be started.
    #[error("cannot start the server's threads")]
    Start(#[source] io::Error),
    /// Signals cannot be received.
    #[error("cannot listen to signals")]
    Signal(#[source] io::Error),
}
