//! JSON Schemas (2020-12) of the wire types, one document a name.
//!
//! The structures come from the types themselves, by utoipa's derive. What a derive cannot know is added here: how the
//! codecs look as text, that objects are closed, and where `$schema` may stand.

use super::fee_history::Percentile;
use super::*;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

/// Every document by its name; references between them are relative, `<Name>.json`.
pub fn schemas() -> BTreeMap<String, Value> {
    let mut documents = Documents::default();

    documents.request::<GetLogsInput>("Input_getLogs");
    documents.request::<EstimateGasInput>("Input_estimateGas");
    documents.request::<FeeHistoryInput>("Input_feeHistory");
    documents.request::<CallInput>("Input_call");
    documents.request::<GetProofInput>("Input_getProof");
    documents.request::<GetStorageAtInput>("Input_getStorageAt");
    documents.request::<SendRawTransactionInput>("Input_sendRawTransaction");
    documents.request::<NewFilterInput>("Input_newFilter");
    documents.request::<GetBlockByNumberInput>("Input_getBlockByNumber");
    documents.part::<TransactionCall>("Params_Transaction", Direction::Request);
    documents.alias("Params_Transaction", "Data", "Input");
    documents.part::<EstimateGasObject>("EstimateGasObject", Direction::Request);
    documents.part::<FilterObject>("FilterObject", Direction::Request);

    documents.answer::<GetLogsOutput>("Output_getLogs");
    documents.answer::<EstimateGasOutput>("Output_estimateGas");
    documents.answer::<FeeHistoryOutput>("Output_feeHistory");
    documents.answer::<CallOutput>("Output_call");
    documents.answer::<GetProofOutput>("Output_getProof");
    documents.answer::<GetStorageAtOutput>("Output_getStorageAt");
    documents.answer::<SendRawTransactionOutput>("Output_sendRawTransaction");
    documents.answer::<FilterIdOutput>("Output_newFilter");
    documents.answer::<GetBlockByNumberOutput>("Output_getBlockByNumber");

    documents.answer::<GetFilterChangesOutput>("Output_getFilterChanges");
    documents.answer::<GetFilterLogsOutput>("Output_getFilterLogs");
    documents.answer::<UninstallFilterOutput>("Output_uninstallFilter");
    documents.answer::<FilterIdOutput>("Output_newBlockFilter");
    documents.answer::<FilterIdOutput>("Output_newPendingTransactionFilter");
    documents.answer::<TransactionOutput>("Output_getTransactionByHash");
    documents.answer::<TransactionOutput>("Output_getTransactionByBlockHashAndIndex");
    documents.answer::<TransactionOutput>("Output_getTransactionByBlockNumberAndIndex");
    documents.answer::<GetTransactionReceiptOutput>("Output_getTransactionReceipt");
    documents.answer::<GetRawTransactionOutput>("Output_getRawTransaction");
    documents.answer::<GetTransactionStatusOutput>("Output_getTransactionStatus");
    documents.answer::<GetBlockByHashOutput>("Output_getBlockByHash");
    documents.answer::<GetBlockReceiptsOutput>("Output_getBlockReceipts");
    documents.answer::<TransactionCountOutput>("Output_getBlockTransactionCountByHash");
    documents.answer::<TransactionCountOutput>("Output_getBlockTransactionCountByNumber");
    documents.answer::<UncleCountOutput>("Output_getUncleCountByBlockHash");
    documents.answer::<UncleCountOutput>("Output_getUncleCountByBlockNumber");
    documents.answer::<BlockNumberOutput>("Output_blockNumber");
    documents.answer::<ChainIdOutput>("Output_chainId");
    documents.answer::<GasPriceOutput>("Output_gasPrice");
    documents.answer::<MaxPriorityFeePerGasOutput>("Output_maxPriorityFeePerGas");
    documents.answer::<BlobBaseFeeOutput>("Output_blobBaseFee");
    documents.answer::<GetAccountOutput>("Output_getAccount");
    documents.answer::<GetBalanceOutput>("Output_getBalance");
    documents.answer::<GetCodeOutput>("Output_getCode");
    documents.answer::<TransactionCountOutput>("Output_getTransactionCount");
    documents.answer::<SyncingOutput>("Output_syncing");
    documents.answer::<ClientVersionOutput>("Output_clientVersion");

    documents.answer::<HealthOutput>("Output_health");
    documents.answer::<ReadyOutput>("Output_ready");

    documents.request::<MineInput>("Input_mine");
    documents.request::<SetNextBlockTimestampInput>("Input_setNextBlockTimestamp");
    documents.request::<IncreaseTimeInput>("Input_increaseTime");
    documents.request::<SetNextBlockBaseFeeInput>("Input_setNextBlockBaseFee");
    documents.request::<SnapshotId>("Input_revert");
    documents.request::<ReorganizeInput>("Input_reorganize");
    documents.request::<ImpersonateInput>("Input_impersonate");
    documents.request::<ImpersonateInput>("Input_stopImpersonating");
    documents.request::<SendTransactionInput>("Input_sendTransaction");
    documents.request::<SetBalanceInput>("Input_setBalance");
    documents.request::<SetNonceInput>("Input_setNonce");
    documents.request::<SetCodeInput>("Input_setCode");
    documents.request::<SetStorageInput>("Input_setStorage");
    documents.request::<DropTransactionInput>("Input_dropTransaction");
    documents.answer::<MineOutput>("Output_mine");
    documents.answer::<SnapshotId>("Output_snapshot");
    documents.answer::<ReorganizeOutput>("Output_reorganize");
    documents.answer::<SendRawTransactionOutput>("Output_sendTransaction");
    documents.answer::<PoolContentOutput>("Output_poolContent");
    for operation in [
        "setNextBlockTimestamp",
        "increaseTime",
        "setNextBlockBaseFee",
        "revert",
        "impersonate",
        "stopImpersonating",
        "setBalance",
        "setNonce",
        "setCode",
        "setStorage",
        "dropTransaction",
    ] {
        documents.answer::<ControlOutput>(&format!("Output_{operation}"));
    }

    documents.part::<Log>("Response_Log", Direction::Answer);
    documents.part::<Block>("Response_Block", Direction::Answer);
    documents.part::<Transaction>("Response_Transaction", Direction::Answer);
    documents.part::<TransactionReceipt>("Response_TransactionReceipt", Direction::Answer);
    documents.part::<StorageEntry>("Response_StorageEntry", Direction::Answer);
    documents.part::<Withdrawal>("Response_Withdrawals", Direction::Answer);
    documents.answer::<Problem>("ErrorModel");
    documents.part::<ErrorDetail>("ErrorDetail", Direction::Answer);

    documents.0
}

/// Properties of answers that are not always present.
const OPTIONAL_IN_ANSWERS: [&str; 3] = ["Reason", "errors", "value"];

/// What others refer to by name; everything else that is referred to is written in place.
const DOCUMENTS: [&str; 10] = [
    "Params_Transaction",
    "EstimateGasObject",
    "FilterObject",
    "Response_Log",
    "Response_Block",
    "Response_Transaction",
    "Response_TransactionReceipt",
    "Response_StorageEntry",
    "Response_Withdrawals",
    "ErrorDetail",
];

/// Requests are read more generously than answers are written.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Request,
    Answer,
}

#[derive(Default)]
struct Documents(BTreeMap<String, Value>);

impl Documents {
    /// Adds the body of a request, or its path parameters.
    fn request<T: ToSchema>(&mut self, name: &str) {
        self.whole::<T>(name, Direction::Request);
    }

    /// Adds the body of an answer.
    fn answer<T: ToSchema>(&mut self, name: &str) {
        self.whole::<T>(name, Direction::Answer);
    }

    /// Adds a body, which may name its own schema.
    fn whole<T: ToSchema>(&mut self, name: &str, direction: Direction) {
        self.part::<T>(name, direction);
        let properties = self.0.get_mut(name).and_then(|document| document.get_mut("properties"));
        if let Some(Value::Object(properties)) = properties {
            let text = "URI of this schema.";
            properties.insert("$schema".to_owned(), json!({ "type": "string", "format": "uri", "description": text }));
        }
    }

    /// Lets a property also be called `alias`.
    fn alias(&mut self, name: &str, property: &str, alias: &str) {
        let properties = self.0.get_mut(name).and_then(|document| document.get_mut("properties"));
        if let Some(Value::Object(properties)) = properties
            && let Some(schema) = properties.get(property).cloned()
        {
            properties.insert(alias.to_owned(), schema);
        }
    }

    /// Adds what stands inside of bodies.
    fn part<T: ToSchema>(&mut self, name: &str, direction: Direction) {
        let mut inner = Vec::new();
        T::schemas(&mut inner);
        let inner = inner.into_iter().map(|(name, schema)| (name, to_value(&schema))).collect();
        let schema = codec(&T::name(), direction).unwrap_or_else(|| to_value(&T::schema()));
        let mut document = Resolver { inner, direction }.resolve(schema);
        if let Value::Object(document) = &mut document {
            document.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
            document.insert("title".to_owned(), name.into());
        }
        self.0.insert(name.to_owned(), document);
    }
}

fn to_value(schema: &RefOr<Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

/// Finishes what the derive made.
struct Resolver {
    inner: BTreeMap<String, Value>,
    direction: Direction,
}

impl Resolver {
    /// The types are not recursive, so that this ends.
    fn resolve(&self, schema: Value) -> Value {
        match schema {
            Value::Array(items) => items.into_iter().map(|item| self.resolve(item)).collect(),
            Value::Object(object) => self.resolve_object(object),
            other => other,
        }
    }

    fn resolve_object(&self, mut object: Map<String, Value>) -> Value {
        let target = object.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        if let Some(name) = target.map(str::to_owned) {
            if DOCUMENTS.contains(&name.as_str()) {
                object.insert("$ref".to_owned(), format!("{name}.json").into());
                return object.into();
            }
            if let Some(Value::Object(mut inner)) =
                codec(&name, self.direction).or_else(|| self.inner.get(&name).cloned())
            {
                object.remove("$ref");
                // The field's own description says more than the type's.
                inner.append(&mut object);
                return self.resolve_object(inner);
            }
        }
        if object.contains_key("properties") {
            self.close(&mut object);
        }
        Value::Object(object.into_iter().map(|(key, value)| (key, self.resolve(value))).collect())
    }

    /// Closes an object; in answers nothing is missing, in requests null and the empty string equal omission.
    fn close(&self, object: &mut Map<String, Value>) {
        object.insert("additionalProperties".to_owned(), false.into());
        let required = object.get("required").cloned().unwrap_or_else(|| json!([]));
        let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
        match self.direction {
            Direction::Answer => {
                let required: Vec<_> =
                    properties.keys().filter(|key| !OPTIONAL_IN_ANSWERS.contains(&key.as_str())).cloned().collect();
                object.insert("required".to_owned(), required.into());
            }
            Direction::Request => {
                for (name, property) in properties.iter_mut() {
                    let is_required = required.as_array().is_some_and(|names| names.iter().any(|other| other == name));
                    if !is_required {
                        let schema = property.take();
                        *property = json!({ "anyOf": [{ "enum": [null, ""] }, schema] });
                    } else if let Some(Value::Array(alternatives)) = property.get_mut("oneOf") {
                        // A property that must be present and may mean any: the empty string, not null.
                        alternatives.retain(|alternative| alternative["type"] != "null");
                        alternatives.push(json!({ "enum": [""] }));
                    }
                }
            }
        }
    }
}

/// How a codec looks as text, and other shapes that a derive cannot express.
fn codec(name: &str, direction: Direction) -> Option<Value> {
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
            "type": "string", "pattern": format!("^0x({hex}{{2}})*$"), "description": "0x and hex digits, two a byte."
        }),
        "BlockTag" => numeric(format!("^({number}|{tags})$"), "A block number or the name of a block."),
        "BlockArgument" => {
            numeric(format!("^({number}|{tags})$"), "A block number, a block hash, or the name of a block.")
        }
        "StorageKey" => {
            numeric("^([0-9]+|0x[0-9a-fA-F]{1,64})$".to_owned(), "A storage slot: at most 64 hex digits, or decimal.")
        }
        "Percentile" => json!({
            "description": "A percentile: a number from 0 to 100, or a decimal string.",
            "type": ["number", "string"], "minimum": 0, "maximum": 100, "pattern": r"^[0-9]+(\.[0-9]*)?$"
        }),
        "AddressFilter" => {
            let address = "0x[0-9a-fA-F]{40}";
            json!({
                "description": "Addresses: one, several in an array or separated by commas, or none for any.",
                "anyOf": [
                    { "type": "string", "pattern": format!("^({address}( *, *{address})*)?$") },
                    { "type": "array", "items": { "type": "string", "pattern": format!("^{address}$") } }
                ]
            })
        }
        "TopicFilter" => {
            let topic = json!({ "type": ["string", "null"], "pattern": "^(0x[0-9a-fA-F]{64})?$" });
            json!({
                "description": "A topic, several in an array of which one must match, or null for any.",
                "anyOf": [topic, { "type": "array", "items": topic }]
            })
        }
        "StorageSlots" => {
            let keys = json!({ "pattern": "^([0-9]+|0x[0-9a-fA-F]{1,64})$" });
            json!({
                "description": "Values by storage slot: an object, or a string that holds one.",
                "anyOf": [
                    { "type": "string" },
                    { "type": "object", "propertyNames": keys, "additionalProperties": schema_ref("Quantity256") }
                ]
            })
        }
        "EstimateGasObject" => json!({
            "description": "State overrides: by address, or one whose balance and nonce are the sender's and whose code and storage are the receiver's.",
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
            "description": "Whole transactions, or objects that hold only their hashes.",
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
        "EchoedValue" => json!({}),
        _ => return None,
    })
}

fn schema_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Gives codecs their names; how they look depends on the direction, see [`codec`].
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
    BlockTag => "BlockTag",
    BlockArgument => "BlockArgument",
    StorageKey => "StorageKey",
    Percentile => "Percentile",
    StorageSlots => "StorageSlots",
    AddressFilter => "AddressFilter",
    TopicFilter => "TopicFilter",
    EstimateGasObject => "EstimateGasObject",
    BlockTransactions => "BlockTransactions",
    FilterChanges => "FilterChanges",
    EchoedValue => "EchoedValue",
}
