//! `ethnode config`: prints the settings of a command as a settings file.

use super::source::{Source, Sources, is_boolean, options};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::fmt::Write;
use toml::Value;

/// Returns the settings of `command` as a section of a settings file, each with its source.
pub(super) fn settings(command: &Command, matches: &ArgMatches, sources: &Sources) -> String {
    let name = command.get_name();
    let mut text = format!("# Settings of `ethnode {name}`, each with its source.\n\n[{name}]\n");
    for (option, long) in options(command) {
        let source = sources.get(option.get_id().as_str()).unwrap_or(&Source::Default);
        // Writing to a string does not fail.
        let _ = match value(option, matches) {
            Shown::Value(value) => writeln!(text, "{long} = {value} # {source}"),
            Shown::Unset => writeln!(text, "# {long} is not set"),
            Shown::Secret => writeln!(text, "# {long} is a secret, set by {source}"),
            Shown::NotText => writeln!(text, "# {long} cannot be written to a file, set by {source}"),
        };
    }
    text
}

/// Returns the settings of `command` that are not defaults, each as `option=value`.
pub(super) fn changed(command: &Command, matches: &ArgMatches, sources: &Sources) -> Vec<String> {
    let set = |(option, long): (&Arg, &str)| match sources.get(option.get_id().as_str()) {
        None | Some(Source::Default) => None,
        Some(_) => Some(match value(option, matches) {
            Shown::Value(value) => format!("{long}={value}"),
            Shown::Unset => return None,
            Shown::Secret | Shown::NotText => format!("{long}=…"),
        }),
    };
    options(command).filter_map(set).collect()
}

enum Shown {
    Value(Value),
    Unset,
    /// A secret, which is not printed.
    Secret,
    NotText,
}

fn value(option: &Arg, matches: &ArgMatches) -> Shown {
    let id = option.get_id().as_str();
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return Shown::Value(matches.get_flag(id).into());
    }
    if is_boolean(option) {
        return matches.get_one::<bool>(id).map_or(Shown::Unset, |value| Shown::Value((*value).into()));
    }
    let Some(values) = matches.get_raw(id) else { return Shown::Unset };
    let values: Vec<_> = values.collect();
    // Values that the help hides are secret, unless they are the default.
    if option.is_hide_env_values_set() && values != option.get_default_values() {
        return Shown::Secret;
    }
    let texts: Option<Vec<_>> = values.iter().map(|value| value.to_str()).collect();
    match texts.as_deref() {
        None => Shown::NotText,
        Some(texts) if matches!(option.get_action(), ArgAction::Append) => {
            Shown::Value(Value::Array(texts.iter().map(|text| Value::from(*text)).collect()))
        }
        Some([text]) => Shown::Value(number(text).unwrap_or_else(|| Value::from(*text))),
        Some(_) => Shown::NotText,
    }
}

/// Returns the number that `text` is the canonical form of; `None` if there is none.
fn number(text: &str) -> Option<Value> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(Value::Integer(number))
}
