//! The description of one operation.

use super::headers;
use super::problems;
use super::reference;
use crate::problem::page::ProblemPage;
use crate::routes::operation::{Content, Declaration, DeclaredBody, Link, Method, Parameter};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Returns the Operation Object of `operation` with `method`. The body of an operation that also accepts GET is optional.
pub(super) fn describe(operation: &Declaration, method: Method) -> Value {
    let mut description = operation.description.to_owned();
    if operation.is_described() {
        description = format!("`node_{}` of the interface description. {description}", operation.name());
    }
    if let Some(limits) = operation.limits {
        description += "\n\nLimits: ";
        description += limits;
    }
    let mut object = json!({
        "operationId": if method == operation.method { operation.name().to_owned() } else { format!("{}ByGet", operation.name()) },
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": description,
        "responses": responses(operation, method),
    });
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter().map(|parameter| describe_parameter(parameter, operation.name()));
        object["parameters"] = parameters.collect();
    }
    if let Some(body) = operation.body.as_ref().filter(|_| method == Method::Post) {
        object["requestBody"] = describe_body(body, operation);
    }
    if !operation.is_guarded() {
        object["security"] = json!([]);
    }
    object
}

/// Returns the key of a method in a Path Item Object.
pub(super) fn key(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
    }
}

fn describe_parameter(parameter: &Parameter, operation: &str) -> Value {
    let mut object = json!({
        "name": parameter.name,
        "in": parameter.part,
        "required": parameter.part == "path",
        "description": parameter.description,
        "schema": parameter.schema,
    });
    if let Some(example) = example(operation)["parameters"].get(parameter.name) {
        object["example"] = match example.as_str() {
            Some(text) if parameter.schema["type"] == "boolean" => (text == "true").into(),
            _ => example.clone(),
        };
    }
    object
}

fn describe_body(body: &DeclaredBody, operation: &Declaration) -> Value {
    let mut content = json!({ "schema": reference("schemas", &format!("Input_{}", operation.name())) });
    if let Some(example) = example(operation.name()).get("request") {
        content["example"] = example.clone();
    }
    json!({ "required": body.required, "content": { "application/json": content } })
}

fn responses(operation: &Declaration, method: Method) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_owned(), success(operation));
    if is_cached(operation) {
        responses.insert("304".to_owned(), reference("responses", "NotModified"));
    }
    let open = !operation.is_guarded();
    let has_body = method == Method::Post;
    let has_input = matches!(operation.content, Content::Output(_)) || !open;
    for (status, name) in problems::STATUSES {
        let possible = match status {
            400 => has_body || !operation.parameters.is_empty(),
            401 => !open,
            404 => !open || !operation.parameters.is_empty(),
            408 | 413 | 415 => has_body,
            422 => has_input,
            _ => true,
        };
        if possible {
            let response = match status {
                404 | 422 => {
                    let mut response = problems::response(status, &pages(operation, has_body), open);
                    if let Content::Text(["text/html", ..]) = operation.content {
                        response["content"]["text/html"] = json!({ "schema": { "type": "string" } });
                    }
                    response
                }
                _ => reference("responses", name),
            };
            responses.insert(status.to_string(), response);
        }
    }
    responses.into()
}

/// Returns whether clients may revalidate a stored response.
fn is_cached(operation: &Declaration) -> bool {
    operation.method == Method::Get && operation.storable
}

/// Returns the problems with a page with which the operation may respond.
fn pages(operation: &Declaration, has_body: bool) -> Vec<ProblemPage> {
    let mut pages = operation.problems.to_vec();
    if has_body && !pages.contains(&ProblemPage::LimitExceeded) {
        pages.push(ProblemPage::LimitExceeded);
    }
    pages
}

fn success(operation: &Declaration) -> Value {
    let mut content: Map<_, _> = match operation.content {
        Content::Output(_) => {
            let content = json!({ "schema": reference("schemas", &format!("Output_{}", operation.name())) });
            Map::from_iter([("application/json".to_owned(), content)])
        }
        Content::Text(kinds) => {
            let schema = |kind: &str| if kind.starts_with("text/") { json!({ "type": "string" }) } else { json!({}) };
            kinds.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": schema(kind) }))).collect()
        }
        Content::Object(kind) => Map::from_iter([(kind.to_owned(), json!({ "schema": { "type": "object" } }))]),
    };
    // The example has the last media type, which is the default.
    if let (Some(content), Some(response)) =
        (content.values_mut().next_back(), example(operation.name()).get("response"))
    {
        content["example"] = response.clone();
    }
    let is_output = matches!(operation.content, Content::Output(_));
    let mut response = json!({
        "description": "Success.",
        "headers": headers::of_success(is_output, is_cached(operation)),
        "content": content,
    });
    if !operation.links.is_empty() {
        response["links"] = operation.links.iter().map(describe_link).collect::<Map<_, _>>().into();
    }
    response
}

fn describe_link((operation, parameter, field): &Link) -> (String, Value) {
    let input = json!({ *parameter: format!("$response.body#/{field}") });
    ((*operation).to_owned(), json!({ "operationId": operation, "parameters": input }))
}

/// By operation: `parameters` by name, `request` and `response`.
static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("a test reads the file"));

/// Returns the example of an operation, or null if it has none.
fn example(operation: &str) -> &'static Value {
    EXAMPLES.get(operation).unwrap_or(&Value::Null)
}
