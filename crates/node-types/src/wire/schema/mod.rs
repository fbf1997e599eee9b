//! JSON Schemas (2020-12) of the wire types, one document per name.
//!
//! The structures are derived from the types with utoipa. This module adds what the derive macro cannot know: how
//! wrapper types are encoded as text, that objects are closed, and where `$schema` may appear.

mod codec;
mod examples;
mod parameter;

use super::*;
pub(super) use codec::FilterIdText;
use codec::codec;
pub use parameter::{ParameterSchema, empty_or, parameters, text, without_default};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
pub use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Properties of responses that may be absent.
const OPTIONAL_IN_RESPONSES: [&str; 3] = ["Reason", "errors", "value"];

/// The documents that other documents refer to by name. References to all other types are replaced by their schemas.
const DOCUMENTS: [&str; 13] = [
    "AccountOverride",
    "StorageSlots",
    "Params_Transaction",
    "EstimateGasObject",
    "FilterObject",
    "Response_Log",
    "Response_Block",
    "Response_BlockTransaction",
    "Response_Transaction",
    "Response_TransactionReceipt",
    "Response_StorageEntry",
    "Response_Withdrawal",
    "ErrorDetail",
];

/// Examples for properties of requests, by document, where the example of the type would be refused.
const EXAMPLES: [(&str, &str, &str); 1] = [("Input_sendRawTransaction", "Data", RAW_TRANSACTION)];

/// A signed transaction of the first account of the development mnemonic.
const RAW_TRANSACTION: &str = "0xf8650984773594008252089470997970c51812dc3a010c7d01b50e0d17dc79c8018082f4f6a06572d8a8d798f1280c311e5b435959c7db3ff78e84a20b8ba15a869cd45097dba04e03ef02dc75f6382282acbda863caf0f7ca456b07414698da6fcd863d66855e";

/// The property with the URL of an object's schema. Every response has it, and requests may have it.
const SCHEMA: &str = "$schema";

/// The dialect of the documents.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The forms of values that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The form in which responses contain them.
    Response,
    /// Every form that requests may contain: a number as a string or as an integer, absence as null or the empty
    /// string.
    Request,
    /// The form in which the interface description shows requests: strings, and alternatives only where they differ
    /// in meaning. Generated clients have plain types for these.
    PlainRequest,
}

/// A set of schema documents by name. References between them are relative: `<Name>.json`.
#[derive(Clone, Debug)]
pub struct Documents {
    documents: BTreeMap<String, Value>,
    requests: Form,
}

impl Documents {
    /// Creates the documents of the types that requests and responses contain, and of problems. Requests are
    /// described in the form `requests`.
    pub fn shared(requests: Form) -> Self {
        let mut documents = Self { documents: BTreeMap::new(), requests };
        documents.request::<TransactionCall>("Params_Transaction");
        documents.alias("Params_Transaction", "Data", "Input");
        documents.request::<EstimateGasObject>("EstimateGasObject");
        documents.request::<AccountOverride>("AccountOverride");
        documents.request::<StorageSlots>("StorageSlots");
        documents.request::<FilterObject>("FilterObject");
        // The only input that has a document although it is not a body.
        documents.request::<GetBlockByNumberInput>("Input_getBlockByNumber");

        documents.part::<Log>("Response_Log", Form::Response);
        documents.part::<Block>("Response_Block", Form::Response);
        documents.part::<Transaction>("Response_Transaction", Form::Response);
        documents.part::<Transaction>("Response_BlockTransaction", Form::Response);
        if let Some(document) = documents.documents.get_mut("Response_BlockTransaction") {
            document["description"] = "A transaction of a block: with all properties, or only with its hash.".into();
            document["required"] = json!(["Hash"]);
        }
        documents.part::<TransactionReceipt>("Response_TransactionReceipt", Form::Response);
        documents.part::<StorageEntry>("Response_StorageEntry", Form::Response);
        documents.part::<Withdrawal>("Response_Withdrawal", Form::Response);
        if requests == Form::Request {
            // The name that served documents have had for it.
            let list = json!({
                "$schema": DIALECT,
                "title": "Response_Withdrawals",
                "description": "The withdrawals of a block.",
                "type": "array",
                "items": { "$ref": "Response_Withdrawal.json" }
            });
            documents.documents.insert("Response_Withdrawals".to_owned(), list);
        }
        documents.response::<Problem>("ErrorModel");
        documents.part::<ErrorDetail>("ErrorDetail", Form::Response);
        documents
    }

    /// Returns the documents by name.
    pub fn into_map(self) -> BTreeMap<String, Value> {
        self.documents
    }

    /// Adds the document of an operation's input.
    pub fn request<T: ToSchema>(&mut self, name: &str) {
        self.part::<T>(name, self.requests);
    }

    /// Adds the document of an operation's output, which has the property `$schema`.
    pub fn response<T: ToSchema>(&mut self, name: &str) {
        self.part::<T>(name, Form::Response);
        self.has_schema(name);
    }

    /// Adds the property `$schema` to a document.
    fn has_schema(&mut self, name: &str) {
        let Some(document) = self.documents.get_mut(name) else { return };
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
        let properties = self.documents.get_mut(name).and_then(|document| document.get_mut("properties"));
        if let Some(Value::Object(properties)) = properties
            && let Some(schema) = properties.get(property).cloned()
        {
            properties.insert(alias.to_owned(), schema);
        }
    }

    /// Adds the document of a type that bodies contain.
    fn part<T: ToSchema>(&mut self, name: &str, form: Form) {
        let mut inner = Vec::new();
        T::schemas(&mut inner);
        self.insert(name, form, &T::name(), T::schema, inner);
    }

    /// Adds the document of the type `of`, whose schema refers to those of `inner`. Has no type parameter, so that it
    /// is compiled once and not once per operation.
    fn insert(
        &mut self,
        name: &str,
        form: Form,
        of: &str,
        schema: fn() -> RefOr<Schema>,
        inner: Vec<(String, RefOr<Schema>)>,
    ) {
        let inner = inner.into_iter().map(|(name, schema)| (name, to_value(&schema))).collect();
        let schema = codec(of, form).unwrap_or_else(|| to_value(&schema()));
        let mut document = Resolver { inner, form }.resolve(schema);
        examples::fit(&mut document, "");
        for (_, property, example) in EXAMPLES.iter().filter(|(of, ..)| *of == name) {
            document["properties"][*property]["examples"] = json!([example]);
        }
        if let Value::Object(document) = &mut document {
            document.insert(SCHEMA.to_owned(), DIALECT.into());
            document.insert("title".to_owned(), name.into());
        }
        self.documents.insert(name.to_owned(), document);
    }
}

/// Returns the names of the properties of an object for which the empty string means absence: those that are not
/// required, or may be null.
fn emptiable(object: &Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(properties)) = object.get("properties") else { return Vec::new() };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_null = |schema: &Value| *schema == json!({ "type": "null" });
    let may_be_null = |schema: &Value| schema["oneOf"].as_array().is_some_and(|choices| choices.iter().any(is_null));
    let emptiable = |(name, schema): &(&String, &Value)| !required.contains(&json!(name)) || may_be_null(schema);
    properties.iter().filter(emptiable).map(|(name, _)| name.clone()).collect()
}

/// Returns a pattern that also matches the empty text.
fn or_empty(pattern: &str) -> String {
    let inner = pattern.trim_start_matches('^').trim_end_matches('$');
    let mut open = 0_usize;
    let mut depths = inner.chars().map(|character| {
        match character {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open
    });
    // The first parenthesis is closed by the last character.
    let is_group = inner.starts_with('(') && depths.position(|depth| depth == 0) == Some(inner.chars().count() - 1);
    if is_group { format!("^{inner}?$") } else { format!("^({inner})?$") }
}

/// Returns the schema of the empty string: a pattern, because generated clients have no name for such a constant.
fn empty() -> Value {
    json!({ "type": "string", "maxLength": 0 })
}

fn to_value(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

/// Completes the schemas that the derive macro generates.
struct Resolver {
    inner: BTreeMap<String, Value>,
    form: Form,
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
            // Documents of responses do not describe the forms that are allowed only in requests.
            let foreign = self.form != Form::Response && name.starts_with("Response_");
            if DOCUMENTS.contains(&name.as_str()) && !foreign {
                object.insert("$ref".to_owned(), format!("{name}.json").into());
                return object.into();
            }
            if let Some(Value::Object(mut inner)) = codec(&name, self.form).or_else(|| self.inner.get(&name).cloned()) {
                object.remove("$ref");
                // The description of the field takes precedence over that of the type.
                inner.append(&mut object);
                return self.resolve_object(inner);
            }
        }
        if self.form != Form::Response
            && object.get("format").is_some_and(|format| format == "int64")
            && let Some(Value::Object(mut quantity)) = codec("Quantity64", self.form)
        {
            quantity.extend(object.remove_entry("description"));
            return quantity.into();
        }
        if object.contains_key("properties") {
            self.close(&mut object);
        }
        let emptiable = if self.form == Form::PlainRequest { emptiable(&object) } else { Vec::new() };
        let object = object.into_iter().map(|(key, value)| (key, self.resolve(value))).collect();
        let mut object = self.simplify(object);
        for name in emptiable {
            if let Some(Value::String(pattern)) = object["properties"][&name].get_mut("pattern")
                && !pattern.ends_with("?$")
            {
                *pattern = or_empty(pattern);
            }
        }
        if self.form == Form::PlainRequest
            && let Some(Value::Array(kinds)) = object.get("type")
        {
            let kind = kinds.iter().find(|kind| *kind != "null").cloned();
            object.insert("type".to_owned(), kind.into());
        }
        object.into()
    }

    /// Replaces a choice between null and one type, as the derive describes an `Option`: in plain requests by the type,
    /// and in responses by one schema of two types.
    fn simplify(&self, object: Map<String, Value>) -> Map<String, Value> {
        let null = json!({ "type": "null" });
        let Some([first, second]) = object.get("oneOf").and_then(Value::as_array).map(Vec::as_slice) else {
            return object;
        };
        let Some(Value::Object(mut schema)) = [(first, second), (second, first)]
            .into_iter()
            .find_map(|(one, other)| (*one == null).then(|| other.clone()))
        else {
            return object;
        };
        match (self.form, schema.get("type").cloned()) {
            (Form::PlainRequest, _) => schema,
            (Form::Response, Some(Value::String(kind))) => {
                schema.insert("type".to_owned(), json!([kind, "null"]));
                schema
            }
            _ => object,
        }
    }

    /// Closes an object. In responses every property is present; in requests, null and the empty string mean absence,
    /// even for properties that are required but may be empty.
    fn close(&self, object: &mut Map<String, Value>) {
        object.entry("additionalProperties").or_insert(false.into());
        let required = object.get("required").cloned().unwrap_or_else(|| json!([]));
        let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
        let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
        match self.form {
            Form::Response => {
                let required: Vec<_> =
                    properties.keys().filter(|key| !OPTIONAL_IN_RESPONSES.contains(&key.as_str())).cloned().collect();
                object.insert("required".to_owned(), required.into());
            }
            Form::PlainRequest => (),
            Form::Request => {
                for (name, property) in properties.iter_mut() {
                    let may_be_empty = property.get("oneOf").is_some() || property["type"] == "array";
                    if !is_required(name) || may_be_empty {
                        let schema = property.take();
                        *property = json!({ "anyOf": [{ "type": "null" }, empty(), schema] });
                    }
                }
                properties.insert(SCHEMA.to_owned(), json!({ "description": "Ignored." }));
            }
        }
    }
}
