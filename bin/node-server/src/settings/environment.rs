//! Environment variables: their earlier names, the values of flags, and names that are no setting.

use clap::builder::{BoolishValueParser, OsStr, Resettable, TypedValueParser};
use clap::{Arg, ArgAction, Command};
use std::env;
use std::ffi::OsString;

/// What the names of all variables begin with.
const PREFIX: &str = "ETHNODE_";

/// What their names began with in earlier versions.
const EARLIER_PREFIX: &str = "NODE_";

/// Highest number of edits between a name and the setting that a warning suggests for it.
const MAX_EDITS: usize = 3;

/// Makes an option read the variable of its earlier name if that is set and the one of its own name is not.
pub(super) fn accept_earlier_name(argument: Arg) -> Arg {
    let earlier = match argument.get_env() {
        Some(name) if env::var_os(name).is_none() => name.to_str().and_then(earlier),
        _ => None,
    };
    match earlier {
        Some(earlier) => argument.env(OsStr::from(earlier)),
        None => argument,
    }
}

/// Makes a flag accept all usual booleans from its variable, and ignore the variable if it is false, so that the flag does not
/// conflict with other options.
pub(super) fn accept_booleans(argument: Arg) -> Arg {
    if !matches!(argument.get_action(), ArgAction::SetTrue) {
        return argument;
    }
    let value = argument.get_env().and_then(env::var_os);
    let argument = argument.value_parser(BoolishValueParser::new());
    if value.is_some_and(is_false) { argument.env(Resettable::<OsStr>::Reset) } else { argument }
}

/// The earlier name of a variable, if that is set. Kubernetes sets `NODE_PORT=tcp://…` for a service named `node`: such values are not
/// settings.
fn earlier(name: &str) -> Option<String> {
    let earlier = format!("{EARLIER_PREFIX}{}", name.strip_prefix(PREFIX)?);
    let value = env::var_os(&earlier)?;
    let is_service = value.to_str().is_some_and(|value| value.starts_with("tcp://") || value.starts_with("udp://"));
    (!is_service).then_some(earlier)
}

fn is_false(value: OsString) -> bool {
    BoolishValueParser::new().parse_ref(&Command::new(""), None, &value).is_ok_and(|value| !value)
}

/// Returns a warning for each variable with our prefix that no command reads.
pub(super) fn warnings(root: &Command) -> Vec<String> {
    let known: Vec<_> = root
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter_map(|option| option.get_env()?.to_str())
        .collect();
    let unknown = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = unknown.filter(|name| name.starts_with(PREFIX) && !known.contains(&name.as_str()));
    let mut warnings: Vec<_> = unknown.map(|name| warning(&name, &known)).collect();
    warnings.sort();
    warnings
}

fn warning(name: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), known)).min();
    let hint = match nearest {
        Some((edits, known)) if edits <= MAX_EDITS => format!("; did you mean {known}?"),
        _ => String::new(),
    };
    format!("the environment variable {name} is not a setting{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_suggests_the_nearest_name() {
        let known = ["ETHNODE_HOST", "ETHNODE_PORT", "ETHNODE_POOL_BYTES"];
        let cases = [
            ("ETHNODE_PROT", "the environment variable ETHNODE_PROT is not a setting; did you mean ETHNODE_PORT?"),
            (
                "ETHNODE_POOL_BYTE",
                "the environment variable ETHNODE_POOL_BYTE is not a setting; did you mean ETHNODE_POOL_BYTES?",
            ),
            ("ETHNODE_SOMETHING", "the environment variable ETHNODE_SOMETHING is not a setting"),
        ];
        for (name, expected) in cases {
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
