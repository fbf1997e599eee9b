//! Round trips of requests, and the forms that are accepted.

use super::strategies as any;
use crate::wire::*;
use crate::{Address, BlockId, BlockNumberOrTag, H256, U256};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Debug;

fn decode<T: Decode>(body: &serde_json::Value) -> T {
    decode_body(body.to_string().as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
}

fn survives<T: Decode + serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(request: T) {
    let body = serde_json::to_string(&request).unwrap();
    assert_eq!(decode_body::<T>(body.as_bytes()).as_ref(), Ok(&request), "{body}");
    assert_eq!(serde_json::from_str::<T>(&body).unwrap(), request, "{body}");
    let value = serde_json::from_str::<serde_json::Value>(&body).unwrap();
    assert_eq!(serde_json::from_value::<T>(value).unwrap(), request, "{body}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_survive_a_round_trip(
        logs in any::get_logs_input(),
        filter in any::new_filter_input(),
        call in any::call_input(),
        estimate in any::estimate_gas_input(),
        fees in any::fee_history_input(),
        proof in any::get_proof_input(),
        storage in any::get_storage_at_input(),
        data in any::bytes(),
    ) {
        survives(logs);
        survives(filter);
        survives(call);
        survives(estimate);
        survives(fees);
        survives(proof);
        survives(storage);
        survives(SendRawTransactionInput { data });
    }
}

const A: &str = "0xaa00000000000000000000000000000000000000";
const B: &str = "0xBB00000000000000000000000000000000000000";
const T: &str = "0x00000000000000000000000000000000000000000000000000000000656d6974";

#[test]
fn absent_fields_have_defaults() {
    assert_eq!(decode::<GetLogsInput>(&json!({})), GetLogsInput::default());
    assert_eq!(decode::<FeeHistoryInput>(&json!({})), FeeHistoryInput::default());
    let absent = json!({ "Address": "", "BlockHash": null, "FromBlock": "", "ToBlock": null, "Topics": null });
    assert_eq!(decode::<GetLogsInput>(&absent), GetLogsInput::default());
    let call: CallInput = decode(&json!({ "Transaction": {}, "BlockNumber": "", "$schema": 7 }));
    assert_eq!(call, CallInput::default());
    for absent in [json!(""), json!(null)] {
        let filter = json!({ "Address": absent, "FromBlock": absent, "ToBlock": absent, "Topics": absent });
        let input: NewFilterInput = decode(&json!({ "FilterObject": filter }));
        assert_eq!(input, NewFilterInput::default(), "{absent}");
    }
}

#[test]
fn decodes_all_forms_of_filters() {
    let (a, b): (AddressData, AddressData) = (A.parse().unwrap(), B.parse().unwrap());
    let topic = T.parse::<HashData>().unwrap().0;
    let addresses = [
        (json!(A), vec![a.0]),
        (json!([A, B]), vec![a.0, b.0]),
        (json!(format!("{A},{B}")), vec![a.0, b.0]),
        (json!([]), vec![]),
    ];
    for (json, expected) in addresses {
        let input: GetLogsInput = decode(&json!({ "Address": json }));
        assert_eq!(input.address.0, expected, "{json}");
    }
    let topics = [
        (json!([]), vec![]),
        (json!([null, ""]), vec![vec![], vec![]]),
        (json!([T, [T]]), vec![vec![topic], vec![topic]]),
        (json!([[T, HashData::default()], []]), vec![vec![topic, H256::zero()], vec![]]),
        (json!([[T, null], [""]]), vec![vec![], vec![]]),
        (json!([format!("{T}, 0x{:064x}", 0)]), vec![vec![topic, H256::zero()]]),
    ];
    for (json, expected) in topics {
        let input: GetLogsInput = decode(&json!({ "Topics": json }));
        assert_eq!(input.topics, expected.into_iter().map(TopicFilter).collect::<Vec<_>>(), "{json}");
    }
}

#[test]
fn decodes_all_forms_of_numbers() {
    for gas in [json!("21000"), json!(21000), json!("0x5208"), json!("0000021000"), json!("0x0005208")] {
        let input: CallInput = decode(&json!({ "Transaction": { "Gas": gas } }));
        assert_eq!(input.transaction.gas, Some(Quantity(21_000)), "{gas}");
    }
    for block in [json!(27), json!("27"), json!("0x1b")] {
        let input: CallInput = decode(&json!({ "Transaction": {}, "BlockNumber": block }));
        assert_eq!(input.block_number, BlockId::number(27), "{block}");
    }
    for percentiles in [json!([5, 25.5, 100]), json!(["5", "25.5", "100"]), json!([5.0, "25.50", 1e2])] {
        let input: FeeHistoryInput = decode(&json!({ "RewardPercentiles": percentiles }));
        assert_eq!(input.reward_percentiles, [5.0, 25.5, 100.0], "{percentiles}");
    }
    // By default, the decoder limits neither lists nor the number of blocks.
    let input: FeeHistoryInput = decode(&json!({ "RewardPercentiles": vec![1.0; 10_000] }));
    assert_eq!(input.reward_percentiles, [1.0; 10_000]);
    for count in [1, 1025, u64::MAX] {
        assert_eq!(decode::<FeeHistoryInput>(&json!({ "BlockCount": count })).block_count.0, count);
    }
    let address = format!("0x{:040x}", 1);
    let input: GetProofInput = decode(&json!({ "Address": address, "StorageKeys": vec!["1"; 10_000] }));
    assert_eq!(input.storage_keys.len(), 10_000);
    let position: GetStorageAtInput = decode(&json!({ "Address": A, "Position": 10 }));
    assert_eq!(position.position, StorageKey(H256::from_low_u64_be(10)));
}

#[test]
fn accepts_input_as_another_name_of_data() {
    let expected = Some("0x01".parse().unwrap());
    for call in [json!({ "Data": "0x01" }), json!({ "Input": "0x01" }), json!({ "Data": "0x01", "Input": "0x01" })] {
        let input: CallInput = decode(&json!({ "Transaction": call }));
        assert_eq!(input.transaction.data, expected, "{call}");
    }
}

#[test]
fn calls_may_have_all_fields_of_transactions() {
    let word = format!("0x{:064x}", 7);
    let blob = format!("0x01{:062x}", 7);
    let input: CallInput = decode(&json!({ "Transaction": {
        "AccessList": [{ "Address": A, "StorageKeys": [T] }, { "Address": B, "StorageKeys": [] }],
        "AuthorizationList": [{ "Address": A, "ChainId": 1, "Nonce": "0x2", "R": word, "S": "7", "V": 1 }],
        "BlobVersionedHashes": [blob],
        "MaxFeePerBlobGas": "3",
        "MaxFeePerGas": "5",
        "MaxPriorityFeePerGas": "4",
        "Nonce": "6",
        "To": B,
    } }));
    let call = input.transaction;
    let keys: Vec<_> = call.access_list.unwrap().iter().map(|item| item.storage_keys.len()).collect();
    assert_eq!(keys, [1, 0]);
    let authorization = Authorization {
        address: A.parse().unwrap(),
        chain_id: Quantity(1.into()),
        nonce: Quantity(2),
        r: Word(7.into()),
        s: Word(7.into()),
        v: Quantity(1),
    };
    assert_eq!(call.authorization_list, Some(vec![authorization]));
    assert_eq!(call.blob_versioned_hashes, Some(vec![blob.parse().unwrap()]));
    let fees = [call.max_fee_per_blob_gas, call.max_fee_per_gas, call.max_priority_fee_per_gas];
    assert_eq!(fees, [3, 5, 4].map(|fee: u64| Some(Quantity(fee.into()))));
    assert_eq!(call.nonce, Some(Quantity(6)));
}

#[test]
fn decodes_overrides_by_address_and_flat_ones() {
    let (a, b): (AddressData, AddressData) = (A.parse().unwrap(), B.parse().unwrap());
    let slots = StorageSlots(BTreeMap::from([(H256::from_low_u64_be(10), U256::from(16))]));
    let storage = AccountOverride { state_diff: Some(slots.clone()), ..AccountOverride::default() };
    for object in [json!({ "10": "0x10" }), json!("{\"0xa\": 16}"), json!({ "0x0a": "16" })] {
        let input: EstimateGasInput = decode(&json!({ "Object": { A: { "StateDiff": object } }, "Transaction": {} }));
        assert_eq!(input.overrides(), BTreeMap::from([(a.0, storage.clone())]), "{object}");
    }

    let flat = json!({ "Balance": "5", "Nonce": 1, "Code": "0x00", "State": {} });
    let input: EstimateGasInput = decode(&json!({ "Object": flat, "Transaction": { "From": A, "To": B } }));
    let sender = AccountOverride { balance: Some(U256::from(5).into()), nonce: Some(1.into()), ..Default::default() };
    let receiver = AccountOverride {
        code: Some("0x00".parse().unwrap()),
        state: Some(StorageSlots::default()),
        ..Default::default()
    };
    assert_eq!(input.overrides(), BTreeMap::from([(a.0, sender), (b.0, receiver)]));

    let input: EstimateGasInput = decode(&json!({ "Object": { "Balance": 5 }, "Transaction": { "From": A, "To": A } }));
    assert_eq!(input.overrides().keys().collect::<Vec<&Address>>(), [&a.0]);
    let none: EstimateGasInput = decode(&json!({ "Object": "", "Transaction": {} }));
    assert_eq!(none.object, None);
    let none: EstimateGasInput = decode(&json!({ "Object": {}, "Transaction": {} }));
    assert_eq!(none.overrides(), BTreeMap::new());
}

fn decode_parameters<T: DecodeParameters>(sent: &[(&str, &'static str, &str)]) -> Result<T, Vec<ErrorDetail>> {
    T::decode_parameters(|name| {
        let (_, part, text) = sent.iter().find(|(other, ..)| *other == name)?;
        Some(Parameter { part, text: text.to_string().into() })
    })
}

#[test]
fn decodes_parameters_of_path_and_query() {
    let input = decode_parameters(&[("BlockNumber", "path", "0x1b"), ("TransactionDetailFlag", "path", "true")]);
    assert_eq!(
        input,
        Ok(GetBlockByNumberInput { block_number: BlockNumberOrTag::Number(27), transaction_detail: true })
    );
    assert_eq!(decode_parameters(&[]), Ok(GetBlockByNumberInput::default()));
    let wrong = [("BlockNumber", "path", "ten"), ("TransactionDetailFlag", "path", "yes")];
    let faults = decode_parameters::<GetBlockByNumberInput>(&wrong).unwrap_err();
    let expected = [
        ErrorDetail::new("path.BlockNumber", "expected a block number, earliest, latest, pending, safe or finalized")
            .with_value(&"ten"),
        ErrorDetail::new("path.TransactionDetailFlag", "expected true or false").with_value(&"yes"),
    ];
    assert_eq!(faults, expected);
    let wrong = [("Address", "path", "0x1"), ("BlockNumber", "query", "0xg")];
    let faults = decode_parameters::<AccountInput>(&wrong).unwrap_err();
    let locations: Vec<_> = faults.iter().map(|fault| &fault.location[..]).collect();
    assert_eq!(locations, ["path.Address", "query.BlockNumber"]);
}
