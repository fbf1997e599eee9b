//! The schemas of all operations.

use super::{operations, schemas};
use node_types::wire::schema::Form;
use serde_json::{Value, json};

#[test]
fn references_resolve_and_are_relative() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("$ref").and_then(Value::as_str));
                object.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => (),
        }
    }

    let documents = schemas(&operations(true), Form::Request);
    for (name, document) in &documents {
        let mut found = Vec::new();
        references(document, &mut found);
        for reference in found {
            let target = reference.strip_suffix(".json");
            assert!(target.is_some_and(|target| documents.contains_key(target)), "{name}: {reference}");
        }
        assert_eq!(document["title"], **name);
        if !matches!(&name[..], "EstimateGasObject" | "StorageSlots" | "Response_Withdrawals") {
            assert_eq!(document["additionalProperties"], false, "{name}");
        }
        let names_its_schema = document["required"].as_array().is_some_and(|names| names.contains(&json!("$schema")));
        assert_eq!(names_its_schema, name.starts_with("Output_") || name == "ErrorModel", "{name}");
    }
}

/// Readers of the documents know the names of properties, but not those of fields.
#[test]
fn descriptions_refer_to_properties() {
    fn descriptions<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get("description").and_then(Value::as_str));
                object.values().for_each(|value| descriptions(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| descriptions(item, found)),
            _ => (),
        }
    }

    for (name, document) in &schemas(&operations(true), Form::Request) {
        let mut found = Vec::new();
        descriptions(document, &mut found);
        for text in found {
            let quoted = text.split('`').skip(1).step_by(2);
            // Unlike locations such as `body.Topics[1]`, and `about:blank`.
            let is_field = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            let fields: Vec<_> = quoted.filter(is_field).collect();
            assert!(fields.is_empty(), "{name}: {fields:?} in {text:?}");
        }
    }
}
