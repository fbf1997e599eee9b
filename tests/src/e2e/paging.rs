//! Paged logs, and limit errors that suggest a smaller range.

use crate::server::{Response, Server, conformance_chain};
use crate::wallet::{hex, log_writer, sign};
use node_types::consensus::TransactionBody;
use serde_json::{Value, json};

const NONE: [&str; 0] = [];

const PAGE: [(&str, &str); 2] = [("Content-Type", "application/json"), ("Prefer", "respond-async, page")];

fn logs(response: &Response) -> Vec<Value> {
    assert_eq!(response.status, 200, "{}", response.text);
    response.field("Logs").as_array().unwrap().clone()
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn pages_concatenate_to_the_whole_result() {
    let chain = conformance_chain();
    let whole = Server::start(&chain);
    let paged = Server::start(chain.iter().map(String::as_str).chain(["--max-logs", "7"]));
    let address = "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df";
    let bodies = [
        json!({"FromBlock": "earliest", "ToBlock": "latest"}),
        json!({"FromBlock": "0", "ToBlock": "54", "Address": address}),
        json!({"FromBlock": "20", "Topics": [null, []]}),
    ];
    for body in bodies {
        let expected = logs(&whole.post("/getLogs/", body.to_string()));
        assert!(expected.len() > 7, "{body}: {} logs", expected.len());
        let mut path = "/getLogs/".to_owned();
        let mut walked = Vec::new();
        loop {
            let page = paged.send("POST", &path, &PAGE, &body.to_string());
            let found = logs(&page);
            assert!(!found.is_empty() && found.len() <= 7, "{body}: {path}: {} logs", found.len());
            walked.extend(found);
            let Some(next) = page.next_page() else { break };
            assert_eq!(walked.len() % 7, 0, "{body}: {path} is not full, and not the last");
            path = next.to_owned();
        }
        assert_eq!(walked, expected, "{body}");
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn cursors_are_bound_to_their_request() {
    let chain = conformance_chain();
    let server = Server::start(chain.iter().map(String::as_str).chain(["--max-logs", "7", "--base-path", "/v1"]));
    let body = json!({"FromBlock": "0"});
    let first = server.send("POST", "/v1/getLogs/", &PAGE, &body.to_string());
    let next = first.next_page().unwrap_or_else(|| panic!("{:?}", first.headers));
    assert!(next.starts_with("/v1/getLogs/?Cursor="), "{next}");
    // The cursor alone requests a page, without `Prefer`.
    assert_ne!(logs(&server.post(next, body.to_string())), logs(&first));
    let cursor = next.rsplit('=').next().unwrap();
    let beyond = format!("{:016x}{}", u64::MAX, &cursor[16..]);
    let with = |cursor: &str| format!("/v1/getLogs/?Cursor={cursor}");
    let cases = [
        ("another body", with(cursor), json!({"FromBlock": "1"}), 422),
        ("a cursor cut off", with(&cursor[1..]), body.clone(), 422),
        ("no cursor", with("x"), body.clone(), 422),
        ("two cursors", format!("{}&Cursor={cursor}", with(cursor)), body.clone(), 422),
        ("another block", with(&beyond), body.clone(), 404),
    ];
    // Beside other faults of the request, only a cursor of another request is a fault.
    let faulty = [
        (json!({"FromBlock": "0", "foo": 1}), vec!["body.foo"]),
        (json!({"FromBlock": "0", "ToBlock": "x"}), vec!["body.ToBlock", "query.Cursor"]),
        (json!({"FromBlock": "0", "ToBlock": "1000000"}), vec!["query.Cursor", "body.ToBlock"]),
        (
            json!({"FromBlock": "0", "BlockHash": format!("0x{}", "1".repeat(64))}),
            vec!["body.FromBlock", "query.Cursor"],
        ),
        (json!({"FromBlock": "0", "ToBlock": "1", "foo": 1}), vec!["body.foo", "query.Cursor"]),
        (body.clone(), vec![]),
        (json!({"FromBlock": "1"}), vec!["query.Cursor"]),
    ];
    for (body, locations) in faulty {
        for query in ["", "&f%6Fo=1"] {
            let response = server.post(&(with(cursor) + query), body.to_string());
            let foreign = (!query.is_empty()).then_some("query.foo");
            let mut expected: Vec<_> = locations.iter().copied().chain(foreign).collect();
            let mut found = if expected.is_empty() { Vec::new() } else { response.locations() };
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{body} {query}: {}", response.text);
        }
    }
    for (name, path, body, status) in cases {
        let response = server.post(&path, body.to_string());
        assert_eq!(response.problem_faults(status), NONE, "{name}: {}", response.text);
        assert_eq!(response.locations().first(), Some(&"query.Cursor"), "{name}: {}", response.text);
    }
    let after_its_block = format!("{}{:016x}{}", &cursor[..16], u64::MAX, &cursor[32..]);
    assert_eq!(server.post(&with(&after_its_block), body.to_string()).status, 200);
    let nothing = json!({"FromBlock": "0", "Topics": [format!("0x{:064x}", 7)]});
    let last = server.send("POST", "/v1/getLogs/", &PAGE, &nothing.to_string());
    assert_eq!((logs(&last), last.next_page()), (Vec::new(), None), "{}", last.text);
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn too_many_logs_suggest_a_block_that_fits() {
    let chain = conformance_chain();
    let server = Server::start(chain.iter().map(String::as_str).chain(["--max-logs", "20"]));
    let ask = |to: &Value| server.post("/getLogs/", json!({"FromBlock": "0", "ToBlock": to}).to_string());
    let refused = ask(&json!("latest"));
    assert_eq!(refused.problem_faults(422), NONE, "{}", refused.text);
    assert!(refused.field("type").as_str().unwrap().ends_with("/problems/limit-exceeded"), "{}", refused.text);
    assert_eq!(refused.locations(), ["body.ToBlock"]);
    let error = &refused.field("errors")[0];
    assert_eq!(error["value"], "latest");
    let message = error["message"].as_str().unwrap();
    let number = message.split(' ').find_map(|word| word.parse::<u64>().ok()).unwrap();
    assert!(logs(&ask(&json!(number))).len() <= 20);
    assert_eq!(ask(&json!(number + 1)).field("errors")[0]["message"], message, "one block more does not fit");
    let without_end = server.post("/getLogs/", json!({"FromBlock": "0"}).to_string());
    assert_eq!(without_end.locations(), ["body"]);
    assert_eq!(without_end.field("errors")[0]["value"], json!({"FromBlock": "0"}));
}

#[test]
fn one_block_with_too_many_logs() {
    let server = Server::start(["--max-logs", "4"]);
    let raw = log_transaction(0, 6);
    assert_eq!(server.post("/sendRawTransaction/", json!({"Data": raw}).to_string()).status, 200);
    let body = json!({"FromBlock": "pending", "ToBlock": "pending"}).to_string();
    let refused = server.post("/getLogs/", &body);
    assert_eq!(refused.problem_faults(422), NONE, "{}", refused.text);
    let error = &refused.field("errors")[0];
    assert_eq!((&error["location"], &error["value"]), (&json!("body.ToBlock"), &json!("pending")));
    assert!(!error["message"].as_str().unwrap().contains("would fit"), "no block fits: {error}");
    let first = server.send("POST", "/getLogs/", &PAGE, &body);
    assert_eq!(logs(&first).len(), 4);
    // The pending block has a new timestamp, and therefore a new hash, every second.
    let timestamp = || server.get("/getBlockByNumber/pending/").field("Block")["Timestamp"].clone();
    let first_timestamp = timestamp();
    while timestamp() == first_timestamp {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let rest = server.send("POST", first.next_page().unwrap(), &PAGE, &body);
    assert_eq!((logs(&rest).len(), rest.next_page()), (2, None));
    // Another transaction changes its logs.
    let raw = log_transaction(1, 1);
    assert_eq!(server.post("/sendRawTransaction/", json!({"Data": raw}).to_string()).status, 200);
    let expired = server.send("POST", first.next_page().unwrap(), &PAGE, &body);
    assert_eq!(expired.problem_faults(404), NONE, "{}", expired.text);
}

/// Returns a transaction that writes `count` logs.
fn log_transaction(nonce: u64, count: u8) -> String {
    hex(&sign(TransactionBody::Legacy(log_writer(nonce, count))).encode())
}

#[test]
fn limits_are_inclusive() {
    let server = Server::start(NONE);
    let address = format!("0x{:040x}", 1);
    let word = format!("0x{:064x}", 1);
    let cases = [
        ("getLogs", json!({"Address": vec![&address; 1000]}), 200, ""),
        ("getLogs", json!({"Address": vec![&address; 1001]}), 422, "body.Address"),
        ("getLogs", json!({"Address": vec![address.as_str(); 1001].join(",")}), 422, "body.Address"),
        ("getLogs", json!({"Topics": [vec![&word; 1000]]}), 200, ""),
        ("getLogs", json!({"Topics": [null, vec![&word; 1001]]}), 422, "body.Topics[1]"),
        ("getLogs", json!({"Topics": [null, null, null, null, null]}), 422, "body.Topics"),
        ("getProof", json!({"Address": address, "StorageKeys": vec!["1"; 1024]}), 200, ""),
        ("getProof", json!({"Address": address, "StorageKeys": vec!["1"; 1025]}), 422, "body.StorageKeys"),
        ("feeHistory", json!({"RewardPercentiles": vec![1; 100]}), 200, ""),
        ("feeHistory", json!({"RewardPercentiles": vec![1; 101]}), 422, "body.RewardPercentiles"),
        ("feeHistory", json!({"BlockCount": 1024}), 200, ""),
        ("feeHistory", json!({"BlockCount": 1025}), 422, "body.BlockCount"),
    ];
    for (operation, body, status, location) in cases {
        let response = server.post(&format!("/{operation}/"), body.to_string());
        let short: String = body.to_string().chars().take(80).collect();
        assert_eq!(response.status, status, "{operation} {short}: {}", response.text);
        assert_eq!(response.locations().first().copied().unwrap_or_default(), location, "{operation} {short}");
    }

    let server = Server::start(["--max-storage-keys", "1025"]);
    let cases = [
        ("getProof", json!({"Address": address, "StorageKeys": vec!["1"; 1025]}), 200),
        ("getProof", json!({"Address": address, "StorageKeys": vec!["1"; 1026]}), 422),
        ("feeHistory", json!({"RewardPercentiles": vec![1; 100]}), 200),
        ("feeHistory", json!({"RewardPercentiles": vec![1; 101]}), 422),
    ];
    for (operation, body, status) in cases {
        let response = server.post(&format!("/{operation}/"), body.to_string());
        assert_eq!(response.status, status, "{operation} with raised limits: {}", response.text);
    }
}
