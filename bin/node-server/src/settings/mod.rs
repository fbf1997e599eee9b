//! Where settings come from: the command line before the environment, that before the file, and that before defaults.
//!
//! clap knows every option. The arguments are read once to learn which options the command line and the environment give; the
//! file's values are put among them for the others, and all are read again. So a value of the file is checked as one of the
//! command line is, and no option is declared twice.

mod error;
mod file;
mod show;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use error::UsageError;

use crate::cli::CommandLine;
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};
use file::SettingsFile;
use source::{FILE_OPTION, Source, Sources, options};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// What the program was asked for.
#[derive(Debug)]
pub(crate) enum Request {
    /// To execute a command.
    Execute(CommandLine),
    /// To write the settings that a command would have.
    Show(String),
}

/// Reads the arguments of the program, the first of which is its name.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let show = take_config_command(&mut arguments);
    put_in_dev(&mut arguments);
    let mut root = CommandLine::command();
    root.build();
    let all = match lenient().try_get_matches_from(&arguments) {
        Ok(all) => all,
        Err(error) => {
            let command = arguments.get(1).and_then(|name| root.find_subcommand(name)).unwrap_or(&root);
            return Err(UsageError::new(error, command, &guess_sources(command, &arguments)));
        }
    };
    let Some((name, given)) = all.subcommand() else {
        return Ok(Request::Execute(CommandLine::from_arg_matches(&all)?));
    };
    let command = root.find_subcommand(name).unwrap_or(&root);
    let file = given.get_one::<PathBuf>(FILE_OPTION).map(|path| SettingsFile::read(path, &root)).transpose()?;

    let mut sources = Sources::new();
    let mut added = Vec::new();
    for (option, long) in options(command) {
        let id = option.get_id().as_str();
        let entry = file.as_ref().and_then(|file| Some((file, file.entry(name, long)?)));
        let source = match (given.value_source(id), environment(option), entry) {
            (Some(ValueSource::CommandLine), ..) => Source::CommandLine,
            (_, Some(variable), _) => Source::Environment(variable),
            (.., Some((file, entry))) => {
                added.extend(entry.arguments(long));
                Source::File { path: file.path.clone(), line: entry.line }
            }
            _ => Source::Default,
        };
        sources.insert(id.to_owned(), source);
    }
    // Behind the name of the command, so that what follows a `--` stays what it is.
    arguments.splice(2..2, added);
    let all = strict().try_get_matches_from(&arguments).map_err(|error| UsageError::new(error, command, &sources))?;
    match all.subcommand() {
        Some((_, matches)) if show => Ok(Request::Show(show::settings(command, matches, &sources))),
        _ => Ok(Request::Execute(CommandLine::from_arg_matches(&all)?)),
    }
}

/// Takes the command `config` out, which is written before the command whose settings it shows; says whether it was there.
fn take_config_command(arguments: &mut Vec<OsString>) -> bool {
    let is_there = arguments.get(1).is_some_and(|first| first == "config")
        && !arguments.get(2).is_some_and(|second| second == "-h" || second == "--help");
    if is_there {
        arguments.remove(1);
    }
    is_there
}

/// Options without a command are those of `dev`: it is put in, so that its options are declared once, and those of `dev` have no
/// say in other commands.
fn put_in_dev(arguments: &mut Vec<OsString>) {
    let of_all = ["-h", "--help", "-V", "--version"];
    let is_option =
        |first: &OsString| first.as_encoded_bytes().starts_with(b"-") && of_all.iter().all(|other| first != other);
    if arguments.get(1).is_none_or(is_option) {
        arguments.insert(arguments.len().min(1), "dev".into());
    }
}

/// Takes whole arguments only.
fn strict() -> Command {
    CommandLine::command().mut_subcommands(|command| command.mut_args(without_false))
}

/// Takes arguments that lack what the file may add.
fn lenient() -> Command {
    let lenient = |argument: Arg| argument.required(false).requires(Resettable::<clap::Id>::Reset);
    strict().mut_subcommands(|command| command.mut_args(lenient))
}

/// A flag whose variable says `false` is as good as not given, and must not conflict with others.
fn without_false(argument: Arg) -> Arg {
    if says_false(&argument) { argument.env(Resettable::<clap::builder::OsStr>::Reset) } else { argument }
}

fn says_false(argument: &Arg) -> bool {
    let value = argument.get_env().and_then(env::var_os);
    matches!(argument.get_action(), ArgAction::SetTrue) && value.is_some_and(|value| value == "false")
}

/// The variable that sets the option, if it does.
fn environment(option: &Arg) -> Option<String> {
    let variable = option.get_env()?;
    env::var_os(variable).map(|_| variable.to_string_lossy().into_owned())
}

/// Where values come from when the arguments could not be read.
fn guess_sources(command: &Command, arguments: &[OsString]) -> Sources {
    let source = |(option, long): (&Arg, &str)| {
        let names = |argument: &OsString| {
            let name = argument.to_str().and_then(|argument| argument.strip_prefix("--"));
            name.is_some_and(|name| name.split('=').next() == Some(long))
        };
        let source = match environment(option) {
            _ if arguments.iter().any(names) => Source::CommandLine,
            Some(variable) => Source::Environment(variable),
            None => Source::Default,
        };
        (option.get_id().to_string(), source)
    };
    options(command).map(source).collect()
}
