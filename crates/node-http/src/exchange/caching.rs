//! Caching of responses by clients and proxies (RFC 9110 and RFC 9111).

use actix_web::HttpRequest;
use actix_web::http::header::{EntityTag, Header, HeaderValue, IF_NONE_MATCH, IfNoneMatch};
use twox_hash::XxHash3_128;

/// How a response may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Without `Cache-Control`: responses to POST, which are not cached anyway.
    Unspecified,
    /// Not at all: the request created or advanced something.
    NoStore,
    /// It may be stored, and must be revalidated before each use.
    Revalidate,
    /// It may be stored and used forever, because it describes a block that the request identifies by hash. A block
    /// identified in any other way may be replaced, even by a later import.
    Immutable,
}

impl Caching {
    /// Returns the value of `Cache-Control`. `shared` allows shared caches, which must not store responses that
    /// require a token.
    pub(crate) fn control(self, shared: bool) -> Option<&'static str> {
        match self {
            Self::Unspecified => None,
            Self::NoStore => Some("no-store"),
            Self::Revalidate if shared => Some("no-cache"),
            Self::Revalidate => Some("private, no-cache"),
            Self::Immutable if shared => Some("public, max-age=31536000, immutable"),
            Self::Immutable => Some("private, max-age=31536000, immutable"),
        }
    }

    /// Returns whether caches may store the response.
    pub(crate) fn is_storable(self) -> bool {
        matches!(self, Self::Revalidate | Self::Immutable)
    }
}

pub(crate) fn digest(body: &[u8]) -> u128 {
    XxHash3_128::oneshot(body)
}

/// Returns the entity tag of the body with this digest. It is weak, because compressed versions share it.
pub(crate) fn entity_tag(digest: u128) -> EntityTag {
    EntityTag::new_weak(const_hex::encode(digest.to_be_bytes()))
}

/// Returns whether `If-None-Match` contains `tag`, which means that the client already has the body.
pub(crate) fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    if !request.headers().contains_key(IF_NONE_MATCH) {
        return false;
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(items)) => items.iter().any(|item| item.weak_eq(tag)),
        Err(_) => false,
    }
}

/// Returns the value of an `ETag` header.
pub(crate) fn tag_value(tag: &EntityTag) -> Option<HeaderValue> {
    HeaderValue::try_from(tag.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn tags_are_compared_weakly() {
        let tag = entity_tag(digest(b"a body"));
        let value = tag_value(&tag).unwrap();
        let value = value.to_str().unwrap();
        assert!(value.starts_with("W/\"") && value.len() == 36, "{value}");
        let strong = value.trim_start_matches("W/").to_owned();
        let cases = [
            (value.to_owned(), true),
            (strong.clone(), true),
            (format!("\"x\", {value}"), true),
            ("*".to_owned(), true),
            ("\"x\"".to_owned(), false),
            ("nonsense".to_owned(), false),
            (String::new(), false),
        ];
        for (header, expected) in cases {
            let request = TestRequest::default().insert_header((IF_NONE_MATCH, header.as_str())).to_http_request();
            assert_eq!(is_known(&request, &tag), expected, "{header}");
        }
        assert!(!is_known(&TestRequest::default().to_http_request(), &tag));
        assert_ne!(entity_tag(digest(b"another")), tag);
    }
}
