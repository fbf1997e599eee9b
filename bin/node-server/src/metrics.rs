//! Where metrics are told.

use crate::config::ServerOptions;
use crate::error::CommandError;
use node_http::{HttpConfig, MetricsServer};

/// Tells the metrics of `http` where the options say, as long as what is answered lives.
pub(crate) fn serve(options: &ServerOptions, http: &HttpConfig) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = options.metrics_address() else { return Ok(None) };
    let server = MetricsServer::start(address, http.metrics.clone())?;
    tracing::info!("metrics on http://{}/metrics", server.address());
    Ok(Some(server))
}
