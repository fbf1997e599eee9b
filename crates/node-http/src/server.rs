//! Listens, and hands connections to the routes.

use crate::body;
use crate::config::HttpConfig;
use crate::dispatch::Pool;
use crate::routes;
use actix_web::dev::ServerHandle;
use actix_web::{App, HttpRequest, HttpServer, web};
use node_core::context::Context;
use node_core::node::Node;
use node_types::wire;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What every request needs.
pub(crate) struct Service {
    pub(crate) node: Arc<Node>,
    pub(crate) pool: Pool,
    /// Memory for bodies on their way, a permit a byte.
    pub(crate) body_memory: Semaphore,
    pub(crate) config: HttpConfig,
    /// Address and port, for clients that name none.
    pub(crate) listening: String,
    /// The JSON Schema documents by name.
    pub(crate) schemas: BTreeMap<String, Vec<u8>>,
}

impl Service {
    pub(crate) fn new(node: Arc<Node>, config: HttpConfig, listening: SocketAddr) -> io::Result<Self> {
        let pool = Pool::new(config.pool_threads.get(), config.pool_queue)?;
        let schemas =
            wire::schema::schemas().into_iter().map(|(name, schema)| (name, schema.to_string().into_bytes())).collect();
        let body_memory = body::memory(&config);
        Ok(Self { node, pool, body_memory, config, listening: listening.to_string(), schemas })
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
    address: SocketAddr,
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
        let server = HttpServer::new(move || {
            let base = service.config.base_path.clone();
            let controlled = service.node.producer().is_some();
            App::new().app_data(service.clone()).configure(|app| routes::configure(app, base.as_str(), controlled))
        })
        .workers(settings.workers.get())
        .keep_alive(settings.keep_alive)
        .client_request_timeout(settings.header_timeout)
        // The end of a client's stream means that it has left, and its work is given up.
        .h1_allow_half_closed(false)
        .shutdown_timeout(settings.shutdown_timeout.as_secs())
        .disable_signals()
        .listen(listener)
        .map_err(ServeError::Start)?
        .run();
        Ok(Self { server, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server from elsewhere: `stop(true)` lets running requests finish.
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Answers requests until the server is stopped.
    ///
    /// # Errors
    /// When a worker thread cannot be started.
    pub async fn run(self) -> Result<(), ServeError> {
        self.server.await.map_err(ServeError::Start)
    }
}

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
