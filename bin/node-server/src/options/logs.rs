//! Options for logging.

use crate::logs::LogFormat;
use crate::values;
use clap::Args;

/// The default filter.
pub(crate) const DEFAULT_LOG: &str = "info,actix_server=warn,actix_http=off";

/// What to log, and in which format.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogOptions {
    /// Log filter: `debug` logs everything, `info,request=warn` leaves out the line for each request
    #[arg(
        long, env = "NODE_LOG", value_name = "FILTER", default_value = DEFAULT_LOG,
        value_parser = values::log_filter
    )]
    pub(crate) log: String,
    /// Format of log lines
    #[arg(long, env = "NODE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}
