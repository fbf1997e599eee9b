//! Options of every server.

use crate::error::CommandError;
use crate::files;
use crate::logging::{DEFAULT_LOG, LineFilter, LogFormat};
use clap::Args;
use listenfd::ListenFd;
use node_core::filters::FilterLimits;
use node_core::node::Limits;
use node_core::pool::PoolLimits;
use node_http::{HttpConfig, Tls, Tokens};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of every server.
#[derive(Args, Debug)]
pub(crate) struct ServerOptions {
    #[command(flatten)]
    pub(crate) http: HttpConfig,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    filters: FilterLimits,
    #[command(flatten)]
    pub(crate) pool: PoolLimits,
    #[command(flatten)]
    pub(crate) operation: OperationOptions,
}

/// Options of the HTTP interface whose values are in files.
#[derive(Args, Debug)]
struct FileOptions {
    /// PEM file of the TLS certificate chain; enables TLS
    #[arg(long, value_name = "FILE", help_heading = "Listening", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", help_heading = "Listening", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// File of bearer tokens, one per line; clients must send one of them [default: no token required]
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    token_file: Option<PathBuf>,
}

/// Options for monitoring and operating a server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Operation")]
pub(crate) struct OperationOptions {
    /// Address and port on which to serve Prometheus metrics at /metrics [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// Log filter: `debug` logs everything, `info,request=warn` leaves out the line for each request
    #[arg(long, value_name = "FILTER", default_value = DEFAULT_LOG)]
    pub(crate) log: LineFilter,
    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Exit with status 3 if changes cannot be stored, instead of refusing changes until they can be
    #[arg(long)]
    pub(crate) exit_on_write_failure: bool,
}

impl ServerOptions {
    /// Returns the configuration of the HTTP interface. Reads the files of tokens, certificate and key, and takes the
    /// socket that systemd opened, if there is one.
    pub(crate) fn http_config(&self) -> Result<HttpConfig, CommandError> {
        let mut http = self.http.clone();
        http.listen.listener = ListenFd::from_env().take_tcp_listener(0).map_err(CommandError::Socket)?.map(Arc::new);
        http.access.tokens = self.tokens()?;
        http.listen.tls = self.tls()?;
        Ok(http)
    }

    /// Reads the file of tokens.
    pub(crate) fn tokens(&self) -> Result<Option<Tokens>, CommandError> {
        let Some(path) = &self.files.token_file else { return Ok(None) };
        let text = files::read_small_text(path)?;
        let tokens = Tokens::parse(&text).map_err(|source| CommandError::Tokens { path: path.clone(), source })?;
        Ok(Some(tokens))
    }

    /// Reads the files of certificate and key.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, CommandError> {
        let (Some(certificate), Some(key)) = (&self.files.tls_cert, &self.files.tls_key) else { return Ok(None) };
        let tls =
            Tls::from_pem(files::read_small_text(certificate)?.as_bytes(), files::read_small_text(key)?.as_bytes());
        Ok(Some(tls.map_err(|source| CommandError::Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            source,
        })?))
    }

    /// Returns the limits of the node's operations.
    pub(crate) fn limits(&self) -> Limits {
        Limits { call_timeout: self.http.requests.call_timeout, ..self.limits.clone() }
    }

    /// Limits of the filters. One poll returns at most as many entries as any response may contain logs.
    pub(crate) fn filter_limits(&self) -> FilterLimits {
        FilterLimits { page: self.limits.logs, ..self.filters }
    }
}
