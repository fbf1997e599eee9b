//! Exchanges recorded from other clients: requests decode, and responses survive a round trip unchanged.

use crate::wire::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the folder with the recorded cases, in `../shared` or in the folder in `NODE_SHARED`.
fn cases_folder() -> PathBuf {
    let shared = std::env::var_os("NODE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    shared.join("conformance/cases")
}

fn json_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            json_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
}

fn check_request<T: Decode>(name: &str, body: &Value) {
    if let Err(error) = decode_body::<T>(body.to_string().as_bytes()) {
        panic!("{name}: {error:?}");
    }
}

fn check_response<T: DeserializeOwned + Serialize>(name: &str, body: &Value) {
    let response: T = serde_json::from_value(body.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(serde_json::to_value(response).unwrap(), *body, "{name}");
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn recorded_exchanges() {
    let mut files = Vec::new();
    json_files(&cases_folder(), &mut files);
    let mut count = 0;
    for file in files {
        let cases = match serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() {
            Value::Array(cases) => cases,
            case => vec![case],
        };
        for case in cases.iter().filter(|case| case["expect"]["status"] == 200) {
            let name = case["name"].as_str().unwrap();
            let (request, response) = (&case["request"]["body"], &case["expect"]["body"]);
            let operation = case["request"]["path"].as_str().unwrap().split('/').nth(1).unwrap();
            match operation {
                "getLogs" => check_request::<GetLogsInput>(name, request),
                "estimateGas" => check_request::<EstimateGasInput>(name, request),
                "feeHistory" => check_request::<FeeHistoryInput>(name, request),
                "call" => check_request::<CallInput>(name, request),
                "getProof" => check_request::<GetProofInput>(name, request),
                "getStorageAt" => check_request::<GetStorageAtInput>(name, request),
                "sendRawTransaction" => check_request::<SendRawTransactionInput>(name, request),
                "getBlockByNumber" => (),
                other => panic!("{name}: unknown operation {other}"),
            }
            match operation {
                _ if response.is_null() => (),
                "getLogs" => check_response::<GetLogsOutput>(name, response),
                "estimateGas" => check_response::<EstimateGasOutput>(name, response),
                "feeHistory" => check_response::<FeeHistoryOutput>(name, response),
                "call" => check_response::<CallOutput>(name, response),
                "getProof" => check_response::<GetProofOutput>(name, response),
                "getStorageAt" => check_response::<GetStorageAtOutput>(name, response),
                "sendRawTransaction" => check_response::<SendRawTransactionOutput>(name, response),
                _ => check_response::<GetBlockByNumberOutput>(name, response),
            }
            count += 1;
        }
    }
    assert!(count > 0, "the folder has no cases");
}
