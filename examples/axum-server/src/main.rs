//! An axum server with a node in it: a route of its own that calls the node, and all routes of the node below `/node`.
//!
//! `cargo run -p example-axum-server [-- PATH]`: the chain is in memory, in a database of SQLite if the path ends in
//! `.sqlite`, or in a folder.

use axum::extract::{Path, State};
use axum::{Router, routing::get};
use example_sqlite_backend::SqliteBackend;
use node_core::backend::{MemoryBackend, StateBackend};
use node_dev::{AccountOptions, Accounts, DevGenesis};
use node_http::{HttpConfig, NodeService, ProblemResponse};
use node_types::{Address, BlockId};
use std::{error::Error, net::SocketAddr, sync::Arc};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let (router, service) = router(std::env::args().nth(1))?;
    // Rates, and who may control the chain, depend on the addresses of clients.
    let server = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>());
    let closed = async move {
        let _ = tokio::signal::ctrl_c().await;
        service.close();
    };
    Ok(server.with_graceful_shutdown(closed).await?)
}

fn router(path: Option<String>) -> Result<(Router, NodeService), Box<dyn Error>> {
    let genesis = DevGenesis::default().build(Accounts::derive(&AccountOptions::default())?.addresses())?;
    let backend: Arc<dyn StateBackend> = match path {
        None => Arc::new(MemoryBackend::new(genesis.block())?),
        Some(file) if file.ends_with(".sqlite") => Arc::new(SqliteBackend::open(file, genesis.block())?),
        Some(folder) => Arc::new(node_store::Store::open(folder, genesis.block(), Default::default())?),
    };
    let node = Arc::new(node_evm::builder(backend, genesis.spec).open()?);
    let mut options = HttpConfig::default();
    options.listen.base_path = "/node".parse()?;
    let service = NodeService::new(node, options)?;
    let router = Router::new().route("/balance/{address}", get(balance)).nest_service("/node", service.clone());
    Ok((router.with_state(service.clone()), service))
}

/// Returns the balance of an account in wei. Operations of a node block, so they run on a thread of the node's pool.
async fn balance(State(service): State<NodeService>, Path(of): Path<Address>) -> Result<String, ProblemResponse> {
    let balance = service.run(move |node, context| node.get_balance(context, of, BlockId::latest())).await?;
    Ok(balance.to_string())
}

#[cfg(test)]
mod tests;
