//! CORS: which pages of other origins may read responses (Fetch Standard, section 3.3).

use crate::url::Origin;
use actix_cors::Cors;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LINK, RETRY_AFTER,
};

/// How long a browser may cache the result of a preflight request, in seconds.
const MAX_AGE: usize = 3_600;

/// The CORS middleware for `origins`; `None` if there are none.
pub(crate) fn rules(origins: &[Origin]) -> Option<Cors> {
    if origins.is_empty() {
        return None;
    }
    let own = ["x-request-id", "x-head-number", "x-head-hash"].map(HeaderName::from_static);
    let accepted = ["last-event-id", "prefer"].map(HeaderName::from_static);
    let rules = Cors::default()
        .allowed_methods([Method::GET, Method::HEAD, Method::POST])
        .allowed_headers([ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH].into_iter().chain(accepted))
        .expose_headers([ETAG, LINK, RETRY_AFTER].into_iter().chain(own))
        .max_age(MAX_AGE);
    Some(if origins.iter().any(Origin::is_any) {
        rules.send_wildcard().allow_any_origin()
    } else {
        origins.iter().fold(rules, |rules, origin| rules.allowed_origin(origin.as_str()))
    })
}
