//! The server: command line, wiring and logs around the libraries.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cli;
mod config;
mod data_dir;
mod dev;
mod error;
mod export;
mod import;
mod metrics;
mod open;
mod progress;
mod prune;
mod report;
mod run;
mod stats;
mod verify;
mod wiring;

use cli::{Command, CommandLine};
use error::{CommandError, Sources};
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

// Much of the work is allocation, and threads free what others made: with this allocator imports and requests took about a
// tenth less time than with glibc's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What clientVersion answers.
const CLIENT_VERSION: &str = concat!("node-server/", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    let CommandLine { command } = CommandLine::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let log = match &command {
        Command::Dev(options) => options.log(),
        Command::Run(config) => &config.server.log,
        _ => "warn",
    };
    let filter = match EnvFilter::try_new(log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("error: --log {log}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(terminal).init();
    match execute(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", Sources(&error));
            // A difference was the result.
            if command.json() && !matches!(error, CommandError::Difference(_)) {
                report::error(&error);
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Dev(options) => dev::run(options),
        Command::Run(config) => run::run(config),
        Command::Import(options) => import::run(options),
        Command::Export(options) => export::run(options),
        Command::Verify(options) => verify::run(options),
        Command::Stats(options) => stats::run(options),
        Command::Prune(options) => prune::run(options),
    }
}
