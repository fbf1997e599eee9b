//! What is no operation of the node: whether the server lives, and the documents that answers point to.

use super::{Methods, Routes};
use crate::exchange::Exchange;
use crate::problem::{HttpError, ProblemPage};
use crate::server::Service;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;

pub(super) fn health(routes: &mut Routes<'_>) {
    let base = routes.base;
    for path in ["/health", "/health/"] {
        routes.document(Methods::Get, "health", &format!("{base}{path}"), alive);
    }
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    let base = routes.base;
    routes.document(Methods::Get, "schemas", &format!("{base}/schemas/{{Name}}.json"), schema);
    routes.document(Methods::Get, "problems", &format!("{base}/problems/{{Slug}}"), problem);
}

async fn alive(exchange: Exchange) -> HttpResponse {
    exchange.respond(StatusCode::OK, "application/json", br#"{"Status":"ok"}"#.to_vec())
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("Name").into_owned()));
    let schemas = &Service::of(exchange.request()).schemas;
    match name.and_then(|name| schemas.get(&name).cloned().ok_or(HttpError::UnknownRoute)) {
        Ok(schema) => exchange.respond(StatusCode::OK, "application/schema+json", schema),
        Err(error) => exchange.fail(&error),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").into_owned()));
    let named = |slug: String| ProblemPage::ALL.into_iter().find(|page| page.slug() == slug);
    match slug.and_then(|slug| named(slug).ok_or(HttpError::UnknownRoute)) {
        Ok(page) => exchange.respond(StatusCode::OK, "text/plain; charset=utf-8", page.text()),
        Err(error) => exchange.fail(&error),
    }
}
