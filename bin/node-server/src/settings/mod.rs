//! Reading settings from the command line, the environment, the settings file and the defaults, in this order of
//! precedence.
//!
//! Options are declared once, for clap. The arguments are first parsed to determine which options the command line
//! and the environment set. The file's values for the other options are then added to the arguments, and everything
//! is parsed again. This way, values from the file get the same checks as those from the command line.

mod environment;
mod error;
mod file;
mod machine;
mod show;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use error::UsageError;

use crate::cli::CommandLine;
use crate::dev;
use crate::logging::{self, LogFormat};
use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, ValueEnum};
use file::SettingsFile;
use source::{FILE_OPTION, Source, Sources, options};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use tracing::Level;

/// The request that the command line makes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a process has one, and it is matched at once")]
pub(crate) enum Request {
    /// Execute a command. The texts are the settings that are not defaults, each as `option=value`.
    Execute(CommandLine, Vec<String>),
    /// Print the settings of a command.
    Show(String),
}

/// Reads the settings. The first of `arguments` is the name of the program.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    dev::insert_command(&mut arguments);
    if let Some(version) = dev::version(&arguments) {
        return Ok(Request::Show(version));
    }
    let show = remove_config_command(&mut arguments);
    insert_default_command(&mut arguments);
    let mut root = declared();
    root.build();
    let all = match lenient().try_get_matches_from(&arguments) {
        Ok(all) => all,
        Err(error) => {
            let error = match error.kind() {
                // Which arguments are required is known only to this parser.
                ErrorKind::DisplayHelp => strict().try_get_matches_from(&arguments).err().unwrap_or(error),
                _ => error,
            };
            let command = arguments.get(1).and_then(|name| root.find_subcommand(name)).unwrap_or(&root);
            return Err(UsageError::new(error, &root, command, &guess_sources(command, &arguments)));
        }
    };
    let Some((name, given)) = all.subcommand() else {
        return Ok(Request::Execute(command_line(&all)?, Vec::new()));
    };
    let command = root.find_subcommand(name).unwrap_or(&root);
    let file = given.get_one::<PathBuf>(FILE_OPTION).map(|path| SettingsFile::read(path, &root)).transpose()?;

    let mut sources = Sources::new();
    let mut added = Vec::new();
    for (option, long) in options(command) {
        let id = option.get_id().as_str();
        let setting = file.as_ref().and_then(|file| Some((file, file.setting(name, long)?)));
        let source = match (given.value_source(id), variable(option), setting) {
            (Some(ValueSource::CommandLine), ..) => Source::CommandLine,
            (_, Some(variable), _) => {
                added.extend(environment::arguments(option, long));
                Source::Environment(variable)
            }
            (.., Some((file, setting))) => {
                added.extend(setting.arguments(long));
                Source::File { path: file.path.clone(), line: setting.line }
            }
            _ => Source::Default,
        };
        sources.insert(id.to_owned(), source);
    }
    // Inserted directly after the command, so that arguments after `--` keep their meaning.
    arguments.splice(2..2, added);
    let all =
        strict().try_get_matches_from(&arguments).map_err(|error| UsageError::new(error, &root, command, &sources))?;
    environment::warnings(&commands()).iter().for_each(|warning| logging::print(Level::WARN, warning));
    match all.subcommand() {
        Some((_, matches)) if show => Ok(Request::Show(show::settings(command, matches, &sources))),
        Some((_, matches)) => Ok(Request::Execute(command_line(&all)?, show::changed(command, matches, &sources))),
        None => Ok(Request::Execute(command_line(&all)?, Vec::new())),
    }
}

/// Returns the command with its options.
fn command_line(all: &ArgMatches) -> Result<CommandLine, clap::Error> {
    CommandLine::from_arg_matches(all).map(CommandLine::without_aliases)
}

/// Returns the format of log lines specified by the arguments or the environment, before these are checked.
pub(crate) fn log_format(arguments: &[OsString]) -> LogFormat {
    let mut arguments = arguments.iter().filter_map(|argument| argument.to_str());
    let given = arguments.by_ref().find_map(|argument| argument.strip_prefix("--log-format"));
    let given = match given {
        Some("") => arguments.next().map(str::to_owned),
        Some(value) => value.strip_prefix('=').map(str::to_owned),
        None => env::var("ETHNODE_LOG_FORMAT").ok(),
    };
    let format = given.and_then(|text| LogFormat::from_str(&text, false).ok());
    format.unwrap_or(LogFormat::Text)
}

/// Removes `config`, which precedes the command whose settings to show. Returns whether it was present.
fn remove_config_command(arguments: &mut Vec<OsString>) -> bool {
    let present = arguments.get(1).is_some_and(|first| first == "config")
        && !arguments.get(2).is_some_and(|second| second == "-h" || second == "--help");
    if present {
        arguments.remove(1);
    }
    present
}

/// Inserts `dev` if the arguments start with an option. This way, the options of `dev` need not be declared for the
/// program as well, where other commands would accept them.
fn insert_default_command(arguments: &mut Vec<OsString>) {
    let of_all = ["-h", "--help", "-V", "--version"];
    let is_option =
        |first: &OsString| first.as_encoded_bytes().starts_with(b"-") && of_all.iter().all(|other| first != other);
    if arguments.get(1).is_none_or(is_option) {
        arguments.insert(arguments.len().min(1), "dev".into());
    }
}

/// Returns whether the command is one that serves requests.
pub(crate) fn serves(arguments: &[OsString]) -> bool {
    let mut arguments = arguments.to_vec();
    dev::insert_command(&mut arguments);
    insert_default_command(&mut arguments);
    let is_server = |command: &OsString| ["dev", "anvil", "run", "serve"].iter().any(|server| command == server);
    arguments.get(1).is_some_and(is_server)
}

/// Returns the commands with their options.
pub(crate) fn commands() -> Command {
    let with_variable = environment::with_variable;
    let commands = CommandLine::command().mut_args(with_variable);
    commands.mut_subcommands(|command| dev::with_defaults_of_forks(command.mut_args(with_variable)))
}

/// Returns the commands with their options, which read the variables that are set.
fn declared() -> Command {
    // The version that a command prints begins with the name of the program.
    commands().mut_args(environment::ignore_services).mut_subcommands(|command| {
        command.mut_args(environment::ignore_services).mut_args(machine::fit).display_name("ethnode")
    })
}

/// Returns the parser for complete arguments.
fn strict() -> Command {
    declared().mut_subcommands(|command| command.mut_args(environment::accept_booleans))
}

/// Returns the parser for arguments to which the file may add required options.
fn lenient() -> Command {
    let lenient = |argument: Arg| argument.required(false).requires(Resettable::<clap::Id>::Reset);
    strict().mut_subcommands(|command| command.mut_args(lenient))
}

/// Returns the environment variable of the option; `None` if it is not set.
fn variable(option: &Arg) -> Option<String> {
    let variable = option.get_env()?;
    env::var_os(variable).map(|_| variable.to_string_lossy().into_owned())
}

/// Returns the likely sources of values if the arguments cannot be parsed.
fn guess_sources(command: &Command, arguments: &[OsString]) -> Sources {
    let source = |(option, long): (&Arg, &str)| {
        let names = |argument: &OsString| {
            let name = argument.to_str().and_then(|argument| argument.strip_prefix("--"));
            name.is_some_and(|name| name.split('=').next() == Some(long))
        };
        let source = match variable(option) {
            _ if arguments.iter().any(names) => Source::CommandLine,
            Some(variable) => Source::Environment(variable),
            None => Source::Default,
        };
        (option.get_id().to_string(), source)
    };
    options(command).map(source).collect()
}
