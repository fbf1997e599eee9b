//! Every response matches its schema, and contains no properties beyond it.

use crate::server::{Response, Server, conformance_chain};
use crate::wallet::{ALICE, BOB, hex, log_writer, sign, transfer};
use jsonschema::{Retrieve, Uri, Validator};
use node_types::consensus::TransactionBody;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::error::Error;

const NONE: [&str; 0] = [];

/// A contract of the recorded chain that writes logs and storage.
const WRITER: &str = "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df";

/// Fetches referenced schemas from the server.
struct Fetch(ureq::Agent);

impl Retrieve for Fetch {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let text = self.0.get(uri.as_str()).call()?.into_body().read_to_string()?;
        Ok(serde_json::from_str(&text)?)
    }
}

/// Sends requests, and validates each response against its schema.
struct Checker<'a> {
    server: &'a Server,
    validators: HashMap<String, Validator>,
}

impl<'a> Checker<'a> {
    fn new(server: &'a Server) -> Self {
        Self { server, validators: HashMap::new() }
    }

    fn get(&mut self, path: &str) -> Response {
        let response = self.server.get(path);
        self.check(path, "200", response)
    }

    fn post(&mut self, path: &str, body: &Value) -> Response {
        let response = self.server.post(path, body.to_string());
        self.check(&format!("{path} {body}"), "200", response)
    }

    fn check(&mut self, name: &str, status: &str, response: Response) -> Response {
        assert_eq!(response.status.to_string(), status, "{name}: {}", response.text);
        assert!(response.text.starts_with("{\"$schema\":\"http://"), "{name}: $schema comes first: {}", response.text);
        let schema = response.field("$schema").as_str().unwrap().to_owned();
        let validator = self.validators.entry(schema).or_insert_with_key(|uri| {
            let fetch = Fetch(ureq::agent());
            let document = fetch.retrieve(&jsonschema::uri::from_str(uri).unwrap()).unwrap();
            let options = jsonschema::options().with_base_uri(uri.clone()).with_retriever(fetch);
            options.build(&document).unwrap_or_else(|error| panic!("{uri}: {error}"))
        });
        let faults: Vec<_> =
            validator.iter_errors(&response.body).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}\n{}", response.text);
        for pointer in objects(&response.body, String::new()) {
            let mut widened = response.body.clone();
            let object = widened.pointer_mut(&pointer).and_then(Value::as_object_mut);
            object.map(|object| object.insert("Unknown".to_owned(), Value::Null));
            assert!(!validator.is_valid(&widened), "{name}: more may stand at {pointer:?}");
        }
        response
    }
}

/// The JSON pointers of objects in `value`; of arrays, only in the first element. Values echoed in problems are left
/// out.
fn objects(value: &Value, pointer: String) -> Vec<String> {
    let inner = |(key, value): (&String, &Value)| match key.as_str() {
        "value" => Vec::new(),
        key => objects(value, format!("{pointer}/{key}")),
    };
    match value {
        Value::Object(fields) => {
            let mut found: Vec<_> = fields.iter().flat_map(inner).collect();
            found.push(pointer);
            found
        }
        Value::Array(items) => items.first().map_or_else(Vec::new, |item| objects(item, format!("{pointer}/0"))),
        _ => Vec::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("expected a string: {value}"))
}

#[test]
fn responses_about_the_development_chain_match_their_schemas() {
    let server = Server::start(NONE);
    let mut checker = Checker::new(&server);
    let filter = json!({"FilterObject": {"Address": "", "FromBlock": "", "ToBlock": "", "Topics": []}});
    let log_filter = checker.post("/newFilter/", &filter);
    let block_filter = checker.get("/newBlockFilter/");
    let transaction_filter = checker.get("/newPendingTransactionFilter/");
    let mut hashes = Vec::new();
    for body in [transfer(0), log_writer(1, 3), transfer(7)] {
        let transaction = sign(TransactionBody::Legacy(body));
        let sent = checker.post("/sendRawTransaction/", &json!({"Data": hex(&transaction.encode())}));
        hashes.push(text(sent.field("TransactionHash")).to_owned());
    }

    let logs = checker.post("/getLogs/", &json!({"ToBlock": "pending"}));
    assert_eq!(logs.field("Logs").as_array().map(Vec::len), Some(3), "{}", logs.text);
    for body in [json!({"ToBlock": "pending"}), json!({})] {
        checker.post("/getLogs/", &body);
    }
    for detail in ["true", "false"] {
        let pending = checker.get(&format!("/getBlockByNumber/pending/{detail}/"));
        assert_eq!(pending.field("Block")["Transactions"].as_array().map(Vec::len), Some(2), "{}", pending.text);
        checker.get(&format!("/getBlockByNumber/9/{detail}/"));
    }
    let call = json!({"From": ALICE, "To": BOB, "Value": "1"});
    let slots = json!({"1": "2"});
    let (price, word) = ("100000000000", format!("0x{:064x}", 1));
    let authorization = json!({"Address": BOB, "ChainId": "0", "Nonce": "0", "R": word, "S": word, "V": "0"});
    let with = |more: Value| {
        let mut transaction = call.clone();
        transaction.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"Transaction": transaction})
    };
    let posts = [
        ("estimateGas", json!({"Transaction": call})),
        ("estimateGas", json!({"Transaction": call, "Object": {"Balance": "9", "Code": "0x00", "State": slots}})),
        ("estimateGas", json!({"Transaction": call, "Object": {BOB: {"Nonce": "9", "StateDiff": slots}}})),
        ("call", json!({"Transaction": call, "BlockNumber": "pending"})),
        ("call", json!({"Transaction": {"Data": "0x60205ff3"}})),
        ("call", json!({"Transaction": call, "Object": {"Balance": "1", "Code": "0x00"}})),
        (
            "call",
            with(json!({"AccessList": [{"Address": BOB, "StorageKeys": [word]}], "GasPrice": price, "Nonce": "9"})),
        ),
        (
            "call",
            with(json!({"AuthorizationList": [authorization], "MaxFeePerGas": price, "MaxPriorityFeePerGas": "1"})),
        ),
        ("call", with(json!({"BlobVersionedHashes": [format!("0x01{}", &word[4..])], "MaxFeePerBlobGas": price}))),
        ("estimateGas", json!({"Transaction": call, "BlockNumber": "0"})),
        ("estimateGas", with(json!({"AccessList": [{"Address": BOB, "StorageKeys": []}], "MaxFeePerGas": price}))),
        ("feeHistory", json!({"BlockCount": 9, "RewardPercentiles": [0, 12.5, "100"]})),
        ("feeHistory", json!({})),
        ("getStorageAt", json!({"Address": ALICE, "Position": "0", "BlockNumber": "pending"})),
        ("getProof", json!({"Address": BOB, "StorageKeys": ["0x1", 2]})),
        ("getProof", json!({"Address": format!("0x{:040x}", 7)})),
    ];
    for (operation, body) in posts {
        checker.post(&format!("/{operation}/"), &body);
    }
    for hash in &hashes {
        for operation in ["getTransactionByHash", "getTransactionReceipt", "getRawTransaction", "getTransactionStatus"]
        {
            checker.get(&format!("/{operation}/{hash}/"));
        }
    }
    let paths = [
        "/getTransactionStatus/0x0000000000000000000000000000000000000000000000000000000000000000/",
        "/getTransactionByBlockNumberAndIndex/pending/1/",
        "/getTransactionByBlockNumberAndIndex/pending/2/",
        "/getBlockReceipts/pending/",
        "/getBlockTransactionCountByNumber/pending/",
        "/getUncleCountByBlockNumber/pending/",
        "/blockNumber/",
        "/chainId/",
        "/gasPrice/",
        "/maxPriorityFeePerGas/",
        "/blobBaseFee/",
        "/syncing/",
        "/clientVersion/",
        "/health",
    ];
    for path in paths {
        checker.get(path);
    }
    for block in ["latest", "pending"] {
        checker.get(&format!("/getTransactionCount/{ALICE}/{block}/"));
        checker.get(&format!("/getBalance/{ALICE}/?BlockNumber={block}"));
        checker.get(&format!("/getCode/{ALICE}/?BlockNumber={block}"));
    }
    checker.get(&format!("/getAccount/{ALICE}/latest/"));
    for filter in [log_filter, block_filter, transaction_filter] {
        let id = text(filter.field("FilterId"));
        checker.get(&format!("/getFilterChanges/{id}/"));
        checker.get(&format!("/uninstallFilter/{id}/"));
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn responses_about_every_fork_match_their_schemas() {
    let server = Server::start(conformance_chain());
    let mut checker = Checker::new(&server);
    let head: u64 = text(checker.get("/blockNumber/").field("BlockNumber")).parse().unwrap();
    for number in 0..=head {
        let block = checker.get(&format!("/getBlockByNumber/{number}/true/")).body["Block"].take();
        checker.get(&format!("/getBlockByNumber/{number}/false/"));
        checker.get(&format!("/getBlockReceipts/{number}/"));
        checker.post("/getLogs/", &json!({"BlockHash": block["Hash"]}));
        checker.post("/getProof/", &json!({"Address": WRITER, "StorageKeys": [0, 1], "BlockNumber": number}));
        checker.post("/getStorageAt/", &json!({"Address": WRITER, "Position": 0, "BlockNumber": block["Hash"]}));
        checker.get(&format!("/getAccount/{WRITER}/{number}/"));
        checker.get(&format!("/getCode/{WRITER}/?BlockNumber={number}"));
        for hash in block["Transactions"].as_array().unwrap().iter().map(|transaction| text(&transaction["Hash"])) {
            for operation in [
                "getTransactionByHash",
                "getTransactionReceipt",
                "getTransactionExtras",
                "getRawTransaction",
                "getTransactionStatus",
            ] {
                checker.get(&format!("/{operation}/{hash}/"));
            }
        }
        for operation in ["getHeader", "getRawHeader", "getRawBlock", "getRawReceipts"] {
            checker.get(&format!("/{operation}/{number}/"));
        }
        let hash = text(&block["Hash"]);
        checker.get(&format!("/getBlockByHash/{hash}/true/"));
        checker.get(&format!("/getTransactionByBlockHashAndIndex/{hash}/0/"));
        checker.get(&format!("/getTransactionByBlockNumberAndIndex/{number}/0/"));
        checker.get(&format!("/getBlockTransactionCountByHash/{hash}/"));
        checker.get(&format!("/getUncleCountByBlockHash/{hash}/"));
    }
    checker.post("/feeHistory/", &json!({"BlockCount": 1024, "RewardPercentiles": [0, 50, 100]}));
    let everything = json!({"Address": "", "FromBlock": "0", "ToBlock": "latest", "Topics": []});
    let filter = checker.post("/newFilter/", &json!({"FilterObject": everything}));
    let id = text(filter.field("FilterId"));
    let of_filter = checker.get(&format!("/getFilterLogs/{id}/"));
    let all = checker.post("/getLogs/", &everything);
    assert_eq!(of_filter.field("Logs"), all.field("Logs"));
    assert_ne!(all.field("Logs"), &json!([]));
}

#[test]
fn problems_match_their_schema() {
    let server = Server::start(["--max-filters", "1", "--max-body", "10000"]);
    let mut checker = Checker::new(&server);
    server.get("/newBlockFilter/");
    let creation = |code: &str| json!({"Transaction": {"Data": code}}).to_string();
    let gets = [
        ("/nothing/", "404"),
        ("/getLogs/", "405"),
        ("/getBlockByNumber/%zz/", "400"),
        ("/schemas/%zz.json", "400"),
        ("/schemas/None.json", "404"),
        ("/problems/%FF", "400"),
        ("/getBlockByNumber/x/y/", "422"),
        ("/getFilterChanges/7/", "404"),
        ("/newBlockFilter/", "429"),
        ("/getBalance/x/?a=1&b=%FF", "422"),
    ];
    for (path, status) in gets {
        checker.check(path, status, server.get(path));
    }
    let posts = [
        ("getLogs", String::new(), "400"),
        ("getLogs", "{".to_owned(), "400"),
        ("getLogs", json!({"Topics": [7, {"a": [{}]}], "x": {}}).to_string(), "422"),
        ("getLogs", " ".repeat(20_000), "413"),
        ("getLogs", json!({"BlockHash": format!("0x{:064x}", 7)}).to_string(), "404"),
        ("call", creation("0x5f5ffd"), "422"),
        ("call", creation("0xfe"), "422"),
        ("sendRawTransaction", json!({"Data": "0x01"}).to_string(), "422"),
    ];
    for (operation, body, status) in posts {
        checker.check(&format!("{operation} {body}"), status, server.post(&format!("/{operation}/"), &body));
    }
    let wrong_type = server.send("POST", "/getLogs/", &[("Content-Type", "text/plain")], "{}");
    checker.check("text", "415", wrong_type);
}

#[test]
fn references_between_schemas_resolve() {
    let server = Server::start(NONE);
    let described = server.get("/openapi.json");
    let names = described.body["components"]["schemas"].as_object().unwrap().keys();
    let mut open: Vec<_> = names.cloned().collect();
    assert!(open.len() > 50 && open.contains(&"ErrorModel".to_owned()), "{open:?}");
    let mut seen = Map::new();
    while let Some(name) = open.pop() {
        let path = format!("/schemas/{name}.json");
        let response = server.get(&path);
        assert_eq!((response.status, response.media_type.as_str()), (200, "application/schema+json"), "{path}");
        assert_eq!(response.field("$id"), &json!(format!("{}{path}", server.url())));
        let references = response.text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split(".json\"").next());
        open.extend(references.filter(|name| !seen.contains_key(*name)).map(str::to_owned));
        seen.insert(name, response.body);
    }
    for name in ["Response_Log", "Response_Block", "Response_Transaction", "Response_StorageEntry", "ErrorDetail"] {
        assert!(seen.contains_key(name) || server.get(&format!("/schemas/{name}.json")).status == 200, "{name}");
    }
}

#[test]
fn describes_control_operations_only_if_blocks_are_produced() {
    let paths = |server: &Server| server.get("/openapi.json").body["paths"].as_object().cloned().unwrap();
    let (imported, produced) = (Server::start(NONE), Server::dev(NONE));
    assert!(paths(&imported).keys().all(|path| !path.starts_with("/dev/")));
    assert!(paths(&produced).contains_key("/dev/mine/"));
    for name in ["Input_mine", "Output_mine", "Output_poolContent"] {
        let path = format!("/schemas/{name}.json");
        assert_eq!((imported.get(&path).status, produced.get(&path).status), (404, 200), "{path}");
        let listed = |server: &Server| server.get("/schemas/").text.contains(&format!("{name}.json"));
        assert_eq!([&imported, &produced].map(listed), [false, true], "{name}");
    }
}

#[test]
fn pages_of_problems() {
    let server = Server::start(NONE);
    let page = |accept| server.send("GET", "/problems/state-pruned", &[("Accept", accept)], "");
    let html = page("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    assert_eq!((html.status, html.media_type.as_str()), (200, "text/html"));
    let text = page("*/*");
    assert_eq!((text.status, text.media_type.as_str()), (200, "text/plain"));
    for response in [html, text] {
        assert_eq!(response.header("vary"), Some("accept"));
        for part in ["state-pruned", "Cause", "Remedy", "Example", "\"status\": 404"] {
            assert!(response.text.contains(part), "{part} in {}", response.text);
        }
    }
    assert_eq!(server.get("/problems/none").problem_faults(404), NONE);
    assert_eq!(server.get("/schemas/None.json").problem_faults(404), NONE);
    let text = page("text/plain, text/html;q=0.5");
    assert_eq!((text.status, text.media_type.as_str()), (200, "text/plain"));
    for path in ["/problems/", "/problems/state-pruned", "/problems/none", "/schemas/", "/schemas/None.json"] {
        let page = server.send("GET", path, &[("Accept", "text/html")], "");
        assert_eq!(page.media_type, "text/html", "{path}");
        assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'")));
        assert_eq!(
            (page.header("x-content-type-options"), page.header("referrer-policy")),
            (Some("nosniff"), Some("no-referrer"))
        );
    }

    let page = |path| server.send("GET", path, &[("Accept", "text/html")], "");
    let (plain, with_slash) = (page("/problems/range-above-head"), page("/problems/range-above-head/"));
    for (base, response) in [("../", plain), ("../../", with_slash)] {
        assert_eq!((response.status, response.media_type.as_str()), (200, "text/html"));
        assert!(!response.text.contains('`') && !response.text.contains("127.0.0.1:8545"), "{}", response.text);
        let schema = format!("{}/schemas/ErrorModel.json", server.url());
        for link in [format!("{base}problems/"), format!("{base}blockNumber/"), schema] {
            assert!(response.text.contains(&format!("href=\"{link}\"")), "{link}: {}", response.text);
        }
    }
    for (path, index) in [
        ("/problems/none", "../problems/"),
        ("/problems/none/", "../../problems/"),
        ("/schemas/None.json", "../schemas/"),
    ] {
        let unknown = page(path);
        assert_eq!((unknown.status, unknown.media_type.as_str()), (404, "text/html"), "{path}");
        assert_eq!((unknown.header("vary"), unknown.header("cache-control")), (Some("accept"), Some("no-store")));
        assert!(unknown.text.contains(&format!("href=\"{index}\"")), "{}", unknown.text);
    }
}
