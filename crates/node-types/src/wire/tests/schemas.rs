//! The schemas accept exactly what the types read and write.

use super::strategies as any;
use crate::wire::schema::{Documents, Form};
use crate::wire::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn schemas() -> BTreeMap<String, Value> {
    let mut documents = Documents::shared(Form::Request);
    documents.request::<GetLogsInput>("Input_getLogs");
    documents.request::<NewFilterInput>("Input_newFilter");
    documents.request::<EmptyInput>("Input_newBlockFilter");
    documents.request::<CallInput>("Input_call");
    documents.request::<EstimateGasInput>("Input_estimateGas");
    documents.request::<FeeHistoryInput>("Input_feeHistory");
    documents.request::<GetProofInput>("Input_getProof");
    documents.request::<GetStorageAtInput>("Input_getStorageAt");
    documents.request::<SendRawTransactionInput>("Input_sendRawTransaction");
    documents.request::<MineInput>("Input_mine");
    documents.response::<GetBlockByNumberOutput>("Output_getBlockByNumber");
    documents.response::<GetProofOutput>("Output_getProof");
    documents.response::<FeeHistoryOutput>("Output_feeHistory");
    documents.response::<SyncingOutput>("Output_syncing");
    documents.response::<CallOutput>("Output_call");
    documents.response::<EstimateGasOutput>("Output_estimateGas");
    documents.into_map()
}

/// All documents in one, with `name` as the entry.
fn validator(name: &str) -> jsonschema::Validator {
    let definitions: Map<String, Value> = schemas()
        .into_iter()
        .map(|(name, mut document)| {
            document["$id"] = format!("https://node.example/schemas/{name}.json").into();
            (name, document)
        })
        .collect();
    let bundle = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://node.example/bundle.json",
        "$ref": format!("https://node.example/schemas/{name}.json"),
        "$defs": definitions,
    });
    jsonschema::validator_for(&bundle).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn accepts<T: serde::Serialize>(name: &str, values: impl Strategy<Value = T>) {
    let validator = validator(name);
    let mut runner = TestRunner::deterministic();
    for _ in 0..30 {
        let mut value = serde_json::to_value(values.new_tree(&mut runner).unwrap().current()).unwrap();
        if name.starts_with("Output_") {
            assert!(!validator.is_valid(&value), "{name} does not demand $schema");
            value["$schema"] = "https://node.example/schemas/x.json".into();
        }
        if let Err(error) = validator.validate(&value) {
            panic!("{name}: {error}\n{value}");
        }
        value["unknown"] = json!(1);
        assert!(!validator.is_valid(&value), "{name} is open");
    }
}

#[test]
fn schemas_accept_encoded_values() {
    accepts("Input_getLogs", any::get_logs_input());
    accepts("Input_newFilter", any::new_filter_input());
    accepts("Input_call", any::call_input());
    accepts("Input_estimateGas", any::estimate_gas_input());
    accepts("Input_feeHistory", any::fee_history_input());
    accepts("Input_getProof", any::get_proof_input());
    accepts("Input_getStorageAt", any::get_storage_at_input());
    accepts("Input_sendRawTransaction", any::bytes().prop_map(|data| SendRawTransactionInput { data }));
    accepts("Input_getBlockByNumber", Just(GetBlockByNumberInput::default()));
    accepts("Response_Log", any::log());
    accepts("Response_Transaction", any::transaction());
    accepts("Response_TransactionReceipt", any::receipt());
    accepts("Output_getBlockByNumber", any::block().prop_map(|block| GetBlockByNumberOutput { block: Some(block) }));
    accepts("Output_getProof", any::proof());
    accepts("Output_feeHistory", any::fee_history());
    accepts("Output_getBlockByNumber", Just(GetBlockByNumberOutput { block: None }));
    accepts("Output_syncing", Just(SyncingOutput { sync_status: Some(SyncStatus::default()) }));
    let fault = ErrorDetail::new("body", "expected object").with_value(&Value::Null);
    accepts("ErrorDetail", Just(fault));
}

#[test]
fn schemas_accept_all_forms_of_requests() {
    let a = "0xAA00000000000000000000000000000000000000";
    let cases = [
        (
            "Input_getLogs",
            json!({ "$schema": "https://x", "Address": null, "FromBlock": "", "Topics": [null, [null]] }),
        ),
        ("Input_getLogs", json!({ "Address": [a], "FromBlock": 5, "ToBlock": "0x5" })),
        ("Input_call", json!({ "Transaction": { "Input": "0x", "Gas": 21000, "From": "", "To": null } })),
        ("Input_estimateGas", json!({ "Transaction": {}, "Object": { a: { "State": "{}", "Nonce": null } } })),
        ("Input_estimateGas", json!({ "Transaction": {}, "Object": { "StateDiff": { "10": 5, "0x1": "0x2" } } })),
        ("Input_feeHistory", json!({ "BlockCount": 5, "RewardPercentiles": [1, 2.5, "3", ".5"] })),
        ("Input_getLogs", json!({ "$schema": 5, "Address": format!(" {a} ,{a}") })),
        ("Input_call", json!({ "Transaction": { "$schema": null } })),
        ("Input_newBlockFilter", json!({ "$schema": "x" })),
        (
            "Input_mine",
            json!({ "Withdrawals": [{ "Address": a, "Amount": 7, "Index": "1", "ValidatorIndex": "0x2" }] }),
        ),
        ("Input_newFilter", json!({ "FilterObject": { "Address": "", "FromBlock": "", "ToBlock": "", "Topics": "" } })),
        (
            "Input_newFilter",
            json!({ "FilterObject": { "Address": null, "FromBlock": null, "ToBlock": null, "Topics": null } }),
        ),
        (
            "Input_newFilter",
            json!({ "FilterObject": { "Address": [], "FromBlock": "", "ToBlock": "latest", "Topics": [] } }),
        ),
    ];
    for (name, request) in cases {
        if let Err(error) = validator(name).validate(&request) {
            panic!("{name}: {error}\n{request}");
        }
    }
    let refused = [
        ("Input_call", json!({})),
        ("Input_getLogs", json!({ "address": a })),
        ("Input_getLogs", json!({ "Address": "0x00" })),
        ("Input_newFilter", json!({ "FilterObject": { "Address": "", "FromBlock": "", "Topics": [] } })),
        ("Input_getStorageAt", json!({ "Address": a })),
        ("Input_newBlockFilter", json!({ "unknown": 1 })),
        ("Input_feeHistory", json!({ "RewardPercentiles": ["-0"] })),
        ("Output_call", json!({})),
        ("Output_getBlockByNumber", json!({})),
        ("Output_estimateGas", json!({ "EstimatedGas": "0x5" })),
        ("Output_estimateGas", json!({ "EstimatedGas": 5 })),
    ];
    for (name, value) in refused {
        assert!(!validator(name).is_valid(&value), "{name}: {value}");
    }
}
