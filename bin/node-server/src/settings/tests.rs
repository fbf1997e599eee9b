//! Tests of the settings file, and of the table of options in the documentation.

use super::source::{is_boolean, options};
use super::{Request, UsageError, commands, read};
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

#[path = "../../../../tests/generated_table.rs"]
mod generated_table;

fn with_file(toml: &[u8], arguments: &[&str]) -> Result<Request, UsageError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.toml");
    fs::write(&path, toml).unwrap();
    let path = path.to_str().unwrap();
    let words = ["ethnode"].iter().chain(arguments).copied().map(OsString::from);
    read(words.chain([format!("--config={path}").into()]))
}

/// Returns the printed settings with this file and these arguments.
fn shown(toml: &str, arguments: &[&str]) -> String {
    match with_file(toml.as_bytes(), &[&["config"], arguments].concat()) {
        Ok(Request::Show(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Returns the line of an option without its source, and the source with only the name of the file.
fn line<'a>(shown: &'a str, option: &str) -> (&'a str, String) {
    let line = shown.lines().find(|line| line.trim_start_matches("# ").split(' ').next() == Some(option));
    let (value, source) = line.unwrap_or_else(|| panic!("no {option} in {shown}")).rsplit_once(" # ").unwrap();
    let source = match source.split_once('/') {
        Some((kind, path)) => format!("{kind}{}", path.rsplit('/').next().unwrap()),
        None => source.to_owned(),
    };
    (value, source)
}

#[test]
fn the_file_overrides_defaults_and_the_command_line_overrides_the_file() {
    let toml = "port = 9000\nmax-body = 0x10\nstrict = true\nblock-time = 0.5\n\n[run]\nport = 9001\n\
                import = [\"a.rlp\", \"b.rlp\"]\ncall-timeout = \"2s\"\n";
    let run = shown(toml, &["run", "--call-timeout=3s"]);
    assert_eq!(line(&run, "port"), ("port = 9001", "file node.toml, line 7".to_owned()));
    assert_eq!(line(&run, "max-body"), ("max-body = 16", "file node.toml, line 2".to_owned()));
    assert_eq!(line(&run, "strict"), ("strict = true", "file node.toml, line 3".to_owned()));
    assert_eq!(line(&run, "import"), ("import = [\"a.rlp\", \"b.rlp\"]", "file node.toml, line 8".to_owned()));
    assert_eq!(line(&run, "call-timeout"), ("call-timeout = \"3s\"", "command line".to_owned()));
    assert_eq!(line(&run, "gas-cap").1, "default");
    // Lists are replaced, not joined.
    let run = shown(toml, &["run", "--import", "c.rlp"]);
    assert_eq!(line(&run, "import"), ("import = [\"c.rlp\"]", "command line".to_owned()));
    // The names of files may contain commas.
    let run = shown("", &["run", "--import", "a,b.rlp", "--import=c.rlp"]);
    assert_eq!(line(&run, "import").0, "import = [\"a,b.rlp\", \"c.rlp\"]");
    let run = shown("[run]\nimport = [\"a,b.rlp\", \"c.rlp\"]", &["run"]);
    assert_eq!(line(&run, "import").0, "import = [\"a,b.rlp\", \"c.rlp\"]");
    // `dev` has no option `strict`, and the section of `run` does not apply to it.
    let dev = shown(toml, &[]);
    assert_eq!(line(&dev, "port"), ("port = 9000", "file node.toml, line 1".to_owned()));
    assert_eq!(line(&dev, "block-time"), ("block-time = \"0.5\"", "file node.toml, line 4".to_owned()));
    assert!(!dev.contains("strict"), "{dev}");
}

#[test]
fn the_printed_settings_are_a_file_with_the_same_settings() {
    for arguments in
        [&["run", "--import", "a,b", "--data-dir", "a \"folder\"", "--strict"][..], &["dev", "--accounts", "3"]]
    {
        let first = shown("", arguments);
        let again = shown(&first, &arguments[..1]);
        let values = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.rsplit_once(" # ").map_or(line, |(value, _)| value).to_owned()).collect()
        };
        assert_eq!(values(&first), values(&again));
        assert!(first.contains("# command line") && !again.contains("# command line"), "{again}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let secret = "legal winner thank year wave sausage worth useful legal winner thank yellow";
    for shown in [shown(&format!("mnemonic = \"{secret}\""), &[]), shown("", &["dev", "--mnemonic", secret])] {
        assert!(!shown.contains("sausage") && shown.contains("# mnemonic is a secret, set by "), "{shown}");
    }
    assert!(shown("", &[]).contains("mnemonic = \"test test"));
}

#[test]
fn errors_in_the_file_have_line_numbers() {
    let cases: [(&str, &str); 18] = [
        ("\nprot = 1", "line 2: `prot` is not an option of any command; did you mean `port`?"),
        ("[run]\nmax-lgos = 1", "line 2: `max-lgos` is not an option of run; did you mean `max-logs`?"),
        ("[runs]\nport = 1", "line 1: `[runs]` is not the name of a command with options; did you mean `run`?"),
        ("max_body = 1", "line 1: `max_body` is not an option of any command; did you mean `max-body`?"),
        ("[run]\naccounts = 3", "line 2: `accounts` is not an option of run"),
        ("[build]\nport = 1", "line 1: `[build]` is not the name of a command with options"),
        ("config = \"other.toml\"", "line 1: `config` is not an option"),
        ("help = true", "line 1: `help` is not an option"),
        ("port = 1\nport = 2", "line 2: duplicate key"),
        ("port = ", "line 1: "),
        ("port = true", "line 1: `port` is true or false, expected a string or a number"),
        ("port = [1]", "line 1: `port` is a list, expected a string or a number"),
        ("host = 2026-01-01", "line 1: `host` is a date or a time, expected a string or a number"),
        ("strict = \"yes\"", "line 1: `strict` is a string, expected true or false"),
        ("[run]\nimport = [\n1, true]", "line 2: `import` is true or false, expected a string, a number, or a list"),
        ("[run.http]\nport = 1", "`http` is not an option of run"),
        ("port = 70000", "--port is set by file"),
        ("max-filters = 0", "expected 1 or more"),
    ];
    for (toml, expected) in cases {
        let error = with_file(toml.as_bytes(), &["run"]).unwrap_err();
        assert!(error.message().contains(expected), "{toml:?}: {}", error.message());
        assert!(error.message().contains("node.toml"), "{toml:?}: {}", error.message());
    }
    for (content, expected) in
        [(&b"a = \"\xff\""[..], "line 1: the file is not UTF-8"), (&[b'#'; 1 << 21], "longer than")]
    {
        let error = with_file(content, &["run"]).unwrap_err();
        assert!(error.message().contains(expected), "{}", error.message());
    }
    let error = read(["ethnode", "run", "--config", "/nowhere/node.toml"].map(OsString::from)).unwrap_err();
    assert!(error.message().contains("cannot read /nowhere/node.toml: No such file"), "{}", error.message());
}

#[test]
fn unknown_options_of_the_command_line_are_explained() {
    let message = |arguments: &[&str]| {
        let words = ["ethnode"].iter().chain(arguments).map(OsString::from);
        read(words).unwrap_err().message()
    };
    let cases: [(&[&str], &str); 4] = [
        (&["run", "--prot", "1"], "unexpected argument '--prot' found; tip: a similar argument exists: '--port'"),
        (&["run", "--accounts", "3"], "unexpected argument '--accounts' found; --accounts is an option of dev"),
        (
            &["--prune-before", "1"],
            "unexpected argument '--prune-before' found; --prune-before is an option of run, import",
        ),
        (&["--no-request-size-limit"], "--no-request-size-limit is not an option here: use --max-body"),
    ];
    for (arguments, expected) in cases {
        assert!(message(arguments).starts_with(expected), "{}", message(arguments));
    }
}

#[test]
fn errors_of_anvil_mention_its_option_for_the_genesis() {
    for (command, option) in [("anvil", "--init"), ("dev", "--genesis")] {
        let error = read(["ethnode", command, "--init", "g.json", "--gas-limit", "1"].map(OsString::from)).unwrap_err();
        let message = error.message();
        assert!(
            message.contains(&format!("'{option} <FILE>'")) && message.contains("'--gas-limit <GAS>'"),
            "{message}"
        );
        let UsageError::Options { error, .. } = error else { panic!("{error:?}") };
        let text = error.to_string();
        assert!(text.contains(&format!("{option} <FILE>")) && text.contains("Usage: ethnode"), "{text}");
        assert_eq!(text.contains("--genesis"), command == "dev", "{text}");
    }
}

#[test]
fn options_of_the_file_count_for_conflicts_and_requirements() {
    let conflict = with_file(b"no-mining = true", &["dev", "--block-time", "1"]).unwrap_err();
    let message = conflict.message();
    assert!(message.contains("--block-time") && message.contains("--no-mining is set by file"), "{message}");
    with_file(b"block-time = 1", &["dev", "--mixed-mining"]).unwrap();
    assert!(with_file(b"", &["dev", "--mixed-mining"]).is_err());
    with_file(b"[prune]\nbefore = 7", &["prune"]).unwrap();
    assert!(with_file(b"", &["prune"]).is_err());
}

#[test]
fn every_option_of_a_server_has_an_environment_variable() {
    let mut root = commands();
    root.build();
    for name in ["dev", "run", "serve"] {
        let command = root.find_subcommand(name).unwrap();
        let mut count = 0;
        for (option, long) in options(command) {
            let expected = format!("ETHNODE_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(option.get_env().and_then(|name| name.to_str()), Some(&*expected), "--{long} of {name}");
            count += 1;
        }
        assert!(count > 30, "{name}: {count}");
    }
}

/// Returns a row of the table without the commands.
fn row(option: &Arg, long: &str) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let value = match option.get_action() {
        ArgAction::SetTrue => String::new(),
        _ => option.get_value_names().map(|names| format!(" {}", names[0])).unwrap_or_default(),
    };
    let env = option.get_env().map(|name| name.to_string_lossy()).unwrap_or_default();
    let default = option.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
    let default = if matches!(option.get_action(), ArgAction::SetTrue) { "false".into() } else { default };
    let mut meaning = option.get_help().map(ToString::to_string).unwrap_or_default();
    let possible = option.get_possible_values();
    if !possible.is_empty() && !matches!(option.get_action(), ArgAction::SetTrue) && !is_boolean(option) {
        let names: Vec<_> = possible.iter().map(|value| format!("`{}`", value.get_name())).collect();
        meaning += &format!(": {}", names.join(", "));
    }
    let key = if long == super::FILE_OPTION { "" } else { long };
    let (default, meaning) = (code(&default), meaning.replace('|', "\\|"));
    format!("| `--{long}{value}` | {} | {} | {default} | {meaning} |", code(&env), code(key))
}

/// Returns the table of all options of all commands.
fn table(root: &Command) -> String {
    // In the order of the first command that has the option.
    let mut rows: Vec<(String, Vec<&str>)> = Vec::new();
    let mut known = BTreeMap::new();
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        for option in command.get_arguments() {
            // Counted flags, help and version are for the command line alone.
            if !matches!(option.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue) {
                continue;
            }
            let Some(long) = option.get_long() else { continue };
            let row = row(option, long);
            let index = *known.entry(row.clone()).or_insert_with(|| {
                rows.push((row, Vec::new()));
                rows.len() - 1
            });
            // `anvil` has all options of `dev`.
            if command.get_name() != "anvil" || !rows[index].1.contains(&"dev") {
                rows[index].1.push(command.get_name());
            }
        }
    }
    let mut text =
        "| Option | Environment | TOML key | Default | Meaning | Commands |\n|---|---|---|---|---|---|\n".to_owned();
    let commands = root.get_subcommands().filter(|command| !["help", "anvil"].contains(&command.get_name())).count();
    for (row, of) in rows {
        text += &format!("{row} {} |\n", if of.len() == commands { "all".to_owned() } else { of.join(", ") });
    }
    text
}

#[test]
fn the_documentation_lists_all_options() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let mut root = commands();
    root.build();
    generated_table::check(&page, "UPDATE_DOCS", "cargo test -p node-server documentation", &table(&root));
}
