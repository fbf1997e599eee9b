//! The OpenAPI 3.1 description of the whole interface.
//!
//! It is derived from the declarations of operations in `routes` and the wire types (`node_types::wire::schema`).
//! Examples were recorded on a development chain.

mod headers;
mod operation;
pub(crate) mod problems;

use crate::config::HttpConfig;
use crate::routes::operation::Method;
use crate::routes::{self, DEVELOPMENT, TAGS};
use crate::service::InterfaceDocuments;
use crate::url::BasePath;
use node_types::wire::schema::Form;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The general part of the description.
const DESCRIPTION: &str = "\
An Ethereum execution node: blocks, transactions, logs, state with proofs, calls, fees, and signed transactions.

**Numbers** in responses are decimal strings. Requests may contain decimal strings, `0x` hex strings and JSON integers. **Data** is `0x` \
and hex digits, in lower case in responses. In requests, `null` and `\"\"` mean that a field is absent, and unknown fields are rejected.

**Responses** specify their JSON Schema in `$schema`. **Problems** (RFC 9457) have the media type `application/problem+json`; `errors` lists \
every fault of the request with its location.

**Limits.** These apply to every request: a body of at most 5 MiB (`max-body`), received within 10 s; path, query and headers of at \
most 16 KiB within 10 s; work of at most 5 s (`call-timeout`). All clients together may have 4,096 connections (`max-connections`) and \
16,384 requests (`max-requests`) at a time; the operator may limit the requests per second of each client (`rate-limit`). Further limits \
are listed with the operations. All numbers are defaults; names in parentheses are options that change them, and a response that \
reports an exceeded limit mentions its option.

Paths also work without the slash at the end, and with `node_` before the name of the operation. Parameters at the end of a path whose \
description says what applies if they are absent may be left out.";

/// Returns the OpenAPI document of a server whose paths start with `base`. It includes the operations that control a
/// chain if `producing` is set, that is, if the node produces blocks.
pub fn openapi(base: &BasePath, producing: bool) -> Value {
    let operations = routes::operations(producing);
    let schemas = routes::schemas(&operations, Form::PlainRequest);
    let mut paths = Map::new();
    for operation in &operations {
        let described = |method: &Method| (operation::key(*method).to_owned(), operation::describe(operation, *method));
        paths
            .insert(operation.path.to_owned(), operation.methods().iter().map(described).collect::<Map<_, _>>().into());
    }
    let server = if base.as_str().is_empty() { "/" } else { base.as_str() };
    let tags = TAGS.iter().filter(|(name, _)| producing || *name != DEVELOPMENT);
    let tags: Vec<_> = tags.map(|(name, description)| json!({ "name": name, "description": description })).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ethnode",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": server, "description": "This server." }],
        "security": [{}, { "bearer": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": components(schemas),
            "responses": problems::response_components(),
            "examples": problems::example_components(),
            "headers": headers::components(),
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "Required if the server was started with tokens (`token-file`).",
            } },
        },
    });
    // Served schemas and responses to which no operation refers.
    for (kind, name) in UNUSED {
        if let Some(components) = document["components"][kind].as_object_mut() {
            components.remove(name);
        }
    }
    document
}

/// The components to which nothing in the document refers.
const UNUSED: [(&str, &str); 4] = [
    ("schemas", "AccountOverride"),
    ("schemas", "Input_getBlockByNumber"),
    ("responses", "NotFound"),
    ("responses", "UnprocessableEntity"),
];

/// Returns all documents that describe the interface.
pub(crate) fn documents(config: &HttpConfig, producing: bool) -> InterfaceDocuments {
    let mut openapi = openapi(&config.listen.base_path, producing);
    if config.access.tokens.is_none() {
        remove_tokens(&mut openapi);
    }
    if let Some(url) = &config.listen.public_url {
        openapi["servers"][0]["url"] = url.with_base(&config.listen.base_path).into();
    }
    let schemas = routes::schemas(&routes::operations(producing), Form::Request);
    InterfaceDocuments { schemas, openapi_json: openapi.to_string().into() }
}

/// Removes what the document says about tokens. Otherwise pages would show a lock at each operation.
fn remove_tokens(document: &mut Value) {
    let remove = |object: &mut Value, name: &str| object.as_object_mut().and_then(|object| object.remove(name));
    remove(document, "security");
    remove(&mut document["components"], "securitySchemes");
    for (kind, name) in
        [("responses", "Unauthorized"), ("examples", problems::NO_TOKEN), ("headers", "WWW-Authenticate")]
    {
        remove(&mut document["components"][kind], name);
    }
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        remove(operation, "security");
        remove(&mut operation["responses"], "401");
    }
}

/// Returns the schema documents as components.
fn components(schemas: BTreeMap<String, Value>) -> Value {
    let component = |(name, mut schema): (String, Value)| {
        if let Value::Object(schema) = &mut schema {
            schema.remove("$schema");
        }
        point_to_components(&mut schema);
        (name, schema)
    };
    schemas.into_iter().map(component).collect::<Map<_, _>>().into()
}

/// Returns a reference to the component `name` of this kind.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Rewrites references between schema documents, `<Name>.json`, to references to components.
fn point_to_components(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(point_to_components),
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_suffix(".json"));
            if let Some(component) = target.map(|name| reference("schemas", name)) {
                object.extend(component.as_object().cloned().unwrap_or_default());
            }
            object.values_mut().for_each(point_to_components);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn document(producing: bool) -> Value {
        openapi(&BasePath::default(), producing)
    }

    /// Method, path and Operation Object of every operation.
    fn described(document: &Value) -> Vec<(String, String, Value)> {
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(|(method, operation)| (method.clone(), path.clone(), operation.clone()))
        });
        operations.collect()
    }

    #[test]
    fn every_operation_is_described_in_full() {
        let document = document(true);
        let mut ids = BTreeSet::new();
        let tags: Vec<_> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        for (method, path, operation) in described(&document) {
            let name = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].to_string()), "{name}: the id is taken");
            for text in ["summary", "description"] {
                assert!(operation[text].as_str().is_some_and(|text| !text.is_empty()), "{name}: {text}");
            }
            assert!(tags.contains(&&operation["tags"][0]), "{name}: the tag is not described");
            let responses = operation["responses"].as_object().unwrap();
            for status in ["200", "403", "429", "431", "500", "503"] {
                assert!(responses.contains_key(status), "{name}: {status}");
            }
            assert_eq!(operation.get("requestBody").is_some(), method == "post", "{name}");
            assert_eq!(responses.contains_key("401"), operation["security"].is_null(), "{name}");
            let named: BTreeSet<_> = path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            let in_path: BTreeSet<_> = in_path.map(|parameter| parameter["name"].as_str().unwrap()).collect();
            assert_eq!(named, in_path, "{name}");
            for parameter in &parameters {
                assert!(parameter["schema"]["type"].is_string(), "{name}: {parameter}");
                assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {parameter}");
            }
        }
    }

    #[test]
    fn references_resolve() {
        for producing in [true, false] {
            let document = document(producing);
            let mut open = vec![&document];
            while let Some(value) = open.pop() {
                match value {
                    Value::Array(items) => open.extend(items),
                    Value::Object(object) => {
                        open.extend(object.values());
                        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
                            let found = target.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                            assert!(found.is_some(), "{target} (producing: {producing})");
                        }
                        let operation = object.get("operationId").filter(|_| !object.contains_key("responses"));
                        if let Some(id) = operation {
                            let known =
                                described(&document).iter().any(|(_, _, operation)| operation["operationId"] == *id);
                            assert!(known, "a link to {id}");
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn the_operations_of_the_interface_description_come_first() {
        let document = document(true);
        let mut names = BTreeSet::new();
        for (_, path, operation) in described(&document) {
            let name = operation["operationId"].as_str().unwrap();
            assert_eq!(
                operation["description"].as_str().unwrap().contains(&format!("`node_{name}`")),
                operation["tags"] == json!(["Interface"]),
                "{path}"
            );
            if operation["tags"] == json!(["Interface"]) {
                assert!(operation["responses"].get("404").is_some(), "{path}");
                names.insert(name.to_owned());
            }
        }
        assert_eq!(names, routes::INTERFACE_OPERATIONS.map(str::to_owned).into());
        assert_eq!(document["tags"][0]["name"], "Interface");
    }

    #[test]
    fn examples_of_numbers_fit_their_properties() {
        /// Adds the properties with the example of a number that stands for all others.
        fn find(schema: &Value, name: &str, found: &mut BTreeSet<String>) {
            if schema["format"] == "quantity" && schema["examples"] == json!(["21000"]) {
                found.insert(name.to_owned());
            }
            for (key, inner) in schema.as_object().into_iter().flatten() {
                match key.as_str() {
                    "properties" => {
                        inner.as_object().unwrap().iter().for_each(|(name, inner)| find(inner, name, found))
                    }
                    "items" => find(inner, name, found),
                    _ => {}
                }
            }
        }
        let mut found = BTreeSet::new();
        for schema in document(true)["components"]["schemas"].as_object().unwrap().values() {
            find(schema, "", &mut found);
        }
        let gas = ["CumulativeGasUsed", "EstimatedGas", "Gas", "GasUsed"];
        assert_eq!(found, gas.map(str::to_owned).into());
    }

    #[test]
    fn every_component_is_used() {
        let with_tokens = document(true);
        let mut without = with_tokens.clone();
        remove_tokens(&mut without);
        for document in [with_tokens, without] {
            let text = document.to_string();
            for kind in ["schemas", "responses", "examples", "headers"] {
                for name in document["components"][kind].as_object().unwrap().keys() {
                    assert!(text.contains(&format!("\"#/components/{kind}/{name}\"")), "{kind} {name}");
                }
            }
        }
    }

    #[test]
    fn a_server_without_tokens_documents_none() {
        let mut document = document(true);
        let has_tokens = |document: &Value| {
            let text = document.to_string();
            ["\"401\"", "Unauthorized", "securitySchemes", "\"security\"", "WWW-Authenticate", "bearer", "no-token"]
                .map(|word| text.contains(word))
        };
        assert_eq!(has_tokens(&document), [true; 7]);
        remove_tokens(&mut document);
        assert_eq!(has_tokens(&document), [false; 7]);
    }

    #[test]
    fn every_group_has_operations() {
        for producing in [true, false] {
            let document = document(producing);
            let used: BTreeSet<_> =
                described(&document).into_iter().map(|(_, _, operation)| operation["tags"][0].to_string()).collect();
            let tags = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].to_string());
            assert_eq!(tags.collect::<BTreeSet<_>>(), used, "producing: {producing}");
        }
    }

    #[test]
    fn patterns_have_no_doubled_parentheses() {
        fn check(value: &Value) {
            if let Some(pattern) = value["pattern"].as_str() {
                assert!(!pattern.contains("((") && !pattern.contains("))"), "{pattern}");
            }
            match value {
                Value::Array(items) => items.iter().for_each(check),
                Value::Object(object) => object.values().for_each(check),
                _ => {}
            }
        }
        check(&document(true));
    }

    #[test]
    fn paths_have_no_defaults() {
        for (_, path, operation) in described(&document(true)) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let may_have = parameter["in"] != "path";
                assert!(may_have || parameter["schema"].get("default").is_none(), "{path}: {parameter}");
            }
        }
    }

    #[test]
    fn descriptions_state_the_default_limits() {
        let limits = node_core::node::Limits::default();
        let filters = node_core::filters::FilterLimits::default();
        let pool = node_core::pool::PoolLimits::default();
        let http = crate::HttpConfig::default();
        let mut document = document(true);
        // Problems in examples have numbers without separators.
        document["components"]["examples"] = json!({});
        let texts = document.to_string();
        let cases = [
            ("max-logs", limits.logs),
            ("max-block-range", usize::try_from(limits.block_range).unwrap()),
            ("max-connections", http.clients.max_connections),
            ("max-requests", http.clients.max_requests),
            ("max-addresses", limits.addresses),
            ("max-topics", limits.topics),
            ("max-storage-keys", limits.storage_keys),
            ("gas-cap", usize::try_from(limits.gas_cap).unwrap()),
            ("max-filters", filters.count),
            ("max-streams", http.clients.max_streams),
            ("pool-transactions", pool.transactions),
        ];
        for (option, limit) in cases {
            let digits = limit.to_string();
            let mut grouped = String::new();
            for (index, digit) in digits.chars().enumerate() {
                if index > 0 && (digits.len() - index).is_multiple_of(3) {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            let named = format!("(`{option}`)");
            let stated = texts.match_indices(&named).map(|(at, _)| &texts[at.saturating_sub(60)..at]);
            let stated: Vec<_> = stated.collect();
            assert!(!stated.is_empty(), "{option}");
            assert!(stated.iter().all(|text| text.contains(&grouped)), "{option} is {grouped}: {stated:?}");
        }
    }
}
