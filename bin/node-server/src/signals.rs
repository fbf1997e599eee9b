//! Signals other than those for shutdown: in a server, SIGHUP reloads files and SIGUSR1 changes the log level. In every
//! command, SIGXFSZ is ignored.

use crate::cli::{Command, CommandLine};
use crate::error::CommandError;
use crate::logging;
use crate::server::reload;
use crate::settings::{self, Request};
use node_http::UnixSignal;
use rustix::process::{Signal, getpid, kill_process};
use std::env;
use std::io::{self, IsTerminal};

/// Installs handlers for the signals of a command, which may be one that serves a chain.
pub(crate) fn handle(serves: bool) -> Result<(), CommandError> {
    UnixSignal::survive_file_size_limit()?;
    if !serves {
        return Ok(());
    }
    let had_terminal = io::stderr().is_terminal();
    UnixSignal::handle(move |signal| match signal {
        // The terminal was closed, so the program can no longer be stopped from there.
        UnixSignal::Hangup if had_terminal && !io::stderr().is_terminal() => {
            let _ = kill_process(getpid(), Signal::TERM);
        }
        UnixSignal::Hangup => read_again(),
        UnixSignal::User1 => {
            let level = if logging::toggle_debug() { "debug" } else { "that of --log" };
            tracing::info!("SIGUSR1: the level of the log is {level}");
        }
    })?;
    Ok(())
}

/// Reads the settings again, and applies those that can be replaced.
fn read_again() {
    match settings::read(env::args_os()) {
        Ok(Request::Execute(CommandLine { command: Command::Dev(options), .. }, settings)) => {
            reload::reload(&options.server, options.log(), &settings);
        }
        Ok(Request::Execute(CommandLine { command: Command::Run(options), .. }, settings)) => {
            reload::reload(&options.server, options.server.operation.log.targets.clone(), &settings);
        }
        Ok(Request::Execute(CommandLine { command: Command::Serve(options), .. }, settings)) => {
            reload::reload(&options.server, options.server.operation.log.targets.clone(), &settings);
        }
        Ok(_) => {}
        Err(error) => reload::failed(&error),
    }
}
