//! Responses to requests that no route accepts.

use crate::admission::Access;
use crate::admission::cors;
use crate::exchange::Exchange;
use crate::exchange::parameters::is_decodable;
use crate::problem::HttpError;
use crate::service::Service;
use actix_web::dev::Payload;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};

/// Responds to a request whose path has no route, or whose method the route does not accept. In the latter case
/// `allow` lists the accepted methods.
pub(super) async fn refuse(
    service: web::Data<Service>,
    request: HttpRequest,
    payload: Payload,
    allow: Option<&'static str>,
) -> HttpResponse {
    let decodable = is_decodable(request.uri().path());
    let asks_for_options = request.method() == Method::OPTIONS;
    let is_preflight = asks_for_options && cors::is_preflight(request.headers());
    let mut exchange = Exchange::new("none", service, request, payload);
    if let Err(error) = exchange.admit(Access::Open) {
        return exchange.fail(&error);
    }
    match allow {
        _ if !decodable => exchange.fail(&HttpError::Path),
        Some(_) if is_preflight => match exchange.check_origin() {
            Ok(()) => {
                let headers: Vec<_> = cors::preflight_headers(exchange.request().headers()).collect();
                let with = |exchange: Exchange, (name, value)| exchange.with_header(name, value);
                headers.into_iter().fold(exchange, with).respond_empty(StatusCode::OK)
            }
            Err(error) => exchange.fail(&error),
        },
        Some(allow) if asks_for_options => {
            exchange.with_header(ALLOW, HeaderValue::from_static(allow)).respond_empty(StatusCode::NO_CONTENT)
        }
        Some(allow) => exchange.fail(&HttpError::MethodNotAllowed { allow }),
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}
