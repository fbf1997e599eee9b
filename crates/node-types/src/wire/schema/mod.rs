//! JSON Schemas (2020-12) of the wire types, one document per name.
//!
//! The structures come from the types themselves, by utoipa's derive. This module adds what the derive cannot know: how the
//! codecs look as text, that objects are closed, and where `$schema` may appear.

mod codec;
mod text;

use super::*;
use codec::codec;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
pub use text::TextParameter;
pub use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Properties of responses that may be absent.
const OPTIONAL_IN_RESPONSES: [&str; 3] = ["Reason", "errors", "value"];

/// The documents that others refer to by name. References to other types are replaced by their schemas.
const DOCUMENTS: [&str; 12] = [
    "AccountOverride",
    "StorageSlots",
    "Params_Transaction",
    "EstimateGasObject",
    "FilterObject",
    "Response_Log",
    "Response_Block",
    "Response_Transaction",
    "Response_TransactionReceipt",
    "Response_StorageEntry",
    "Response_Withdrawals",
    "ErrorDetail",
];

/// The property with the address of an object's schema. Every response has it, and requests may.
const SCHEMA: &str = "$schema";

/// Requests may be written in more forms than responses.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Request,
    Response,
}

/// A set of schema documents by name. References between them are relative: `<Name>.json`.
#[derive(Clone, Debug)]
pub struct Documents(BTreeMap<String, Value>);

impl Documents {
    /// The documents of the types that requests and responses contain, and of problems.
    pub fn shared() -> Self {
        let mut documents = Self(BTreeMap::new());
        documents.part::<TransactionCall>("Params_Transaction", Direction::Request);
        documents.alias("Params_Transaction", "Data", "Input");
        documents.part::<EstimateGasObject>("EstimateGasObject", Direction::Request);
        documents.part::<AccountOverride>("AccountOverride", Direction::Request);
        documents.part::<StorageSlots>("StorageSlots", Direction::Request);
        documents.part::<FilterObject>("FilterObject", Direction::Request);
        // The only input without a body that has a document.
        documents.request::<GetBlockByNumberInput>("Input_getBlockByNumber");

        documents.part::<Log>("Response_Log", Direction::Response);
        documents.part::<Block>("Response_Block", Direction::Response);
        documents.part::<Transaction>("Response_Transaction", Direction::Response);
        documents.part::<TransactionReceipt>("Response_TransactionReceipt", Direction::Response);
        documents.part::<StorageEntry>("Response_StorageEntry", Direction::Response);
        documents.part::<Withdrawal>("Response_Withdrawals", Direction::Response);
        documents.response::<Problem>("ErrorModel");
        documents.part::<ErrorDetail>("ErrorDetail", Direction::Response);
        documents
    }

    /// The documents by name.
    pub fn into_map(self) -> BTreeMap<String, Value> {
        self.0
    }

    /// Adds the document of an operation's input.
    pub fn request<T: ToSchema>(&mut self, name: &str) {
        self.part::<T>(name, Direction::Request);
    }

    /// Adds the document of an operation's output, which has the property `$schema`.
    pub fn response<T: ToSchema>(&mut self, name: &str) {
        self.part::<T>(name, Direction::Response);
        self.has_schema(name);
    }

    /// Adds the property `$schema` to a document.
    fn has_schema(&mut self, name: &str) {
        let Some(document) = self.0.get_mut(name) else { return };
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            let text = "URI of this schema.";
            properties.insert(SCHEMA.to_owned(), json!({ "type": "string", "format": "uri", "description": text }));
        }
        if let Some(Value::Array(required)) = document.get_mut("required") {
            required.insert(0, SCHEMA.into());
        }
    }

    /// Adds another name of a property.
    fn alias(&mut self, name: &str, property: &str, alias: &str) {
        let properties = self.0.get_mut(name).and_then(|document| document.get_mut("properties"));
        if let Some(Value::Object(properties)) = properties
            && let Some(schema) = properties.get(property).cloned()
        {
            properties.insert(alias.to_owned(), schema);
        }
    }

    /// Adds the document of a type that bodies contain.
    fn part<T: ToSchema>(&mut self, name: &str, direction: Direction) {
        let mut inner = Vec::new();
        T::schemas(&mut inner);
        self.insert(name, direction, &T::name(), T::schema, inner);
    }

    /// Adds the document of the type `of`, whose schema refers to those of `inner`. Without a type parameter, so that it is compiled
    /// once and not once per operation.
    fn insert(
        &mut self,
        name: &str,
        direction: Direction,
        of: &str,
        schema: fn() -> RefOr<Schema>,
        inner: Vec<(String, RefOr<Schema>)>,
    ) {
        let inner = inner.into_iter().map(|(name, schema)| (name, to_value(&schema))).collect();
        let schema = codec(of, direction).unwrap_or_else(|| to_value(&schema()));
        let mut document = Resolver { inner, direction }.resolve(schema);
        if let Value::Object(document) = &mut document {
            document.insert(SCHEMA.to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
            document.insert("title".to_owned(), name.into());
        }
        self.0.insert(name.to_owned(), document);
    }
}

/// The empty string. Generated clients have no name for a constant among other strings.
fn empty() -> Value {
    json!({ "type": "string", "maxLength": 0 })
}

fn to_value(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

/// Completes the schemas of the derive.
struct Resolver {
    inner: BTreeMap<String, Value>,
    direction: Direction,
}

impl Resolver {
    /// Terminates because the types are not recursive.
    fn resolve(&self, schema: Value) -> Value {
        match schema {
            Value::Array(items) => items.into_iter().map(|item| self.resolve(item)).collect(),
            Value::Object(object) => self.resolve_object(object),
            other => other,
        }
    }

    fn resolve_object(&self, mut object: Map<String, Value>) -> Value {
        let target = object.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        if let Some(name) = target.map(str::to_owned) {
            // Documents of responses do not describe the forms that requests may have.
            let foreign = self.direction == Direction::Request && name.starts_with("Response_");
            if DOCUMENTS.contains(&name.as_str()) && !foreign {
                object.insert("$ref".to_owned(), format!("{name}.json").into());
                return object.into();
            }
            if let Some(Value::Object(mut inner)) =
                codec(&name, self.direction).or_else(|| self.inner.get(&name).cloned())
            {
                object.remove("$ref");
                // The description of the field takes precedence over that of the type.
                inner.append(&mut object);
                return self.resolve_object(inner);
            }
        }
        if self.direction == Direction::Request
            && object.get("format").is_some_and(|format| format == "int64")
            && let Some(Value::Object(mut quantity)) = codec("Quantity64", self.direction)
        {
            quantity.extend(object.remove_entry("description"));
            return quantity.into();
        }
        if object.contains_key("properties") {
            self.close(&mut object);
        }
        Value::Object(object.into_iter().map(|(key, value)| (key, self.resolve(value))).collect())
    }

    /// Closes an object. In responses every property is present; in requests, null and the empty string mean absence.
    fn close(&self, object: &mut Map<String, Value>) {
        object.insert("additionalProperties".to_owned(), false.into());
        let required = object.get("required").cloned().unwrap_or_else(|| json!([]));
        let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
        match self.direction {
            Direction::Response => {
                let required: Vec<_> =
                    properties.keys().filter(|key| !OPTIONAL_IN_RESPONSES.contains(&key.as_str())).cloned().collect();
                object.insert("required".to_owned(), required.into());
            }
            Direction::Request => {
                for (name, property) in properties.iter_mut() {
                    let is_required = required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
                    if !is_required {
                        let schema = property.take();
                        *property = json!({ "anyOf": [{ "type": "null" }, empty(), schema] });
                    } else if let Some(Value::Array(alternatives)) = property.get_mut("oneOf") {
                        // A property that is required but may match anything: by the empty string, not by null.
                        alternatives.retain(|alternative| alternative["type"] != "null");
                        alternatives.push(empty());
                    } else if property.get("type").is_some_and(|kind| kind == "array") {
                        let schema = property.take();
                        *property = json!({ "anyOf": [empty(), schema] });
                    }
                }
                properties.insert(SCHEMA.to_owned(), json!({ "description": "Ignored." }));
            }
        }
    }
}
