//! Answers to requests that failed (RFC 9457).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An answer of media type application/problem+json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ErrorModel))]
pub struct Problem {
    /// What was wrong with this request, in one sentence.
    pub detail: String,
    /// Every fault that was found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorDetail>,
    /// URI that names this occurrence.
    pub instance: String,
    /// HTTP status code.
    #[cfg_attr(feature = "schema", schema(value_type = i64))]
    pub status: u16,
    /// Text of the HTTP status.
    pub title: String,
    /// URI of the problem's documentation, or `about:blank`.
    #[serde(rename = "type")]
    pub problem_type: String,
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// Where it is: `body.Topics[1]`, `path.BlockNumber`.
    pub location: String,
    /// What is wrong.
    pub message: String,
    /// The offending value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = EchoedValue, required = false))]
    pub value: Option<EchoedValue>,
}

/// A JSON value, kept as it was written, so that numbers of any length survive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EchoedValue(pub Box<RawValue>);

impl PartialEq for EchoedValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for EchoedValue {}

/// Values that are longer, in bytes of JSON, are not repeated whole.
const LONGEST_VALUE: usize = 1024;

/// What is kept of a longer one, in bytes.
const SHORTENED: usize = 256;

impl EchoedValue {
    /// Encodes `value`; none where it has no JSON form.
    pub fn new(value: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(Self)
    }

    /// Repeats JSON text; text that is long, or that usual readers refuse (deep nesting, broken escapes, numbers out of
    /// range), becomes a string of its beginning.
    pub fn shortened(json: &str) -> Self {
        let short = json.len() <= LONGEST_VALUE && serde_json::from_str::<serde_json::Value>(json).is_ok();
        if short && let Ok(raw) = RawValue::from_string(json.to_owned()) {
            return Self(raw);
        }
        let end = json.floor_char_boundary(SHORTENED);
        let ellipsis = if end < json.len() { "…" } else { "" };
        // The quotes of a string that is cut would be without a partner; those of one that is whole belong to its text.
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
    /// A fault without a value.
    pub fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into(), value: None }
    }

    /// Adds the offending value.
    #[must_use]
    pub fn with_value(self, value: &impl Serialize) -> Self {
        Self { value: EchoedValue::new(value), ..self }
    }

    /// Adds the offending text, of which only the beginning is kept when it is long.
    #[must_use]
    pub fn with_text(self, text: &str) -> Self {
        Self { value: Some(EchoedValue::shortened(&serde_json::Value::from(text).to_string())), ..self }
    }
}
