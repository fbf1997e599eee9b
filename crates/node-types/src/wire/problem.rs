//! Responses to requests that failed (RFC 9457).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A response of media type application/problem+json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ErrorModel))]
pub struct Problem {
    /// What is wrong with this request, in one sentence.
    pub detail: String,
    /// Every fault that was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorDetail>,
    /// URI that identifies this occurrence.
    #[cfg_attr(feature = "schema", schema(format = "uri"))]
    pub instance: String,
    /// HTTP status code.
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub status: u16,
    /// Summary of the type of problem, the same for all occurrences; for `about:blank` the text of the HTTP status.
    pub title: String,
    /// URI of the problem's documentation, or `about:blank`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schema(format = "uri", default = "about:blank"))]
    pub problem_type: String,
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// Where the fault is: `body.Topics[1]`, `path.BlockNumber`.
    pub location: String,
    /// What is wrong.
    pub message: String,
    /// The offending value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = EchoedValue, required = false))]
    pub value: Option<EchoedValue>,
}

/// A JSON value as its text, which preserves numbers of any length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EchoedValue(pub Box<RawValue>);

impl PartialEq for EchoedValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for EchoedValue {}

/// Maximum length, in bytes of JSON, of a value that is repeated in full.
const LONGEST_VALUE: usize = 1024;

/// Length in bytes to which longer values are cut.
const SHORTENED: usize = 256;

impl EchoedValue {
    /// Encodes `value`. Returns `None` if it has no JSON encoding.
    pub fn new(value: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(Self)
    }

    /// Copies JSON text. Text that is longer than 1 KiB, or that many parsers reject (deep nesting, invalid escapes,
    /// numbers out of range), is replaced by a string with its beginning.
    pub fn shortened(json: &str) -> Self {
        let short = json.len() <= LONGEST_VALUE && serde_json::from_str::<serde_json::Value>(json).is_ok();
        if short && let Ok(raw) = RawValue::from_string(json.to_owned()) {
            return Self(raw);
        }
        let end = json.floor_char_boundary(SHORTENED);
        let ellipsis = if end < json.len() { "…" } else { "" };
        // A string that is cut would have an opening quote without a closing one.
        let beginning = if ellipsis.is_empty() { json } else { json[..end].trim_start_matches('"') };
        Self::from(format!("{beginning}{ellipsis}"))
    }
}

impl From<String> for EchoedValue {
    fn from(text: String) -> Self {
        Self(RawValue::from_string(serde_json::Value::from(text).to_string()).expect("a JSON value displays as JSON"))
    }
}

impl ErrorDetail {
    /// Creates a fault without a value.
    pub fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into(), value: None }
    }

    /// Adds the offending value.
    #[must_use]
    pub fn with_value(self, value: &impl Serialize) -> Self {
        Self { value: EchoedValue::new(value), ..self }
    }

    /// Adds the offending text, shortened if it is long.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        Self { value: Some(EchoedValue::shortened(&serde_json::Value::from(text).to_string())), ..self }
    }
}
