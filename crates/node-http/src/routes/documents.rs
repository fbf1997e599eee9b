//! What is no operation of the node: whether the server lives, and the documents that answers point to.

use super::{Methods, Routes};
use crate::dispatch::Place;
use crate::encode;
use crate::exchange::Exchange;
use crate::problem::HttpError;
use crate::problem_page::ProblemPage;
use crate::server::Service;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use node_types::wire::HealthOutput;

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
    routes.document(Methods::Get, "openapi", &format!("{base}/openapi.json"), openapi_json);
    routes.document(Methods::Get, "openapiYaml", &format!("{base}/openapi.yaml"), openapi_yaml);
}

async fn alive(exchange: Exchange) -> HttpResponse {
    let output = HealthOutput::default();
    exchange.answer(Ok(()), |()| Place::Here, move |_, _, ()| Ok(output)).await
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("Name").into_owned()));
    let service = Service::of(exchange.request());
    let schema = name.and_then(|name| match service.schemas.get(&name) {
        Some(schema) => encode::identified(&exchange.schema_url(&name), schema),
        None => Err(HttpError::UnknownRoute),
    });
    match schema {
        Ok(schema) => exchange.respond(StatusCode::OK, "application/schema+json", schema),
        Err(error) => exchange.fail(&error),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").into_owned()));
    let named = |slug: String| ProblemPage::ALL.into_iter().find(|page| page.slug() == slug);
    let exchange = exchange.varying_by_accept();
    match slug.and_then(|slug| named(slug).ok_or(HttpError::UnknownRoute)) {
        Ok(page) if exchange.accepts("text/html") => {
            exchange.respond(StatusCode::OK, "text/html; charset=utf-8", page.html())
        }
        Ok(page) => exchange.respond(StatusCode::OK, "text/plain; charset=utf-8", page.text()),
        Err(error) => exchange.fail(&error),
    }
}

async fn openapi_json(exchange: Exchange) -> HttpResponse {
    let (json, _) = Service::of(exchange.request()).openapi.clone();
    exchange.respond(StatusCode::OK, "application/json", json)
}

async fn openapi_yaml(exchange: Exchange) -> HttpResponse {
    let (_, yaml) = Service::of(exchange.request()).openapi.clone();
    exchange.respond(StatusCode::OK, "application/yaml", yaml)
}
