//! The preferences of the client in `Accept` and `Prefer`.

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header, Quality};

/// Returns whether the client explicitly lists HTML in `Accept`, with a weight above zero and not below that of plain
/// text (RFC 9110, section 12.5.1).
pub(super) fn prefers_html(request: &HttpRequest) -> bool {
    let Ok(accept) = Accept::parse(request) else { return false };
    let weight = |media_range: &str| {
        let ranges = accept.iter().filter(|range| range.item.essence_str() == media_range);
        ranges.map(|range| range.quality).max()
    };
    // The weight of plain text is that of the most specific range.
    let text = ["text/plain", "text/*", "*/*"].into_iter().find_map(weight).unwrap_or(Quality::ZERO);
    weight("text/html").is_some_and(|html| html > Quality::ZERO && html >= text)
}

/// Returns whether the client states `preference` in `Prefer` (RFC 7240).
pub(super) fn prefers(request: &HttpRequest, preference: &str) -> bool {
    let mut values = request.headers().get_all("prefer").filter_map(|value| value.to_str().ok());
    values.any(|value| lists_preference(value, preference))
}

/// Returns whether the value of a `Prefer` header contains `preference`, with any value and parameters (RFC 7240,
/// section 2).
fn lists_preference(header: &str, preference: &str) -> bool {
    let mut quoted = false;
    let mut preferences = header.split(|character| {
        quoted ^= character == '"';
        character == ',' && !quoted
    });
    preferences
        .any(|text| text.split(['=', ';']).next().is_some_and(|name| name.trim().eq_ignore_ascii_case(preference)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn html_must_be_listed_by_name_with_a_weight_above_zero_and_not_below_text() {
        let cases = [
            ("text/html", true),
            ("application/json, Text/HTML;q=0.9, */*;q=0.8", true),
            ("application/json, text/html;q=0.9, */*", false),
            ("text/plain, text/html;q=0.5", false),
            ("text/plain;q=0.5, text/html;q=0.5, */*", true),
            ("text/*;q=0.4, text/html;q=0.5, */*", true),
            ("text/html;level=1", true),
            ("*/*", false),
            ("text/*", false),
            ("text/html;q=0", false),
            ("text/html; q=0.0, text/plain", false),
            ("", false),
        ];
        for (header, expected) in cases {
            let request = TestRequest::default().insert_header(("accept", header)).to_http_request();
            assert_eq!(prefers_html(&request), expected, "{header}");
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
