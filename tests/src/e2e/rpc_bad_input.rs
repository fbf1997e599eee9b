//! Whatever is sent to a JSON-RPC method, the response is a clear error, and the server continues to work.
//!
//! The methods come from the library's table, so that none is missing.

use crate::server::Server;
use crate::wallet::{ALICE, hex, sign, transfer};
use node_http::{HttpConfig, RequestLimits};
use node_rpc::{Method, table};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};
use std::time::Duration;

const NONE: [&str; 0] = [];
const INTERNAL: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;

/// Values of every JSON type; hardly any parameter accepts more than three of them.
fn of_each_type() -> [Value; 6] {
    [Value::Null, json!(true), json!(5), json!("text"), json!([7]), json!({"a": 7})]
}

/// Values that are invalid in subtler ways.
fn hostile() -> Vec<Value> {
    let nested = (0..100).fold(json!([]), |inner, _| json!([inner]));
    let texts = ["", "0x", "0x0g", "0X1", "-0x1", "0x-1", " 0x1", "0x1 ", "1", "١", "\u{0}", "latest ", "LATEST"];
    let long = ["f".repeat(64), "f".repeat(65), "f".repeat(40), "0".repeat(20_000)].map(|digits| format!("0x{digits}"));
    let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).chain(long.map(Value::from)).collect();
    values.extend([json!(-1), json!(1.5), json!(u64::MAX), json!(1e300), json!([]), json!({}), nested]);
    values.extend([json!([null]), json!([[], {}]), json!({"": null}), json!({"blockHash": 1, "blockNumber": []})]);
    // Objects that resemble those of calls, filters and simulations.
    values.extend([
        json!({"to": 1}),
        json!({"from": "0x1", "to": null}),
        json!({"gas": "0x10000000000000000"}),
        json!({"value": format!("0x1{}", "0".repeat(64))}),
        json!({"accessList": {}}),
        json!({"accessList": [{"address": ALICE}]}),
        json!({"authorizationList": [{}]}),
        json!({"blobVersionedHashes": ["0x"]}),
        json!({"data": "0x0"}),
        json!({"topics": [[[]]], "address": 7}),
        json!({"fromBlock": "0x2", "toBlock": "0x1"}),
        json!({"blockStateCalls": {}}),
        json!({"blockStateCalls": []}),
        json!({"blockStateCalls": [{"calls": [[]]}]}),
        json!({"blockStateCalls": [{"blockOverrides": {"number": "0xffffffffffffffff"}}]}),
        json!({"blockStateCalls": [{"blockOverrides": {"time": "0xffffffffffffffff"}}, {}]}),
        json!({"blockStateCalls": [{"stateOverrides": {ALICE: {"state": {}, "stateDiff": {}}}}]}),
        json!({"blockStateCalls": [{"stateOverrides": {ALICE: {"movePrecompileToAddress": ALICE}}}]}),
        json!({ALICE: {"balance": "0x"}}),
        json!({ALICE: []}),
        json!({"number": "0xffffffffffffffff", "time": "0x0", "gasLimit": "0x0", "baseFeePerGas": "0x0"}),
        json!({"baseFeePerGas": "0xffffffffffffffff", "blobBaseFee": format!("0x{}", "f".repeat(64))}),
    ]);
    values
}

/// A valid value for a parameter, so that the ones after it are read; null for optional ones.
fn valid(method: &Method, parameter: &str) -> Value {
    let hash = format!("0x{}", "01".repeat(32));
    match parameter {
        optional if optional.ends_with('?') => Value::Null,
        "address" => json!(ALICE),
        "block" if method.name() == "debug_traceBlock" => json!("0x01"),
        "block" | "newestBlock" => json!("latest"),
        "hash" | "parentHash" | "versionedHash" => json!(hash),
        "key" => json!(format!("0x63{}", "01".repeat(32))),
        "index" | "blockCount" | "id" | "subscription" => json!("0x1"),
        "slot" => json!("0x0"),
        "slots" if method.name() == "eth_getProof" => json!(["0x0"]),
        "slots" => json!({ALICE: ["0x0"]}),
        "filter" | "call" => json!({}),
        "data" => json!("0x01"),
        "kind" => json!("newHeads"),
        "transaction" if method.controls() || method.name() == "eth_fillTransaction" => json!({"from": ALICE}),
        "transaction" => json!(hex(&sign(TransactionBody::Legacy(transfer(0))).encode())),
        "simulation" => json!({"blockStateCalls": [{}]}),
        "payloadAttributes" => {
            json!({"timestamp": "0xffffffff", "prevRandao": hash, "suggestedFeeRecipient": ALICE})
        }
        "seconds" | "interval" | "timestamp" | "baseFee" | "gasLimit" | "gasPrice" | "snapshot" | "depth"
        | "chainId" | "balance" | "amount" | "wei" | "nonce" => json!("0x1"),
        "automine" | "enabled" => json!(true),
        "value" => json!(hash),
        "sender" | "owner" | "spender" | "token" => json!(ALICE),
        "message" | "code" | "dump" | "url" => json!("0x"),
        other => panic!("which value does the parameter {other} of {} take? say so here", method.name()),
    }
}

fn request(method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params.into()})
}

/// Sends a batch, and checks that no response is an internal error. Returns the error code and message of each request.
fn ask(server: &Server, name: &str, requests: &[Value]) -> Vec<Option<(i64, String)>> {
    let response = server.post("/", Value::from(requests).to_string());
    assert_eq!(response.status, 200, "{name}: {}", response.text);
    let responses = response.body.as_array().unwrap_or_else(|| panic!("{name}: {}", response.text)).clone();
    assert_eq!(responses.len(), requests.len(), "{name}");
    let error = |(response, request): (&Value, &Value)| {
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(1)), "{name}");
        assert!(response.get("result").is_some() != response.get("error").is_some(), "{name}: {response}");
        let error = response.get("error")?;
        let (code, message) = (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned());
        assert_ne!(code, INTERNAL, "{name}: {response} to {request}");
        assert!(!message.is_empty(), "{name}: {response}");
        Some((code, message))
    };
    responses.iter().zip(requests).map(error).collect()
}

#[test]
fn invalid_values_for_every_parameter() {
    let server = Server::dev(NONE);
    for method in table() {
        let name = method.name();
        let before: Vec<_> = method.parameters().iter().map(|parameter| valid(&method, parameter)).collect();
        for position in 0..before.len() {
            let with = |value: &Value| {
                let params: Vec<_> = before[..position].iter().chain([value]).cloned().collect();
                request(name, params)
            };
            let what = format!("{name}, argument {position}");
            let types: Vec<_> = of_each_type().iter().map(with).collect();
            let refused = ask(&server, &what, &types);
            let named = format!("invalid argument {position}: ");
            let refused = refused.iter().flatten().filter(|(code, message)| {
                // Methods that need WebSocket are refused before their parameters are read.
                *code == METHOD_NOT_FOUND || *code == INVALID_PARAMS && message.starts_with(&named)
            });
            // Methods that control a chain accept numbers in many forms, and ignore what they do not need.
            let least = if method.controls() { 0 } else { 3 };
            assert!(refused.count() >= least, "{what}: {:?}", ask(&server, &what, &types));
            ask(&server, &what, &hostile().iter().map(with).collect::<Vec<_>>());
        }
    }
    assert_eq!(server.post("/", request("eth_chainId", json!([])).to_string()).body["result"], "0x7a69");
}

#[test]
fn missing_and_surplus_parameters() {
    let server = Server::dev(NONE);
    for method in table() {
        let (name, parameters) = (method.name(), method.parameters());
        let valid: Vec<_> = parameters.iter().map(|parameter| valid(&method, parameter)).collect();
        let required = parameters.iter().take_while(|parameter| !parameter.ends_with('?')).count();
        let params = (0..required).map(|count| valid[..count].to_vec());
        let missing: Vec<_> = params.map(|params| request(name, params)).collect();
        if !missing.is_empty() {
            for (position, error) in ask(&server, name, &missing).into_iter().enumerate() {
                let (code, message) = error.unwrap_or_else(|| panic!("{name} without argument {position}"));
                if code != METHOD_NOT_FOUND {
                    let expected = format!("missing value for required argument {position}");
                    assert_eq!((code, message), (INVALID_PARAMS, expected), "{name}");
                }
            }
        }
        let surplus: Vec<_> = valid.iter().cloned().chain([json!(1)]).collect();
        let expected = format!("too many arguments, want at most {}", parameters.len());
        let not_arrays = [json!({}), json!({"a": 1}), json!("text"), json!(1), json!(true)];
        let requests: Vec<_> =
            [Value::from(surplus)].into_iter().chain(not_arrays).map(|params| request(name, params)).collect();
        let errors = ask(&server, name, &requests);
        for (index, error) in errors.into_iter().enumerate() {
            let (code, message) = error.unwrap_or_else(|| panic!("{name} accepts {}", requests[index]));
            assert!([INVALID_PARAMS, METHOD_NOT_FOUND, -32600].contains(&code), "{name}: {code} {message}");
            assert!(index > 0 || code != INVALID_PARAMS || message == expected, "{name}: {message}");
        }
    }
}

#[test]
fn faults_are_described_in_the_words_of_geth() {
    let server = Server::dev(NONE);
    let hash = format!("0x{}", "g".repeat(64));
    let cases = [
        ("eth_getBalance", json!(["0x1"]), "invalid argument 0: hex string of odd length"),
        ("eth_getBalance", json!(["0x12"]), "invalid argument 0: hex string has length 2, want 40"),
        ("eth_getBalance", json!([ALICE, ""]), "invalid argument 1: empty hex string"),
        ("eth_getLogs", json!([{"fromBlock": ""}]), "invalid argument 0: empty hex string"),
        ("eth_newFilter", json!([{"toBlock": "7"}]), "invalid argument 0: hex string without 0x prefix"),
        ("eth_getLogs", json!([{"fromBlock": 7}]), "invalid argument 0: cannot unmarshal non-string"),
        ("eth_getBlockByHash", json!([hash, false]), "invalid argument 0: invalid hex string"),
        ("eth_getStorageAt", json!([ALICE, "0xasdf"]), r#"invalid argument 1: invalid hex in storage key: "0xasdf""#),
        ("eth_call", json!([{"value": "0x"}]), r#"invalid argument 0: hex string "0x""#),
        ("eth_sendRawTransaction", json!(["zz"]), "invalid argument 0: hex string without 0x prefix"),
        ("eth_sendRawTransaction", json!([""]), "invalid argument 0: empty hex string"),
    ];
    for (method, params, expected) in cases {
        let errors = ask(&server, method, &[request(method, params)]);
        let (code, message) = errors[0].as_ref().unwrap();
        assert!(*code == INVALID_PARAMS && message.starts_with(expected), "{method}: {message}");
    }
    for bytes in ["0x", "0x02"] {
        let errors = ask(&server, "raw", &[request("eth_sendRawTransaction", json!([bytes]))]);
        assert!(
            matches!(&errors[0], Some((-32003, words)) if words.starts_with("typed transaction too short")),
            "{errors:?}"
        );
    }
}

#[test]
fn accepts_ids_of_every_type() {
    let server = Server::dev(NONE);
    let long = "i".repeat(100_000);
    for id in ["1", "-7", "1.25", "1e400", "\"a\"", "\"\"", "null", &format!("\"{long}\""), &"9".repeat(1_000)] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#);
        let response = server.post("/", body);
        assert_eq!(response.status, 200, "{id}");
        assert!(response.text.contains(&format!("\"id\":{id}")), "an id comes back as it was: {}", response.text);
    }
    for id in ["true", "[]", "{}", "[[[]]]"] {
        let response = server.post("/", format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#));
        assert_eq!((response.status, &response.body["error"]["code"]), (200, &json!(-32600)), "{id}");
    }
}

#[test]
fn deep_and_huge_bodies() {
    let server = Server::dev(NONE);
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), (r#"{"jsonrpc":"2.0","id":1,"params":["#, "]}")] {
        for depth in [200, 10_000, 100_000] {
            let response = server.post("/", format!("{}1{}", open.repeat(depth), close.repeat(depth)));
            assert_eq!(response.status, 200, "{depth} times {open}");
            // Nested arrays are a batch whose only request is an array.
            let code = response.body.get(0).unwrap_or(&response.body)["error"]["code"].as_i64();
            assert!([Some(-32600), Some(-32700)].contains(&code), "{depth} times {open}: {}", response.text);
        }
    }
    let cut = server.post("/", "[".repeat(1_000_000));
    assert_eq!(cut.status, 200);
    assert!(cut.body["error"].is_object(), "{}", cut.text);
    let before = server.peak_memory();
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"web3_sha3","params":["0x{}"]}}"#, "00".repeat(16 << 20));
    assert_eq!(server.post("/", huge).status, 413);
    assert!(server.peak_memory().saturating_sub(before) < 16 << 20, "refused bodies are not read");
    assert_eq!(server.post("/", request("eth_chainId", json!([])).to_string()).body["result"], "0x7a69");
}

#[test]
fn batches_of_ten_thousand() {
    let batch = |item: Value| Value::from(vec![item; 10_000]).to_string();
    let strict = Server::dev(NONE);
    for item in [request("eth_chainId", json!([])), Value::Null, json!([]), json!({}), json!("text")] {
        let response = strict.post("/", batch(item));
        assert_eq!((response.status, &response.body["error"]["code"]), (200, &json!(-32600)), "{}", response.text);
    }
    let nested = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(strict.post("/", &nested).body[0]["error"]["code"], -32600);
    let call = request("eth_getBalance", json!([])).to_string().replace("[]", &nested);
    assert_eq!(strict.post("/", call).body["error"]["code"], -32602);
    let limits = HttpConfig {
        requests: RequestLimits {
            max_batch: 10_000,
            max_batch_bytes: 1_000_000,
            // The limits of this test are those of sizes.
            call_timeout: Duration::from_secs(60),
            ..Default::default()
        },
        ..HttpConfig::default()
    };
    let (_chain, wide) = super::in_process::serve_dev(limits);
    let begun = wide.peak_memory();
    let block = json!(["0x0", true]);
    // Small results are complete; of large ones as many as fit.
    let cases = [
        (request("eth_chainId", json!([])), 10_000),
        (Value::Null, 0),
        (request("eth_getBlockByNumber", block), 500),
        (request("eth_simulateV1", json!([{"blockStateCalls": [{}, {"calls": [{}]}]}])), 200),
    ];
    for (item, least) in cases {
        let response = wide.post("/", batch(item.clone()));
        assert_eq!(response.status, 200, "{item}");
        let responses = response.body.as_array().unwrap();
        assert_eq!(responses.len(), 10_000, "{item}");
        let done = responses.iter().take_while(|response| response.get("result").is_some()).count();
        assert!(done >= least, "{done} of {item}");
        let refused = &responses[done..];
        let codes = [Some(-32600), Some(-32003)];
        assert!(refused.iter().all(|response| codes.contains(&response["error"]["code"].as_i64())), "{item}");
        assert!(response.text.len() < 4_000_000, "{} bytes for {item}", response.text.len());
    }
    let taken = wide.peak_memory() - begun;
    assert!(taken < 256 << 20, "{} MiB more than at first", taken >> 20);
}
