//! Why the settings cannot be used.

use super::source::{Source, Sources, options};
use clap::Command;
#[cfg(test)]
use clap::error::ErrorKind;
use clap::error::{ContextKind, ContextValue};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command line, the environment or the file cannot be understood.
#[derive(Debug)]
pub(crate) enum UsageError {
    /// A value or a combination of options; with where the values come from that are not on the command line.
    Options { error: clap::Error, notes: Vec<String> },
    /// The file.
    File(FileError),
}

/// The file of settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// There is none.
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It cannot be a file of settings.
    #[error("{} is longer than {limit} bytes, which no file of settings is", .path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    /// It is no TOML.
    #[error("{}, line {line}: {message}", .path.display())]
    Syntax { path: PathBuf, line: usize, message: String },
    /// No option has the name.
    #[error("{}, line {line}: `{key}` is not an option of {of}{}", .path.display(), .hint.as_ref().map(|hint| format!("; is `{hint}` meant?")).unwrap_or_default())]
    Unknown { path: PathBuf, line: usize, key: String, of: String, hint: Option<String> },
    /// No command has the name.
    #[error("{}, line {line}: `[{name}]` is not the name of a command with options", .path.display())]
    UnknownSection { path: PathBuf, line: usize, name: String },
    /// The value is of the wrong type.
    #[error("{}, line {line}: `{key}` is {found}, expected {expected}", .path.display())]
    Type { path: PathBuf, line: usize, key: String, found: &'static str, expected: &'static str },
}

impl From<FileError> for UsageError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<clap::Error> for UsageError {
    fn from(error: clap::Error) -> Self {
        Self::Options { error, notes: Vec::new() }
    }
}

impl UsageError {
    /// What clap found in the arguments of `command`.
    pub(super) fn new(error: clap::Error, command: &Command, sources: &Sources) -> Self {
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
        let notes = named.iter().filter_map(note).collect();
        Self::Options { error, notes }
    }

    /// What kind of error clap found.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Options { error, .. } => Some(error.kind()),
            Self::File(_) => None,
        }
    }

    /// Whether it is an error at all, and not a wish for help.
    pub(crate) fn is_error(&self) -> bool {
        match self {
            Self::Options { error, .. } => error.use_stderr(),
            Self::File(_) => true,
        }
    }

    /// Tells people.
    pub(crate) fn print(&self) {
        match self {
            Self::Options { error, notes } => {
                // Nobody may be there to read it.
                let _ = error.print();
                notes.iter().for_each(|note| eprintln!("note: {note}"));
            }
            Self::File(error) => eprintln!("error: {error}"),
        }
    }

    /// The status to end with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_error() { ExitCode::from(2) } else { ExitCode::SUCCESS }
    }

    /// The error on one line, for machines.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Options { error, notes } => {
                let text = error.render().to_string();
                let text = text.strip_prefix("error: ").unwrap_or(&text);
                // What follows the first paragraph is help.
                let first = text.split("\n\n").next().unwrap_or_default();
                let lines = first.lines().chain(notes.iter().map(String::as_str)).map(str::trim);
                lines.collect::<Vec<_>>().join("; ")
            }
            Self::File(error) => error.to_string(),
        }
    }
}
