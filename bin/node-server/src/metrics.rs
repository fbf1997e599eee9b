//! The metrics server.

use crate::error::CommandError;
use crate::options::ServerOptions;
use node_http::{HttpConfig, MetricsServer};

/// Serves the metrics of `http` on the address in the options until the returned server is dropped. Returns `None` if no address
/// is set.
pub(crate) fn serve(options: &ServerOptions, http: &HttpConfig) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = options.operation.metrics_addr else { return Ok(None) };
    let server = MetricsServer::start(address, http.metrics.clone())?;
    tracing::info!("serving metrics on http://{}/metrics", server.address());
    Ok(Some(server))
}
