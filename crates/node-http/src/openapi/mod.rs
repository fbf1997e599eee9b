//! The description of the whole interface: OpenAPI 3.1.
//!
//! Structures come from the wire types (`node_types::wire::schema`), operations from the tables in `operations`, examples from
//! a development chain. A test compares the tables with the routes, in both directions.

mod examples;
mod headers;
mod operation;
mod operations;
pub(crate) mod problems;

use crate::url::BasePath;
use node_types::wire;
use serde_json::{Map, Value, json};
use std::io;

/// What the interface is, for those who read its description.
const DESCRIPTION: &str = "\
An Ethereum execution node: blocks, transactions, logs, state with proofs, calls, fees, and signed transactions.

**Numbers** are answered as decimal strings; decimal strings, `0x` hex strings and JSON integers are read. **Data** is `0x` and hex, \
answered in lower case. In requests `null` and `\"\"` are as good as omission, and what is not known is refused.

**Answers** name their JSON Schema in `$schema`. **Problems** (RFC 9457) have the media type `application/problem+json`; `errors` lists \
every fault of the request with its place.

**Limits** are options of the server. Those of every request: a body of at most 5 MiB (`max-body`), nested at \
most 128 levels (`max-depth`), read within 10 s (`body-timeout`); path, query and headers of at most 16 KiB (`max-headers`) within 10 s \
(`header-timeout`); work of at most 5 s (`call-timeout`). Of all clients together: 4,096 connections (`max-connections`) and 16,384 requests \
(`max-requests`) at a time; of one client as many a second as the operator allows (`rate-limit`). Operations tell their own. A refusal \
names the option.

Paths also work without the slash at their end, and with `node_` in front of the operation's name.";

/// The OpenAPI document of a server whose paths stand behind `base`; with the operations that control a chain if it is
/// `controlled`, as that of a node which produces blocks.
pub fn openapi(base: &BasePath, controlled: bool) -> Value {
    let operations: Vec<_> =
        operations::all().into_iter().filter(|operation| controlled || !operation.path.starts_with("/dev/")).collect();
    let mut paths = Map::new();
    for operation in &operations {
        let item = paths.entry(operation.path).or_insert_with(|| json!({}));
        item[operation.method] = operation.describe();
    }
    let server = if base.as_str().is_empty() { "/" } else { base.as_str() };
    let tags = operations::TAGS.iter().filter(|(name, _)| controlled || *name != operations::DEVELOPMENT);
    let tags: Vec<_> = tags.map(|(name, description)| json!({ "name": name, "description": description })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ethereum execution node",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": server, "description": "This server." }],
        "security": [{}, { "bearer": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas(controlled),
            "responses": problems::response_components(),
            "examples": problems::example_components(),
            "headers": headers::components(),
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "Needed where the server was given tokens (`token-file`).",
            } },
        },
    })
}

/// A reference to a component.
/// The same document as YAML.
///
/// # Errors
/// None is to be expected: every JSON value is one of YAML.
pub fn openapi_yaml(document: &Value) -> io::Result<String> {
    yaml_serde::to_string(document).map_err(io::Error::other)
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// The documents of the wire types as components.
fn schemas(controlled: bool) -> Value {
    let mut schemas = wire::schema::schemas();
    if !controlled {
        let development: Vec<_> =
            operations::all().into_iter().filter(|operation| operation.path.starts_with("/dev/")).collect();
        for operation in development {
            schemas.remove(&format!("Input_{}", operation.name()));
            schemas.remove(&format!("Output_{}", operation.name()));
        }
    }
    let component = |(name, mut schema): (String, Value)| {
        if let Value::Object(schema) = &mut schema {
            schema.remove("$schema");
        }
        point_to_components(&mut schema);
        (name, schema)
    };
    schemas.into_iter().map(component).collect::<Map<_, _>>().into()
}

/// Rewrites references between documents, `<Name>.json`.
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
    use crate::routes::{self, Methods};
    use actix_web::App;
    use std::collections::BTreeSet;

    /// Method and path of every route, without the other names of a path.
    fn routes(controlled: bool) -> BTreeSet<(&'static str, String)> {
        let mut added = Vec::new();
        let _ = App::new().configure(|app| added = routes::configure(app, "", controlled));
        let paths: BTreeSet<_> = added.iter().map(|route| route.path.clone()).collect();
        let other_name = |path: &str| {
            // `/x/y/` goes before `/x/y`, but a path that ends in a word goes before the same with a slash.
            let bare = path.replacen("/node_", "/", 1);
            let with_slash = format!("{}/", bare.trim_end_matches('/'));
            let word = matches!(bare.trim_end_matches('/'), "/health" | "/ready" | "/docs");
            let canonical = if word { bare.trim_end_matches('/').to_owned() } else { with_slash };
            path != canonical && paths.contains(&canonical)
        };
        let methods = |methods| match methods {
            Methods::Get | Methods::GetOnly => &["get"][..],
            Methods::Post => &["post"],
            Methods::GetOrPost => &["get", "post"],
        };
        let canonical = added.iter().filter(|route| !other_name(&route.path));
        canonical.flat_map(|route| methods(route.methods).iter().map(|method| (*method, route.path.clone()))).collect()
    }

    fn document(controlled: bool) -> Value {
        openapi(&BasePath::default(), controlled)
    }

    /// Method, path and Operation Object of all that is described.
    fn described(document: &Value) -> Vec<(String, String, Value)> {
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter();
            methods.map(|(method, operation)| (method.clone(), path.clone(), operation.clone()))
        });
        operations.collect()
    }

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        for controlled in [true, false] {
            let routes: BTreeSet<_> =
                routes(controlled).into_iter().map(|(method, path)| (method.to_owned(), path)).collect();
            let described: BTreeSet<_> =
                described(&document(controlled)).into_iter().map(|(method, path, _)| (method, path)).collect();
            let without: Vec<_> = routes.difference(&described).collect();
            let dangling: Vec<_> = described.difference(&routes).collect();
            assert!(without.is_empty() && dangling.is_empty(), "not described: {without:?}; no route: {dangling:?}");
        }
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
        }
    }

    #[test]
    fn references_resolve() {
        for controlled in [true, false] {
            let document = document(controlled);
            let mut open = vec![&document];
            while let Some(value) = open.pop() {
                match value {
                    Value::Array(items) => open.extend(items),
                    Value::Object(object) => {
                        open.extend(object.values());
                        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
                            let found = target.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                            assert!(found.is_some(), "{target} (controlled: {controlled})");
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
    fn limits_are_those_in_force() {
        let limits = node_core::node::Limits::default();
        let filters = node_core::filters::FilterLimits::default();
        let pool = node_core::pool::PoolLimits::default();
        let http = crate::HttpConfig::default();
        let mut document = document(true);
        // Examples of refusals write numbers as refusals do.
        document["components"]["examples"] = json!({});
        let texts = document.to_string();
        let cases = [
            ("max-logs", limits.logs),
            ("max-block-range", usize::try_from(limits.block_range).unwrap()),
            ("max-connections", http.max_connections),
            ("max-requests", http.max_requests),
            ("max-depth", http.max_depth),
            ("max-addresses", limits.addresses),
            ("max-topics", limits.topics),
            ("max-storage-keys", limits.storage_keys),
            ("max-percentiles", limits.percentiles),
            ("gas-cap", usize::try_from(limits.gas_cap).unwrap()),
            ("max-filters", filters.count),
            ("max-streams", http.max_streams),
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
            let told = texts.match_indices(&named).map(|(at, _)| &texts[at.saturating_sub(60)..at]);
            let told: Vec<_> = told.collect();
            assert!(!told.is_empty(), "{option}");
            assert!(told.iter().all(|text| text.contains(&grouped)), "{option} is {grouped}: {told:?}");
        }
    }
}
