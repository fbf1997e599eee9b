//! Schemas of parameters in a path, a query or a header, which are text.

use super::Direction;
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
    /// The JSON Schema of the text.
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
        let pattern = codec(name, Direction::Request).map_or(Value::Null, |mut codec| codec["pattern"].take());
        json!({ "type": "string", "pattern": pattern })
    }

    /// Like [`schema`](Self::schema), but also accepts the empty text, which means absence.
    pub fn optional_schema(self) -> Value {
        match self.schema()["pattern"].as_str().map(|pattern| pattern.trim_matches(['^', '$'])) {
            Some(pattern) => json!({ "type": "string", "pattern": format!("^({pattern})?$") }),
            None => json!({ "type": "string" }),
        }
    }
}

fn separated(item: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^( *{item} *(, *{item} *)*)?$") })
}
