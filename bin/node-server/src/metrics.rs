//! Where metrics are told.

use crate::error::CommandError;
use crate::options::http::HttpOptions;
use node_http::{HttpConfig, MetricsServer};

/// Tells the metrics of `http` where the options say, as long as what is answered lives.
pub(crate) fn serve(options: &HttpOptions, http: &HttpConfig) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = options.metrics_addr else { return Ok(None) };
    let server = MetricsServer::start(address, http.metrics.clone())?;
    tracing::info!("metrics on http://{}/metrics", server.address());
    Ok(Some(server))
}
