//! Environment variables: the values of flags, and names that are not settings.

use super::error::nearest;
use super::source::is_boolean;
use clap::builder::{BoolishValueParser, OsStr, Resettable, TypedValueParser};
use clap::{Arg, ArgAction, Command};
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The prefix of the names of all variables.
const PREFIX: &str = "ETHNODE_";

/// Options of a single run of a command, which are not settings.
const OF_ONE_RUN: [&str; 8] = ["before", "force", "from", "json", "sample", "timeout", "to", "without-control"];

/// Makes an option read the variable of its name, unless the option is not a setting.
pub(super) fn with_variable(argument: Arg) -> Arg {
    match (argument.get_long(), argument.get_action()) {
        (Some(long), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue) if !OF_ONE_RUN.contains(&long) => {
            let name = format!("{PREFIX}{}", long.to_uppercase().replace('-', "_"));
            argument.env(OsStr::from(name))
        }
        _ => argument,
    }
}

/// Makes an option ignore its variable if the value is not meant as a setting.
pub(super) fn ignore_services(argument: Arg) -> Arg {
    let value = argument.get_env().and_then(env::var_os);
    if value.is_some_and(|value| !is_setting(&value)) { argument.env(Resettable::<OsStr>::Reset) } else { argument }
}

/// Makes a flag accept all usual booleans from its variable, and ignore the variable if it is false, so that the flag
/// does not conflict with other options. An option whose value is a boolean accepts them as well.
pub(super) fn accept_booleans(argument: Arg) -> Arg {
    if is_boolean(&argument) {
        return argument.value_parser(BoolishValueParser::new());
    }
    if !matches!(argument.get_action(), ArgAction::SetTrue) {
        return argument;
    }
    let value = argument.get_env().and_then(env::var_os);
    let argument = argument.value_parser(BoolishValueParser::new());
    if value.is_some_and(is_false) { argument.env(Resettable::<OsStr>::Reset) } else { argument }
}

/// Returns one `--long=value` for each of the values, separated by commas, in the variable of an option that is
/// repeated on the command line. Empty for other options, whose variables clap reads.
pub(super) fn arguments(option: &Arg, long: &str) -> Vec<OsString> {
    if !matches!(option.get_action(), ArgAction::Append) || option.get_value_delimiter().is_some() {
        return Vec::new();
    }
    let values = option.get_env().and_then(env::var_os).unwrap_or_default();
    let values = values.as_bytes().split(|byte| *byte == b',').map(std::ffi::OsStr::from_bytes);
    let argument = |value: &std::ffi::OsStr| {
        let mut argument = OsString::from(format!("--{long}="));
        argument.push(value);
        argument
    };
    values.map(argument).collect()
}

/// Returns whether the value of a variable is meant as a setting. An empty one means none; Kubernetes sets
/// `ETHNODE_PORT=tcp://…` for a service named `ethnode`.
fn is_setting(value: &std::ffi::OsStr) -> bool {
    let is_service = value.to_str().is_some_and(|value| value.starts_with("tcp://") || value.starts_with("udp://"));
    !value.is_empty() && !is_service
}

fn is_false(value: OsString) -> bool {
    BoolishValueParser::new().parse_ref(&Command::new(""), None, &value).is_ok_and(|value| !value)
}

/// Returns a warning for each variable with our prefix that no command reads.
pub(super) fn warnings(root: &Command) -> Vec<String> {
    let known = known(root);
    let set = env::vars_os().filter(|(_, value)| is_setting(value)).filter_map(|(name, _)| name.into_string().ok());
    let mut warnings: Vec<_> = set.filter_map(|name| warning(&name, &known)).collect();
    warnings.sort();
    warnings
}

/// Returns the variables of all options, those before the command included.
fn known(root: &Command) -> Vec<&str> {
    let options = root.get_subcommands().flat_map(Command::get_arguments).chain(root.get_arguments());
    options.filter_map(|option| option.get_env()?.to_str()).collect()
}

/// Returns the warning about a variable, or `None` if it is `known` or does not have our prefix.
fn warning(name: &str, known: &[&str]) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let nearest = nearest(rest, known.iter().filter_map(|known| known.strip_prefix(PREFIX)));
    let hint = nearest.map(|nearest| format!("; did you mean {PREFIX}{nearest}?")).unwrap_or_default();
    (nearest != Some(rest)).then(|| format!("the environment variable {name} is not a setting{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_suggests_the_nearest_name() {
        let known = ["ETHNODE_HOST", "ETHNODE_PORT", "ETHNODE_POOL_BYTES"];
        let cases = [
            ("ETHNODE_PROT", Some("; did you mean ETHNODE_PORT?")),
            ("ETHNODE_POOL_BYTE", Some("; did you mean ETHNODE_POOL_BYTES?")),
            ("ETHNODE_SOMETHING", Some("")),
            ("ETHNODE_X", Some("")),
            ("ETHNODE_PORT", None),
            ("NODE_PROT", None),
            ("PROT", None),
        ];
        for (name, hint) in cases {
            let expected = hint.map(|hint| format!("the environment variable {name} is not a setting{hint}"));
            assert_eq!(warning(name, &known), expected);
        }
    }

    #[test]
    fn the_variable_of_the_settings_file_is_known() {
        let root = crate::settings::commands();
        assert_eq!(warning("ETHNODE_CONFIG", &known(&root)), None);
    }

    #[test]
    fn spellings_of_false() {
        for (value, expected) in
            [("false", true), ("0", true), ("no", true), ("true", false), ("1", false), ("x", false)]
        {
            assert_eq!(is_false(value.into()), expected, "{value}");
        }
    }
}
