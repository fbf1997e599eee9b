//! The format of a command's output.

use clap::Args;

/// The format of a command's output.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Write JSON to standard output, one object per line: progress, then the result or the error
    #[arg(long)]
    pub(crate) json: bool,
}
