//! Options of every server.

use super::http::HttpOptions;
use super::limits::LimitOptions;
use super::logs::LogOptions;
use crate::error::CommandError;
use clap::Args;
use node_http::HttpConfig;

/// Options of every server.
#[derive(Args, Debug)]
pub(crate) struct ServerOptions {
    #[command(flatten)]
    pub(crate) http: HttpOptions,
    #[command(flatten)]
    pub(crate) limits: LimitOptions,
    #[command(flatten)]
    pub(crate) logs: LogOptions,
}

impl ServerOptions {
    /// The configuration of the HTTP interface. Reads the files of tokens, certificate and key.
    pub(crate) fn http_config(&self) -> Result<HttpConfig, CommandError> {
        self.http.config(self.limits.call_timeout)
    }
}
