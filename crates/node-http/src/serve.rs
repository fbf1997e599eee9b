//! Running a server from start to shutdown, for programs that do nothing else.

use crate::config::HttpConfig;
use crate::server::{ServeError, Server};
use crate::shutdown::Shutdown;
use actix_web::rt;
use node_core::node::Node;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves `node` on this thread and on the worker threads of `config` until `shutdown` is triggered and
/// `shutdown_delay` has passed or a second signal has arrived; then waits for requests in progress. `ready` is called
/// once the server listens; if it fails, nothing is served.
///
/// # Errors
/// Those of [`Server::bind`] and [`Server::run`], and the error of `ready`.
///
/// # Examples
/// ```
/// use node_core::node::Node;
/// use node_http::{HttpConfig, ServeError, Shutdown, serve};
/// use std::sync::Arc;
///
/// fn run(node: Arc<Node>) -> Result<(), ServeError> {
///     serve(node, HttpConfig::default(), Shutdown::on_signals()?, |address| {
///         println!("listening on {address}");
///         Ok(())
///     })
/// }
/// ```
pub fn serve<E: From<ServeError>>(
    node: Arc<Node>,
    config: HttpConfig,
    mut shutdown: Shutdown,
    ready: impl FnOnce(SocketAddr) -> Result<(), E>,
) -> Result<(), E> {
    rt::System::new().block_on(async move {
        let delay = config.shutdown_delay;
        let server = Server::bind(node, config)?;
        let handle = server.handle();
        rt::spawn(async move {
            shutdown.wait(1).await;
            handle.drain();
            if !delay.is_zero() {
                tracing::info!("shutting down: requests are served for {} ms more", delay.as_millis());
                let _ = rt::time::timeout(delay, shutdown.wait(2)).await;
            }
            tracing::info!("shutting down: waiting for requests in progress");
            handle.stop(true).await;
        });
        ready(server.address())?;
        Ok(server.run().await?)
    })
}
