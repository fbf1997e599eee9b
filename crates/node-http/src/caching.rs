//! What clients and proxies may keep, and for how long (RFC 9110 and 9111).

use actix_web::HttpRequest;
use actix_web::http::header::{EntityTag, Header, HeaderValue, IF_NONE_MATCH, IfNoneMatch};
use node_core::context::ViewOf;
use node_types::{BlockId, BlockNumber, BlockNumberOrTag};
use twox_hash::XxHash3_128;

/// What may be kept of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Nothing is said: the answer to a POST, which nobody keeps.
    Unsaid,
    /// Nothing: the request created or advanced something.
    NoStore,
    /// It may be kept, and has to be asked for again: it may have changed.
    Revalidate,
    /// It may be kept for ever.
    Immutable,
}

impl Caching {
    /// The value of `Cache-Control`. What only those with a token may see is for their own caches alone.
    pub(crate) fn control(self, shared: bool) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::NoStore => Some("no-store"),
            Self::Revalidate if shared => Some("no-cache"),
            Self::Revalidate => Some("private, no-cache"),
            Self::Immutable if shared => Some("public, max-age=31536000, immutable"),
            Self::Immutable => Some("private, max-age=31536000, immutable"),
        }
    }

    /// Whether an answer may be kept at all.
    pub(crate) fn may_be_kept(self) -> bool {
        matches!(self, Self::Revalidate | Self::Immutable)
    }
}

/// How long the answer to a GET stays what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// It may change at any time.
    Briefly,
    /// As long as the canonical block of this height stays canonical.
    WithBlock(BlockNumber),
    /// For ever: what it tells of is named by its hash.
    Forever,
}

impl Lasts {
    /// As long as the block of this height, if there is one.
    pub(crate) fn with_block(number: Option<BlockNumber>) -> Self {
        number.map_or(Self::Briefly, Self::WithBlock)
    }

    /// As long as the block that a request names. A tag names another one tomorrow.
    pub(crate) fn with_named<B: Copy + Into<BlockId>>(block: &B) -> Self {
        match (*block).into() {
            BlockId::Number(BlockNumberOrTag::Number(number)) => Self::WithBlock(number),
            _ => Self::Briefly,
        }
    }

    /// What may be kept of an answer from `view`.
    pub(crate) fn caching(self, view: Option<ViewOf>) -> Caching {
        let finalized = view.and_then(|view| view.finalized);
        match self {
            Self::Forever => Caching::Immutable,
            Self::WithBlock(number) if finalized.is_some_and(|finalized| number <= finalized) => Caching::Immutable,
            Self::WithBlock(_) | Self::Briefly => Caching::Revalidate,
        }
    }
}

/// Tells bodies apart.
pub(crate) fn digest(body: &[u8]) -> u128 {
    XxHash3_128::oneshot(body)
}

/// Names the body of `digest`. It is a weak tag, for a compressed answer has the same.
pub(crate) fn entity_tag(digest: u128) -> EntityTag {
    EntityTag::new_weak(const_hex::encode(digest.to_be_bytes()))
}

/// Whether the client has what `tag` names.
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

/// The value of an `ETag` header.
pub(crate) fn tag_value(tag: &EntityTag) -> Option<HeaderValue> {
    HeaderValue::try_from(tag.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use node_core::block::BlockRef;
    use node_types::H256;

    #[test]
    fn only_what_is_final_is_kept_for_ever() {
        let view = |finalized| Some(ViewOf { head: BlockRef { number: 9, hash: H256::zero() }, finalized });
        let cases = [
            (Lasts::WithBlock(7), view(Some(7)), Caching::Immutable),
            (Lasts::WithBlock(8), view(Some(7)), Caching::Revalidate),
            (Lasts::WithBlock(0), view(None), Caching::Revalidate),
            (Lasts::WithBlock(0), None, Caching::Revalidate),
            (Lasts::Briefly, view(Some(9)), Caching::Revalidate),
            (Lasts::Forever, view(None), Caching::Immutable),
            (Lasts::with_block(None), view(Some(9)), Caching::Revalidate),
        ];
        for (lasts, view, expected) in cases {
            assert_eq!(lasts.caching(view), expected, "{lasts:?} {view:?}");
        }
    }

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
