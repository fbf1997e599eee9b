//! Whether the server lives, and the documents that answers point to.

use super::Operation;
use crate::openapi::operation::Answer;
use crate::problem_page::ProblemPage;
use node_types::wire;
use serde_json::json;

pub(super) fn all() -> Vec<Operation> {
    let names: Vec<_> = wire::schema::schemas().into_keys().collect();
    let slugs = ProblemPage::ALL.map(ProblemPage::slug);
    vec![
        Operation::get("health", "/health", "Ask whether the server lives", "200 as long as the server answers at all.")
            .not_stored()
            .open(),
        Operation::get(
            "ready",
            "/ready",
            "Ask whether the server can do what it is for",
            "200 when the database can be read and the head is young enough; 503 when not, and when the server is about to end.",
        )
        .limits("any age of the head is good unless the operator says otherwise (`max-head-age`).")
        .not_stored()
        .open(),
        Operation::get(
            "schemas",
            "/schemas/{Name}.json",
            "Read a JSON Schema",
            "A JSON Schema (2020-12), as answers name it in `$schema`.",
        )
        .with("path", "Name", json!({ "type": "string", "enum": names }), "Name of the schema.")
        .answers(Answer::Object("application/schema+json"))
        .open(),
        Operation::get(
            "problems",
            "/problems/{Slug}",
            "Read about a kind of problem",
            "Cause and cure of a kind of problem, as problems name it in `type`: a page for browsers, plain text for others.",
        )
        .with("path", "Slug", json!({ "type": "string", "enum": slugs }), "Name of the kind.")
        .answers(Answer::Text(&["text/html", "text/plain"]))
        .open(),
        Operation::get("openapi", "/openapi.json", "Read this description", "This document (OpenAPI 3.1) as JSON.")
            .answers(Answer::Object("application/json"))
            .open(),
        Operation::get("openapiYaml", "/openapi.yaml", "Read this description as YAML", "This document (OpenAPI 3.1) as YAML.")
            .answers(Answer::Text(&["application/yaml"]))
            .open(),
    ]
}
