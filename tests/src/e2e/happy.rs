//! Every operation works on the development chain.

use crate::server::Server;
use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};

const NONE: [&str; 0] = [];
const TEN_THOUSAND_ETHER: &str = "10000000000000000000000";

/// The expected value of a field.
enum Expected {
    Is(Value),
    /// An array of this length.
    Length(usize),
    Present,
}

/// Expected values by field.
type Fields = Vec<(&'static str, Expected)>;

use Expected::{Is, Length, Present};

#[test]
fn the_nine_operations() {
    let server = Server::start(NONE);
    let send = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
    let filter = json!({"FilterObject": {"Address": "", "FromBlock": "0", "ToBlock": "latest", "Topics": []}});
    let call = json!({"Transaction": {"From": ALICE, "To": BOB, "Value": "1"}});
    let cases: Vec<(&str, Value, Fields)> = vec![
        ("getLogs", json!({}), vec![("Logs", Length(0))]),
        ("estimateGas", call.clone(), vec![("EstimatedGas", Is(json!("21000")))]),
        (
            "feeHistory",
            json!({"BlockCount": "4", "RewardPercentiles": [50]}),
            vec![
                ("BaseFeePerGas", Is(json!(["1000000000", "875000000"]))),
                ("GasUsedRatio", Is(json!([0.0]))),
                ("OldestBlock", Is(json!("0"))),
                ("Reward", Is(json!([["0"]]))),
            ],
        ),
        ("call", call, vec![("Data", Is(json!("0x")))]),
        (
            "getProof",
            json!({"Address": ALICE, "StorageKeys": ["0"]}),
            vec![
                ("AccountProof", Present),
                ("Address", Is(json!(ALICE))),
                ("Balance", Is(json!(TEN_THOUSAND_ETHER))),
                ("CodeHash", Present),
                ("Nonce", Is(json!("0"))),
                ("StorageHash", Present),
                ("StorageProof", Length(1)),
            ],
        ),
        (
            "getStorageAt",
            json!({"Address": ALICE, "Position": "0"}),
            vec![("Value", Is(json!(format!("0x{:064x}", 0))))],
        ),
        ("sendRawTransaction", json!({"Data": send}), vec![("TransactionHash", Present)]),
        ("newFilter", filter, vec![("FilterId", Present)]),
    ];
    for (operation, body, expected) in cases {
        for path in [format!("/{operation}/"), format!("/{operation}"), format!("/node_{operation}/")] {
            check(&path, operation, &server.post(&path, body.to_string()), &expected);
        }
    }
    for path in ["/getBlockByNumber/", "/getBlockByNumber/0", "/getBlockByNumber/0x0/false/"] {
        check(path, "getBlockByNumber", &server.get(path), &[("Block", Present)]);
    }
}

fn check(path: &str, operation: &str, response: &crate::server::Response, expected: &[(&str, Expected)]) {
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    assert_eq!(response.media_type, "application/json", "{path}");
    let schema = response.field("$schema").as_str().unwrap_or_default();
    assert!(schema.ends_with(&format!("/schemas/Output_{operation}.json")), "{path}: {schema}");
    assert_eq!(response.header("link"), Some(format!("<{schema}>; rel=\"describedBy\"").as_str()), "{path}");
    assert_eq!(response.body.as_object().map_or(0, |body| body.len()), expected.len() + 1, "{path}: {}", response.body);
    for (field, expected) in expected {
        let got = response.field(field);
        match expected {
            Is(value) => assert_eq!(got, value, "{path}: {field}"),
            Length(length) => assert_eq!(got.as_array().map(Vec::len), Some(*length), "{path}: {field}: {got}"),
            Present => assert!(!got.is_null(), "{path}: {field}"),
        }
    }
}

#[test]
fn the_helper_operations() {
    let server = Server::start(NONE);
    let transaction = sign(TransactionBody::Legacy(transfer(0)));
    let raw = hex(&transaction.encode());
    let hash = hex(transaction.hash().as_bytes());
    let sent = server.post("/sendRawTransaction/", json!({"Data": raw}).to_string());
    assert_eq!(sent.field("TransactionHash"), &json!(hash), "{}", sent.body);
    let block = server.get("/getBlockByNumber/0/false/");
    let block_hash = block.field("Block")["Hash"].as_str().unwrap_or_default().to_owned();

    let cases = [
        ("/blockNumber/".to_owned(), json!({"BlockNumber": "0"})),
        ("/chainId/".to_owned(), json!({"ChainId": "31337"})),
        ("/syncing/".to_owned(), json!({"SyncStatus": null})),
        (format!("/getBalance/{ALICE}/"), json!({"Balance": TEN_THOUSAND_ETHER})),
        (format!("/getBalance/{ALICE}/?BlockNumber=pending"), json!({"Balance": "9999999957999999999999"})),
        (format!("/getCode/{ALICE}/"), json!({"Bytecode": "0x"})),
        (format!("/getTransactionCount/{ALICE}/latest/"), json!({"TransactionCount": "0"})),
        (format!("/getTransactionCount/{ALICE}/pending/"), json!({"TransactionCount": "1"})),
        (format!("/getRawTransaction/{hash}/"), json!({"Data": raw})),
        (format!("/getTransactionStatus/{hash}/"), json!({"Status": "pending"})),
        (format!("/getTransactionReceipt/{hash}/"), json!({"TransactionReceipt": null})),
        ("/getBlockReceipts/0/".to_owned(), json!({"TransactionReceipts": []})),
        (format!("/getBlockTransactionCountByHash/{block_hash}/"), json!({"TransactionCount": "0"})),
        ("/getBlockTransactionCountByNumber/pending/".to_owned(), json!({"TransactionCount": "1"})),
        (format!("/getUncleCountByBlockHash/{block_hash}/"), json!({"UncleCount": "0"})),
        ("/getUncleCountByBlockNumber/0/".to_owned(), json!({"UncleCount": "0"})),
        ("/getTransactionByBlockNumberAndIndex/0/0/".to_owned(), json!({"Transaction": null})),
        (format!("/getTransactionByBlockHashAndIndex/{block_hash}/0/"), json!({"Transaction": null})),
        (format!("/getBlockByHash/{block_hash}/false/"), json!({"Block": block.field("Block")})),
        ("/getBlockByNumber/7/false/".to_owned(), json!({"Block": null})),
    ];
    for (path, expected) in cases {
        let mut response = server.get(&path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.body.as_object_mut().map(|body| body.remove("$schema"));
        assert_eq!(response.body, expected, "{path}");
    }
    for path in ["/gasPrice/", "/maxPriorityFeePerGas/", "/blobBaseFee/", "/clientVersion/"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    let pooled = server.get(&format!("/getTransactionByHash/{hash}/"));
    let pooled = pooled.field("Transaction");
    assert_eq!((&pooled["From"], &pooled["To"], &pooled["BlockHash"]), (&json!(ALICE), &json!(BOB), &Value::Null));
    let account = server.get(&format!("/getAccount/{ALICE}/latest/"));
    assert_eq!(account.field("Balance"), TEN_THOUSAND_ETHER);
}

#[test]
fn filters_exist_until_they_are_uninstalled() {
    let server = Server::start(NONE);
    let hash = hex(sign(TransactionBody::Legacy(transfer(0))).hash().as_bytes());
    for create in ["/newBlockFilter/", "/newPendingTransactionFilter/"] {
        let created = server.get(create);
        assert_eq!(created.header("cache-control"), Some("no-store"), "{create}");
        let posted = server.post(create, "");
        assert_ne!(created.field("FilterId"), posted.field("FilterId"), "{create}");
        let id = created.field("FilterId").as_str().unwrap_or_default().to_owned();
        let changes = server.get(&format!("/getFilterChanges/{id}/"));
        assert_eq!(changes.field("Result"), &json!([]), "{create}");
        if create == "/newPendingTransactionFilter/" {
            let raw = hex(&sign(TransactionBody::Legacy(transfer(0))).encode());
            server.post("/sendRawTransaction/", json!({"Data": raw}).to_string());
            let changes = server.get(&format!("/getFilterChanges/{id}/"));
            assert_eq!(changes.field("Result"), &json!([hash]), "{create}");
        }
        for (expected, status) in [(true, 404), (false, 404)] {
            let removed = server.get(&format!("/uninstallFilter/{id}/"));
            assert_eq!(removed.field("Result"), &json!(expected), "{create}");
            let gone = server.get(&format!("/getFilterChanges/{id}/"));
            assert_eq!(gone.problem_faults(status), NONE, "{create}");
            assert!(gone.field("type").as_str().is_some_and(|uri| uri.ends_with("/problems/filter-not-found")));
        }
    }
}

#[test]
fn serves_everything_under_a_base_path() {
    let server = Server::start(["--base-path", "/v1/node"]);
    let response = server.get("/v1/node/chainId/");
    assert_eq!(response.status, 200);
    let schema = format!("{}/v1/node/schemas/Output_chainId.json", server.url());
    assert_eq!(response.field("$schema"), &json!(schema));
    assert_eq!(server.get("/v1/node/schemas/Output_chainId.json").status, 200);
    let schema = format!("{}/v1/node/schemas/Output_health.json", server.url());
    assert_eq!(server.get("/v1/node/health").body, json!({"$schema": schema, "Status": "ok"}));
    assert_eq!(server.get("/v1/node/openapi.json").body["servers"][0]["url"], "/v1/node");
    assert_eq!(server.get("/chainId/").problem_faults(404), NONE);
}

#[test]
fn links_point_to_existing_documents() {
    let server = Server::start(NONE);
    let missing =
        server.post("/getStorageAt/", json!({"Address": ALICE, "Position": "0", "BlockNumber": "7"}).to_string());
    assert_eq!(missing.problem_faults(404), NONE);
    for uri in [missing.field("type"), missing.field("$schema"), server.get("/chainId/").field("$schema")] {
        let path = uri.as_str().and_then(|uri| uri.strip_prefix(server.url())).unwrap_or_default();
        assert_eq!(server.get(path).status, 200, "{uri}");
    }
}
