//! Serialization of responses, with the URL of their schema as the first key.

use crate::admission::forwarded::Forwarded;
use crate::admission::hosts;
use crate::config::HttpConfig;
use crate::problem::HttpError;
use crate::url::is_authority;
use actix_web::HttpRequest;
use actix_web::http::header::HOST;
use node_types::wire::{JsonBuffer, append_json};
use serde::Serialize;
use serde_json::Value;

/// Returns the URL at which the client reaches the server: the configured public URL, or the one at which the client
/// reached the trusted proxies that `forwarded` the request, or the host to which the request is addressed.
/// `listening` replaces a host that is missing, invalid or not allowed.
pub(crate) fn base_url(
    request: &HttpRequest,
    forwarded: Option<&Forwarded>,
    config: &HttpConfig,
    listening: &str,
) -> String {
    // The host is written into JSON strings and headers unescaped, so it must be a valid authority.
    let is_usable = |name: &&str| is_authority(name) && hosts::is_allowed(&config.access.allowed_hosts, name, None);
    let addressed = || requested_authority(request).filter(is_usable).unwrap_or(listening);
    match (&config.listen.public_url, forwarded) {
        (None, Some(Forwarded { scheme, host, prefix, .. })) => {
            let scheme = scheme.unwrap_or(config.scheme());
            let host = host.as_deref().unwrap_or_else(addressed);
            [scheme, "://", host, prefix.as_str(), config.listen.base_path.as_str()].concat()
        }
        _ => url_with_authority(config, addressed()),
    }
}

/// Returns the base of all URLs of the server: the configured public URL, or one with `authority`.
pub(crate) fn url_with_authority(config: &HttpConfig, authority: &str) -> String {
    match &config.listen.public_url {
        Some(url) => url.with_base(&config.listen.base_path),
        None => [config.scheme(), "://", authority, config.listen.base_path.as_str()].concat(),
    }
}

/// Returns the path of `base_url`, without a trailing slash.
pub(crate) fn path_of(base_url: &str) -> &str {
    let authority = base_url.find("://").map_or(0, |at| at + 3);
    base_url[authority..].find('/').map_or("", |at| &base_url[authority + at..])
}

/// Returns the host to which the request is addressed, with or without a port.
pub(crate) fn requested_authority(request: &HttpRequest) -> Option<&str> {
    let host = || request.headers().get(HOST)?.to_str().ok();
    request.uri().authority().map(|authority| authority.as_str()).or_else(host)
}

pub(crate) fn schema_url(base_url: &str, name: &str) -> String {
    [base_url, "/schemas/", name, ".json"].concat()
}

/// Appends the beginning of a response up to the end of `$schema`.
fn open(out: &mut JsonBuffer, schema_url: &str) {
    out.extend_from_slice(b"{\"$schema\":\"");
    out.extend_from_slice(schema_url.as_bytes());
    out.push(b'"');
}

/// Appends the JSON of a response whose part after `$schema` is `rest`.
pub(crate) fn append_rest(out: &mut JsonBuffer, schema_url: &str, rest: &[u8]) {
    open(out, schema_url);
    out.extend_from_slice(rest);
}

/// Returns the part of a response after `$schema`, which does not depend on the client.
pub(crate) fn rest_of<'a>(schema_url: &str, json: &'a [u8]) -> &'a [u8] {
    let mut opening = JsonBuffer::default();
    open(&mut opening, schema_url);
    json.get(opening.len()..).unwrap_or_default()
}

/// Appends the JSON of `output`, which must be an object, with `$schema` added as the first key.
pub(crate) fn append<T: Serialize>(out: &mut JsonBuffer, schema_url: &str, output: &T) -> Result<(), HttpError> {
    append_by(out, schema_url, |out| {
        append_json(out, output).map_err(|error| out.full().map_or(HttpError::Encode(error), HttpError::from))
    })
}

/// Appends the JSON object that `append` appends, with `$schema` added as the first key. Returns what `append` returns.
pub(crate) fn append_by<T>(
    out: &mut JsonBuffer,
    schema_url: &str,
    append: impl FnOnce(&mut JsonBuffer) -> Result<T, HttpError>,
) -> Result<T, HttpError> {
    open(out, schema_url);
    let start = out.len();
    let returned = append(out)?;
    if let Some(full) = out.full() {
        return Err(full.into());
    }
    debug_assert_eq!(out[start], b'{', "every output is an object");
    if out.ends_with(b"{}") {
        out.truncate(start);
        out.push(b'}');
    } else {
        out.replace(start, b',');
    }
    Ok(returned)
}

/// Returns the JSON of `output` with `$schema` as the first key, without a limit on its length.
pub(crate) fn with_schema<T: Serialize>(schema_url: &str, output: &T) -> Result<Vec<u8>, HttpError> {
    let mut json = JsonBuffer::default();
    append(&mut json, schema_url, output)?;
    Ok(json.into())
}

/// Returns the JSON of a schema, with `$id`, its own URL, added as the first key.
pub(crate) fn identified(schema_url: &str, schema: &Value) -> Result<Vec<u8>, HttpError> {
    let mut json = with_schema(schema_url, schema)?;
    json.splice(..b"{\"$schema\"".len(), *b"{\"$id\"");
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AccessOptions, ListenOptions};
    use actix_web::test::TestRequest;
    use serde_json::json;

    #[test]
    fn adds_the_schema_as_the_first_key() {
        let cases = [
            (json!({}), r#"{"$schema":"http://h/s"}"#),
            (json!({"A": {}}), r#"{"$schema":"http://h/s","A":{}}"#),
            (json!({"A": "1", "B": [null]}), r#"{"$schema":"http://h/s","A":"1","B":[null]}"#),
        ];
        for (output, expected) in cases {
            let json = with_schema("http://h/s", &output).unwrap();
            let mut again = JsonBuffer::default();
            append_rest(&mut again, "http://h/s", rest_of("http://h/s", &json));
            assert_eq!(again[..], json[..]);
            assert_eq!(String::from_utf8(json).unwrap(), expected);
        }
    }

    #[test]
    fn prefers_the_public_url_and_replaces_invalid_hosts() {
        let allowed_hosts = ["inner", "node.local"].map(|host| host.parse().unwrap()).to_vec();
        let plain =
            HttpConfig { access: AccessOptions { allowed_hosts, ..Default::default() }, ..HttpConfig::default() };
        let based = HttpConfig {
            listen: ListenOptions { base_path: "/v1".parse().unwrap(), ..plain.listen.clone() },
            ..plain.clone()
        };
        let public = HttpConfig {
            listen: ListenOptions {
                public_url: Some("https://node.example/x".parse().unwrap()),
                ..based.listen.clone()
            },
            ..based.clone()
        };
        let forwarded = Forwarded {
            client: None,
            scheme: Some("https"),
            host: Some("outer.example".to_owned()),
            prefix: "/proxy".parse().unwrap(),
        };
        let request = TestRequest::default().insert_header((HOST, "inner")).to_http_request();
        let nothing = Forwarded::default();
        let url = |config, forwarded| base_url(&request, Some(forwarded), config, "listening");
        assert_eq!(url(&based, &forwarded), "https://outer.example/proxy/v1");
        assert_eq!(url(&based, &nothing), "http://inner/v1");
        assert_eq!(url(&public, &forwarded), "https://node.example/x/v1");
        assert_eq!([path_of("http://a:1"), path_of("https://a/b/c")], ["", "/b/c"]);

        let cases = [
            (&plain, "node.local:8545", "http://node.local:8545"),
            (&plain, "[::1]:8545", "http://[::1]:8545"),
            (&plain, "a\"b", "http://listening"),
            (&plain, "a/b", "http://listening"),
            (&plain, "user@host", "http://listening"),
            (&plain, "", "http://listening"),
            (&plain, "evil.example", "http://listening"),
            (&based, "node.local", "http://node.local/v1"),
            (&public, "node.local", "https://node.example/x/v1"),
        ];
        for (config, host, expected) in cases {
            let request = TestRequest::default().insert_header((HOST, host)).to_http_request();
            assert_eq!(base_url(&request, None, config, "listening"), expected, "{host}");
        }
    }
}
