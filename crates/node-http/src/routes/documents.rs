//! What is no operation of the node: whether the server lives, and the documents that answers point to.

use super::{Methods, Routes};
use crate::exchange::Exchange;
use crate::problem::{HttpError, ProblemPage};
use crate::server::Service;
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};

pub(super) fn health(routes: &mut Routes<'_>) {
    let base = routes.base;
    for path in ["/health", "/health/"] {
        let alive = || async { HttpResponse::Ok().content_type("application/json").body(r#"{"Status":"ok"}"#) };
        routes.app.route(&format!("{base}{path}"), web::get().to(alive));
        routes.app.route(&format!("{base}{path}"), web::head().to(alive));
    }
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    let base = routes.base;
    routes.document(Methods::Get, "schemas", &format!("{base}/schemas/{{Name}}.json"), schema);
    routes.document(Methods::Get, "problems", &format!("{base}/problems/{{Slug}}"), problem);
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.request().match_info().query("Name");
    match Service::of(exchange.request()).schemas.get(name).cloned() {
        Some(schema) => exchange.respond(StatusCode::OK, "application/schema+json", schema),
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.request().match_info().query("Slug");
    match ProblemPage::ALL.into_iter().find(|page| page.slug() == slug) {
        Some(page) => exchange.respond(StatusCode::OK, "text/plain; charset=utf-8", page.text().into()),
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}
