//! The documents that answers point to.

use super::Routes;
use crate::encode;
use crate::exchange::Exchange;
use crate::problem::HttpError;
use crate::problem_page::ProblemPage;
use crate::service::Service;
use actix_web::HttpResponse;

pub(super) fn gets(routes: &mut Routes<'_>) {
    let base = routes.base;
    routes.open("schemas", &format!("{base}/schemas/{{Name}}.json"), schema);
    routes.open("problems", &format!("{base}/problems/{{Slug}}"), problem);
    routes.open("openapi", &format!("{base}/openapi.json"), openapi_json);
    routes.open("openapiYaml", &format!("{base}/openapi.yaml"), openapi_yaml);
}

async fn schema(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("Name").into_owned()));
    let service = Service::of(exchange.request());
    let schema = name.and_then(|name| match service.schemas.get(&name) {
        Some(schema) => encode::identified(&exchange.schema_url(&name), schema),
        None => Err(HttpError::UnknownRoute),
    });
    match schema {
        Ok(schema) => exchange.respond_document("application/schema+json", schema.into()).await,
        Err(error) => exchange.fail(&error),
    }
}

async fn problem(exchange: Exchange) -> HttpResponse {
    let slug = exchange.parameters(|parameters| Ok(parameters.path("Slug").into_owned()));
    let named = |slug: String| ProblemPage::ALL.into_iter().find(|page| page.slug() == slug);
    let exchange = exchange.varying_by_accept();
    match slug.and_then(|slug| named(slug).ok_or(HttpError::UnknownRoute)) {
        Ok(page) if exchange.accepts("text/html") => {
            exchange.respond_document("text/html; charset=utf-8", page.html().into()).await
        }
        Ok(page) => exchange.respond_document("text/plain; charset=utf-8", page.text().into()).await,
        Err(error) => exchange.fail(&error),
    }
}

async fn openapi_json(exchange: Exchange) -> HttpResponse {
    let (json, _) = Service::of(exchange.request()).openapi.clone();
    exchange.respond_document("application/json", json).await
}

async fn openapi_yaml(exchange: Exchange) -> HttpResponse {
    let (_, yaml) = Service::of(exchange.request()).openapi.clone();
    exchange.respond_document("application/yaml", yaml).await
}
