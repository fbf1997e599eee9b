//! The ethnode program: command line, wiring and logging.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backup;
mod build_info;
mod cli;
mod data_dir;
mod dev;
mod error;
mod export;
mod files;
mod health;
mod import;
mod log_fields;
mod logs;
mod memory;
mod metrics;
mod migrate;
mod notify;
mod open;
mod open_files;
mod options;
mod otlp;
#[cfg(feature = "tls")]
mod pinned_tls;
mod progress;
mod prune;
mod reload;
mod report;
mod run;
mod settings;
mod signals;
mod stats;
mod values;
mod verify;
mod wiring;
mod write_failure;

use build_info::{COMMIT, VERSION};
use cli::{Command, CommandLine, OpenapiOptions};
use dev::Terminal;
use error::{CommandError, Sources};
use logs::{LogFormat, Logs};
use settings::Request;
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    // Set first, because errors in the settings are printed in this format, too.
    logs::set_format(settings::log_format(&arguments));
    // Done before anything that takes time, because until then SIGHUP ends the process.
    if let Err(error) = signals::handle(settings::serves(&arguments)) {
        logs::print(Level::ERROR, &Sources(&error).to_string());
        return ExitCode::FAILURE;
    }
    let (CommandLine { command, .. }, changed) = match settings::read(arguments) {
        Ok(Request::Execute(line, changed)) => (line, changed),
        Ok(Request::Show(text)) => {
            return match report::print(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    logs::print(Level::ERROR, &Sources(&error).to_string());
                    ExitCode::FAILURE
                }
            };
        }
        Err(error) => {
            let (status, message, is_error) = (error.exit_code(), error.message(), error.is_error());
            match is_error {
                true if logs::is_json() => logs::print(Level::ERROR, &message),
                true => logs::bounded("usage", move || error.print()),
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
        _ => (logs::from_level(LevelFilter::WARN), LogFormat::Text),
    };
    logs::set_format(format);
    let terminal = match &command {
        Command::Dev(options) => options.terminal(),
        _ => None,
    };
    let server = match &command {
        Command::Dev(options) => Some(&options.server),
        Command::Run(options) => Some(&options.server),
        _ => None,
    };
    let endpoint = server.and_then(|server| server.operation.otlp_endpoint.as_ref());
    let (exporter, traces) = match endpoint.map(otlp::start).transpose() {
        Ok(started) => started.unzip(),
        Err(error) => {
            logs::print(Level::ERROR, &Sources(&error).to_string());
            return ExitCode::FAILURE;
        }
    };
    let logs = Logs::start(filter, format, terminal.as_ref().map(Terminal::layer), traces);
    if let Some(server) = server {
        tracing::info!(version = VERSION, commit = COMMIT, settings = changed.join(" "), "starting");
        open_files::raise(server.http.max_connections);
    }
    reload::remember(changed);
    let result = execute(&command, terminal);
    // Sends the last traces, and writes the queued log lines before the error.
    drop(exporter);
    drop(logs);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logs::print(Level::ERROR, &Sources(&error).to_string());
            // `verify` has already reported a difference as its result.
            if command.json() && !matches!((&command, &error), (Command::Verify(_), CommandError::Difference(_))) {
                report::error(Sources(&error));
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &Command, terminal: Option<Terminal>) -> Result<(), CommandError> {
    if matches!(command, Command::Dev(_) | Command::Run(_)) {
        memory::return_freed()?;
    }
    match command {
        Command::Dev(options) => served(dev::run(options, terminal)),
        Command::Run(options) => served(run::run(options)),
        Command::Import(options) => import::run(options),
        Command::Export(options) => export::run(options),
        Command::Verify(options) => verify::run(options),
        Command::Stats(options) => stats::run(options),
        Command::Prune(options) => prune::run(options),
        Command::Backup(options) => backup::run(options),
        Command::Migrate(options) => migrate::run(options),
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
