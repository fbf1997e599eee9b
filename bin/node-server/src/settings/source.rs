//! The configurable options, and where their values come from.

use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The option that specifies the file.
pub(super) const FILE_OPTION: &str = "config";

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { path, line } => write!(f, "file {}, line {line}", path.display()),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::CommandLine => write!(f, "command line"),
        }
    }
}

/// The source of each option, by its id.
pub(super) type Sources = BTreeMap<String, Source>;

/// Returns the options of `command` that a file can set, each with its long name.
pub(super) fn options(command: &Command) -> impl Iterator<Item = (&Arg, &str)> {
    let with_name = |option| Some((option, Arg::get_long(option)?));
    command.get_arguments().filter_map(with_name).filter(|(option, long)| {
        *long != FILE_OPTION && matches!(option.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue)
    })
}

/// Returns whether an option's value is `true` or `false`, unlike that of a flag, which is true if it is given.
pub(super) fn is_boolean(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set) && option.get_value_parser().type_id() == TypeId::of::<bool>()
}
