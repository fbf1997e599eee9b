//! Where metrics are told: on an address of their own, which clients need not reach.

use super::Metrics;
use actix_web::dev::ServerHandle;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::{App, HttpResponse, HttpServer, rt, web};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

/// What the text is, to whoever asks for it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Connections to it at a time; one scraper needs one.
const CONNECTIONS: usize = 32;

/// Time for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers `GET /metrics`, until it is dropped.
pub struct MetricsServer {
    handle: ServerHandle,
    address: SocketAddr,
}

impl MetricsServer {
    /// Listens on `address`, and answers on a thread of its own.
    ///
    /// # Errors
    /// When the address cannot be bound, or the thread cannot be started.
    pub fn start(address: SocketAddr, metrics: Metrics) -> Result<Self, MetricsError> {
        let bind = |source| MetricsError::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        let serve = move || {
            rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    let metrics = metrics.clone();
                    let render = move || {
                        let text = metrics.render();
                        async move {
                            let media_type = (CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
                            HttpResponse::Ok().insert_header(media_type).body(text)
                        }
                    };
                    App::new().route("/metrics", web::get().to(render))
                })
                .workers(1)
                .max_connections(CONNECTIONS)
                .client_request_timeout(PATIENCE)
                .keep_alive(PATIENCE)
                .shutdown_timeout(0)
                .disable_signals()
                .listen(listener)
                .map(HttpServer::run);
                match server {
                    Ok(server) => {
                        // Who waits for it is there until it has come.
                        let _ = sender.send(Ok(server.handle()));
                        if let Err(error) = server.await {
                            tracing::error!(%error, "metrics are told no more");
                        }
                    }
                    Err(error) => {
                        let _ = sender.send(Err(error));
                    }
                }
            });
        };
        thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(MetricsError::Start)?;
        let started = receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        Ok(Self { handle: started.map_err(MetricsError::Start)?, address })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // The command is sent at once; nobody waits for the end.
        drop(self.handle.stop(false));
    }
}

/// Why metrics are not told.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address} for metrics")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The thread cannot be started.
    #[error("cannot start the thread for metrics")]
    Start(#[source] io::Error),
}
