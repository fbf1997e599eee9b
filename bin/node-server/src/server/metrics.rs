//! The metrics server.

use crate::error::CommandError;
use crate::logging;
use crate::options::ServerOptions;
use node_http::{HttpConfig, MetricsServer, Tokens};
use std::path::Path;

/// Serves the metrics of `http` on the address in the options until the returned server is dropped. Returns `None` if
/// no address is set.
pub(crate) fn serve(options: &ServerOptions, http: &HttpConfig) -> Result<Option<MetricsServer>, CommandError> {
    let Some(address) = options.operation.metrics_addr else { return Ok(None) };
    http.metrics.set_build(env!("CARGO_PKG_VERSION"), env!("COMMIT"));
    http.metrics.set_dropped_log_lines(logging::dropped_lines);
    let server = MetricsServer::start(address, http)?;
    tracing::info!("serving metrics on http://{}/metrics", server.address());
    if !address.ip().is_loopback() && !http.access.tokens.as_ref().is_some_and(Tokens::protects_metrics) {
        tracing::warn!(
            "everyone who can reach {} can read the metrics: no token has the role metrics",
            server.address()
        );
    }
    Ok(Some(server))
}

/// Adds the size of the data folder to the metrics of `http`.
pub(crate) fn include_folder(http: &HttpConfig, folder: Option<&Path>) {
    if let Some(folder) = folder {
        http.metrics.set_folder(folder.to_owned());
    }
}
