//! Alternative spellings of an operation's path: without the trailing slash, and with `node_` before the name.

use super::operation::Operation;
use actix_web::dev::ServiceRequest;
use actix_web::http::Uri;
use actix_web::http::uri::PathAndQuery;
use std::collections::HashSet;

/// Recognizes alternative spellings of paths under a base path.
pub(crate) struct Spellings {
    base: String,
    /// The names of operations whose path ends with a slash, including the path prefix of control operations.
    names: HashSet<&'static str>,
}

/// The path prefix of operations that control a chain. They have no spelling with `node_`.
const FOLDER: &str = "dev/";

impl Spellings {
    pub(crate) fn new(base: &str, operations: &[Operation]) -> Self {
        let paths = operations.iter().map(|operation| operation.path).filter(|path| path.ends_with('/'));
        Self { base: base.to_owned(), names: paths.filter_map(|path| path.strip_prefix('/').map(name)).collect() }
    }

    /// Replaces an alternative spelling of the request's path with the canonical one, and keeps the query.
    pub(crate) fn normalize(&self, request: &mut ServiceRequest) {
        let Some(path) = self.canonical(request.uri().path()) else { return };
        let mut parts = request.uri().clone().into_parts();
        let path = match request.uri().query() {
            Some(query) => [&path, "?", query].concat(),
            None => path,
        };
        parts.path_and_query = PathAndQuery::try_from(path).ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            request.match_info_mut().get_mut().update(&uri);
            request.head_mut().uri = uri;
        }
    }

    /// Returns the canonical spelling of `path`, or `None` if it is already canonical, or is not the path of an
    /// operation.
    fn canonical(&self, path: &str) -> Option<String> {
        let relative = path.strip_prefix(&self.base)?.strip_prefix('/')?;
        let unprefixed = relative.strip_prefix("node_");
        if unprefixed.is_none() && path.ends_with('/') {
            return None;
        }
        let rest = unprefixed.unwrap_or(relative);
        let name = name(rest);
        let is_operation = self.names.contains(name) && (unprefixed.is_none() || !name.starts_with(FOLDER));
        let slash = if rest.ends_with('/') { "" } else { "/" };
        is_operation.then(|| [&self.base, "/", rest, slash].concat())
    }
}

/// Returns the name at the start of a relative path, including the prefix of control operations.
fn name(path: &str) -> &str {
    let folder = if path.starts_with(FOLDER) { FOLDER.len() } else { 0 };
    let length = path[folder..].find('/').unwrap_or(path.len() - folder);
    &path[..folder + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_alternative_spellings() {
        let operations = crate::routes::operations();
        let cases = [
            ("/getLogs", Some("/getLogs/")),
            ("/node_getLogs", Some("/getLogs/")),
            ("/node_getLogs/", Some("/getLogs/")),
            ("/getBlockByNumber/%6Catest/false", Some("/getBlockByNumber/%6Catest/false/")),
            ("/node_getBlockByNumber/1", Some("/getBlockByNumber/1/")),
            ("/dev/mine", Some("/dev/mine/")),
            ("/getLogs/", None),
            ("/getlogs", None),
            ("/node_/getLogs", None),
            ("/node_node_getLogs", None),
            ("/node_dev/mine", None),
            ("/dev", None),
            ("/mine", None),
            ("/health", None),
            ("/docs", None),
            ("/openapi.json", None),
            ("/", None),
            ("", None),
        ];
        for base in ["", "/v1"] {
            let spellings = Spellings::new(base, &operations);
            for (path, expected) in cases {
                let expected = expected.map(|path| [base, path].concat());
                assert_eq!(spellings.canonical(&[base, path].concat()), expected, "{base} {path}");
            }
        }
        assert_eq!(Spellings::new("/v1", &operations).canonical("/getLogs"), None);
    }
}
