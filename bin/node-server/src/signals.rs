//! Signals to a running server that do not end it: SIGHUP reloads files, SIGUSR1 changes the level of the log.

use crate::cli::{Command, CommandLine};
use crate::error::{CommandError, Sources};
use crate::logs;
use crate::options::ServerOptions;
use crate::settings::{self, Request};
use node_http::{HttpConfig, Tls, Tokens};
use rustix::process::{Signal, getpid, kill_process};
use std::env;
use std::io::{self, IsTerminal};
use std::thread;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Handles both signals from now on, on a thread of its own.
pub(crate) fn handle(http: &HttpConfig) -> Result<(), CommandError> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(CommandError::Thread)?;
    let signals = {
        let _inside = runtime.enter();
        [SignalKind::hangup(), SignalKind::user_defined1()].map(signal)
    };
    let [hangup, user] = signals;
    let (mut hangup, mut user) = (hangup.map_err(CommandError::Thread)?, user.map_err(CommandError::Thread)?);
    let reloaded = Reloaded { tls: http.tls.clone(), tokens: http.tokens.clone() };
    let had_terminal = io::stderr().is_terminal();
    let listen = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = hangup.recv() => {
                        if had_terminal && !io::stderr().is_terminal() {
                            // The terminal was closed, and nobody could end the program there any more.
                            let _ = kill_process(getpid(), Signal::TERM);
                        } else {
                            reloaded.reload();
                        }
                    }
                    _ = user.recv() => {
                        let level = if logs::toggle_debug() { "debug" } else { "that of --log" };
                        tracing::info!("SIGUSR1: the level of the log is {level}");
                    }
                }
            }
        });
    };
    thread::Builder::new().name("reload".to_owned()).spawn(listen).map(drop).map_err(CommandError::Thread)
}

/// What SIGHUP replaces, besides the filter of the log.
struct Reloaded {
    tls: Option<Tls>,
    tokens: Option<Tokens>,
}

impl Reloaded {
    /// Reads the settings and the files again. What cannot be used is logged, and stays as it was.
    fn reload(&self) {
        let command = match settings::read(env::args_os()) {
            Ok(Request::Execute(CommandLine { command, .. }, _)) => command,
            Ok(Request::Show(_)) => return,
            Err(error) => return tracing::error!("SIGHUP: nothing was reloaded: {}", error.message()),
        };
        let (options, log) = match &command {
            Command::Dev(options) => (&options.server, options.log()),
            Command::Run(options) => (&options.server, &*options.server.operation.log),
            _ => return,
        };
        // A valid filter: the options were parsed.
        let _ = logs::set_filter(log);
        match self.reload_files(options) {
            Ok(()) => tracing::info!("SIGHUP: reloaded the certificate, the tokens and the filter of the log"),
            Err(error) => tracing::error!("SIGHUP: a file was not reloaded: {}", Sources(&error)),
        }
    }

    fn reload_files(&self, options: &ServerOptions) -> Result<(), CommandError> {
        let (tls, tokens) = (options.tls(), options.tokens());
        if let (Some(old), Ok(Some(new))) = (&self.tokens, &tokens) {
            old.replace(new);
        }
        if let (Some(old), Ok(Some(new))) = (&self.tls, &tls) {
            old.replace(new);
        }
        let (tls, tokens) = (tls?, tokens?);
        for (option, old, new) in [
            ("--tls-cert", self.tls.is_some(), tls.is_some()),
            ("--token-file", self.tokens.is_some(), tokens.is_some()),
        ] {
            if old != new {
                tracing::warn!("SIGHUP: {option} was added or removed, which takes effect at the next start");
            }
        }
        Ok(())
    }
}
