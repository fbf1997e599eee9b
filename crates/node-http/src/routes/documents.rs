//! The documents to which responses refer.

use super::operation::{Content, Operation};
use super::pages;
use crate::exchange::Exchange;
use crate::exchange::encode;
use crate::openapi::problems;
use crate::problem::HttpError;
use crate::problem::page::{Article, INVALID_REQUEST, Index, ProblemPage, unknown_schema, unknown_type};
use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use serde_json::{Value, json};

/// The media types of pages.
const PAGE: &[&str] = &["text/html", "text/plain"];
const HTML_UTF_8: &str = "text/html; charset=utf-8";

/// The content security policy of pages, whose styles are in the page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Returns the operations that serve documents. `schemas` are the names of the schemas.
pub(super) fn operations(schemas: impl Iterator<Item = String>) -> Vec<Operation> {
    let schemas: Vec<_> = schemas.collect();
    let slugs: Vec<_> = ProblemPage::ALL.map(ProblemPage::slug).into_iter().chain([INVALID_REQUEST]).collect();
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
        Operation::get("/schemas/", "List the JSON Schemas", "Returns the names of all schemas with links to them: a page for browsers, plain text for other clients.")
            .named("schemaIndex")
            .content(Content::Text(PAGE))
            .open()
            .handler(schema_index),
        Operation::get("/problems/", "List the kinds of problems", "Returns the kinds of problems with links to the pages about them: a page for browsers, plain text for other clients.")
            .named("problemIndex")
            .content(Content::Text(PAGE))
            .open()
            .handler(problem_index),
        Operation::get(
            "/problems/{Slug}",
            "Read about a kind of problem",
            "Returns the cause and the remedy of the kind of problem that problems refer to in `type`: a page for browsers, plain text for \
             other clients.",
        )
        .with("path", "Slug", json!({ "type": "string", "enum": slugs }), "Name of the kind.")
        .content(Content::Text(PAGE))
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
        Err(error) => refuse(exchange, &error, || unknown_schema("../")),
    }
}

pub(super) async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").to_owned()));
    let base_url = exchange.base_url();
    // Links are relative to the folder of the page.
    let base = if exchange.request().path().ends_with('/') { "../../" } else { "../" };
    match slug.and_then(|slug| article(&slug, &base_url).ok_or(HttpError::UnknownRoute)) {
        Ok(article) => respond_page(exchange, || article.html(base, &base_url), || article.text()).await,
        Err(error) => refuse(exchange, &error, || unknown_type(base)),
    }
}

/// Returns the page about a type of problem with an example from the server at `base_url`, or `None` if there is no such
/// type.
fn article(slug: &str, base_url: &str) -> Option<Article> {
    let json = |problem: Option<Value>| problem.map_or_else(String::new, |problem| format!("{problem:#}"));
    if slug == INVALID_REQUEST {
        return Some(Article::invalid_request(json(problems::of_invalid_request(base_url))));
    }
    let page = ProblemPage::ALL.into_iter().find(|page| page.slug() == slug)?;
    Some(page.article(json(problems::of_page(page, base_url))))
}

/// Lists the types of problems.
async fn problem_index(exchange: Exchange) -> HttpResponse {
    let invalid = (INVALID_REQUEST.to_owned(), "Invalid request".to_owned());
    let pages = ProblemPage::ALL.into_iter().map(|page| (page.slug().to_owned(), page.title().to_owned()));
    let index = Index { title: "Types of problems", entries: [invalid].into_iter().chain(pages).collect() };
    respond_page(exchange, || index.html(), || index.text()).await
}

/// Lists the schemas.
async fn schema_index(exchange: Exchange) -> HttpResponse {
    let names = exchange.service().interface.schemas.keys();
    let entries = names.map(|name| (format!("{name}.json"), name.clone())).collect();
    let index = Index { title: "JSON Schemas", entries };
    respond_page(exchange, || index.html(), || index.text()).await
}

/// Responds with HTML to browsers and with text to other clients.
async fn respond_page(
    exchange: Exchange,
    html: impl FnOnce() -> String,
    text: impl FnOnce() -> String,
) -> HttpResponse {
    let exchange = as_page(exchange);
    if exchange.prefers_html() {
        exchange.respond_document(HTML_UTF_8, html().into()).await
    } else {
        exchange.respond_document("text/plain; charset=utf-8", text().into()).await
    }
}

/// Refuses a request with a page to browsers and with a problem to other clients.
fn refuse(exchange: Exchange, error: &HttpError, html: impl FnOnce() -> String) -> HttpResponse {
    let exchange = as_page(exchange);
    if exchange.prefers_html() { exchange.fail_with(error, HTML_UTF_8, html()) } else { exchange.fail(error) }
}

/// Sets the headers of a page, which clients other than browsers get as text.
fn as_page(exchange: Exchange) -> Exchange {
    pages::with_headers(exchange.varying_by_accept()).with_header(CONTENT_SECURITY_POLICY, POLICY)
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
