//! An example request and response of each operation, recorded on a development chain. A test repeats them.

use serde_json::{Map, Value};
use std::sync::LazyLock;

/// By operation: `parameters` by name, `request` and `answer`.
static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("a test reads the file"));

/// Returns the example of an operation, or null if it has none.
pub(super) fn of(operation: &str) -> &'static Value {
    EXAMPLES.get(operation).unwrap_or(&Value::Null)
}
