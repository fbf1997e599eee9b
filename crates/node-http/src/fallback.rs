//! Responses to requests that no route accepts.

use crate::admission::Access;
use crate::exchange::Exchange;
use crate::parameters::is_decodable;
use crate::problem::HttpError;
use actix_web::http::header::{ALLOW, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse};

/// Responds to a request whose path has no route, or whose method the route does not accept: `allow` lists those that it
/// does.
pub(crate) async fn refuse(request: HttpRequest, allow: Option<&'static str>) -> HttpResponse {
    let decodable = is_decodable(request.uri().path());
    let asks_for_options = request.method() == Method::OPTIONS;
    let mut exchange = Exchange::new("none", request, None);
    if let Err(error) = exchange.admit(Access::Open) {
        return exchange.fail(&error);
    }
    match allow {
        _ if !decodable => exchange.fail(&HttpError::Path),
        Some(allow) if asks_for_options => {
            exchange.with_header(ALLOW, HeaderValue::from_static(allow)).respond_empty(StatusCode::NO_CONTENT)
        }
        Some(allow) => exchange.fail(&HttpError::MethodNotAllowed { allow }),
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}
