//! The headers of responses.

use super::reference;
use serde_json::{Map, Value, json};

/// Every header that a response may have: name, description, pattern of its value, example.
const HEADERS: [(&str, &str, &str, &str); 10] = [
    (
        "X-Request-Id",
        "Identifies this request in the server's log and in the `instance` of a problem: a UUID, or the id in the request.",
        "^[A-Za-z0-9._~:+/=@-]{1,128}$",
        "5d9c3f6e-9f0c-4a53-8a53-0f3f6f0c2a11",
    ),
    (
        "Link",
        "`rel=\"describedBy\"`: the JSON Schema of the body. `rel=\"next\"`: the address of the next page.",
        "",
        "<http://127.0.0.1:8545/schemas/Output_blockNumber.json>; rel=\"describedBy\"",
    ),
    ("X-Head-Number", "Number of the head block that the response was read from.", "^(0|[1-9][0-9]*)$", "7"),
    (
        "X-Head-Hash",
        "Hash of the head block that the response was read from.",
        "^0x[0-9a-f]{64}$",
        "0x8f1e8f6d2d2f8c0de3f1a93f6ef5f0a1b9a2f3c4d5e6f708192a3b4c5d6e7f80",
    ),
    ("ETag", "Identifies the content of the response, for `If-None-Match`.", "", "\"a94a8fe5ccb19ba6\""),
    (
        "Cache-Control",
        "How long the response may be stored: `immutable` for a block requested by its hash.",
        "",
        "no-cache",
    ),
    ("Vary", "Headers of the request that select the form of the response.", "", "Accept-Encoding"),
    ("Retry-After", "Seconds to wait before the next attempt.", "^[0-9]+$", "1"),
    ("Allow", "The methods that the path accepts.", "", "POST, OPTIONS"),
    ("WWW-Authenticate", "How to authenticate.", "", "Bearer"),
];

/// Returns the Header Objects by name, for `components`.
pub(super) fn components() -> Value {
    let header = |(name, description, pattern, example): (&str, &str, &str, &str)| {
        let mut schema = json!({ "type": "string" });
        if !pattern.is_empty() {
            schema["pattern"] = pattern.into();
        }
        let required = name == "X-Request-Id";
        let header = json!({ "description": description, "required": required, "schema": schema, "example": example });
        (name.to_owned(), header)
    };
    Map::from_iter(HEADERS.map(header)).into()
}

/// Returns the headers of a 200 response. `operation` is whether it is the output of an operation rather than a
/// document, and `storable` whether caches may store it.
pub(super) fn of_success(operation: bool, storable: bool) -> Value {
    let mut names = vec!["X-Request-Id", "Cache-Control"];
    if operation {
        names.extend(["Link", "X-Head-Number", "X-Head-Hash"]);
    }
    if storable {
        names.extend(["ETag", "Vary"]);
    }
    named(&names)
}

pub(super) fn of_problem(status: u16) -> Value {
    let mut names = vec!["X-Request-Id", "Link"];
    match status {
        401 => names.push("WWW-Authenticate"),
        405 => names.push("Allow"),
        429 | 503 => names.push("Retry-After"),
        _ => {}
    }
    named(&names)
}

/// Returns the headers of a 304 response.
pub(super) fn of_not_modified() -> Value {
    named(&["X-Request-Id", "Cache-Control", "ETag", "Vary"])
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), reference("headers", name))).collect::<Map<_, _>>().into()
}
