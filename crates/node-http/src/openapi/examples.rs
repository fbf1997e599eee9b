//! A request and an answer of each operation, as they were on a development chain. A test asks for all of them again.

use serde_json::{Map, Value};
use std::sync::LazyLock;

/// By operation: `parameters` by name, `request` and `answer`.
static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("a test reads the file"));

/// The example of an operation; null where there is none.
pub(super) fn of(operation: &str) -> &'static Value {
    EXAMPLES.get(operation).unwrap_or(&Value::Null)
}
