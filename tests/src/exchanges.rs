//! Recorded exchanges of JSON-RPC, replayed and compared.
//!
//! A file holds lines of comment that begin with `//`, and in turn requests (`>> `) and the answers recorded (`<< `). Values
//! are to be equal, and codes of errors; messages are free. In a file that says `speconly` only the form of the answer counts.

use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The requests and answers of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Folder and name of the file, without its ending.
    pub name: String,
    /// Whether only the form of the answers counts.
    pub form_only: bool,
    /// Each request as it is to be sent, with the answer recorded.
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
        /// Why.
        source: io::Error,
    },
    /// It does not have the form described above.
    #[error("{path}: {reason}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Reads all files of a folder of folders, in the order of their names.
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
        } else if let Some(answer) = line.strip_prefix("<< ") {
            let request = asked.take().ok_or("an answer without a request")?;
            let answer = serde_json::from_str(answer).map_err(|error| error.to_string())?;
            exchange.rounds.push((request, answer));
        } else {
            return Err(format!("unexpected line {line:?}"));
        }
    }
    match (asked, exchange.rounds.is_empty()) {
        (Some(_), _) => Err("a request without an answer".to_owned()),
        (None, true) => Err("no request".to_owned()),
        (None, false) => Ok(exchange),
    }
}

impl Exchange {
    /// Sends each request by `send` and compares the answers. Empty where they are as recorded.
    pub fn replay<E: std::fmt::Display>(&self, mut send: impl FnMut(&str) -> Result<Value, E>) -> Vec<String> {
        let mut differences = Vec::new();
        for (index, (request, recorded)) in self.rounds.iter().enumerate() {
            let place = if self.rounds.len() > 1 { format!("{}: ", index + 1) } else { String::new() };
            match send(request) {
                Ok(answer) => {
                    let comparison = Comparison { form_only: self.form_only };
                    let found = comparison.differences(recorded, &answer);
                    differences.extend(found.into_iter().map(|difference| place.clone() + &difference));
                }
                Err(error) => differences.push(format!("{place}{error}")),
            }
        }
        differences
    }
}

/// How answers are compared.
#[derive(Clone, Copy)]
struct Comparison {
    form_only: bool,
}

impl Comparison {
    fn differences(self, recorded: &Value, answer: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.compare("", recorded, answer, &mut found);
        found
    }

    fn compare(self, path: &str, recorded: &Value, answer: &Value, found: &mut Vec<String>) {
        match (recorded, answer) {
            (Value::Object(recorded), Value::Object(answer)) => self.compare_objects(path, recorded, answer, found),
            (Value::Array(recorded), Value::Array(answer)) => self.compare_arrays(path, recorded, answer, found),
            _ if self.same(recorded, answer) => {}
            _ => found.push(format!("{path}: {}, recorded is {}", short(answer), short(recorded))),
        }
    }

    fn compare_objects(
        self,
        path: &str,
        recorded: &Map<String, Value>,
        answer: &Map<String, Value>,
        found: &mut Vec<String>,
    ) {
        // Names that are addresses or numbers are values themselves.
        let is_value = |name: &String| name.starts_with("0x") || is_decimal(name);
        if self.form_only && recorded.keys().chain(answer.keys()).any(is_value) {
            let models: Vec<_> = recorded.values().collect();
            for (name, value) in answer {
                self.compare_to_any(&format!("{path}.{name}"), &models, value, found);
            }
            return;
        }
        let is_error = recorded.contains_key("code") && recorded.contains_key("message");
        for (name, recorded) in recorded {
            let path = format!("{path}.{name}");
            match answer.get(name) {
                Some(answer) if is_error && name == "message" => {
                    if !answer.is_string() {
                        found.push(format!("{path}: no text"));
                    }
                }
                Some(answer) => self.compare(&path, recorded, answer, found),
                None => found.push(format!("{path}: missing")),
            }
        }
        // A form may have more than one example shows.
        if !self.form_only {
            let further = answer.keys().filter(|name| !recorded.contains_key(*name));
            found.extend(further.map(|name| format!("{path}.{name}: not recorded")));
        }
    }

    fn compare_arrays(self, path: &str, recorded: &[Value], answer: &[Value], found: &mut Vec<String>) {
        if self.form_only {
            let models: Vec<_> = recorded.iter().collect();
            for (index, value) in answer.iter().enumerate() {
                self.compare_to_any(&format!("{path}[{index}]"), &models, value, found);
            }
            return;
        }
        if recorded.len() != answer.len() {
            found.push(format!("{path}: {} elements, recorded are {}", answer.len(), recorded.len()));
        }
        for (index, (recorded, answer)) in recorded.iter().zip(answer).enumerate() {
            self.compare(&format!("{path}[{index}]"), recorded, answer, found);
        }
    }

    /// Compares with whichever fits: what stands together may differ in form, as do transactions of two types.
    fn compare_to_any(self, path: &str, models: &[&Value], answer: &Value, found: &mut Vec<String>) {
        let differences = models.iter().map(|model| {
            let mut found = Vec::new();
            self.compare(path, model, answer, &mut found);
            found
        });
        found.extend(differences.min_by_key(Vec::len).unwrap_or_default());
    }

    fn same(self, recorded: &Value, answer: &Value) -> bool {
        match (recorded, answer) {
            (Value::String(recorded), Value::String(answer)) if self.form_only => form(recorded) == form(answer),
            (Value::Number(_), Value::Number(_)) if self.form_only => true,
            (Value::Bool(_), Value::Bool(_)) if self.form_only => true,
            _ => recorded == answer,
        }
    }
}

/// What kind of text it is: its prefix, and its length where that is one of words and addresses.
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
        // Recorded, answered, differences of values, differences of form.
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
        for (recorded, answer, values, forms) in cases {
            let count = |form_only| Comparison { form_only }.differences(&recorded, &answer).len();
            assert_eq!((count(false), count(true)), (values, forms), "{recorded} {answer}");
        }
    }
}
