//! A whole life of a server, for programs that do nothing else.

use crate::config::HttpConfig;
use crate::server::{ServeError, Server};
use crate::shutdown::Shutdown;
use actix_web::rt;
use node_core::node::Node;
use std::net::SocketAddr;
use std::sync::Arc;

/// Serves `node` on this thread and those of `config`, until `shutdown` asks to end; then finishes running requests. `ready`
/// is called once the server listens; if it fails, nothing is served.
///
/// # Errors
/// As [`Server::bind`] and [`Server::run`], or as `ready`.
pub fn serve<E: From<ServeError>>(
    node: Arc<Node>,
    config: HttpConfig,
    mut shutdown: Shutdown,
    ready: impl FnOnce(SocketAddr) -> Result<(), E>,
) -> Result<(), E> {
    rt::System::new().block_on(async move {
        let server = Server::bind(node, config)?;
        let handle = server.handle();
        rt::spawn(async move {
            shutdown.wait().await;
            tracing::info!("finishing running requests");
            handle.stop(true).await;
        });
        ready(server.address())?;
        Ok(server.run().await?)
    })
}
