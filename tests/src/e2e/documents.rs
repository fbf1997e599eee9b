//! The documents agree with the program: links resolve, options exist, and examples show what the server returns.

use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The Markdown files at the root and in docs, with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let files = [ROOT.to_owned(), format!("{ROOT}/docs")].map(|folder| fs::read_dir(folder).unwrap());
    let paths = files.into_iter().flatten().map(|file| file.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The anchors of the headings of a document, as GitHub derives them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The targets of the links of a document.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn relative_links_resolve() {
    let mut checked = 0;
    for (path, text) in documents() {
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            if !anchor.is_empty() {
                let anchors = anchors(&fs::read_to_string(target).unwrap());
                assert!(anchors.contains(anchor), "{}: {link}", path.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} links");
}

/// The options in backquotes: `--name`, without values.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split('`').skip(1).step_by(2).flat_map(|code| code.split([' ', '=', '\n']));
    words.filter(|word| word.starts_with("--") && word.len() > 2)
}

#[test]
fn mentioned_options_exist() {
    // A test of node-server compares this table with the program.
    let table = fs::read_to_string(format!("{ROOT}/docs/configuration.md")).unwrap();
    let known: BTreeSet<_> = options(&table).collect();
    // Options of every command, and of other programs.
    let others = ["--help", "--init", "--print", "--time"];
    for name in ["docs/http", "docs/events", "docs/development", "docs/json-rpc", "docs/operations", "docs/proxies"] {
        let text = fs::read_to_string(Path::new(ROOT).join(name).with_extension("md")).unwrap();
        for option in options(&text.replace("```", "")) {
            let exists = known.contains(option) || others.contains(&option);
            assert!(exists, "{name}: {option} is not in the table of configuration.md");
        }
    }
}

/// The first JSON block of a document.
fn json(name: &str) -> Value {
    let text = fs::read_to_string(format!("{ROOT}/{name}")).unwrap();
    let block = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    serde_json::from_str(block).unwrap()
}

/// Compares an example with a response. `…` ends an abbreviated string, or an abbreviated list.
fn assert_shows(example: &Value, actual: &Value, place: &str) {
    match (example, actual) {
        (Value::Object(example), Value::Object(actual)) => {
            assert!(example.keys().eq(actual.keys()), "{place}: {actual:?}");
            for (key, value) in example {
                assert_shows(value, &actual[key], &format!("{place}.{key}"));
            }
        }
        (Value::Array(example), Value::Array(actual)) => {
            let whole = example.last().is_none_or(|last| last != "…");
            assert!(!whole || example.len() == actual.len(), "{place}: {actual:?}");
            for (index, value) in example.iter().enumerate().filter(|(_, value)| **value != "…") {
                assert_shows(value, &actual[index], &format!("{place}[{index}]"));
            }
        }
        (Value::String(example), Value::String(actual)) if example.ends_with('…') => {
            assert!(actual.starts_with(example.trim_end_matches('…')), "{place}: {actual}");
        }
        _ => assert_eq!(example, actual, "{place}"),
    }
}

#[test]
fn examples_are_responses_of_the_server() {
    let server = Server::dev_with_contracts();
    let check = |document, operation, request: &str| {
        let mut example = json(document);
        let response = server.post(&format!("/{operation}/"), request);
        let schema = example["$schema"].as_str().unwrap().replace("http://127.0.0.1:8545", server.url());
        example["$schema"] = schema.into();
        if let Some(instance) = example.get_mut("instance") {
            *instance = response.body["instance"].clone();
        }
        assert_shows(&example, &response.body, document);
    };
    let account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    check("README.md", "getProof", &format!(r#"{{"Address": "{account}", "BlockNumber": "latest"}}"#));
    let faulty = r#"{"Address": "0xf39f", "Position": "-1", "Blocknumber": "latest"}"#;
    check("docs/tutorial.md", "getStorageAt", faulty);
}

/// The paths of all files below a folder, without build output.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
            files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

#[test]
fn mentioned_scripts_exist() {
    let mut checked = 0;
    for (path, text) in documents() {
        let words =
            text.split(['`', ' ', '\n']).filter(|word| word.starts_with("scripts/") || word.starts_with(".ci/"));
        for word in words.filter(|word| !word.contains('*')) {
            let script = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            assert!(Path::new(ROOT).join(script).exists(), "{}: {word}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} scripts");
}

#[test]
fn the_architecture_mentions_existing_files() {
    let mut found = Vec::new();
    files(Path::new(ROOT), &mut found);
    let text = fs::read_to_string(format!("{ROOT}/ARCHITECTURE.md")).unwrap();
    let is_path = |word: &&str| word.ends_with(".rs") || word.contains("/src/") || word.starts_with("scripts/");
    for mentioned in text.split('`').skip(1).step_by(2).filter(is_path) {
        // A path from the root, from `crates`, or only a file name beside the path mentioned before it.
        let exists = ["", "crates"].iter().any(|base| Path::new(ROOT).join(base).join(mentioned).exists())
            || found.iter().any(|path| path.ends_with(mentioned));
        assert!(exists, "ARCHITECTURE.md mentions {mentioned}, which does not exist");
    }
}
