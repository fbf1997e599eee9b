//! Path and query parameters.

use crate::problem::HttpError;
use actix_web::HttpRequest;
use node_types::wire::{DecodeParameters, ErrorDetail, Faults, Location, Parameter};

/// The names and decoded values of the parameters in a path.
pub(crate) type PathParameters = Vec<(&'static str, String)>;

/// The decoded parameters of a request.
pub(crate) struct Parameters<'a> {
    request: &'a HttpRequest,
    path: &'a [(&'static str, String)],
    faults: Faults,
    query_read: bool,
}

impl<'a> Parameters<'a> {
    fn new(request: &'a HttpRequest, path: &'a [(&'static str, String)]) -> Self {
        Self { request, path, faults: Faults::default(), query_read: false }
    }

    /// Returns the faults of the query of an operation without query parameters.
    pub(crate) fn no_query(request: &'a HttpRequest) -> Vec<ErrorDetail> {
        let mut parameters = Self::new(request, &[]);
        parameters.walk_query(&[]);
        parameters.faults.into_details()
    }

    pub(crate) fn query_read(&self) -> bool {
        self.query_read
    }

    /// Decodes an input from the parameters of `request`, of which `path` are in its path.
    ///
    /// # Errors
    /// All faults of the parameters, or an error for a path with invalid escapes.
    pub(crate) fn read<I>(
        request: &'a HttpRequest,
        path: &'a [(&'static str, String)],
        read: impl FnOnce(&mut Self) -> Result<I, Vec<ErrorDetail>>,
    ) -> Result<I, HttpError> {
        if !is_decodable(request.uri().path()) {
            return Err(HttpError::Path);
        }
        let mut parameters = Self::new(request, path);
        let input = read(&mut parameters);
        let mut faults = parameters.faults.into_details();
        match input {
            Ok(input) if faults.is_empty() => Ok(input),
            Ok(_) => Err(HttpError::Parameters(faults)),
            Err(others) => {
                faults.splice(..0, others);
                Err(HttpError::Parameters(faults))
            }
        }
    }

    /// Reads an input. The parameters in `in_query` are in the query, where an empty value means absence; all others
    /// are in the path.
    pub(crate) fn input<I: DecodeParameters>(&mut self, in_query: &[&str]) -> Result<I, Vec<ErrorDetail>> {
        let sent = if in_query.is_empty() { Vec::new() } else { self.queries(in_query) };
        I::decode_parameters(|name| match in_query.iter().position(|known| *known == name) {
            Some(index) => {
                let text = sent[index].as_deref().filter(|text| !text.is_empty())?;
                Some(Parameter { part: "query", text: text.into() })
            }
            None => self.optional_path(name).map(|text| Parameter { part: "path", text: text.into() }),
        })
    }

    /// Returns a path parameter; empty if the route does not have it.
    pub(crate) fn path(&self, name: &str) -> &'a str {
        self.optional_path(name).unwrap_or_default()
    }

    fn optional_path(&self, name: &str) -> Option<&'a str> {
        self.path.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the query parameters `names`, in this order. Any others are faults, because a misspelt name would
    /// otherwise silently change the request.
    pub(crate) fn queries(&mut self, names: &[&str]) -> Vec<Option<String>> {
        self.query_read = true;
        self.walk_query(names)
    }

    fn walk_query(&mut self, names: &[&str]) -> Vec<Option<String>> {
        let mut values = vec![None; names.len()];
        for pair in self.request.query_string().split('&').filter(|pair| !pair.is_empty()) {
            let (key, text) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(key, true), decode(text, true));
            let key = name.as_deref().unwrap_or(key);
            if is_ignored(key) {
                continue;
            }
            let mut fault = |message| {
                let json = serde_json::Value::from(value.as_deref().unwrap_or(text)).to_string();
                self.faults.push(Location::Property(&Location::Part("query"), key), message, Some(&json));
            };
            let (Some(name), Some(text)) = (&name, &value) else {
                fault("expected percent-encoded UTF-8");
                continue;
            };
            match names.iter().position(|known| known == name) {
                Some(index) if values[index].is_none() => values[index] = Some(text.clone()),
                Some(_) => fault("duplicate parameter"),
                None => fault("unexpected parameter"),
            }
        }
        values
    }
}

/// Returns whether a query parameter is ignored by servers: those that bypass caches, and those of analytics.
fn is_ignored(name: &str) -> bool {
    name == "_" || name.starts_with("utm_")
}

/// Returns whether a path can be decoded: every `%` must start an escape, and the bytes must be UTF-8.
pub(crate) fn is_decodable(path: &str) -> bool {
    !path.contains('%') || decode(path, false).is_some()
}

/// Decodes percent-encoding as far as it is valid.
pub(crate) fn decode_lossy(text: &str, query: bool) -> String {
    decode(text, query).unwrap_or_else(|| text.to_owned())
}

/// Decodes percent-encoding, and in queries `+` as a space.
fn decode(text: &str, query: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?,
            b'+' if query => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn decoding() {
        let cases = [
            ("/latest/", Some("/latest/")),
            ("%6Catest", Some("latest")),
            ("%2F%25", Some("/%")),
            ("%C3%BC", Some("ü")),
            ("%", None),
            ("%2", None),
            ("%zz", None),
            ("%FF", None),
            ("%C3", None),
        ];
        for (path, expected) in cases {
            assert_eq!(decode(path, false).as_deref(), expected, "{path}");
            assert_eq!(is_decodable(path), expected.is_some(), "{path}");
        }
        assert_eq!((decode("a+b", true), decode("a+b", false)), (Some("a b".into()), Some("a+b".into())));
    }

    #[test]
    fn queries() {
        /// The value, or the locations of faults.
        type Expected = Result<Option<&'static str>, &'static [&'static str]>;
        let cases: [(&str, Expected); 8] = [
            ("/", Ok(None)),
            ("/?_=1&utm_source=%&BlockNumber=7&_=2", Ok(Some("7"))),
            ("/?", Ok(None)),
            ("/?BlockNumber=7", Ok(Some("7"))),
            ("/?&BlockNumber=%37", Ok(Some("7"))),
            ("/?BlockNumber", Ok(Some(""))),
            ("/?blockNumber=7&BlockNumber=%", Err(&["query.blockNumber", "query.BlockNumber"])),
            ("/?BlockNumber=7&BlockNumber=7", Err(&["query.BlockNumber"])),
        ];
        for (uri, expected) in cases {
            let request = TestRequest::with_uri(uri).to_http_request();
            let got =
                Parameters::read(&request, &[], |parameters| Ok(parameters.queries(&["BlockNumber"]).pop().flatten()));
            match (got, expected) {
                (Ok(got), Ok(expected)) => assert_eq!(got.as_deref(), expected, "{uri}"),
                (Err(HttpError::Parameters(faults)), Err(expected)) => {
                    let locations: Vec<_> = faults.iter().map(|fault| fault.location.as_str()).collect();
                    assert_eq!(locations, expected, "{uri}");
                }
                (got, _) => panic!("{uri}: {got:?}"),
            }
        }
        let request = TestRequest::with_uri("/?B=2&A=1&C=3&A=4").to_http_request();
        let mut parameters = Parameters::new(&request, &[]);
        assert_eq!(parameters.queries(&["A", "B", "D"]), [Some("1".into()), Some("2".into()), None]);
        let locations: Vec<_> = parameters.faults.into_details().into_iter().map(|fault| fault.location).collect();
        assert_eq!(locations, ["query.C", "query.A"], "unknown, then twice");

        let request = TestRequest::with_uri("/?f%6Fo=%25+1&%5F=1&ut%6D_x=1&BlockNumber=%").to_http_request();
        let shown = |fault: ErrorDetail| (fault.location, fault.value.unwrap().0.get().to_owned());
        let faults: Vec<_> = Parameters::no_query(&request).into_iter().map(shown).collect();
        let expected = [("query.foo", r#""% 1""#), ("query.BlockNumber", r#""%""#)];
        assert_eq!(faults, expected.map(|(location, value)| (location.into(), value.into())), "no query is expected");
    }
}
