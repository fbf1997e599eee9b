//! Schemas of parameters in a path, a query or a header, which are plain text.

use super::codec::codec;
use super::{Form, Resolver, ToSchema, examples, or_empty, to_value};
use crate::wire::DecodeParameters;
use serde::Serialize;
use serde_json::{Value, json};

/// The description of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSchema {
    /// Its name in requests.
    pub name: &'static str,
    /// The JSON Schema of its text, with the default if the parameter may be absent.
    pub schema: Value,
    /// What it means.
    pub description: String,
    /// Whether it must be present.
    pub required: bool,
}

/// Returns the parameters of a request, in the order of its fields.
pub fn parameters<T: DecodeParameters + Default + Serialize + ToSchema>() -> Vec<ParameterSchema> {
    let mut inner = Vec::new();
    T::schemas(&mut inner);
    let inner = inner.into_iter().map(|(name, schema)| (name, to_value(&schema))).collect();
    let resolver = Resolver { inner, form: Form::PlainRequest };
    let mut object = to_value(&T::schema());
    let defaults = serde_json::to_value(T::default()).unwrap_or_default();
    let parameter = |name: &&'static str| {
        let mut schema = resolver.resolve(object["properties"][*name].take());
        examples::fit(&mut schema, name);
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let required = object["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        if !required {
            schema["default"] = defaults[*name].clone();
        }
        // The line breaks are those of the comment in the source.
        let description = description.as_ref().and_then(Value::as_str).unwrap_or_default().replace('\n', " ");
        ParameterSchema { name, schema, description, required }
    };
    T::NAMES.iter().map(parameter).collect()
}

/// Returns the schema of a type whose values are text.
pub fn text<T: ToSchema>() -> Value {
    let mut schema = codec(&T::name(), Form::PlainRequest).unwrap_or_default();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
    }
    schema
}

/// Returns a schema without the default value.
pub fn without_default(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("default");
    }
    schema
}

/// Returns a schema that also accepts the empty text, which means absence in a query.
pub fn empty_or(mut schema: Value) -> Value {
    if let Some(pattern) = schema["pattern"].as_str() {
        schema["pattern"] = or_empty(pattern).into();
    }
    schema
}
