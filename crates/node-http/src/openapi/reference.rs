//! References to components.

use serde_json::{Value, json};

/// Returns a reference to the component `name` of this kind.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}
