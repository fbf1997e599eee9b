//! Recorded JSON-RPC exchanges, replayed and compared.
//!
//! A file consists of comments (`//`), and of requests (`>> `), each followed by the recorded response (`<< `). Values
//! and error codes must be equal; messages may differ. If a comment contains `speconly`, only the structure must match.

use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The exchanges of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Folder and file name, without extension.
    pub name: String,
    /// Whether only the structure must match.
    pub form_only: bool,
    /// Each request with the recorded response.
    pub rounds: Vec<(String, Value)>,
}

/// Why a file cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Its format is invalid.
    #[error("{path}: {reason}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is invalid.
        reason: String,
    },
}

/// Reads all files of a folder of folders, sorted by name.
pub fn read_all(folder: &Path) -> Result<Vec<Exchange>, ExchangeError> {
    let mut exchanges = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            exchanges.extend(read_all(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "io") {
            let text =
                fs::read_to_string(&path).map_err(|source| ExchangeError::Read { path: path.clone(), source })?;
            exchanges.push(read(&path, &text).map_err(|reason| ExchangeError::Form { path, reason })?);
        }
    }
    Ok(exchanges)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ExchangeError> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = read().map_err(|source| ExchangeError::Read { path: folder.to_owned(), source })?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path, text: &str) -> Result<Exchange, String> {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let name = format!("{}/{}", part(path.parent().and_then(Path::file_name)), part(path.file_stem()));
    let mut exchange = Exchange { name, form_only: false, rounds: Vec::new() };
    let mut asked = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(comment) = line.strip_prefix("//") {
            exchange.form_only |= comment.trim_start().starts_with("speconly");
        } else if let Some(request) = line.strip_prefix(">> ") {
            asked = Some(request.to_owned());
        } else if let Some(response) = line.strip_prefix("<< ") {
            let request = asked.take().ok_or("a response without a request")?;
            let response = serde_json::from_str(response).map_err(|error| error.to_string())?;
            exchange.rounds.push((request, response));
        } else {
            return Err(format!("unexpected line {line:?}"));
        }
    }
    match (asked, exchange.rounds.is_empty()) {
        (Some(_), _) => Err("a request without a response".to_owned()),
        (None, true) => Err("no request".to_owned()),
        (None, false) => Ok(exchange),
    }
}

impl Exchange {
    /// Sends each request with `send` and compares the responses. Returns the differences.
    pub fn replay<E: std::fmt::Display>(&self, mut send: impl FnMut(&str) -> Result<Value, E>) -> Vec<String> {
        let mut differences = Vec::new();
        for (index, (request, recorded)) in self.rounds.iter().enumerate() {
            let place = if self.rounds.len() > 1 { format!("{}: ", index + 1) } else { String::new() };
            match send(request) {
                Ok(response) => {
                    let comparison = Comparison { form_only: self.form_only };
                    let found = comparison.differences(recorded, &response);
                    differences.extend(found.into_iter().map(|difference| place.clone() + &difference));
                }
                Err(error) => differences.push(format!("{place}{error}")),
            }
        }
        differences
    }
}

/// How to compare responses.
#[derive(Clone, Copy)]
struct Comparison {
    form_only: bool,
}

impl Comparison {
    fn differences(self, recorded: &Value, response: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare("", recorded, response, &mut found);
        found
    }

    fn compare(self, path: &str, recorded: &Value, response: &Value, found: &mut Vec<String>) {
        match (recorded, response) {
            (Value::Object(recorded), Value::Object(response)) => self.compare_objects(path, recorded, response, found),
            (Value::Array(recorded), Value::Array(response)) => self.compare_arrays(path, recorded, response, found),
            _ if self.same(recorded, response) => {}
            _ => found.push(format!("{path}: {}, recorded is {}", short(response), short(recorded))),
        }
    }

    fn compare_objects(
        self,
        path: &str,
        recorded: &Map<String, Value>,
        response: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        // Keys that are addresses or numbers count as values.
        let is_value = |name: &String| name.starts_with("0x") || is_decimal(name);
        if self.form_only && recorded.keys().chain(response.keys()).any(is_value) {
            let models: Vec<_> = recorded.values().collect();
            for (name, value) in response {
                self.compare_to_any(&format!("{path}.{name}"), &models, value, found);
            }
            return;
        }
        let is_error = recorded.contains_key("code") && recorded.contains_key("message");
        for (name, recorded) in recorded {
            let path = format!("{path}.{name}");
            match response.get(name) {
                Some(response) if is_error && name == "message" => {
                    if !response.is_string() {
                        found.push(format!("{path}: no text"));
                    }
                }
                Some(response) => self.compare(&path, recorded, response, found),
                None => found.push(format!("{path}: missing")),
            }
        }
        // A structure may have more fields than one example shows.
        if !self.form_only {
            let further = response.keys().filter(|name| !recorded.contains_key(*name));
            found.extend(further.map(|name| format!("{path}.{name}: not recorded")));
        }
    }

    fn compare_arrays(self, path: &str, recorded: &[Value], response: &[Value], found: &mut Vec<String>) {
        if self.form_only {
            let models: Vec<_> = recorded.iter().collect();
            for (index, value) in response.iter().enumerate() {
                self.compare_to_any(&format!("{path}[{index}]"), &models, value, found);
            }
            return;
        }
        if recorded.len() != response.len() {
            found.push(format!("{path}: {} elements, recorded are {}", response.len(), recorded.len()));
        }
        for (index, (recorded, response)) in recorded.iter().zip(response).enumerate() {
            self.compare(&format!("{path}[{index}]"), recorded, response, found);
        }
    }

    /// Compares with any matching element: the elements of a list may differ in structure, such as transactions of two
    /// types.
    fn compare_to_any(self, path: &str, models: &[&Value], response: &Value, found: &mut Vec<String>) {
        let differences = models.iter().map(|model| {
            let mut found = Vec::new();
            self.compare(path, model, response, &mut found);
            found
        });
        found.extend(differences.min_by_key(Vec::len).unwrap_or_default());
    }

    fn same(self, recorded: &Value, response: &Value) -> bool {
        match (recorded, response) {
            (Value::String(recorded), Value::String(response)) if self.form_only => form(recorded) == form(response),
            (Value::Number(_), Value::Number(_)) if self.form_only => true,
            (Value::Bool(_), Value::Bool(_)) if self.form_only => true,
            _ => recorded == response,
        }
    }
}

/// Classifies a string: its prefix, and its length if that is the length of a word or an address.
fn form(text: &str) -> (bool, Option<usize>) {
    let prefixed = text.starts_with("0x");
    (prefixed, Some(text.len()).filter(|length| prefixed && matches!(length, 42 | 66)))
}

fn is_decimal(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit())
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_are_read() {
        let text =
            "// about\n// speconly: the form counts\n>> {\"id\":1}\n<< {\"id\":1,\"result\":\"0x1\"}\n\n>> 2\n<< []\n";
        let exchange = read(Path::new("eth_x/y.io"), text).unwrap();
        assert_eq!((exchange.name.as_str(), exchange.form_only, exchange.rounds.len()), ("eth_x/y", true, 2));
        for text in ["", "// a\n", ">> 1\n", "<< 1\n", ">> 1\n<< {\n", "1\n"] {
            assert!(read(Path::new("x.io"), text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_differs() {
        let error = json!({"error": {"code": 3, "message": "no", "data": "0x01"}});
        // Recorded, received, differences of values, differences of structure.
        let cases = [
            (json!({"a": "0x1"}), json!({"a": "0x1"}), 0, 0),
            (json!({"a": "0x1"}), json!({"a": "0x2"}), 1, 0),
            (json!({"a": "0x1"}), json!({"a": "1"}), 1, 1),
            (json!({"a": "0x1"}), json!({"a": 1}), 1, 1),
            (json!({"a": "0x1"}), json!({}), 1, 1),
            (json!({}), json!({"a": 1}), 1, 0),
            (json!([1, 2]), json!([1]), 1, 0),
            (json!([1, 2]), json!([1, "2"]), 1, 1),
            (json!({"0x1": {"b": 1}}), json!({"0x2": {"b": 2}}), 2, 0),
            (json!({"0x1": {"b": 1}}), json!({"0x2": {"c": 2}}), 2, 1),
            (error.clone(), json!({"error": {"code": 3, "message": "other", "data": "0x01"}}), 0, 0),
            (error.clone(), json!({"error": {"code": 4, "message": "no", "data": "0x01"}}), 1, 0),
            (error, json!({"error": {"code": 3, "message": "no"}}), 1, 1),
        ];
        for (recorded, response, values, forms) in cases {
            let count = |form_only| Comparison { form_only }.differences(&recorded, &response).len();
            assert_eq!((count(false), count(true)), (values, forms), "{recorded} {response}");
        }
    }
}
