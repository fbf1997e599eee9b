//! The format of a command's output.

use clap::Args;

/// How to tell what is done.
#[derive(Args, Debug)]
pub(crate) struct OutputOptions {
    /// Write JSON to standard output, one object a line: progress, and at last the result or the error
    #[arg(long)]
    pub(crate) json: bool,
}
