//! Reading the body of a request, within limits on size and time.

use crate::admission::clients::{Client, Limit};
use crate::config::HttpConfig;
use crate::exchange::transfer::SHORT;
use crate::exchange::unpack::Packing;
use crate::problem::HttpError;
use crate::scheduling;
use crate::service::Service;
use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, TRANSFER_ENCODING, UPGRADE};
use actix_web::web::{Bytes, BytesMut};
use actix_web::{HttpMessage, HttpRequest, mime};
use futures_util::StreamExt;
use node_core::context::Context;
use node_core::cost::Cost;
use node_types::wire::BodyError;
use std::sync::Arc;

/// Reads the body of a request of `client`, which must be declared as JSON, and decompresses it if necessary. If the
/// body is refused, the unread rest stays in `payload`.
pub(crate) async fn read_json(
    request: &HttpRequest,
    payload: &mut Payload,
    service: &Service,
    client: &Arc<Client>,
) -> Result<Bytes, HttpError> {
    let (headers, config) = (request.headers(), &service.config);
    let limit = config.requests.max_body;
    let expected = expected_length(headers);
    let mut collect = async |limit| collect(payload, limit, expected, &service.transfers, client).await;
    if !is_json(request) {
        let untyped = !headers.contains_key(CONTENT_TYPE);
        // A missing body is reported as missing, not as a wrong media type.
        let is_empty = untyped && within(config, collect(0)).await.is_ok();
        return Err(if is_empty { HttpError::Body(BodyError::Empty) } else { HttpError::MediaType });
    }
    let packing = headers.get(CONTENT_ENCODING).map(Packing::of).transpose()?.flatten();
    if declared_length(headers).is_some_and(|length| length > limit as u64) {
        return Err(HttpError::BodyTooLarge { limit });
    }
    let mut body = within(config, collect(limit)).await?;
    if let Some(packing) = packing {
        let unpack = Box::new(move |context: &Context| packing.unpack(context, &body, limit));
        body = scheduling::run(&service.pools, Cost::Long, service.context(client), unpack).await?;
    }
    Ok(body)
}

/// Applies the time limit for receiving a body.
async fn within(config: &HttpConfig, body: impl Future<Output = Result<Bytes, HttpError>>) -> Result<Bytes, HttpError> {
    tokio::time::timeout(config.requests.body_timeout, body).await.unwrap_or(Err(HttpError::BodyTimeout))
}

/// Returns whether the request declares a body of length zero, whose media type does not matter.
pub(crate) fn is_declared_empty(request: &HttpRequest) -> bool {
    declared_length(request.headers()) == Some(0)
}

/// Returns the length after which a body ends, if actix-http does not recognize its end: it takes the body of a request
/// with `Upgrade: websocket` for the bytes of the other protocol. A server may ignore the header (RFC 9110, section
/// 7.8).
fn expected_length(headers: &HeaderMap) -> Option<usize> {
    if !headers.contains_key(UPGRADE) || headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    Some(declared_length(headers).map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX)))
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns whether the body is declared as JSON. The declaration is required because browsers send other types across
/// origins without a CORS preflight.
pub(crate) fn is_json(request: &impl HttpMessage) -> bool {
    // Most clients send exactly this, which need not be parsed.
    if request.headers().get(CONTENT_TYPE).is_some_and(|value| value == "application/json") {
        return true;
    }
    let Ok(Some(media_type)) = request.mime_type() else { return false };
    media_type.type_() == mime::APPLICATION && media_type.suffix().unwrap_or(media_type.subtype()) == mime::JSON
}

/// Reads a body of at most `limit` bytes, up to its end or `expected` bytes. While it arrives, its bytes count as held
/// by `client`.
async fn collect(
    payload: &mut Payload,
    limit: usize,
    expected: Option<usize>,
    transfers: &Arc<Limit>,
    client: &Arc<Client>,
) -> Result<Bytes, HttpError> {
    let mut next = async || payload.next().await.transpose().map_err(|_| HttpError::BodyBroken);
    let is_complete = |length| expected.is_some_and(|expected| length >= expected);
    if is_complete(0) {
        return Ok(Bytes::new());
    }
    // Most bodies arrive in one chunk, which does not have to be copied.
    let Some(first) = next().await? else { return Ok(Bytes::new()) };
    if first.len() > limit {
        return Err(HttpError::BodyTooLarge { limit });
    }
    if is_complete(first.len()) {
        return Ok(first);
    }
    // Short bodies are accepted even if no transfer memory is left.
    let mut held = transfers.take(client, if first.len() > SHORT { first.len() } else { 0 })?;
    let Some(mut chunk) = next().await? else { return Ok(first) };
    let mut body = BytesMut::from(&first[..]);
    loop {
        if chunk.len() > limit - body.len() {
            return Err(HttpError::BodyTooLarge { limit });
        }
        held.grow(chunk.len())?;
        body.extend_from_slice(&chunk);
        if is_complete(body.len()) {
            return Ok(body.freeze());
        }
        match next().await? {
            Some(more) => chunk = more,
            None => return Ok(body.freeze()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn accepts_json_media_types() {
        let cases = [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;", true),
            ("application/merge-patch+json", true),
            ("text/json", false),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonx", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let request = TestRequest::default().insert_header((CONTENT_TYPE, value)).to_http_request();
            assert_eq!(is_json(&request), expected, "{value:?}");
        }
        assert!(!is_json(&TestRequest::default().to_http_request()), "no media type");
    }
}
