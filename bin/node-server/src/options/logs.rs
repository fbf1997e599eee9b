//! Options for logging.

use crate::logs::LogFormat;
use crate::values;
use clap::Args;

/// What to log, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogOptions {
    /// What to log, and how much: `debug` for everything, `info,request=warn` for no line a request
    #[arg(
        long, env = "NODE_LOG", value_name = "FILTER", default_value = "info,actix_server=warn,actix_http=off",
        value_parser = values::log_filter
    )]
    pub(crate) log: String,
    /// How to write the lines of the log
    #[arg(long, env = "NODE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}
