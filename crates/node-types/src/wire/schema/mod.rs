//! JSON Schemas (2020-12) of the wire types, one document a name.
//!
//! The structures come from the types themselves, by utoipa's derive. What a derive cannot know is added here: how the
//! codecs look as text, that objects are closed, and where `$schema` may stand.

mod codec;
mod text;

use super::*;
use codec::codec;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
pub use text::TextParameter;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

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
    documents.request::<EmptyInput>("Input_newBlockFilter");
    documents.request::<EmptyInput>("Input_newPendingTransactionFilter");
    documents.part::<TransactionCall>("Params_Transaction", Direction::Request);
    documents.alias("Params_Transaction", "Data", "Input");
    documents.part::<EstimateGasObject>("EstimateGasObject", Direction::Request);
    documents.part::<AccountOverride>("AccountOverride", Direction::Request);
    documents.part::<StorageSlots>("StorageSlots", Direction::Request);
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
    documents.request::<EmptyInput>("Input_snapshot");
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
const DOCUMENTS: [&str; 12] = [
    "AccountOverride",
    "StorageSlots",
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

/// What names the schema of an object: of each answer, and in requests wherever a client puts it.
const SCHEMA: &str = "$schema";

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
        self.part::<T>(name, Direction::Request);
    }

    /// Adds the body of an answer, which names its schema.
    fn answer<T: ToSchema>(&mut self, name: &str) {
        self.part::<T>(name, Direction::Answer);
        let Some(document) = self.0.get_mut(name) else { return };
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            let text = "URI of this schema.";
            properties.insert(SCHEMA.to_owned(), json!({ "type": "string", "format": "uri", "description": text }));
        }
        if let Some(Value::Array(required)) = document.get_mut("required") {
            required.insert(0, SCHEMA.into());
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
            document.insert(SCHEMA.to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
            document.insert("title".to_owned(), name.into());
        }
        self.0.insert(name.to_owned(), document);
    }
}

/// The empty string. Generated clients have no name for a constant among other strings.
fn empty() -> Value {
    json!({ "type": "string", "maxLength": 0 })
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
            // What an answer holds is described as it is written, not as it is read.
            let foreign = self.direction == Direction::Request && name.starts_with("Response_");
            if DOCUMENTS.contains(&name.as_str()) && !foreign {
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
        if self.direction == Direction::Request
            && object.get("format").is_some_and(|format| format == "int64")
            && let Some(Value::Object(mut quantity)) = codec("Quantity64", self.direction)
        {
            quantity.extend(object.remove_entry("description"));
            return quantity.into();
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
                        *property = json!({ "anyOf": [{ "type": "null" }, empty(), schema] });
                    } else if let Some(Value::Array(alternatives)) = property.get_mut("oneOf") {
                        // A property that must be present and may mean any: the empty string, not null.
                        alternatives.retain(|alternative| alternative["type"] != "null");
                        alternatives.push(empty());
                    } else if property.get("type").is_some_and(|kind| kind == "array") {
                        let schema = property.take();
                        *property = json!({ "anyOf": [empty(), schema] });
                    }
                }
                properties.insert(SCHEMA.to_owned(), json!({ "description": "Ignored." }));
            }
        }
    }
}
