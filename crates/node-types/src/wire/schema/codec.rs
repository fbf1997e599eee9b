//! Schemas of the wrapper types, which the derive macro cannot generate.

use super::{Form, to_value};
use crate::wire::fee_history::Percentile;
use crate::wire::*;
use crate::{BlockId, BlockNumberOrTag};
use serde_json::{Value, json};
use std::borrow::Cow;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

/// Returns the schema of the wrapper type `name`, or of another type whose shape the derive macro cannot express.
/// Returns `None` for all other types.
///
/// Among several types or alternatives, the one that the interface description shows comes first; plain requests have
/// only that one.
pub(super) fn codec(name: &str, form: Form) -> Option<Value> {
    let exact = form == Form::Request;
    let hex = if form == Form::Response { "[0-9a-f]" } else { "[0-9a-fA-F]" };
    let text = |pattern: String, format: &str, example: &str, description: &str| json!({ "type": "string", "pattern": pattern, "format": format, "examples": [example], "description": description });
    let bytes = |length: usize, format: &str| {
        let example = format!("0x{}", "0123456789abcdef".repeat(length)[..2 * length].to_owned());
        text(format!("^0x{hex}{{{}}}$", 2 * length), format, &example, "0x and hex digits.")
    };
    let numeric = |pattern: String, format: &str, example: &str, description: &str| {
        let mut schema = text(pattern, format, example, description);
        if exact {
            schema["type"] = json!(["string", "integer"]);
            schema["minimum"] = 0.into();
        }
        schema
    };
    let number = "[0-9]+|0x[0-9a-fA-F]+";
    let tags = "earliest|latest|pending|safe|finalized";
    let address = "0x[0-9a-fA-F]{40}";
    let topic = "0x[0-9a-fA-F]{64}";
    let separated = |item: &str| format!("^( *{item} *(, *{item} *)*)?$");
    let request = form != Form::Response;
    Some(match name {
        "Quantity64" | "Quantity256" if request => numeric(
            format!("^({number})$"),
            "quantity",
            "21000",
            "A number: a decimal string, a 0x hex string, or an integer.",
        ),
        "Quantity64" | "Quantity256" => text("^(0|[1-9][0-9]*)$".to_owned(), "quantity", "21000", "A decimal number."),
        "Word" if exact => numeric(format!("^({number})$"), "hash", "0x01", "A word: 0x and hex digits, or a number."),
        "HashData" | "Word" => bytes(32, "hash"),
        "AddressData" => bytes(20, "address"),
        "BloomData" => bytes(256, "hex"),
        "NonceData" => bytes(8, "hex"),
        "BytesData" => text(format!("^0x({hex}{{2}})*$"), "hex", "0x", "0x and hex digits, two per byte."),
        "BlockNumberOrTag" => {
            let pattern = format!("^({number}|{tags})$");
            numeric(pattern, "block", "latest", "A block number or a block tag; not a hash.")
        }
        "BlockId" => {
            let pattern = format!("^({number}|{tags})$");
            numeric(pattern, "block", "latest", "A block number, a block hash, or a block tag.")
        }
        "StorageKey" => numeric(
            "^([0-9]+|0x[0-9a-fA-F]{1,64})$".to_owned(),
            "storage-slot",
            "0x0",
            "A storage slot: at most 64 hex digits, or a decimal number.",
        ),
        "Percentile" if exact => json!({
            "description": "A percentile: a number from 0 to 100, or a decimal string.",
            "type": ["number", "string"], "minimum": 0, "maximum": 100, "pattern": r"^([0-9]+\.?[0-9]*|\.[0-9]+)$"
        }),
        "Percentile" => json!({
            "description": "A percentile.", "type": "number", "format": "double", "minimum": 0, "maximum": 100, "examples": [50]
        }),
        "AddressFilter" => {
            let description =
                "Addresses: one, or several separated by commas or in an array; if empty, any address matches.";
            let example = format!("0x{}", "5f".repeat(20));
            let plain = text(separated(address), "addresses", &example, description);
            if !exact {
                return Some(plain);
            }
            json!({
                "description": description,
                "anyOf": [
                    { "type": ["string", "null"], "pattern": plain["pattern"] },
                    { "type": "array", "items": { "type": "string", "pattern": format!("^{address}$") } }
                ]
            })
        }
        "TopicFilter" => {
            let description = "A topic, or several separated by commas or in an array, of which one must match; if empty, any topic matches.";
            let example = format!("0x{}", "00".repeat(32));
            let plain = text(separated(topic), "topics", &example, description);
            if !exact {
                return Some(plain);
            }
            let one = json!({ "type": ["string", "null"], "pattern": format!("^({topic})?$") });
            json!({
                "description": description,
                "anyOf": [
                    { "type": ["string", "null"], "pattern": plain["pattern"] },
                    { "type": "array", "items": one }
                ]
            })
        }
        "StorageSlots" if !exact => json!({
            "description": "Values by storage slot, as JSON in a string.", "type": "string", "examples": ["{\"0x0\": \"0x1\"}"]
        }),
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
        "EstimateGasObject" => {
            let description = "State overrides: by address, or a single one, whose balance and nonce apply to the sender and whose code and storage apply to the receiver.";
            if !exact {
                // Client generators cannot choose between an object and a map.
                let mut flat = to_value(&AccountOverride::schema());
                flat["description"] = description.into();
                flat["additionalProperties"] = true.into();
                return Some(flat);
            }
            let by_address = json!({
                "type": "object",
                "propertyNames": { "pattern": format!("^{address}$") },
                "additionalProperties": schema_ref("AccountOverride")
            });
            json!({ "description": description, "anyOf": [schema_ref("AccountOverride"), by_address] })
        }
        // One object rather than alternatives: a full transaction would match both, and generated clients refuse
        // that.
        "BlockTransactions" => json!({
            "description": "Whole transactions, or objects with only their hashes.",
            "type": "array",
            "items": schema_ref("Response_BlockTransaction")
        }),
        "FilterChanges" => json!({
            "description": "Logs, or hashes of blocks or transactions.",
            "type": "array",
            "items": { "oneOf": [schema_ref("Response_Log"), schema_ref("HashData")] }
        }),
        "AccountOverride" => to_value(&AccountOverride::schema()),
        "FilterIdText" => json!({
            "type": "string", "pattern": "^0x[0-9a-fA-F]{32}$", "examples": ["0x2d1f0ad5c9be4c0b9a3e8e3f66a1b7c4"]
        }),
        "EmptyInput" => json!({ "description": "No properties.", "type": "object", "properties": {} }),
        "EchoedValue" => json!({}),
        _ => return None,
    })
}

fn schema_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The type of filter ids in schemas.
pub(in crate::wire) struct FilterIdText;

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
    FilterIdText => "FilterIdText",
    EmptyInput => "EmptyInput",
    EchoedValue => "EchoedValue",
}
