//! Reads the body of a request, within its limits of size and time.

use crate::config::HttpConfig;
use crate::problem::HttpError;
use actix_web::HttpRequest;
use actix_web::body::{BodyStream, MessageBody};
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::{Bytes, BytesMut, Payload};
use node_types::wire::BodyError;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::sync::Semaphore;

/// A first chunk of at most this many bytes needs no permits, so that short bodies are accepted even when memory is short.
const SHORT: usize = 16 * 1024;

/// All incomplete bodies together may take as much memory as this many bodies of maximum length.
const LONG_BODIES: usize = 64;

/// The memory for bodies that have not arrived completely, with one permit for each byte. Without this limit, every
/// connection could hold an unfinished body of maximum length.
pub(crate) fn memory(config: &HttpConfig) -> Semaphore {
    Semaphore::new(config.max_body.saturating_mul(LONG_BODIES).min(Semaphore::MAX_PERMITS))
}

/// Reads the body of a request, which must be declared as JSON.
pub(crate) async fn read_json(
    request: &HttpRequest,
    payload: Payload,
    config: &HttpConfig,
    memory: &Semaphore,
) -> Result<Bytes, HttpError> {
    let headers = request.headers();
    if !is_json(headers) {
        let untyped = !headers.contains_key(CONTENT_TYPE);
        // A missing body is reported as such, and not as a wrong media type.
        let is_empty = untyped && within(config, collect(payload, 0, memory)).await.is_ok();
        return Err(if is_empty { HttpError::Body(BodyError::Empty) } else { HttpError::MediaType });
    }
    if declared_length(headers).is_some_and(|length| length > config.max_body as u64) {
        return Err(HttpError::BodyTooLarge { limit: config.max_body });
    }
    within(config, collect(payload, config.max_body, memory)).await
}

/// Applies the time limit for receiving a body.
async fn within(config: &HttpConfig, body: impl Future<Output = Result<Bytes, HttpError>>) -> Result<Bytes, HttpError> {
    tokio::time::timeout(config.body_timeout, body).await.unwrap_or(Err(HttpError::BodyTimeout))
}

/// Whether the request declares a body of length zero. Its media type does not matter then.
pub(crate) fn is_declared_empty(request: &HttpRequest) -> bool {
    declared_length(request.headers()) == Some(0)
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the body is declared as JSON. The declaration is required because browsers send other types across origins
/// without a CORS preflight.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let media_type = value.split(';').next().unwrap_or_default().trim();
    let Some((kind, subtype)) = media_type.split_once('/') else { return false };
    let format = subtype.rsplit('+').next().unwrap_or_default();
    kind.eq_ignore_ascii_case("application") && format.eq_ignore_ascii_case("json")
}

async fn collect(payload: Payload, limit: usize, memory: &Semaphore) -> Result<Bytes, HttpError> {
    let mut stream = BodyStream::new(payload);
    let mut next = async || poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await.transpose();
    // Most bodies arrive in one chunk, which need not be copied.
    let Some(first) = next().await.map_err(|_| HttpError::BodyBroken)? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(HttpError::BodyTooLarge { limit });
    }
    let reserve = |bytes: usize| {
        let permits = u32::try_from(bytes).map_err(|_| HttpError::Overloaded)?;
        memory.try_acquire_many(permits).map_err(|_| HttpError::Overloaded)
    };
    let mut reserved = reserve(if first.len() > SHORT { first.len() } else { 0 })?;
    let Some(mut chunk) = next().await.map_err(|_| HttpError::BodyBroken)? else { return Ok(first) };
    let mut body = BytesMut::from(&first[..]);
    loop {
        if chunk.len() > limit - body.len() {
            return Err(HttpError::BodyTooLarge { limit });
        }
        reserved.merge(reserve(chunk.len())?);
        body.extend_from_slice(&chunk);
        match next().await.map_err(|_| HttpError::BodyBroken)? {
            Some(more) => chunk = more,
            None => return Ok(body.freeze()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    #[test]
    fn accepts_json_media_types() {
        let cases = [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/json", false),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonx", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
            assert_eq!(is_json(&headers), expected, "{value:?}");
        }
        assert!(!is_json(&HeaderMap::new()), "no media type");
    }
}
