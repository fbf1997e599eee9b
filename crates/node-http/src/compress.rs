//! Compression of answers, as clients like it.

use actix_http::encoding::Encoder;
use actix_web::body::{BoxBody, to_bytes};
use actix_web::dev::ResponseHead;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, ContentEncoding, Encoding, Header, Preference, Quality,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use quick_cache::sync::Cache;

/// Shorter bodies, in bytes, fit into a packet or two however they are written, and are sent as they are.
const SHORT: usize = 1_024;

/// What the server can write, best first: the others take several times as long for a little less.
const SUPPORTED: [ContentEncoding; 3] = [ContentEncoding::Zstd, ContentEncoding::Gzip, ContentEncoding::Brotli];

/// Whether a body of this length is written in several ways.
pub(crate) fn is_worth_it(length: usize) -> bool {
    length >= SHORT
}

/// The encoding that the client likes best, and of several the one that is written fastest; none to send the body as it is.
pub(crate) fn negotiate(request: &HttpRequest) -> Option<ContentEncoding> {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return None;
    }
    let accepted = AcceptEncoding::parse(request).ok()?;
    let quality = |wanted: ContentEncoding| {
        let item = accepted.iter().find(|item| item.item == Preference::Specific(Encoding::Known(wanted)));
        item.map(|item| item.quality).filter(|quality| *quality > Quality::ZERO)
    };
    let liked = SUPPORTED.into_iter().rev().filter_map(|encoding| Some((quality(encoding)?, encoding)));
    liked.max_by_key(|(quality, _)| *quality).map(|(_, encoding)| encoding)
}

/// Documents that never change, as they were compressed.
pub(crate) struct Compressed(Cache<(u128, ContentEncoding), Bytes>);

/// Documents in all encodings that are kept: more than there are.
const DOCUMENTS: usize = 1_024;

impl Compressed {
    pub(crate) fn new() -> Self {
        Self(Cache::new(DOCUMENTS))
    }

    /// `body`, which has the digest `digest`, in `encoding`, compressed once.
    pub(crate) async fn get(&self, encoding: ContentEncoding, digest: u128, body: &Bytes) -> Bytes {
        let key = (digest, encoding);
        if let Some(kept) = self.0.get(&key) {
            return kept;
        }
        let mut head = HttpResponse::new(StatusCode::OK);
        let encoder = Encoder::response(encoding, head.head_mut(), body.clone());
        match to_bytes(encoder).await {
            Ok(compressed) => {
                self.0.insert(key, compressed.clone());
                compressed
            }
            // Compressing what is in memory does not fail.
            Err(_) => Bytes::new(),
        }
    }
}

/// `body` in `encoding`, of which `head` tells. Long bodies are compressed piece by piece, on threads that may block.
pub(crate) fn encode(encoding: ContentEncoding, head: &mut ResponseHead, body: Bytes) -> BoxBody {
    BoxBody::new(Encoder::response(encoding, head, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn clients_choose() {
        let cases = [
            ("gzip", Some(ContentEncoding::Gzip)),
            ("br", Some(ContentEncoding::Brotli)),
            ("zstd", Some(ContentEncoding::Zstd)),
            ("gzip, deflate, br, zstd", Some(ContentEncoding::Zstd)),
            ("gzip, deflate, br", Some(ContentEncoding::Gzip)),
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
