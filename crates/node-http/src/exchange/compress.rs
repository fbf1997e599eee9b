//! Compression of responses.

use crate::admission::clients::Permit;
use crate::exchange::streaming::Pieces;
use actix_http::encoding::Encoder;
use actix_web::body::{BodySize, BoxBody, MessageBody, to_bytes};
use actix_web::dev::ResponseHead;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, ContentEncoding, Encoding, Header, Preference, Quality,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use quick_cache::sync::Cache;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bodies shorter than this, in bytes, are not compressed, because they fit into one or two packets anyway.
const SHORT: usize = 1_024;

/// Supported encodings, in order of preference. Later ones take several times as long for slightly smaller results.
const SUPPORTED: &[ContentEncoding] = &[
    #[cfg(feature = "compression")]
    ContentEncoding::Zstd,
    ContentEncoding::Gzip,
    #[cfg(feature = "compression")]
    ContentEncoding::Brotli,
];

/// Returns whether a body of `length` bytes is long enough to be compressed.
pub(crate) fn is_worthwhile(length: usize) -> bool {
    length >= SHORT
}

/// Returns the encoding with the highest weight in `Accept-Encoding`, and among equals the one that the server
/// prefers, or `None` to send the body uncompressed.
pub(crate) fn negotiate(request: &HttpRequest) -> Option<ContentEncoding> {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return None;
    }
    let accepted = AcceptEncoding::parse(request).ok()?;
    let quality = |wanted: ContentEncoding| {
        let item = accepted.iter().find(|item| item.item == Preference::Specific(Encoding::Known(wanted)));
        item.map(|item| item.quality).filter(|quality| *quality > Quality::ZERO)
    };
    let acceptable = SUPPORTED.iter().rev().filter_map(|encoding| Some((quality(*encoding)?, *encoding)));
    acceptable.max_by_key(|(quality, _)| *quality).map(|(_, encoding)| encoding)
}

/// Compressed versions of documents that do not change while the server runs.
pub(crate) struct CompressedDocuments(Cache<(u128, ContentEncoding), Bytes>);

/// Maximum number of entries. It exceeds the number of documents times encodings, so nothing is evicted.
const MAX_ENTRIES: usize = 1_024;

impl CompressedDocuments {
    pub(crate) fn new() -> Self {
        Self(Cache::new(MAX_ENTRIES))
    }

    /// Returns `body` in `encoding`, compressing it on first use. `digest` must be the digest of `body`.
    pub(crate) async fn get(&self, encoding: ContentEncoding, digest: u128, body: &Bytes) -> Bytes {
        let key = (digest, encoding);
        if let Some(cached) = self.0.get(&key) {
            return cached;
        }
        let mut head = HttpResponse::new(StatusCode::OK);
        let encoder = Encoder::response(encoding, head.head_mut(), body.clone());
        match to_bytes(encoder).await {
            Ok(compressed) => {
                self.0.insert(key, compressed.clone());
                compressed
            }
            // Compressing in memory does not fail.
            Err(_) => Bytes::new(),
        }
    }
}

/// Returns about how many bytes of memory an encoder takes until the client has read the response.
pub(crate) fn memory(encoding: ContentEncoding) -> usize {
    match encoding {
        ContentEncoding::Brotli => 2 << 20,
        ContentEncoding::Zstd => 1 << 20,
        _ => 384 << 10,
    }
}

/// Compresses `body` piece by piece while it is sent, and sets the headers for `encoding` in `head`. Long pieces are
/// compressed on blocking threads. `permit` counts the [memory](memory) for it.
pub(crate) fn encode(encoding: ContentEncoding, head: &mut ResponseHead, body: Bytes, permit: Permit) -> BoxBody {
    let encoder = BoxBody::new(Encoder::response(encoding, head, Pieces(body)));
    BoxBody::new(Counted { encoder, _permit: permit })
}

/// A body whose encoder is counted.
struct Counted {
    encoder: BoxBody,
    _permit: Permit,
}

impl MessageBody for Counted {
    type Error = Box<dyn Error>;

    fn size(&self) -> BodySize {
        self.encoder.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.encoder).poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn chooses_the_encoding_with_the_highest_weight() {
        let cases = [
            ("gzip", Some(ContentEncoding::Gzip)),
            #[cfg(feature = "compression")]
            ("br", Some(ContentEncoding::Brotli)),
            #[cfg(feature = "compression")]
            ("zstd", Some(ContentEncoding::Zstd)),
            #[cfg(feature = "compression")]
            ("gzip, deflate, br, zstd", Some(ContentEncoding::Zstd)),
            ("gzip, deflate, br", Some(ContentEncoding::Gzip)),
            #[cfg(feature = "compression")]
            ("br, gzip;q=0.9", Some(ContentEncoding::Brotli)),
            ("br;q=0.5, gzip;q=0.8", Some(ContentEncoding::Gzip)),
            ("br;q=0, gzip;q=0", None),
            ("*", None),
            ("identity", None),
            ("deflate", None),
            ("compress", None),
            ("", None),
            ("gzip;q=nonsense", None),
        ];
        for (header, expected) in cases {
            let request = TestRequest::default().insert_header((ACCEPT_ENCODING, header)).to_http_request();
            assert_eq!(negotiate(&request), expected, "{header:?}");
        }
        assert_eq!(negotiate(&TestRequest::default().to_http_request()), None);
    }
}
