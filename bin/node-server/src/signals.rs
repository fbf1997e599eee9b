//! Signals to a running server that do not end it: SIGHUP reloads files, SIGUSR1 changes the level of the log.

use crate::cli::{Command, CommandLine};
use crate::error::CommandError;
use crate::logs;
use crate::reload::reload;
use crate::settings::{self, Request};
use node_http::UnixSignal;
use rustix::process::{Signal, getpid, kill_process};
use std::env;
use std::io::{self, IsTerminal};

/// Handles both signals from now on.
pub(crate) fn handle() -> Result<(), CommandError> {
    let had_terminal = io::stderr().is_terminal();
    UnixSignal::handle(move |signal| match signal {
        // The terminal was closed, and nobody could end the program there any more.
        UnixSignal::Hangup if had_terminal && !io::stderr().is_terminal() => {
            let _ = kill_process(getpid(), Signal::TERM);
        }
        UnixSignal::Hangup => read_again(),
        UnixSignal::User1 => {
            let level = if logs::toggle_debug() { "debug" } else { "that of --log" };
            tracing::info!("SIGUSR1: the level of the log is {level}");
        }
    })?;
    Ok(())
}

/// Reads the settings again, and applies those that can be replaced.
fn read_again() {
    match settings::read(env::args_os()) {
        Ok(Request::Execute(CommandLine { command: Command::Dev(options), .. }, settings)) => {
            reload(&options.server, options.log(), &settings);
        }
        Ok(Request::Execute(CommandLine { command: Command::Run(options), .. }, settings)) => {
            reload(&options.server, &options.server.operation.log, &settings);
        }
        Ok(_) => {}
        Err(error) => tracing::error!("SIGHUP: nothing was reloaded: {}", error.message()),
    }
}
