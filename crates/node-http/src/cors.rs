//! Which pages of other origins may read answers (Fetch Standard, section 3.3).

use crate::config::HttpConfig;
use actix_cors::Cors;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LINK, RETRY_AFTER,
};

/// How long, in seconds, a browser may remember what it was allowed.
const REMEMBERED: usize = 3_600;

/// None where no page of another origin may.
pub(crate) fn rules(config: &HttpConfig) -> Option<Cors> {
    if config.cors_origins.is_empty() {
        return None;
    }
    let own = ["x-request-id", "x-head-number", "x-head-hash"].map(HeaderName::from_static);
    let asked = ["last-event-id", "prefer"].map(HeaderName::from_static);
    let rules = Cors::default()
        .allowed_methods([Method::GET, Method::HEAD, Method::POST])
        .allowed_headers([ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH].into_iter().chain(asked))
        .expose_headers([ETAG, LINK, RETRY_AFTER].into_iter().chain(own))
        .max_age(REMEMBERED);
    Some(if config.cors_origins.iter().any(|origin| origin.is_any()) {
        rules.send_wildcard().allow_any_origin()
    } else {
        config.cors_origins.iter().fold(rules, |rules, origin| rules.allowed_origin(origin.as_str()))
    })
}
