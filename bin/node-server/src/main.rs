//! The ethnode program: command line, wiring and logging.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod chain;
mod cli;
mod command;
mod dev;
mod error;
mod files;
mod logging;
mod options;
mod server;
mod settings;
mod signals;

use cli::{Command, CommandLine, OpenapiOptions};
use command::{backup, export, health, import, prune, report, run, serve, stats, verify};
use dev::Terminal;
use error::{CommandError, Sources};
use logging::{LogFormat, Logs, Stream};
use server::{process, reload};
use settings::Request;
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Commands that serve have no such option.
    let json = !settings::serves(&arguments) && arguments.iter().any(|argument| argument == "--json");
    // Set first, because errors in the settings are printed in this format, too.
    logging::set_format(settings::log_format(&arguments));
    // Done before anything that takes time, because until then SIGHUP ends the process.
    if let Err(error) = signals::handle(settings::serves(&arguments)) {
        logging::print(Level::ERROR, &Sources(&error).to_string());
        return ExitCode::FAILURE;
    }
    let (CommandLine { command, .. }, changed) = match settings::read(arguments) {
        Ok(Request::Execute(line, changed)) => (line, changed),
        Ok(Request::Show(text)) => {
            return match report::print(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    logging::print(Level::ERROR, &Sources(&error).to_string());
                    ExitCode::FAILURE
                }
            };
        }
        Err(error) => {
            let (status, message, is_error) = (error.exit_code(), error.message(), error.is_error());
            match is_error {
                true if logging::is_structured() => logging::print(Level::ERROR, &message),
                true => logging::bounded("usage", move || error.print()),
                // A pager may block.
                false => error.print(),
            }
            if json && is_error {
                report::error(&message);
            }
            return status;
        }
    };
    let (filter, format) = match &command {
        Command::Dev(options) => (options.log(), options.server.operation.log_format),
        Command::Run(options) => (options.server.operation.log.targets.clone(), options.server.operation.log_format),
        Command::Serve(options) => (options.server.operation.log.targets.clone(), options.server.operation.log_format),
        _ => (logging::from_level(LevelFilter::WARN), LogFormat::Text),
    };
    logging::set_format(format);
    let terminal = match &command {
        Command::Dev(options) => options.terminal(),
        _ => None,
    };
    let server = match &command {
        Command::Dev(options) => Some(&options.server),
        Command::Run(options) => Some(&options.server),
        Command::Serve(options) => Some(&options.server),
        _ => None,
    };
    // Programs that start anvil take anything on standard error for a failure.
    let stream = match &command {
        Command::Dev(options) if options.is_anvil => Stream::Stdout,
        _ => Stream::Stderr,
    };
    let logs = Logs::start(filter, format, stream, terminal.as_ref().map(Terminal::layer));
    if let Some(server) = server {
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("COMMIT"));
        tracing::info!(version, commit, settings = changed.join(" "), "starting");
        process::raise_open_files(server.http.clients.max_connections);
    }
    reload::remember(changed);
    let result = execute(&command, terminal);
    // Writes the queued log lines before the error.
    drop(logs);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::print(Level::ERROR, &Sources(&error).to_string());
            // `verify` has already reported a difference as its result.
            if command.json() && !matches!((&command, &error), (Command::Verify(_), CommandError::Difference(_))) {
                report::error(Sources(&error));
            }
            if server.is_some() { error.exit_code_of_server() } else { ExitCode::FAILURE }
        }
    }
}

fn execute(command: &Command, terminal: Option<Terminal>) -> Result<(), CommandError> {
    if matches!(command, Command::Dev(_) | Command::Run(_) | Command::Serve(_)) {
        process::return_freed_memory()?;
    }
    match command {
        Command::Dev(options) => served(dev::run(options, terminal)),
        Command::Run(options) => served(run::run(options)),
        Command::Serve(options) => served(serve::run(options)),
        Command::Import(options) => import::run(options),
        Command::Export(options) => export::run(options),
        Command::Verify(options) => verify::run(options),
        Command::Stats(options) => stats::run(options),
        Command::Prune(options) => prune::run(options),
        Command::Backup(options) => backup::run(options),
        Command::Health(options) => health::run(options),
        Command::Openapi(OpenapiOptions { without_control, base_path }) => {
            let document = node_http::openapi(base_path, !without_control);
            report::print(format!("{document:#}\n").as_bytes())
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut settings::commands(), "ethnode", &mut script);
            report::print(&script)
        }
        Command::Man { folder } => clap_mangen::generate_to(settings::commands(), folder)
            .map_err(|source| CommandError::Write { path: folder.clone(), source }),
        // Never reached: `settings::read` handles `config`, and its `--help` exits earlier.
        Command::Config => Ok(()),
        // Never reached: `settings::read` returns it as `dev`.
        Command::Anvil(_) => Ok(()),
    }
}

/// Converts the result of a server. A signal that arrives before the server listens is not an error.
fn served(ended: Result<(), CommandError>) -> Result<(), CommandError> {
    match ended {
        Err(stopped @ CommandError::Interrupted) => {
            tracing::info!("{stopped}");
            Ok(())
        }
        ended => ended,
    }
}
