//! Schemas of parameters in a path, a query or a header, which are plain text.

use super::Form;
use super::codec::codec;
use serde_json::{Value, json};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextParameter {
    /// An account.
    Address,
    /// A block by number or tag.
    BlockNumberOrTag,
    /// A block by number, hash or tag.
    BlockId,
    /// A hash.
    Hash,
    /// A number below 2^64.
    Number,
    /// Addresses separated by commas; empty matches any.
    Addresses,
    /// Topics separated by commas; empty matches any.
    Topics,
}

impl TextParameter {
    /// Returns the JSON Schema of the text.
    pub fn schema(self) -> Value {
        let name = match self {
            Self::Address => "AddressData",
            Self::BlockNumberOrTag => "BlockNumberOrTag",
            Self::BlockId => "BlockId",
            Self::Hash => "HashData",
            Self::Number => "Quantity64",
            Self::Addresses => return separated("0x[0-9a-fA-F]{40}"),
            Self::Topics => return separated("0x[0-9a-fA-F]{64}"),
        };
        codec(name, Form::PlainRequest).unwrap_or_default()
    }

    /// Like [`schema`](Self::schema), but also accepts the empty text, which means absence.
    pub fn optional_schema(self) -> Value {
        let mut schema = self.schema();
        let pattern = schema["pattern"].as_str().unwrap_or_default().trim_matches(['^', '$']).to_owned();
        schema["pattern"] = format!("^({pattern})?$").into();
        schema
    }
}

fn separated(item: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^( *{item} *(, *{item} *)*)?$") })
}
