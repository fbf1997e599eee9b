//! Environment variables: their earlier names, the values of flags, and names that are not settings.

use super::nearest::{MAX_EDITS, nearest};
use clap::builder::{BoolishValueParser, OsStr, Resettable, TypedValueParser};
use clap::{Arg, ArgAction, Command};
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The prefix of the names of all variables.
const PREFIX: &str = "ETHNODE_";

/// The prefix in earlier versions.
const EARLIER_PREFIX: &str = "NODE_";

/// Options of a single run of a command, which are not settings.
const OF_ONE_RUN: [&str; 7] = ["before", "force", "from", "json", "timeout", "to", "without-control"];

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

/// Makes an option read the variable with the earlier prefix if that is set and the one with the current prefix is not.
pub(super) fn accept_earlier_name(argument: Arg) -> Arg {
    let Some(name) = argument.get_env() else { return argument };
    let value = env::var_os(name);
    if value.as_deref().is_some_and(is_setting) {
        return argument;
    }
    match name.to_str().and_then(earlier) {
        Some(earlier) => argument.env(OsStr::from(earlier)),
        None if value.is_some() => argument.env(Resettable::<OsStr>::Reset),
        None => argument,
    }
}

/// Makes a flag accept all usual booleans from its variable, and ignore the variable if it is false, so that the flag
/// does not conflict with other options.
pub(super) fn accept_booleans(argument: Arg) -> Arg {
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

/// Returns the earlier name of a variable, if that has a value.
fn earlier(name: &str) -> Option<String> {
    let earlier = format!("{EARLIER_PREFIX}{}", name.strip_prefix(PREFIX)?);
    is_setting(&env::var_os(&earlier)?).then_some(earlier)
}

/// Returns whether the value of a variable is meant as a setting. An empty one means none; Kubernetes sets
/// `NODE_PORT=tcp://…` for a service named `node`, and `ETHNODE_PORT` likewise.
fn is_setting(value: &std::ffi::OsStr) -> bool {
    let is_service = value.to_str().is_some_and(|value| value.starts_with("tcp://") || value.starts_with("udp://"));
    !value.is_empty() && !is_service
}

fn is_false(value: OsString) -> bool {
    BoolishValueParser::new().parse_ref(&Command::new(""), None, &value).is_ok_and(|value| !value)
}

/// Returns a warning for each variable with our prefix that no command reads, and for those with the earlier prefix,
/// which other programs use as well, that differ little from one that is read.
pub(super) fn warnings(root: &Command) -> Vec<String> {
    let known: Vec<_> = root
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter_map(|option| option.get_env()?.to_str())
        .collect();
    let set = env::vars_os().filter(|(_, value)| is_setting(value)).filter_map(|(name, _)| name.into_string().ok());
    let mut warnings: Vec<_> = set.filter_map(|name| warning(&name, &known)).collect();
    warnings.sort();
    warnings
}

/// Returns the warning about a variable; `None` if it is `known` or not meant for this program.
fn warning(name: &str, known: &[&str]) -> Option<String> {
    let (rest, is_ours) = match name.strip_prefix(PREFIX) {
        Some(rest) => (rest, true),
        None => (name.strip_prefix(EARLIER_PREFIX)?, false),
    };
    let max_edits = MAX_EDITS.min(rest.len() / if is_ours { 2 } else { 4 });
    let nearest = nearest(rest, known.iter().filter_map(|known| known.strip_prefix(PREFIX)), max_edits);
    let hint = nearest.map(|nearest| format!("; did you mean {PREFIX}{nearest}?"));
    let warns = nearest != Some(rest) && (is_ours || hint.is_some());
    warns.then(|| format!("the environment variable {name} is not a setting{}", hint.unwrap_or_default()))
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
            ("NODE_PROT", Some("; did you mean ETHNODE_PORT?")),
            ("NODE_POOL_BTYES", Some("; did you mean ETHNODE_POOL_BYTES?")),
            ("NODE_PORT", None),
            ("NODE_PATH", None),
            ("NODE_IP", None),
            ("NODE_OPTIONS", None),
            ("PROT", None),
        ];
        for (name, hint) in cases {
            let expected = hint.map(|hint| format!("the environment variable {name} is not a setting{hint}"));
            assert_eq!(warning(name, &known), expected);
        }
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
