//! Errors in the settings.

use super::source::{Source, Sources, options};
use crate::{dev, error};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command line, the environment or the file is invalid.
#[derive(Debug)]
pub(crate) enum UsageError {
    /// An invalid value or combination of options, with notes about values that do not come from the command line.
    Options { error: clap::Error, notes: Vec<String> },
    /// An invalid file.
    File(SettingsFileError),
}

/// The settings file is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsFileError {
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is longer than {limit} bytes, the limit for a settings file", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{}, line {line}: {message}", .path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    #[error("{}, line {line}: `{key}` is not an option of {of}{hint}", .path.display())]
    Unknown { path: PathBuf, line: usize, key: String, of: String, hint: Hint },
    #[error("{}, line {line}: `[{name}]` is not the name of a command with options{hint}", .path.display())]
    UnknownSection { path: PathBuf, line: usize, name: String, hint: Hint },
    #[error("{}, line {line}: `{key}` is {found}, expected {expected}", .path.display())]
    Type { path: PathBuf, line: usize, key: String, found: &'static str, expected: &'static str },
}

/// The name that was probably meant, if there is one.
#[derive(Debug)]
pub(crate) struct Hint(pub(super) Option<String>);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |name| write!(f, "; did you mean `{name}`?"))
    }
}

/// Highest number of edits between a name and the one that is suggested for it.
const MAX_EDITS: usize = 3;

/// Returns the name among `known` that differs least from `name`, by at most half of its length, or `None` if there is
/// none.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits = |known: &&str| strsim::damerau_levenshtein(name, known);
    let (edits, nearest) = known.into_iter().map(|known| (edits(&known), known)).min()?;
    (edits <= MAX_EDITS.min(name.len() / 2)).then_some(nearest)
}

impl From<SettingsFileError> for UsageError {
    fn from(error: SettingsFileError) -> Self {
        Self::File(error)
    }
}

impl From<clap::Error> for UsageError {
    fn from(error: clap::Error) -> Self {
        Self::Options { error, notes: Vec::new() }
    }
}

impl UsageError {
    /// Adds notes to an error in the arguments of `command`: about the sources of values, and about options of other
    /// commands of `root`.
    pub(super) fn new(mut error: clap::Error, root: &Command, command: &Command, sources: &Sources) -> Self {
        let mut named = Vec::new();
        for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
            match error.get(kind) {
                Some(ContextValue::String(name)) => named.push(name.clone()),
                Some(ContextValue::Strings(names)) => named.extend(names.iter().cloned()),
                _ => {}
            }
        }
        let note = |name: &String| {
            let (option, long) = options(command).find(|(option, _)| option.to_string() == *name)?;
            match sources.get(option.get_id().as_str())? {
                Source::Default | Source::CommandLine => None,
                source => Some(format!("--{long} is set by {source}")),
            }
        };
        let mut notes: Vec<_> = named.iter().filter_map(note).collect();
        if error.kind() == ErrorKind::UnknownArgument && ["dev", "anvil"].contains(&command.get_name()) {
            let instead = |name: &String| Some(format!("{name} is not an option here: {}", dev::instead(name)?));
            if let Some(explained) = named.iter().find_map(instead) {
                error = clap::Error::raw(ErrorKind::UnknownArgument, format!("{explained}\n"));
            }
        }
        if error.kind() == ErrorKind::UnknownArgument {
            let owners: Vec<_> = named.iter().filter_map(|name| owners(root, name)).collect();
            if !owners.is_empty() {
                // The name is right, so a similar one does not help.
                error.remove(ContextKind::SuggestedArg);
            }
            notes.extend(owners);
        }
        if command.get_name() == "anvil" && error.kind() != ErrorKind::UnknownArgument {
            error = with_anvils_names(error);
        }
        Self::Options { error, notes }
    }

    /// Returns the kind of clap's error.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Options { error, .. } => Some(error.kind()),
            Self::File(_) => None,
        }
    }

    /// Returns whether it is an error, and not a request for help.
    pub(crate) fn is_error(&self) -> bool {
        match self {
            Self::Options { error, .. } => error.use_stderr(),
            Self::File(_) => true,
        }
    }

    /// Prints the error as text.
    pub(crate) fn print(&self) {
        match self {
            Self::Options { error, notes } => {
                // The reader may have closed the pipe.
                let _ = error.print();
                notes.iter().for_each(|note| eprintln!("note: {note}"));
            }
            Self::File(error) => eprintln!("error: {}", error::Sources(error)),
        }
    }

    /// Returns the exit status of the program.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_error() { ExitCode::from(2) } else { ExitCode::SUCCESS }
    }

    /// Returns the error on one line, for JSON.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Options { error, notes } => {
                let text = error.render().to_string();
                let text = text.strip_prefix("error: ").unwrap_or(&text);
                // The first paragraph is the message. Tips and help follow it.
                let (first, rest) = text.split_once("\n\n").unwrap_or((text, ""));
                let tips = rest.lines().map(str::trim).filter(|line| line.starts_with("tip: "));
                let lines = first.lines().chain(tips).chain(notes.iter().map(String::as_str)).map(str::trim);
                lines.collect::<Vec<_>>().join("; ")
            }
            Self::File(error) => error::Sources(error).to_string(),
        }
    }
}

/// Returns the error with anvil's name of the option for the genesis file.
fn with_anvils_names(mut error: clap::Error) -> clap::Error {
    let renamed = |text: &str| text.replace("--genesis", "--init");
    let values = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(renamed(text)))),
        ContextValue::Strings(texts) => {
            Some((kind, ContextValue::Strings(texts.iter().map(|text| renamed(text)).collect())))
        }
        ContextValue::StyledStr(text) => {
            Some((kind, ContextValue::StyledStr(renamed(&text.ansi().to_string()).into())))
        }
        _ => None,
    });
    for (kind, value) in values.collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    error
}

/// Returns which commands of `root` have the option `name`, which another one lacks; `None` if no command has it.
fn owners(root: &Command, name: &str) -> Option<String> {
    let has = |command: &&Command| options(command).any(|(_, long)| Some(long) == name.strip_prefix("--"));
    let mut owners: Vec<_> = root.get_subcommands().filter(has).map(Command::get_name).collect();
    // `anvil` has all options of `dev`.
    if owners.contains(&"dev") {
        owners.retain(|owner| *owner != "anvil");
    }
    (!owners.is_empty()).then(|| format!("{name} is an option of {}", owners.join(", ")))
}
