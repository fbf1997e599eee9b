//! Tests of settings from the command line, the environment and the file, through the program.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

/// Returns the program without the environment variables of the test process.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ethnode"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETHNODE_") {
            command.env_remove(name);
        }
    }
    command
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A row of the table in the documentation.
struct Row {
    long: String,
    /// Empty for flags.
    value_name: String,
    variable: String,
    key: String,
    default: String,
    meaning: String,
    commands: Vec<String>,
}

fn rows() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let documentation = fs::read_to_string(path).expect("the documentation is there");
    let row = |line: &str| {
        let cells: Vec<_> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        let [option, variable, key, default, meaning, commands] = <[String; 6]>::try_from(cells).expect("six cells");
        let option = option.trim_start_matches("--");
        let (long, value_name) = option.split_once(' ').unwrap_or((option, ""));
        let commands = commands.split(", ").map(ToOwned::to_owned).collect();
        Row { long: long.to_owned(), value_name: value_name.to_owned(), variable, key, default, meaning, commands }
    };
    documentation.lines().filter(|line| line.starts_with("| `--")).map(row).collect()
}

/// Returns a value for the command line that is not the default.
fn sample(row: &Row) -> String {
    let hash = "0x".to_owned() + &"5".repeat(64);
    let by_option = BTreeMap::from([
        ("hardfork", "cancun"),
        ("log", "warn"),
        ("host", "::1"),
        ("base-path", "/node"),
        ("writer", "http://node:8545"),
        ("store", "file:///some/store"),
        ("fork-header", "Some-Name: a value"),
        ("trusted-proxies", "10.0.0.0/8"),
        ("public-url", "https://node.example"),
        ("mnemonic", "legal winner thank year wave sausage worth useful legal winner thank yellow"),
        ("coinbase", "0x00000000000000000000000000000000000000aa"),
    ]);
    if let Some(value) = by_option.get(&*row.long) {
        return (*value).to_owned();
    }
    // One of the values listed in the table, but not the default.
    if let Some((_, names)) = row.meaning.split_once(": `") {
        let mut names = names.split(", ").map(|name| name.trim_matches('`'));
        return names.find(|name| *name != row.default).expect("another value").to_owned();
    }
    match &*row.value_name {
        "HASH" => hash,
        "TIME" => "7s".to_owned(),
        "FILE" | "DIR" | "PATH" => "some/place".to_owned(),
        "ORIGIN" => "https://page.example".to_owned(),
        "HOST:PORT" | "ADDRESS" => "127.0.0.1:9".to_owned(),
        "" => "true".to_owned(),
        // The default is true.
        "BOOL" => "false".to_owned(),
        _ => "7".to_owned(),
    }
}

/// Arguments that the command or the option requires.
fn companions(command: &str, long: &str) -> Vec<&'static str> {
    match (command, long) {
        (_, "mixed-mining") => vec!["--block-time=1"],
        ("health", "tls-cert") => Vec::new(),
        (_, "tls-cert") => vec!["--tls-key=key.pem"],
        (_, "tls-key") => vec!["--tls-cert=certificate.pem"],
        (_, "publish-sync") => vec!["--publish=file:///store"],
        ("run", "writer") => vec!["--read-only"],
        ("serve", "cache-disk-mb") => vec!["--store=file:///store", "--cache-dir=cache"],
        ("serve", long) if long != "store" => vec!["--store=file:///store"],
        ("import" | "export" | "backup", _) => vec!["some.file"],
        ("prune", long) if long != "before" => vec!["--before=1"],
        _ => Vec::new(),
    }
}

/// Returns the value of an option in the printed settings, and its source.
fn shown(settings: &str, long: &str) -> (String, String) {
    let line = settings.lines().find(|line| line.trim_start_matches("# ").split(' ').next() == Some(long));
    let line = line.unwrap_or_else(|| panic!("no {long} in {settings}"));
    let (value, source) =
        line.rsplit_once(" # ").or_else(|| line.split_once(" is a secret, set by ")).expect("a source");
    (value.to_owned(), source.to_owned())
}

#[test]
fn every_option_can_be_set_by_every_source() {
    let rows = rows();
    let rows: Vec<_> = rows.iter().filter(|row| row.long != "config").collect();
    // The program is started hundreds of times.
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for part in rows.chunks(rows.len().div_ceil(threads)) {
            scope.spawn(move || {
                let folder = tempfile::tempdir().expect("a folder");
                part.iter().for_each(|row| set_by_every_source(row, &folder.path().join("node.toml")));
            });
        }
    });
    let with_variable = rows.iter().filter(|row| !row.variable.is_empty()).count();
    assert!(rows.len() > 50 && with_variable > 45, "{} options, {with_variable} variables", rows.len());
}

fn set_by_every_source(row: &Row, file: &Path) {
    let command = &row.commands[0];
    let file_text = file.to_str().expect("UTF-8");
    let (value, long, flag) = (sample(row), &row.long, row.value_name.is_empty());
    let base = |arguments: &[&str]| {
        let mut program = program();
        program.args(["config", command]).args(companions(command, long)).args(arguments);
        program
    };
    let argument = if flag { format!("--{long}") } else { format!("--{long}={value}") };
    let expected = shown(&text(base(&[&argument]).output().expect("it runs")), long);
    assert_eq!(expected.1, "command line", "--{long}");
    let mut default = program();
    default.args(["config", command]).args(companions(command, ""));
    let default = text(default.output().expect("it runs"));
    // The value of a secret is not shown.
    let is_secret = expected.0 == format!("# {long}");
    assert!(is_secret || !default.contains(&expected.0), "{argument} is the default");

    assert_eq!(row.key, *long);
    let quoted = if flag || row.value_name == "BOOL" { value.clone() } else { format!("{value:?}") };
    for (content, line) in [(format!("{long} = {quoted}"), 1), (format!("[{command}]\n{long} = {quoted}"), 2)] {
        fs::write(file, content).expect("it can be written");
        let got = shown(&text(base(&["--config", file_text]).output().expect("it runs")), long);
        assert_eq!(got, (expected.0.clone(), format!("file {file_text}, line {line}")), "{long} in the file");
    }
    if !row.variable.is_empty() {
        let output = base(&["--config", file_text]).env(&row.variable, &value).output().expect("it runs");
        let got = shown(&text(output), long);
        assert_eq!(got, (expected.0.clone(), format!("environment {}", row.variable)), "{}", row.variable);
        let both = base(&[&argument]).env(&row.variable, "not a valid value").output().expect("it runs");
        assert_eq!(shown(&text(both), long), expected, "{}", row.variable);
    }
}

#[test]
fn the_variable_of_a_flag_overrides_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("node.toml");
    fs::write(&file, "no-mining = true").expect("it can be written");
    let mut program = program();
    program.args(["config", "--block-time", "1"]).env("ETHNODE_NO_MINING", "false").env("ETHNODE_CONFIG", &file);
    let settings = text(program.output().expect("it runs"));
    assert_eq!(
        shown(&settings, "no-mining"),
        ("no-mining = false".to_owned(), "environment ETHNODE_NO_MINING".to_owned())
    );
}

#[test]
fn requests_to_forks_have_more_time() {
    let setting = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut program = program();
        program.args(["config", "dev"]).args(arguments).envs(variables.iter().copied());
        shown(&text(program.output().expect("it runs")), "call-timeout").0
    };
    let url = "http://127.0.0.1:1";
    assert_eq!(setting(&[], &[]), "call-timeout = \"5s\"");
    assert_eq!(setting(&["--fork-url", url], &[]), "call-timeout = \"30s\"");
    assert_eq!(setting(&[], &[("ETHNODE_FORK_URL", url)]), "call-timeout = \"30s\"");
    assert_eq!(setting(&["--fork-url", url, "--call-timeout", "7s"], &[]), "call-timeout = \"7s\"");
}

#[test]
fn commas_separate_the_values_of_a_variable() {
    let setting = |variables: &[(&str, &str)], more: &[&str], long| {
        let mut program = program();
        program.args(["config", "run"]).args(more).envs(variables.iter().copied());
        shown(&text(program.output().expect("it runs")), long)
    };
    let (list, source) = ("import = [\"a.rlp\", \"b.rlp\"]".to_owned(), "environment ETHNODE_IMPORT".to_owned());
    assert_eq!(setting(&[("ETHNODE_IMPORT", "a.rlp,b.rlp")], &[], "import"), (list, source));
    let given = setting(&[("ETHNODE_IMPORT", "a.rlp")], &["--import", "x,y.rlp"], "import");
    assert_eq!(given, ("import = [\"x,y.rlp\"]".to_owned(), "command line".to_owned()));
    assert_eq!(setting(&[("ETHNODE_API", "eth,net")], &[], "api").0, "api = [\"eth\", \"net\"]");
}

#[test]
fn variables_that_are_empty_or_describe_a_service_are_ignored() {
    let setting = |variables: &[(&str, &str)], long| {
        shown(&text(program().args(["config", "run"]).envs(variables.iter().copied()).output().expect("it runs")), long)
    };
    let expected = |line: &str, variable: &str| (line.to_owned(), variable.to_owned());
    assert_eq!(setting(&[("ETHNODE_PORT", "8")], "port"), expected("port = 8", "environment ETHNODE_PORT"));
    for value in ["tcp://10.0.0.1:8545", ""] {
        assert_eq!(setting(&[("ETHNODE_PORT", value)], "port"), expected("port = 8545", "default"), "{value:?}");
    }
    assert_eq!(setting(&[("ETHNODE_NO_CONTROL", "")], "no-control"), expected("no-control = false", "default"));
    for (value, expected) in [("1", "strict = true"), ("0", "strict = false"), ("yes", "strict = true")] {
        assert_eq!(setting(&[("ETHNODE_STRICT", value)], "strict").0, expected);
    }
}

#[test]
fn a_variable_that_is_no_setting_causes_a_warning() {
    for (name, warns) in
        [("ETHNODE_PROT", true), ("ETHNODE_MAX_LGOS", true), ("NODE_PROT", false), ("ETHNODE_PORT", false)]
    {
        let output = program().args(["config", "run"]).env(name, "1").output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        let warning = format!("warning: the environment variable {name} is not a setting; did you mean");
        assert_eq!((error.contains(&warning), output.status.success()), (warns, true), "{error}");
    }
}

#[test]
fn errors_name_the_source_of_the_value() {
    let output = program().args(["run"]).env("ETHNODE_PORT", "70000").output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("70000") && error.contains("note: --port is set by environment ETHNODE_PORT"), "{error}");
    // With --json, the error is also written as JSON.
    for arguments in [&["verify", "--json", "--nope"][..], &["stats", "--json", "--cache-mb", "many"]] {
        let output = program().args(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
        assert_eq!(line["event"], "error");
        assert!(line["message"].as_str().expect("a message").contains(arguments[2]), "{line}");
    }
}

#[test]
fn arguments_after_two_dashes_keep_their_meaning() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("node.toml");
    fs::write(&file, "to = 7").expect("it can be written");
    let mut program = program();
    program.args(["config", "export", "--", "--file"]).env("ETHNODE_CONFIG", &file);
    assert_eq!(shown(&text(program.output().expect("it runs")), "to").0, "to = 7");
}

#[test]
fn health_looks_for_the_server_where_run_listens() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("node.toml");
    let settings = |content: &str| {
        fs::write(&file, content).expect("it can be written");
        text(program().args(["config", "health", "--config"]).arg(&file).output().expect("it runs"))
    };
    let of_run =
        "[run]\nhost = \"0.0.0.0\"\nport = 9000\nbase-path = \"/node\"\ntls-cert = \"a.crt\"\ntls-key = \"a.key\"\n";
    let found = settings(&format!("port = 7\n{of_run}"));
    for expected in ["host = \"0.0.0.0\"", "port = 9000", "base-path = \"/node\"", "tls-cert = \"a.crt\""] {
        assert!(found.lines().any(|line| line.starts_with(expected)), "{expected}: {found}");
    }
    let own = settings(&format!("{of_run}[health]\nport = 1\n"));
    assert_eq!(shown(&own, "port").0, "port = 1");
    let of_dev = settings("port = 7\n[dev]\nport = 2\n");
    assert_eq!(shown(&of_dev, "port").0, "port = 2");
    let of_both = settings("port = 7\n[run]\nbase-path = \"/node\"\n[dev]\nport = 2\n");
    assert_eq!(shown(&of_both, "port").0, "port = 7");
}

#[test]
fn the_sample_configuration_file_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ethnode.toml");
    for command in ["run", "dev"] {
        let settings = text(program().args(["config", command]).arg("--config").arg(&path).output().expect("it runs"));
        assert!(settings.contains(&format!("# file {}", path.display())), "{settings}");
    }
}

#[test]
fn the_image_sets_existing_variables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/Dockerfile");
    let file = fs::read_to_string(path).expect("it is there");
    let rows = rows();
    let mut count = 0;
    for setting in file.split_whitespace().filter(|word| word.starts_with("ETHNODE_")) {
        let (variable, value) = setting.split_once('=').expect("a variable with a value");
        let row = rows.iter().find(|row| row.variable == variable && row.commands.contains(&"run".to_owned()));
        let row = row.unwrap_or_else(|| panic!("no option has the variable {variable}"));
        let settings = text(program().args(["config", "run"]).env(variable, value).output().expect("it runs"));
        assert_eq!(shown(&settings, &row.long).1, format!("environment {variable}"));
        count += 1;
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn completions_contain_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = text(program().args(["completions", shell]).output().expect("it runs"));
        assert!(script.contains("max-filters") && script.contains("verify"), "{shell}");
    }
}
