//! A whole life of a server, for programs that do nothing else.

use crate::config::HttpConfig;
use crate::server::{ServeError, Server};
use actix_web::rt;
use node_core::node::Node;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Serves `node` on this thread and those of `config`, until SIGINT or SIGTERM; then finishes running requests. `ready` is
/// called once the server listens.
///
/// # Errors
/// As [`Server::bind`] and [`Server::run`], and when signals cannot be received.
pub fn serve(node: Arc<Node>, config: HttpConfig, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    rt::System::new().block_on(async move {
        let server = Server::bind(node, config)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signal)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signal)?;
        let handle = server.handle();
        rt::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!("finishing running requests");
            handle.stop(true).await;
        });
        ready(server.address());
        server.run().await
    })
}
