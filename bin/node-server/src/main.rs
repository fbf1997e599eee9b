//! The server: command line, wiring and logs around the libraries.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod config;
mod progress;
mod run;

use clap::Parser;
use config::{Command, CommandLine};
use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let CommandLine { command: Command::Run(config) } = CommandLine::parse();
    let filter = match EnvFilter::try_new(&config.log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("error: --log {}: {error}", config.log);
            return ExitCode::FAILURE;
        }
    };
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(terminal).init();
    match run::run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", Chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with all its sources, on one line.
struct Chain<'a>(&'a dyn Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
