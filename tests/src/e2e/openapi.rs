//! The examples in the OpenAPI document are real: a development chain returns each of them. `docs/openapi.json` equals
//! the document that is served, and the table in `docs/rest.md` lists its operations.
//!
//! `UPDATE_OPENAPI=1 cargo test -p node-tests openapi` updates them; after a change of the examples it must run
//! twice, because the document contains them.

use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_http::{BasePath, HttpConfig};
use node_types::U256;
use node_types::consensus::{LegacyTransaction, TransactionBody};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ureq::Agent;

#[path = "../../generated_table.rs"]
mod generated_table;

/// The server's URL in the examples.
const EXAMPLE_URL: &str = "http://127.0.0.1:8545";

/// Filter ids are random; this one replaces all of them.
const EXAMPLE_FILTER: &str = "0x2d1f0ad5c9be4c0b9a3e8e3f66a1b7c4";

/// A contract that stores the word in its call data, logs it with topic 1, and returns it; without call data, returns
/// the stored word.
const KEEPER: &str = "0x6027600c60003960276000f3\
    3615601b57600035806000556000526001602060\
    00a160206000f35b60005460005260206000f3";

/// The address of [`ALICE`]'s first contract.
const KEEPER_ADDRESS: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

fn read(path: &Path) -> Value {
    std::fs::read_to_string(path).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// Compares a file with its expected content, or updates it.
fn compare(path: &str, expected: &Value) {
    let file = file(path);
    update(path, &format!("{expected:#}\n"), read(&file) == *expected);
}

/// Writes a file during an update. Otherwise, fails unless it is up to date.
fn update(path: &str, content: &str, is_up_to_date: bool) {
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(file(path), content).unwrap();
    } else if !is_up_to_date {
        panic!("{path} is out of date; UPDATE_OPENAPI=1 cargo test -p node-tests openapi writes it again");
    }
}

fn document() -> Value {
    node_http::openapi(&BasePath::default(), true)
}

/// Sends requests to a server, and records the exchanges.
struct Recorder {
    url: String,
    agent: Agent,
    document: Value,
    examples: BTreeMap<String, Value>,
}

impl Recorder {
    /// Calls `operation`, expects 200, and records the exchange as its example.
    fn record(&mut self, operation: &str, parameters: Value, request: Value) -> Value {
        let text = self.ask(operation, &parameters, &request);
        let shown = text.replace(&self.url, EXAMPLE_URL);
        let mut response: Value = serde_json::from_str(&shown).unwrap_or(Value::String(shown));
        let plain = response.clone();
        let (mut parameters, mut example) = (parameters, Map::new());
        for object in [&mut parameters, &mut response] {
            if object.get("FilterId").is_some() {
                object["FilterId"] = EXAMPLE_FILTER.into();
            }
            // The Date header follows the machine's clock, unlike the chain.
            if object.get("HeadAge").is_some() {
                object["HeadAge"] = "12".into();
            }
        }
        if parameters != json!({}) {
            example.insert("parameters".to_owned(), parameters);
        }
        if !request.is_null() {
            example.insert("request".to_owned(), request);
        }
        example.insert("response".to_owned(), response);
        self.examples.insert(operation.to_owned(), example.into());
        plain
    }

    fn ask(&self, operation: &str, parameters: &Value, request: &Value) -> String {
        let (method, path, described) = self.find(operation);
        let (mut path, mut query, mut headers) = (path, Vec::new(), Vec::new());
        for (name, value) in parameters.as_object().unwrap() {
            let value = value.as_str().unwrap();
            let all = described["parameters"].as_array().unwrap();
            let parameter = all.iter().find(|parameter| parameter["name"] == **name).unwrap();
            match parameter["in"].as_str().unwrap() {
                "path" => path = path.replace(&format!("{{{name}}}"), value),
                "query" => query.push(format!("{name}={value}")),
                _ => headers.push((name.as_str(), value)),
            }
        }
        let url = format!("{}{path}?{}", self.url, query.join("&"));
        let response = if method == "get" {
            headers.iter().fold(self.agent.get(&url), |request, (name, value)| request.header(*name, *value)).call()
        } else {
            let json = self.agent.post(&url).header("Content-Type", "application/json");
            let body = if request.is_null() { String::new() } else { request.to_string() };
            headers.iter().fold(json, |request, (name, value)| request.header(*name, *value)).send(body)
        };
        let mut response = response.unwrap();
        let status = response.status().as_u16();
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(status, 200, "{operation}: {text}");
        text
    }

    /// Method, path and description of an operation.
    fn find(&self, operation: &str) -> (&str, String, &Value) {
        let paths = self.document["paths"].as_object().unwrap();
        let all = paths.iter().flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |item| (path, item)));
        let mut found = all.filter(|(_, (_, described))| described["operationId"] == operation);
        let (path, (method, described)) = found.next().unwrap_or_else(|| panic!("unknown operation {operation}"));
        (method, path.clone(), described)
    }

    fn get(&mut self, operation: &str, parameters: &[(&str, &str)]) -> Value {
        let parameters: Map<_, _> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        self.record(operation, parameters.into(), Value::Null)
    }

    fn post(&mut self, operation: &str, request: Value) -> Value {
        self.record(operation, json!({}), request)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("expected a string: {value}")).to_owned()
}

fn signed(transaction: LegacyTransaction) -> Value {
    json!({ "Data": hex(&sign(TransactionBody::Legacy(transaction)).encode()) })
}

/// A call of the contract with a word, by [`ALICE`].
fn keep(nonce: u64, word: u64) -> LegacyTransaction {
    let word = U256::from(word).to_big_endian();
    LegacyTransaction {
        to: Some(KEEPER_ADDRESS.parse().unwrap()),
        value: U256::zero(),
        gas_limit: 100_000,
        input: node_types::Bytes::from(&word[..]),
        ..transfer(nonce)
    }
}

/// Calls every operation once, in an order in which each has data to return.
fn record_all(recorder: &mut Recorder) {
    let r = recorder;
    let topic = format!("0x{:064x}", 1);
    let keeper = json!({ "Address": KEEPER_ADDRESS, "FromBlock": "latest", "ToBlock": "latest", "Topics": [topic] });
    let logs = text(&r.post("newFilter", json!({ "FilterObject": keeper }))["FilterId"]);
    let blocks = text(&r.post("newBlockFilter", json!({}))["FilterId"]);
    r.post("newPendingTransactionFilter", json!({}));

    let code = KEEPER.strip_prefix("0x").unwrap().as_bytes().chunks(2);
    let code: Vec<u8> = code.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    let creation =
        LegacyTransaction { to: None, value: U256::zero(), gas_limit: 500_000, input: code.into(), ..transfer(0) };
    r.post("sendRawTransaction", signed(creation));
    r.post("sendRawTransaction", signed(keep(1, 42)));
    let sent = text(&r.post("sendRawTransaction", signed(keep(2, 1_000_000)))["TransactionHash"]);
    let hash = [("Hash", sent.as_str())];

    r.get("blockNumber", &[]);
    r.get("chainId", &[]);
    r.get("gasPrice", &[]);
    r.get("maxPriorityFeePerGas", &[]);
    r.get("blobBaseFee", &[]);
    r.get("syncing", &[]);
    r.get("clientVersion", &[]);
    r.post("feeHistory", json!({ "BlockCount": "3", "NewestBlock": "latest", "RewardPercentiles": [10, 50, 90] }));

    let word = format!("0x{:064x}", 7);
    let call = json!({ "From": ALICE, "To": KEEPER_ADDRESS, "Data": word });
    r.post("call", json!({ "Transaction": call, "BlockNumber": "latest" }));
    r.post("estimateGas", json!({ "Transaction": call, "Object": { ALICE: { "Balance": "1000000000000000000" } } }));

    r.post("getStorageAt", json!({ "Address": KEEPER_ADDRESS, "Position": "0", "BlockNumber": "3" }));
    r.post("getProof", json!({ "Address": KEEPER_ADDRESS, "StorageKeys": ["0x0"], "BlockNumber": "latest" }));
    r.get("getAccount", &[("Address", KEEPER_ADDRESS), ("BlockNumber", "latest")]);
    r.get("getBalance", &[("Address", ALICE), ("BlockNumber", "2")]);
    r.get("getCode", &[("Address", KEEPER_ADDRESS), ("BlockNumber", "latest")]);
    r.get("getTransactionCount", &[("Address", ALICE), ("BlockNumber", "pending")]);

    let block = r.get("getBlockByNumber", &[("BlockNumber", "3"), ("TransactionDetailFlag", "true")]);
    let block = text(&block["Block"]["Hash"]);
    let of_block = [("Hash", block.as_str())];
    r.get("getBlockByHash", &[("Hash", &block), ("TransactionDetailFlag", "false")]);
    r.get("getBlockReceipts", &[("BlockNumber", "3")]);
    r.get("getHeader", &[("BlockNumber", "3")]);
    r.get("getRawHeader", &[("BlockNumber", &block)]);
    r.get("getRawBlock", &[("BlockNumber", "3")]);
    r.get("getRawReceipts", &[("BlockNumber", "3")]);
    r.get("getBlockTransactionCountByHash", &of_block);
    r.get("getBlockTransactionCountByNumber", &[("BlockNumber", "0x3")]);
    r.get("getUncleCountByBlockHash", &of_block);
    r.get("getUncleCountByBlockNumber", &[("BlockNumber", "latest")]);

    r.get("getTransactionByHash", &hash);
    r.get("getTransactionByBlockHashAndIndex", &[("Hash", &block), ("Index", "0")]);
    r.get("getTransactionByBlockNumberAndIndex", &[("BlockNumber", "3"), ("Index", "0")]);
    r.get("getTransactionReceipt", &hash);
    r.get("getTransactionExtras", &hash);
    r.get("getRawTransaction", &hash);
    r.get("getTransactionStatus", &hash);

    r.post("getLogs", json!({ "Address": KEEPER_ADDRESS, "FromBlock": "0", "ToBlock": "latest", "Topics": [topic] }));
    r.get("getFilterChanges", &[("FilterId", &blocks)]);
    r.get("getFilterChanges", &[("FilterId", &logs)]);
    r.get("getFilterLogs", &[("FilterId", &logs)]);
    r.get("uninstallFilter", &[("FilterId", &logs)]);

    r.get("health", &[]);
    r.get("ready", &[]);
    r.get("schemas", &[("Name", "Output_blockNumber")]);
    r.get("problemIndex", &[]);
    r.get("schemaIndex", &[]);
    r.get("problems", &[("Slug", "block-not-found")]);

    let carol = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
    let snapshot = r.post("snapshot", json!({}))["SnapshotId"].clone();
    r.post("setBalance", json!({ "Address": carol, "Balance": "1000000000000000000000" }));
    r.post("setNonce", json!({ "Address": carol, "Nonce": "7" }));
    r.post("setCode", json!({ "Address": carol, "Code": "0x5f5ff3" }));
    r.post("setStorage", json!({ "Address": carol, "Position": "0x1", "Value": "5" }));
    r.post("increaseTime", json!({ "Seconds": "3600" }));
    r.post("setNextBlockTimestamp", json!({ "Timestamp": "4000000000" }));
    r.post("setNextBlockBaseFee", json!({ "BaseFee": "7" }));
    r.post("mine", json!({ "Blocks": "2", "Interval": "12" }));
    r.post("reorganize", json!({ "Blocks": "1" }));
    r.post("impersonate", json!({ "Address": BOB }));
    r.post("sendTransaction", json!({ "Transaction": { "From": BOB, "To": ALICE, "Value": "1" } }));
    r.post("stopImpersonating", json!({ "Address": BOB }));
    let waiting = text(&r.post("sendRawTransaction", signed(transfer(9)))["TransactionHash"]);
    r.get("poolContent", &[]);
    r.post("dropTransaction", json!({ "TransactionHash": waiting }));
    r.post("revert", json!({ "SnapshotId": snapshot }));
}

#[test]
fn the_examples_are_responses_of_a_development_chain() {
    let (_chain, server) = super::in_process::serve_dev(HttpConfig::default());
    let agent = Agent::config_builder().http_status_as_error(false).build().new_agent();
    let mut recorder =
        Recorder { url: server.url().to_owned(), agent, document: document(), examples: BTreeMap::new() };
    record_all(&mut recorder);
    compare("crates/node-http/src/openapi/examples.json", &json!(recorder.examples));
}

/// Operations without an example: a stream, the document itself, and those of forks, which need another chain.
const WITHOUT_EXAMPLE: [&str; 5] = ["events", "openapi", "fork", "reset", "setForkUrl"];

#[test]
fn examples_are_complete_and_match_their_schemas() {
    let document = document();
    let validator = |schema: &Value| {
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        jsonschema::validator_for(&schema).unwrap()
    };
    let check = |name: &str, content: &Value| {
        let example = content.get("example").unwrap_or_else(|| panic!("{name} has no example"));
        let faults: Vec<_> =
            validator(&content["schema"]).iter_errors(example).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}\n{example:#}");
    };
    let paths = document["paths"].as_object().unwrap();
    for described in paths.values().flat_map(|item| item.as_object().unwrap().values()) {
        let name = described["operationId"].as_str().unwrap();
        if WITHOUT_EXAMPLE.contains(&name) {
            continue;
        }
        if let Some(body) = described.get("requestBody") {
            check(name, &body["content"]["application/json"]);
        }
        let content = described["responses"]["200"]["content"].as_object().unwrap();
        check(name, content.values().next_back().unwrap());
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            if parameter["required"] == true {
                check(name, parameter);
            }
        }
    }
    for (name, example) in document["components"]["examples"].as_object().unwrap() {
        let problem = json!({ "$ref": "#/components/schemas/ErrorModel" });
        check(name, &json!({ "schema": problem, "example": example["value"] }));
    }
}

/// The places of an operation that name a block: the name with its description, and the request that has `block` there
/// and otherwise the data of the examples.
fn block_names(document: &Value, path: &str, described: &Value, block: &str) -> Vec<(String, String, String, Value)> {
    const NAMES: [&str; 4] = ["BlockNumber", "FromBlock", "ToBlock", "NewestBlock"];
    let parameters = described["parameters"].as_array().cloned().unwrap_or_default();
    let filled = |names_block: &str| {
        parameters.iter().filter(|parameter| parameter["in"] == "path").fold(path.to_owned(), |path, parameter| {
            let name = parameter["name"].as_str().unwrap();
            let value = if name == names_block { block } else { parameter["example"].as_str().unwrap_or("true") };
            path.replace(&format!("{{{name}}}"), value)
        })
    };
    let mut found = Vec::new();
    for parameter in &parameters {
        let name = text(&parameter["name"]);
        if NAMES.contains(&&*name) {
            let query = if parameter["in"] == "query" { format!("?{name}={block}") } else { String::new() };
            found.push((name.clone(), text(&parameter["description"]), filled(&name) + &query, Value::Null));
        }
    }
    let body = &described["requestBody"]["content"]["application/json"];
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let schema = resolve(&body["schema"]);
    let within = schema["properties"].get("FilterObject").map(&resolve);
    for (name, property) in within.as_ref().unwrap_or(&schema)["properties"].as_object().into_iter().flatten() {
        if NAMES.contains(&&**name) {
            let mut request = body["example"].clone();
            let object = if within.is_some() { &mut request["FilterObject"] } else { &mut request };
            object[name] = block.into();
            found.push((name.clone(), text(&property["description"]), filled(""), request));
        }
    }
    found
}

#[test]
fn a_hash_names_a_block_unless_the_description_says_otherwise() {
    let (_chain, server) = super::in_process::serve_dev(HttpConfig::default());
    let document = document();
    let block = text(&server.get("/getBlockByNumber/").body["Block"]["Hash"]);
    let mut places = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for described in item.as_object().unwrap().values() {
            for (name, description, address, request) in block_names(&document, path, described, &block) {
                let place = format!("{}: {name}", described["operationId"]);
                let response =
                    if request.is_null() { server.get(&address) } else { server.post(&address, request.to_string()) };
                let faults = response.body["errors"].as_array().cloned().unwrap_or_default();
                let refused = faults.iter().any(|fault| text(&fault["location"]).ends_with(&name));
                assert!(response.status != 422 || !faults.is_empty(), "{place}: {}", response.text);
                assert_eq!(refused, description.to_lowercase().contains("not a hash"), "{place}: {}", response.text);
                places += 1;
            }
        }
    }
    assert!(places > 20, "{places}");
}

#[test]
fn the_committed_copy_equals_the_served_document() {
    compare("docs/openapi.json", &document());
    let (_chain, server) = super::in_process::serve_dev(HttpConfig::default());
    // A server without tokens says nothing about them.
    let remove = |object: &mut Value, name: &str| drop(object.as_object_mut().unwrap().remove(name));
    let mut expected = document();
    remove(&mut expected, "security");
    let components = &mut expected["components"];
    remove(components, "securitySchemes");
    for (kind, name) in [("responses", "Unauthorized"), ("examples", "no-token"), ("headers", "WWW-Authenticate")] {
        remove(&mut components[kind], name);
    }
    for path in expected["paths"].as_object_mut().unwrap().values_mut() {
        for operation in path.as_object_mut().unwrap().values_mut() {
            remove(operation, "security");
            remove(&mut operation["responses"], "401");
        }
    }
    assert_eq!(server.get("/openapi.json").body, expected);
}

/// Returns a table in Markdown of the operations, except those of the interface description and those that control a
/// development chain, which are described by hand.
fn table(document: &Value) -> String {
    const BY_HAND: &str = "call estimateGas feeHistory getBlockByNumber getLogs getProof getStorageAt newFilter \
        sendRawTransaction";
    let mut table = "| Request | What it does | Response |\n|---|---|---|\n".to_owned();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let mut names = BY_HAND.split_whitespace();
            if !path.starts_with("/dev/") && names.all(|name| operation["operationId"] != *name) {
                table += &row(document, &format!("{} {path}", method.to_uppercase()), operation);
            }
        }
    }
    table
}

/// Returns the row of an operation: the request with its query, the first sentence of the description, and the members
/// of the response.
fn row(document: &Value, request: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query");
    let query: Vec<_> = query.map(|parameter| text(&parameter["name"]) + "=").collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let about = text(&operation["description"]);
    let sentence = about.split(". ").next().and_then(|first| first.lines().next()).unwrap().trim_end_matches('.');
    let (media, content) = operation["responses"]["200"]["content"].as_object().unwrap().iter().next().unwrap();
    let schema = document.pointer(content["schema"]["$ref"].as_str().unwrap_or("#").trim_start_matches('#')).unwrap();
    let members = schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| *name != "$schema");
    let members: Vec<_> = members.map(|(name, _)| format!("`{name}`")).collect();
    let response = if members.is_empty() { format!("`{media}`") } else { members.join(", ") };
    format!("| `{request}{query}` | {sentence} | {response} |\n")
}

#[test]
fn the_committed_table_lists_the_operations() {
    let page = file("docs/rest.md");
    generated_table::check(&page, "UPDATE_OPENAPI", "cargo test -p node-tests openapi", &table(&document()));
}
