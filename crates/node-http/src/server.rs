//! Listens, and hands connections to the routes.

use crate::body;
use crate::config::HttpConfig;
use crate::dispatch::Pools;
use crate::openapi;
use crate::routes;
use crate::signal::Signal;
use actix_web::dev::ServerHandle;
use actix_web::rt::net::TcpStream;
use actix_web::web::Bytes;
use actix_web::{App, HttpRequest, HttpServer, web};
use node_core::context::Context;
use node_core::node::Node;
use node_types::wire;
use serde_json::Value;
use socket2::SockRef;
use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// What every request needs.
pub(crate) struct Service {
    pub(crate) node: Arc<Node>,
    pub(crate) pools: Pools,
    /// Memory for bodies on their way, a permit a byte.
    pub(crate) body_memory: Semaphore,
    /// Streams of events that there may still be.
    pub(crate) streams: Arc<Semaphore>,
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
        let yaml = yaml_serde::to_string(&openapi).map_err(io::Error::other)?;
        let openapi = (openapi.to_string().into(), yaml.into());
        let (head_changes, arrivals) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        node.backend().subscribe(head_changes.clone());
        node.pool().subscribe(arrivals.clone());
        Ok(Self {
            node,
            pools,
            body_memory: body::memory(&config),
            streams: Arc::new(Semaphore::new(config.max_streams.min(Semaphore::MAX_PERMITS))),
            head_changes,
            arrivals,
            closing: watch::Sender::new(false),
            config,
            listening: listening.to_string(),
            schemas: wire::schema::schemas(),
            openapi,
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
}

/// A server that listens.
pub struct Server {
    server: actix_web::dev::Server,
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
        let listener = listen(wanted).map_err(|source| ServeError::Bind { address: wanted, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Bind { address: wanted, source })?;
        let settings = config.clone();
        let service = web::Data::new(Service::new(node, config, address).map_err(ServeError::Start)?);
        let shared = service.clone();
        let server = HttpServer::new(move || {
            let service = &shared;
            let base = service.config.base_path.clone();
            let controlled = service.node.producer().is_some();
            App::new().app_data(service.clone()).configure(|app| {
                routes::configure(app, base.as_str(), controlled);
            })
        })
        .workers(settings.workers.get())
        .keep_alive(settings.keep_alive)
        .client_request_timeout(settings.header_timeout)
        // The end of a client's stream means that it has left, and its work is given up.
        .h1_allow_half_closed(false)
        .on_connect(move |connection, _| close_when_stuck(connection, settings.write_timeout))
        .shutdown_timeout(settings.shutdown_timeout.as_secs())
        .disable_signals()
        .listen(listener)
        .map_err(ServeError::Start)?
        .run();
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

/// Lets the system close a connection whose client takes nothing for so long. Otherwise a stream of events to it would never
/// end.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn close_when_stuck(connection: &dyn Any, timeout: Duration) {
    if let Some(stream) = connection.downcast_ref::<TcpStream>()
        && let Err(error) = SockRef::from(stream).set_tcp_user_timeout(Some(timeout))
    {
        tracing::debug!(%error, "a connection has no write timeout");
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn close_when_stuck(_connection: &dyn Any, _timeout: Duration) {}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
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
