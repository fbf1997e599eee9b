//! Schemas of the codecs, which the derive cannot know.

use super::{Direction, to_value};
use crate::wire::fee_history::Percentile;
use crate::wire::*;
use crate::{BlockId, BlockNumberOrTag};
use serde_json::{Value, json};
use std::borrow::Cow;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

/// Returns the schema of the codec `name`, and of other types whose shape the derive cannot express; `None` for all others.
pub(super) fn codec(name: &str, direction: Direction) -> Option<Value> {
    let request = direction == Direction::Request;
    let hex = if request { "[0-9a-fA-F]" } else { "[0-9a-f]" };
    let bytes = |length: usize| json!({ "type": "string", "pattern": format!("^0x{hex}{{{}}}$", 2 * length), "description": "0x and hex digits." });
    let number = r"([0-9]+|0x[0-9a-fA-F]+)";
    let tags = "earliest|latest|pending|safe|finalized";
    let numeric = |pattern: String, text: &str| json!({ "type": ["string", "integer"], "pattern": pattern, "minimum": 0, "description": text });
    Some(match name {
        "Quantity64" | "Quantity256" if request => {
            numeric(format!("^{number}$"), "A number: a decimal string, a 0x hex string, or an integer.")
        }
        "Quantity64" | "Quantity256" => {
            json!({ "type": "string", "pattern": "^(0|[1-9][0-9]*)$", "description": "A decimal number." })
        }
        "HashData" | "Word" => bytes(32),
        "AddressData" => bytes(20),
        "BloomData" => bytes(256),
        "NonceData" => bytes(8),
        "BytesData" => json!({
            "type": "string", "pattern": format!("^0x({hex}{{2}})*$"), "description": "0x and hex digits, two per byte."
        }),
        "BlockNumberOrTag" => numeric(format!("^({number}|{tags})$"), "A block number or a block tag."),
        "BlockId" => numeric(format!("^({number}|{tags})$"), "A block number, a block hash, or a block tag."),
        "StorageKey" => numeric(
            "^([0-9]+|0x[0-9a-fA-F]{1,64})$".to_owned(),
            "A storage slot: at most 64 hex digits, or a decimal number.",
        ),
        "Percentile" => json!({
            "description": "A percentile: a number from 0 to 100, or a decimal string.",
            "type": ["number", "string"], "minimum": 0, "maximum": 100, "pattern": r"^([0-9]+\.?[0-9]*|\.[0-9]+)$"
        }),
        "AddressFilter" => {
            let address = "0x[0-9a-fA-F]{40}";
            let one = format!(" *{address} *");
            json!({
                "description": "Addresses: one, or several in an array or separated by commas; if empty, any address matches.",
                "anyOf": [
                    { "type": "string", "pattern": format!("^({one}(,{one})*)?$") },
                    { "type": "array", "items": { "type": "string", "pattern": format!("^{address}$") } }
                ]
            })
        }
        "TopicFilter" => {
            let topic = json!({ "type": ["string", "null"], "pattern": "^(0x[0-9a-fA-F]{64})?$" });
            json!({
                "description": "A topic, an array of topics of which one must match, or null to match any.",
                "anyOf": [topic, { "type": "array", "items": topic }]
            })
        }
        "StorageSlots" => {
            let keys = json!({ "pattern": "^([0-9]+|0x[0-9a-fA-F]{1,64})$" });
            json!({
                "description": "Values by storage slot: an object, or a string that contains one.",
                "anyOf": [
                    { "type": "string" },
                    { "type": "object", "propertyNames": keys, "additionalProperties": schema_ref("Quantity256") }
                ]
            })
        }
        "EstimateGasObject" => json!({
            "description": "State overrides: by address, or a single one, whose balance and nonce apply to the sender and whose code and storage apply to the receiver.",
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": { "pattern": "^0x[0-9a-fA-F]{40}$" },
                    "additionalProperties": schema_ref("AccountOverride")
                },
                schema_ref("AccountOverride")
            ]
        }),
        "BlockTransactions" => json!({
            "description": "Whole transactions, or objects with only their hashes.",
            "type": "array",
            "items": {
                "anyOf": [
                    schema_ref("Response_Transaction"),
                    { "type": "object", "properties": { "Hash": schema_ref("HashData") } }
                ]
            }
        }),
        "FilterChanges" => json!({
            "description": "Logs, or hashes of blocks or transactions.",
            "type": "array",
            "items": { "anyOf": [schema_ref("Response_Log"), schema_ref("HashData")] }
        }),
        "AccountOverride" => to_value(&AccountOverride::schema()),
        "EmptyInput" => json!({ "description": "No properties.", "type": "object", "properties": {} }),
        "EchoedValue" => json!({}),
        _ => return None,
    })
}

fn schema_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Names the codecs. Their schemas depend on the direction, so [`codec`] has them.
macro_rules! named {
    ($($codec:ty => $name:literal),+ $(,)?) => {$(
        impl PartialSchema for $codec {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::Object(Object::with_type(Type::String)))
            }
        }

        impl ToSchema for $codec {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )+};
}

named! {
    Quantity64 => "Quantity64",
    Quantity256 => "Quantity256",
    HashData => "HashData",
    AddressData => "AddressData",
    BytesData => "BytesData",
    BloomData => "BloomData",
    NonceData => "NonceData",
    Word => "Word",
    BlockNumberOrTag => "BlockNumberOrTag",
    BlockId => "BlockId",
    StorageKey => "StorageKey",
    Percentile => "Percentile",
    StorageSlots => "StorageSlots",
    AddressFilter => "AddressFilter",
    TopicFilter => "TopicFilter",
    EstimateGasObject => "EstimateGasObject",
    BlockTransactions => "BlockTransactions",
    FilterChanges => "FilterChanges",
    EmptyInput => "EmptyInput",
    EchoedValue => "EchoedValue",
}
