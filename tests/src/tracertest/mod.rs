//! The runner of geth's tracer vectors: a transaction on a state, and the trace that geth returns for it.

mod case;
mod view;

use case::Vector;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    pub passed: usize,
    /// Names of vectors whose trace differs, and of files that cannot be run, with the reasons, ascending.
    pub failures: Vec<(String, String)>,
}

/// Runs all vectors of a folder of folders, whose names determine the tracer.
///
/// # Errors
/// If a folder cannot be read.
pub fn run(root: &Path) -> io::Result<Summary> {
    let mut summary = Summary::default();
    for folder in entries(root)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&folder)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        {
            let name = path.strip_prefix(root).unwrap_or(&path).with_extension("").display().to_string();
            match run_file(&folder, &path) {
                Ok(()) => summary.passed += 1,
                Err(reason) => summary.failures.push((name, reason)),
            }
        }
    }
    Ok(summary)
}

fn entries(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

fn run_file(folder: &Path, path: &Path) -> Result<(), String> {
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    let json = fs::read(path).map_err(|error| error.to_string())?;
    let vector: Vector = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    let tracer = tracer(&folder).ok_or_else(|| format!("no tracer is known for the folder {folder}"))?;
    let got = vector.trace(tracer)?;
    let is_flat = tracer == "flatCallTracer";
    let compared = |trace: Value| if is_flat { comparable(&trace) } else { trace };
    let (got, expected) = (compared(got), compared(vector.result));
    if got == expected { Ok(()) } else { Err(differences(&got, &expected)) }
}

/// Returns the tracer whose traces a folder contains.
fn tracer(folder: &str) -> Option<&'static str> {
    Some(match folder {
        "call_tracer_flat" => "flatCallTracer",
        _ if folder.starts_with("call_tracer") => "callTracer",
        _ if folder.starts_with("prestate_tracer") => "prestateTracer",
        "erc7562_tracer" => "erc7562Tracer",
        _ => return None,
    })
}

/// Returns a list of calls as geth's own tests compare it: without the place of the transaction, and without properties
/// that are empty or zero, which some of the vectors contain and others omit.
fn comparable(trace: &Value) -> Value {
    const PLACE: [&str; 5] = ["blockHash", "blockNumber", "time", "transactionHash", "transactionPosition"];
    match trace {
        Value::Object(object) => {
            let compared = object.iter().filter(|(name, _)| !PLACE.contains(&name.as_str()));
            let pairs = compared.map(|(name, value)| (name.clone(), comparable(value)));
            Value::Object(pairs.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => items.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|digit| digit == b'0')),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// Lists where two traces differ.
fn differences(got: &Value, expected: &Value) -> String {
    let mut found = Vec::new();
    compare("", Some(got), Some(expected), &mut found);
    found.truncate(8);
    found.join("; ")
}

fn compare(path: &str, got: Option<&Value>, expected: Option<&Value>, found: &mut Vec<String>) {
    match (got, expected) {
        (Some(Value::Object(got)), Some(Value::Object(expected))) => {
            let names: BTreeSet<_> = got.keys().chain(expected.keys()).collect();
            names
                .into_iter()
                .for_each(|name| compare(&format!("{path}.{name}"), got.get(name), expected.get(name), found));
        }
        (Some(Value::Array(got)), Some(Value::Array(expected))) => {
            for index in 0..got.len().max(expected.len()) {
                compare(&format!("{path}[{index}]"), got.get(index), expected.get(index), found);
            }
        }
        (got, expected) if got == expected => {}
        (got, expected) => {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), |value| format!("{value:.120}"));
            found.push(format!("{path} is {:.120}, expected {:.120}", text(got), text(expected)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn compares_what_geth_compares() {
        let written = json!([{ "result": { "output": "0x" }, "traceAddress": [], "blockNumber": 7 }]);
        assert_eq!(comparable(&written), comparable(&json!([{ "result": null, "traceAddress": [] }])));
        let (got, expected) = (json!({ "gas": "0x1", "calls": [1] }), json!({ "gas": "0x2", "calls": [1, 2] }));
        assert_eq!(differences(&got, &expected), ".calls[1] is nothing, expected 2; .gas is \"0x1\", expected \"0x2\"");
    }

    #[test]
    fn folders_name_the_tracer() {
        assert_eq!(tracer("call_tracer_withLog"), Some("callTracer"));
        assert_eq!(tracer("prestate_tracer_with_diff_mode"), Some("prestateTracer"));
        assert_eq!(tracer("vm"), None);
    }
}
