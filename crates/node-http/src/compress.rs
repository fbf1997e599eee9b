//! Compression of answers, as clients like it.

use actix_http::encoding::Encoder;
use actix_web::HttpRequest;
use actix_web::body::BoxBody;
use actix_web::dev::ResponseHead;
use actix_web::http::header::{ACCEPT_ENCODING, AcceptEncoding, ContentEncoding, Encoding, Header};
use actix_web::web::Bytes;

/// Shorter bodies, in bytes, fit into a packet or two however they are written, and are sent as they are.
const SHORT: usize = 1_024;

/// What the server can write, best first for text that is written once.
const SUPPORTED: [Encoding; 4] = [Encoding::brotli(), Encoding::zstd(), Encoding::gzip(), Encoding::identity()];

/// Whether a body of this length is written in several ways.
pub(crate) fn is_worth_it(length: usize) -> bool {
    length >= SHORT
}

/// The encoding that the client likes best; none to send the body as it is.
pub(crate) fn negotiate(request: &HttpRequest) -> Option<ContentEncoding> {
    if !request.headers().contains_key(ACCEPT_ENCODING) {
        return None;
    }
    match AcceptEncoding::parse(request).ok()?.negotiate(SUPPORTED.iter())? {
        Encoding::Known(ContentEncoding::Identity) | Encoding::Unknown(_) => None,
        Encoding::Known(encoding) => Some(encoding),
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
            ("gzip, deflate, br, zstd", Some(ContentEncoding::Brotli)),
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
