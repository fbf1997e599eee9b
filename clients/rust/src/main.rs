//! Calls the nine operations of the interface description on a development chain through the generated client.
//!
//! NODE_URL is the URL of the server.

use node_client::apis::configuration::Configuration;
use node_client::apis::{Error, development_api, interface_api, logs_api};
use node_client::models::{
    EstimateGasObject, FilterObject, InputCall, InputEstimateGas, InputFeeHistory, InputGetLogs, InputGetProof, InputImpersonate,
    InputGetStorageAt, InputNewFilter, InputSendRawTransaction, InputSendTransaction, ParamsTransaction,
};
use serde_json::{Value, json};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
/// The contract that the examples of the document create.
const KEEPER: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

fn word(number: u64) -> String {
    format!("0x{number:064x}")
}

fn main() {
    let server = Configuration { base_path: std::env::var("NODE_URL").unwrap(), ..Configuration::new() };

    // The transaction of the example is ahead of the account's nonce, and waits in the pool.
    let document = std::fs::read_to_string(std::env::var("NODE_OPENAPI").unwrap()).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let example = &document["paths"]["/sendRawTransaction/"]["post"];
    let data = &example["requestBody"]["content"]["application/json"]["example"]["Data"];
    let input = InputSendRawTransaction::new(data.as_str().unwrap().to_owned());
    let sent = interface_api::send_raw_transaction(&server, input).unwrap();
    let expected = &example["responses"]["200"]["content"]["application/json"]["example"]["TransactionHash"];
    assert_eq!(sent.transaction_hash, expected.as_str().unwrap());

    let genesis = interface_api::get_block_by_number(&server, "latest", true).unwrap().block.unwrap();
    assert_eq!(genesis.number.as_deref(), Some("0"));
    let pending = interface_api::get_block_by_number(&server, "pending", false).unwrap().block.unwrap();
    assert_eq!(pending.number, None);
    development_api::impersonate(&server, InputImpersonate::new(ALICE.to_owned())).unwrap();
    let transfer: InputSendTransaction =
        serde_json::from_value(json!({"Transaction": {"From": ALICE, "To": ALICE, "Value": "1"}})).unwrap();
    let hash = development_api::send_transaction(&server, transfer).unwrap().transaction_hash;
    for whole in [true, false] {
        let block = interface_api::get_block_by_number(&server, "1", whole).unwrap().block.unwrap();
        let [transaction] = &block.transactions[..] else { panic!("{block:?}") };
        assert_eq!((&transaction.hash, transaction.from.as_deref() == Some(ALICE)), (&hash, whole), "{transaction:?}");
    }
    assert!(interface_api::get_block_by_number(&server, "1000", true).unwrap().block.is_none());

    let call = |data: &str| ParamsTransaction { data: Some(data.to_owned()), ..ParamsTransaction::new() };
    // Returns 32 zero bytes.
    let input = InputCall { block_number: Some("latest".to_owned()), ..InputCall::new(call("0x60205ff3")) };
    assert_eq!(interface_api::call(&server, input).unwrap().data, word(0));
    match interface_api::call(&server, InputCall::new(call("0x5f5ffd"))) {
        Err(Error::ResponseError(response)) => {
            assert_eq!(response.status, 422);
            assert!(response.content.contains("execution-reverted"), "{}", response.content);
        }
        other => panic!("{other:?}"),
    }

    let transfer = ParamsTransaction {
        from: Some(ALICE.to_owned()),
        to: Some(KEEPER.to_owned()),
        value: Some("1".to_owned()),
        ..ParamsTransaction::new()
    };
    let object = EstimateGasObject { balance: Some("5".to_owned()), ..EstimateGasObject::new() };
    let input = InputEstimateGas { object: Some(object), ..InputEstimateGas::new(transfer) };
    assert_eq!(interface_api::estimate_gas(&server, input).unwrap().estimated_gas, "21000");

    let input = InputFeeHistory {
        block_count: Some("1".to_owned()),
        reward_percentiles: Some(vec![12.5, 50.0]),
        ..InputFeeHistory::new()
    };
    let fees = interface_api::fee_history(&server, input).unwrap();
    assert_eq!((fees.base_fee_per_gas.len(), fees.gas_used_ratio.len(), &fees.oldest_block[..]), (2, 1, "1"));

    let input = InputGetProof { storage_keys: Some(vec!["0x0".to_owned()]), ..InputGetProof::new(ALICE.to_owned()) };
    let proof = interface_api::get_proof(&server, input).unwrap();
    assert_eq!((&proof.address[..], &proof.storage_proof[0].value), (ALICE, &word(0)));
    assert!(!proof.account_proof.is_empty());
    let input = InputGetStorageAt::new(ALICE.to_owned(), "0".to_owned());
    assert_eq!(interface_api::get_storage_at(&server, input).unwrap().value, word(0));

    let topics = vec![String::new(), format!("{},{}", word(1), word(2))];
    let input = InputGetLogs { topics: Some(topics.clone()), ..InputGetLogs::new() };
    assert!(interface_api::get_logs(&server, input, None, None).unwrap().logs.is_empty());
    let filter = FilterObject::new(KEEPER.to_owned(), "latest".to_owned(), String::new(), topics);
    let filter = interface_api::new_filter(&server, InputNewFilter::new(filter)).unwrap().filter_id;
    assert!(logs_api::get_filter_changes(&server, &filter).unwrap().result.is_empty());
    println!("rust: the nine operations were called");
}
