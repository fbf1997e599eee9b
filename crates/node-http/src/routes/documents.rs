//! The documents to which responses refer.

use super::operation::{Content, Operation};
use crate::exchange::Exchange;
use crate::exchange::encode;
use crate::openapi::problems;
use crate::problem::HttpError;
use crate::problem::page::ProblemPage;
use actix_web::HttpResponse;
use serde_json::{Value, json};

/// Returns the operations that serve documents. `schemas` are the names of the schemas.
pub(super) fn operations(schemas: impl Iterator<Item = String>) -> Vec<Operation> {
    let schemas: Vec<_> = schemas.collect();
    let slugs = ProblemPage::ALL.map(ProblemPage::slug);
    vec![
        Operation::get(
            "/schemas/{Name}.json",
            "Read a JSON Schema",
            "Returns the JSON Schema (2020-12) that responses refer to in `$schema`.",
        )
        .with("path", "Name", json!({ "type": "string", "enum": schemas }), "Name of the schema.")
        .content(Content::Object("application/schema+json"))
        .open()
        .handler(schema),
        Operation::get(
            "/problems/{Slug}",
            "Read about a kind of problem",
            "Returns the cause and the remedy of the kind of problem that problems refer to in `type`: a page for browsers, plain text for \
             other clients.",
        )
        .with("path", "Slug", json!({ "type": "string", "enum": slugs }), "Name of the kind.")
        .content(Content::Text(&["text/html", "text/plain"]))
        .open()
        .handler(problem),
        Operation::get("/openapi.json", "Read this description", "Returns the OpenAPI 3.1 document as JSON.")
            .content(Content::Object("application/json"))
            .open()
            .handler(openapi_json),
    ]
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("Name").to_owned()));
    let schema = name.and_then(|name| match exchange.service().interface.schemas.get(&name) {
        Some(schema) => encode::identified(&exchange.schema_url(&name), schema),
        None => Err(HttpError::UnknownRoute),
    });
    match schema {
        Ok(schema) => exchange.respond_document("application/schema+json", schema.into()).await,
        Err(error) => exchange.fail(&error),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").to_owned()));
    let named = |slug: String| ProblemPage::ALL.into_iter().find(|page| page.slug() == slug);
    let exchange = exchange.varying_by_accept();
    match slug.and_then(|slug| named(slug).ok_or(HttpError::UnknownRoute)) {
        Ok(page) => {
            let example = problems::of_page(page).map_or_else(String::new, |problem| format!("{problem:#}"));
            if exchange.accepts("text/html") {
                exchange.respond_document("text/html; charset=utf-8", page.html(&example).into()).await
            } else {
                exchange.respond_document("text/plain; charset=utf-8", page.text(&example).into()).await
            }
        }
        Err(error) => exchange.fail(&error),
    }
}

async fn openapi_json(exchange: Exchange) -> HttpResponse {
    let json = exchange.service().interface.openapi_json.clone();
    let json = match with_prefix(&exchange, &json) {
        Some(document) => document.to_string().into(),
        None => json,
    };
    exchange.respond_document("application/json", json).await
}

/// Returns the OpenAPI document for a client behind proxies that remove a path prefix, or `None` if they do not.
fn with_prefix(exchange: &Exchange, json: &[u8]) -> Option<Value> {
    let removed = exchange.sender().forwarded.as_ref().is_some_and(|forwarded| !forwarded.prefix.as_str().is_empty());
    let mut document: Value = removed.then(|| serde_json::from_slice(json).ok())??;
    document["servers"][0]["url"] = exchange.base_url().into();
    Some(document)
}
