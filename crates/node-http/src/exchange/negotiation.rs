//! What the client asks for in `Accept` and `Prefer`.

use actix_web::HttpRequest;
use actix_web::http::header::{ACCEPT, AsHeaderName};

/// Whether the client lists `media_type` itself in `Accept`, with a weight above zero (RFC 9110, section 12.5.1).
pub(super) fn accepts(request: &HttpRequest, media_type: &str) -> bool {
    values(request, ACCEPT).any(|value| lists_media_type(value, media_type))
}

/// Whether the client states `preference` in `Prefer` (RFC 7240).
pub(super) fn prefers(request: &HttpRequest, preference: &str) -> bool {
    values(request, "prefer").any(|value| lists_preference(value, preference))
}

fn values(request: &HttpRequest, name: impl AsHeaderName) -> impl Iterator<Item = &str> {
    request.headers().get_all(name).filter_map(|value| value.to_str().ok())
}

/// Whether the value of a `Prefer` header contains `preference`, with any value and parameters (RFC 7240, section 2).
fn lists_preference(header: &str, preference: &str) -> bool {
    let mut quoted = false;
    let mut preferences = header.split(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    });
    preferences
        .any(|text| text.split(['=', ';']).next().is_some_and(|name| name.trim().eq_ignore_ascii_case(preference)))
}

/// Whether the value of an `Accept` header contains `media_type` itself, not a range, with a weight above zero.
fn lists_media_type(header: &str, media_type: &str) -> bool {
    header.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let matches = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        matches
            && parts
                .filter_map(|part| part.strip_prefix("q="))
                .all(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_must_be_listed_by_name_with_a_weight_above_zero() {
        let cases = [
            ("text/html", true),
            ("application/json, Text/HTML;q=0.9, */*", true),
            ("text/html;level=1", true),
            ("*/*", false),
            ("text/*", false),
            ("text/html;q=0", false),
            ("text/html; q=0.0, text/plain", false),
            ("", false),
        ];
        for (header, expected) in cases {
            assert_eq!(lists_media_type(header, "text/html"), expected, "{header}");
        }
    }

    #[test]
    fn a_preference_may_have_a_value_and_parameters() {
        let cases = [
            ("page", true),
            ("Page", true),
            ("page; foo", true),
            ("page=1", true),
            ("page = 1 ; foo=2", true),
            ("wait=5, page", true),
            ("", false),
            ("pages", false),
            ("foo=page", false),
            ("foo; page", false),
            ("foo=\"a, page, b\"", false),
        ];
        for (header, expected) in cases {
            assert_eq!(lists_preference(header, "page"), expected, "{header}");
        }
    }
}
