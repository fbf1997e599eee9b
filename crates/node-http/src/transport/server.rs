//! The server: binds the listener, passes its connections to the routes, and runs until it is shut down.

use crate::admission::sender::Peer;
use crate::admission::tokens::Role;
use crate::config::HttpConfig;
use crate::routes::table::Table;
use crate::service::{MAX_REJECTIONS, Service};
use crate::transport::connection::Connection;
use crate::transport::listen;
use crate::transport::mount;
use crate::transport::phase::Phase;
use crate::transport::signals::Shutdown;
use actix_http::{ConnectionType, HttpService, Request};
use actix_server::ServerHandle;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::body::MessageBody;
use actix_web::dev::{AppConfig, ServiceResponse};
use actix_web::rt::time::sleep;
use actix_web::{App, Error, rt, web};
use node_core::node::Node;
use std::error::Error as StdError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long a client has to read the last response before its connection is closed.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long idle connections stay open after the listener was closed, if there is a shutdown delay.
const LINGER: Duration = Duration::from_millis(250);

/// Time for idle connections and WebSockets to close when the server stops.
const CLOSING: Duration = Duration::from_millis(250);

/// How often this is checked.
const CLOSING_STEP: Duration = Duration::from_millis(2);

/// Number of bytes of responses that a connection buffers before it writes them. The buffer remains while the
/// client does not read.
const WRITE_BUFFER: usize = 8 * 1024;

/// An HTTP server that listens on its address.
pub struct Server {
    server: actix_server::Server,
    service: web::Data<Service>,
    address: SocketAddr,
}

/// Stops a running [`Server`]. It can be cloned and sent to other threads.
#[derive(Clone)]
pub struct Handle {
    server: ServerHandle,
    service: web::Data<Service>,
}

impl Handle {
    /// Prepares the shutdown: `/ready` returns 503, event streams and WebSockets end, and connections are closed after
    /// their next response. Requests are served until [`stop`](Self::stop) is called.
    pub fn drain(&self) {
        self.service.phases.enter(Phase::Draining);
    }

    /// Stops the server. If `graceful`, requests in progress may finish. Event streams and WebSockets always end.
    pub async fn stop(&self, graceful: bool) {
        self.service.phases.enter(Phase::Closing);
        if graceful {
            // Once connections are open when the server stops, it looks for their end only each second.
            let linger = self.service.config.lifecycle.shutdown_delay.min(LINGER);
            let _ = rt::time::timeout(linger + CLOSING, self.all_closed()).await;
        }
        self.server.stop(graceful).await;
    }

    /// Waits until no connection is open.
    async fn all_closed(&self) {
        while self.service.connections.taken() > 0 {
            sleep(CLOSING_STEP).await;
        }
        sleep(CLOSING_STEP).await;
    }
}

impl Server {
    /// Listens on the address of `config`, or uses its listener. Connections are accepted once [`run`](Self::run) is
    /// awaited.
    ///
    /// # Errors
    /// If the address cannot be bound or threads cannot be started.
    pub fn bind(node: Arc<Node>, config: HttpConfig) -> Result<Self, ServeError> {
        let requested = config.address();
        let listener = match &config.listen.listener {
            Some(listener) => listener.try_clone().and_then(nonblocking),
            None => TcpListener::bind(requested).and_then(nonblocking),
        };
        let listener = listener.map_err(|source| ServeError::Bind { address: requested, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Bind { address: requested, source })?;
        let (settings, scheme) = (config.clone(), config.scheme());
        let service = mount::shared(node, config, address)?;
        let builder = actix_server::Server::build()
            .workers(settings.workers())
            // Connections over the limit are also accepted, so that they can be sent an error.
            .max_concurrent_connections(settings.clients.max_connections.saturating_add(MAX_REJECTIONS))
            // The timeout is in whole seconds, rounded up.
            .shutdown_timeout(
                u64::try_from(settings.lifecycle.shutdown_timeout.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX),
            )
            .disable_signals();
        let shared = service.clone();
        let base = settings.listen.base_path.clone();
        let linger = settings.lifecycle.shutdown_delay.min(LINGER);
        let serve = move |is_at_control: bool| {
            let service = shared.clone();
            let (accepting, stopping) = (service.clone(), service.clone());
            let http = HttpService::build()
                .h1_write_buffer_size(WRITE_BUFFER)
                .keep_alive(settings.clients.keep_alive)
                .client_request_timeout(settings.requests.header_timeout)
                .client_disconnect_timeout(DISCONNECT_TIMEOUT)
                // A client that closes its sending half is considered gone, and its work is cancelled.
                .h1_allow_half_closed(false)
                .on_connect_ext(|connection: &Connection, data| {
                    data.insert(connection.peer().clone());
                })
                .graceful_shutdown_signal(move || {
                    let mut closing = stopping.phases.closing();
                    async move {
                        closing.wait().await;
                        // A request may be in flight on a connection that looks idle.
                        sleep(linger).await;
                    }
                })
                .h1(app(service, base.as_str()));
            fn_service(move |socket| listen::accept(socket, accepting.clone(), is_at_control)).and_then(http)
        };
        let control = settings.access.control_listen.map(|address| {
            let listener = TcpListener::bind(address).and_then(nonblocking);
            let listener = listener.map_err(|source| ServeError::Bind { address, source })?;
            listener.local_addr().map(|address| (address, listener)).map_err(ServeError::Start)
        });
        let (public, for_control) = (serve.clone(), serve);
        let mut builder = builder.listen("http", listener, move || public(false)).map_err(ServeError::Start)?;
        if let Some((address, listener)) = control.transpose()? {
            tracing::info!("control of the chain on {scheme}://{address}");
            if !address.ip().is_loopback()
                && !settings.access.tokens.as_ref().is_some_and(|tokens| tokens.reserve(Role::Control))
            {
                tracing::warn!("everyone who can reach {address} can control the chain: no token has the role control");
            }
            builder = builder.listen("control", listener, move || for_control(true)).map_err(ServeError::Start)?;
        }
        let server = builder.run();
        Ok(Self { server, service, address })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle that stops the server.
    pub fn handle(&self) -> Handle {
        Handle { server: self.server.handle(), service: self.service.clone() }
    }

    /// Serves requests until the server is stopped.
    ///
    /// # Errors
    /// If a worker thread cannot be started.
    pub async fn run(self) -> Result<(), ServeError> {
        self.server.await.map_err(ServeError::Start)
    }
}

/// Builds the application with all routes under `base`. Each worker builds its own.
pub(crate) fn app(
    service: web::Data<Service>,
    base: &str,
) -> impl ServiceFactory<
    Request,
    Config = (),
    Response = ServiceResponse<impl MessageBody + use<>>,
    Error = Error,
    InitError = (),
> + use<> {
    let base = base.to_owned();
    let table = Rc::new(Table::new(service.controls()));
    let app = App::new().wrap_fn(move |request, _| {
        let connection = request.conn_data::<Peer>().map(|peer| peer.connection.clone());
        let is_last = request.head().connection_type() == ConnectionType::Close;
        let found = request.match_info().as_str().strip_prefix(&base).and_then(|path| table.find(path));
        let response = Table::respond(service.clone(), request, found);
        async move {
            let response = response.await;
            if let Some(connection) = connection {
                if is_last {
                    connection.end();
                }
                connection.respond();
            }
            Ok(response)
        }
    });
    map_config(app.into_factory(), |()| AppConfig::default())
}

/// Serves `node` on this thread and on the worker threads of `config` until `shutdown` is triggered and
/// `shutdown_delay` has passed or a second signal has arrived; then waits for requests in progress. `ready` is called
/// once the server listens; if it fails, nothing is served.
///
/// # Errors
/// Those of [`Server::bind`] and [`Server::run`], and the error of `ready`, which can be [`ServeError::Ready`].
///
/// # Examples
/// ```
/// use node_core::node::Node;
/// use node_http::{HttpConfig, Shutdown, serve};
/// use std::error::Error;
/// use std::sync::Arc;
///
/// fn run(node: Arc<Node>) -> Result<(), Box<dyn Error>> {
///     serve(node, HttpConfig::default(), Shutdown::on_signals()?, |address| {
///         println!("listening on {address}");
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
pub fn serve(
    node: Arc<Node>,
    config: HttpConfig,
    mut shutdown: Shutdown,
    ready: impl FnOnce(SocketAddr) -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    rt::System::new().block_on(async move {
        let delay = config.lifecycle.shutdown_delay;
        let server = Server::bind(node, config)?;
        let handle = server.handle();
        rt::spawn(async move {
            shutdown.wait(1).await;
            handle.drain();
            if !delay.is_zero() {
                tracing::info!("shutting down: requests are served for {} ms more", delay.as_millis());
                shutdown.delay(delay).await;
            }
            tracing::info!("shutting down: waiting for requests in progress");
            handle.stop(true).await;
        });
        ready(server.address())?;
        server.run().await
    })
}

fn nonblocking(listener: TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Why a server could not be bound or started, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}")]
    Bind { address: SocketAddr, source: io::Error },
    /// Threads cannot be started.
    #[error("cannot start the server's threads")]
    Start(#[source] io::Error),
    /// A limit is zero, so no request would be served.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// A name in [`AccessOptions::api`](crate::AccessOptions::api) selects nothing.
    #[error(
        "{name:?} is neither one of the namespaces {namespaces}, nor a JSON-RPC method, nor a REST operation; see `api`"
    )]
    UnknownApi { name: String, namespaces: String },
    /// What the program does once the server listens has failed.
    #[error(transparent)]
    Ready(Box<dyn StdError + Send + Sync>),
    /// Signal handlers cannot be installed.
    #[error("cannot listen for signals")]
    Signal(#[source] io::Error),
}
