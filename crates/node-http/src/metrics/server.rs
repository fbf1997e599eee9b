//! The HTTP listener for metrics, on a separate address that clients need not reach.

use super::text::{self, OPEN_METRICS, PLAIN};
use crate::admission;
use crate::admission::tokens::Role;
use crate::config::HttpConfig;
use crate::problem;
use actix_web::dev::ServerHandle;
use actix_web::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, rt, web};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

/// Maximum number of connections. One scraper needs one.
const MAX_CONNECTIONS: usize = 32;

/// Time limit for a request to arrive.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves `GET /metrics` until it is dropped.
pub struct MetricsServer {
    handle: ServerHandle,
    address: SocketAddr,
}

impl MetricsServer {
    /// Listens on `address` and serves the metrics of `config` from a separate thread. Requests may use the hosts that
    /// the interface itself accepts. If there are tokens with the role `metrics`, clients must send one of them.
    ///
    /// # Errors
    /// If the address cannot be bound or the thread cannot be started.
    pub fn start(address: SocketAddr, config: &HttpConfig) -> Result<Self, MetricsError> {
        let bind = |source| MetricsError::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let (sender, receiver) = std::sync::mpsc::channel();
        let config = config.clone();
        let serve = move || {
            rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    let config = config.clone();
                    let render = move |request: HttpRequest| {
                        let response = respond(&config, &request);
                        async move { response }
                    };
                    App::new().route("/metrics", web::get().to(render))
                })
                .workers(1)
                .max_connections(MAX_CONNECTIONS)
                .client_request_timeout(REQUEST_TIMEOUT)
                .keep_alive(REQUEST_TIMEOUT)
                .shutdown_timeout(0)
                .disable_signals()
                .listen(listener)
                .map(HttpServer::run);
                match server {
                    Ok(server) => {
                        // The receiver waits for this message, so sending cannot fail.
                        let _ = sender.send(Ok(server.handle()));
                        if let Err(error) = server.await {
                            tracing::error!(%error, "the metrics server failed");
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

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Responds with all metrics, in the format that the request prefers.
fn respond(config: &HttpConfig, request: &HttpRequest) -> HttpResponse {
    if let Err(error) = admission::check_form(request).and_then(|()| admission::check_host(request, config)) {
        return HttpResponse::build(problem::status(&error)).body(error.to_string());
    }
    if let Some(tokens) = config.access.tokens.as_ref().filter(|tokens| tokens.protects_metrics()) {
        let shown = request.headers().get(AUTHORIZATION).and_then(|shown| tokens.role(shown.as_bytes()));
        if shown != Some(Role::Metrics) {
            return HttpResponse::Unauthorized().insert_header((WWW_AUTHENTICATE, "Bearer")).finish();
        }
    }
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let (media_type, body) = match config.metrics.render() {
        text if accepted.contains("application/openmetrics-text") => (OPEN_METRICS, text),
        text => (PLAIN, text::from_open_metrics(&text)),
    };
    HttpResponse::Ok().insert_header((CONTENT_TYPE, HeaderValue::from_static(media_type))).body(body)
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // `stop` sends the command when it is called; the returned future would only wait for the end.
        drop(self.handle.stop(false));
    }
}

/// Why the metrics server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address} for metrics")]
    Bind { address: SocketAddr, source: io::Error },
    /// The thread cannot be started.
    #[error("cannot start the thread for metrics")]
    Start(#[source] io::Error),
}
