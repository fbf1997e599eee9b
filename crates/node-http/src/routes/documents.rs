//! The documents that answers point to.

use super::Routes;
use crate::exchange::Exchange;
use crate::problem::{HttpError, ProblemPage};
use crate::server::Service;
use actix_web::HttpResponse;

pub(super) fn gets(routes: &mut Routes<'_>) {
    let base = routes.base;
    routes.open("schemas", &format!("{base}/schemas/{{Name}}.json"), schema);
    routes.open("problems", &format!("{base}/problems/{{Slug}}"), problem);
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("Name").into_owned()));
    let schemas = &Service::of(exchange.request()).schemas;
    match name.and_then(|name| schemas.get(&name).cloned().ok_or(HttpError::UnknownRoute)) {
        Ok(schema) => exchange.respond_document("application/schema+json", schema),
        Err(error) => exchange.fail(&error),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").into_owned()));
    let named = |slug: String| ProblemPage::ALL.into_iter().find(|page| page.slug() == slug);
    match slug.and_then(|slug| named(slug).ok_or(HttpError::UnknownRoute)) {
        Ok(page) => exchange.respond_document("text/plain; charset=utf-8", page.text().into()),
        Err(error) => exchange.fail(&error),
    }
}
