//! The problem of a request with several faults lists those that each of its parts has alone, with the values as they
//! were sent.

use crate::server::{Response, Server};
use crate::wallet::{ALICE, BOB};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A change of a request that adds faults: pointers into [`Operation::request`], and the values there; null removes.
type Edit = (Vec<(&'static str, Value)>, &'static [&'static str]);

struct Operation {
    path: &'static str,
    /// The parts of a valid request by name: `body`, `path`, `query`.
    request: Value,
    /// Each with the locations of its faults.
    edits: Vec<Edit>,
}

/// The location and the message of each fault.
type Faults = BTreeSet<(String, String)>;

fn hash(digit: &str) -> String {
    format!("0x{}", digit.repeat(64))
}

fn operations() -> Vec<Operation> {
    let set = |pointer, value| vec![(pointer, value)];
    let remove = |pointer| vec![(pointer, Value::Null)];
    let zero_word = hash("0");
    let call = || {
        let transaction = json!({"From": ALICE, "To": BOB});
        let request = json!({"body": {"Transaction": transaction, "Object": {ALICE: {"Balance": "1"}}}, "query": {}});
        let both = vec![("/body/Transaction/GasPrice", json!("1")), ("/body/Transaction/MaxFeePerGas", json!("2"))];
        let tip_above_cap = vec![
            ("/body/Transaction/GasPrice", Value::Null),
            ("/body/Transaction/MaxFeePerGas", json!("1")),
            ("/body/Transaction/MaxPriorityFeePerGas", json!("2")),
        ];
        let no_recipient = vec![("/body/Transaction/To", Value::Null), ("/body/Object", json!({"Code": "0x00"}))];
        let no_sender =
            vec![("/body/Transaction/From", Value::Null), ("/body/Object", json!({"Nonce": 5, "Code": "0x1"}))];
        let mixed = json!({ALICE: {"Balance": "x"}, "Nonce": "y", "foo": 1});
        let list = json!([{"Address": ALICE, "StorageKeys": ["0x1", 5]}, {"Address": "0x"}]);
        let blobs = json!([hash("1"), "0x01", format!("0x01{}", "0".repeat(62))]);
        let edits: Vec<Edit> = vec![
            (set("/body/Transaction/From", json!("0x1")), &["body.Transaction.From"]),
            (set("/body/Transaction/To", json!(7)), &["body.Transaction.To"]),
            (set("/body/Transaction/Gas", json!("0x10000000000000000")), &["body.Transaction.Gas"]),
            (set("/body/Transaction/Value", json!(-1)), &["body.Transaction.Value"]),
            (set("/body/Transaction/Nonce", json!(1.5)), &["body.Transaction.Nonce"]),
            (set("/body/Transaction/Data", json!("0x1")), &["body.Transaction.Data"]),
            (set("/body/Transaction/foo", json!({"a": []})), &["body.Transaction.foo"]),
            (
                vec![("/body/Transaction/Data", json!("0x01")), ("/body/Transaction/Input", json!("0x02"))],
                &["body.Transaction.Input"],
            ),
            (both, &["body.Transaction.MaxFeePerGas"]),
            (tip_above_cap, &["body.Transaction.MaxPriorityFeePerGas"]),
            (
                set("/body/Transaction/AccessList", list),
                &[
                    "body.Transaction.AccessList[0].StorageKeys[0]",
                    "body.Transaction.AccessList[0].StorageKeys[1]",
                    "body.Transaction.AccessList[1].Address",
                    "body.Transaction.AccessList[1]",
                ],
            ),
            (
                set("/body/Transaction/BlobVersionedHashes", blobs),
                &["body.Transaction.BlobVersionedHashes[0]", "body.Transaction.BlobVersionedHashes[1]"],
            ),
            (set("/body/Transaction/AuthorizationList", json!([{}])), &["body.Transaction.AuthorizationList[0]"; 1]),
            (no_recipient, &["body.Transaction"]),
            (no_sender, &["body.Object.Code", "body.Transaction"]),
            (set("/body/Object", json!({"StateDiff": "5"})), &["body.Object.StateDiff"]),
            (set("/body/Object", json!({"State": 5})), &["body.Object.State"]),
            (set("/body/Object", json!({"State": {}, "StateDiff": {}})), &["body.Object.StateDiff"]),
            (set("/body/Object", json!("x")), &["body.Object"]),
            (
                set("/body/Object", mixed),
                &[
                    "body.Object",
                    "body.Object.0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266.Balance",
                    "body.Object.Nonce",
                    "body.Object.foo",
                ],
            ),
            (set("/body/BlockNumber", json!("0x")), &["body.BlockNumber"]),
            (set("/body/foo", json!("bar")), &["body.foo"]),
            (set("/query/foo", json!("1")), &["query.foo"]),
        ];
        (request, edits)
    };
    let of_call = |path| {
        let (request, edits) = call();
        Operation { path, request, edits }
    };
    let long_data = format!("0x{}", "00".repeat(2_000));
    let addresses = vec![json!(ALICE); 1_001];
    let topics = json!([[hash("1"), "0x1"], vec![hash("1"); 1_001], null, 5, "0x"]);
    let topic_faults: &[&str] =
        &["body.Topics[0][1]", "body.Topics[1]", "body.Topics[3]", "body.Topics[4]", "body.Topics"];
    vec![
        Operation {
            path: "/getLogs/",
            request: json!({"body": {"FromBlock": "0", "ToBlock": "1", "Address": ALICE, "Topics": [null]}, "query": {}}),
            edits: vec![
                (set("/body/Address", json!("x")), &["body.Address"]),
                (set("/body/Address", json!([ALICE, 5])), &["body.Address[1]"]),
                (set("/body/Address", addresses.clone().into()), &["body.Address"]),
                (set("/body/Address", json!(vec![ALICE; 1_001].join(","))), &["body.Address"]),
                (set("/body/FromBlock", json!("x")), &["body.FromBlock"]),
                (set("/body/FromBlock", json!(zero_word)), &["body.FromBlock"]),
                (set("/body/ToBlock", json!({})), &["body.ToBlock"]),
                (set("/body/ToBlock", json!("99")), &["body.ToBlock"]),
                (set("/body/ToBlock", json!("20000000")), &["body.ToBlock"]),
                (vec![("/body/FromBlock", json!("0x2")), ("/body/ToBlock", json!(1))], &["body.FromBlock"]),
                (vec![("/body/FromBlock", Value::Null), ("/body/ToBlock", json!("1"))], &["body.ToBlock"]),
                (vec![("/body/FromBlock", json!("99")), ("/body/ToBlock", json!("latest"))], &["body.FromBlock"]),
                (
                    vec![("/body/FromBlock", json!("99")), ("/body/ToBlock", json!("98"))],
                    &["body.FromBlock", "body.ToBlock"],
                ),
                (set("/body/Topics", topics.clone()), topic_faults),
                (set("/body/BlockHash", json!("0x12")), &["body.BlockHash"]),
                (
                    vec![
                        ("/body/BlockHash", json!(zero_word)),
                        ("/body/FromBlock", json!("0")),
                        ("/body/ToBlock", json!("1")),
                    ],
                    &["body.FromBlock", "body.ToBlock"],
                ),
                (set("/body/foo", json!(null)), &[]),
                (set("/body/address", json!(ALICE)), &["body.address"]),
                (set("/query/Cursor", json!("abc")), &["query.Cursor"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/newFilter/",
            request: json!({
                "body": {"FilterObject": {"Address": "", "FromBlock": "0", "ToBlock": "1", "Topics": []}},
                "query": {},
            }),
            edits: vec![
                (remove("/body/FilterObject/Address"), &["body.FilterObject"]),
                (set("/body/FilterObject/Address", json!(5)), &["body.FilterObject.Address"]),
                (set("/body/FilterObject/Address", addresses.into()), &["body.FilterObject.Address"]),
                (remove("/body/FilterObject/FromBlock"), &["body.FilterObject"]),
                (set("/body/FilterObject/FromBlock", json!("x")), &["body.FilterObject.FromBlock"]),
                (set("/body/FilterObject/ToBlock", json!("y")), &["body.FilterObject.ToBlock"]),
                (
                    vec![("/body/FilterObject/FromBlock", json!("0x2")), ("/body/FilterObject/ToBlock", json!(1))],
                    &["body.FilterObject.FromBlock"],
                ),
                (set("/body/FilterObject/Topics", json!(vec![json!(null); 5])), &["body.FilterObject.Topics"]),
                (set("/body/FilterObject/foo", json!(1)), &["body.FilterObject.foo"]),
                (set("/body/foo", json!(1)), &["body.foo"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/feeHistory/",
            request: json!({"body": {"BlockCount": "1"}, "query": {}}),
            edits: vec![
                (set("/body/BlockCount", json!("0")), &["body.BlockCount"]),
                (set("/body/BlockCount", json!(1_025)), &["body.BlockCount"]),
                (set("/body/BlockCount", json!("x")), &["body.BlockCount"]),
                (set("/body/NewestBlock", json!("x")), &["body.NewestBlock"]),
                (set("/body/NewestBlock", json!(zero_word)), &["body.NewestBlock"]),
                (
                    set("/body/RewardPercentiles", json!([50, "x", 40, 101, "60", -1, 55])),
                    &[
                        "body.RewardPercentiles[1]",
                        "body.RewardPercentiles[2]",
                        "body.RewardPercentiles[3]",
                        "body.RewardPercentiles[5]",
                        "body.RewardPercentiles[6]",
                    ],
                ),
                (set("/body/RewardPercentiles", json!(vec![5; 101])), &["body.RewardPercentiles"]),
                (set("/body/foo", json!(1)), &["body.foo"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/getProof/",
            request: json!({"body": {"Address": ALICE}, "query": {}}),
            edits: vec![
                (remove("/body/Address"), &["body"]),
                (set("/body/Address", json!("x")), &["body.Address"]),
                (set("/body/BlockNumber", json!("pending")), &["body.BlockNumber"]),
                (set("/body/BlockNumber", json!(true)), &["body.BlockNumber"]),
                (set("/body/StorageKeys", json!(vec!["1"; 1_025])), &["body.StorageKeys"]),
                (
                    set("/body/StorageKeys", json!(["x", "1", format!("0x{}", "1".repeat(65))])),
                    &["body.StorageKeys[0]", "body.StorageKeys[2]"],
                ),
                (set("/body/foo", json!(1)), &["body.foo"]),
            ],
        },
        Operation {
            path: "/getStorageAt/",
            request: json!({"body": {"Address": ALICE, "Position": "1"}, "query": {}}),
            edits: vec![
                (remove("/body/Address"), &["body"]),
                (set("/body/Address", json!([])), &["body.Address"]),
                (set("/body/BlockNumber", json!("x")), &["body.BlockNumber"]),
                (remove("/body/Position"), &["body"]),
                (set("/body/Position", json!("x")), &["body.Position"]),
            ],
        },
        Operation {
            path: "/sendRawTransaction/",
            request: json!({"body": {"Data": "0x"}, "query": {}}),
            edits: vec![
                (remove("/body/Data"), &["body"]),
                (set("/body/Data", json!("hello")), &["body.Data"]),
                (set("/body/foo", json!(1)), &["body.foo"]),
                (set("/query/foo", json!("%25")), &["query.foo"]),
            ],
        },
        of_call("/call/"),
        of_call("/estimateGas/"),
        Operation {
            path: "/getBlockByNumber/{BlockNumber}/{TransactionDetailFlag}/",
            request: json!({"path": {"BlockNumber": "0", "TransactionDetailFlag": "false"}, "query": {}}),
            edits: vec![
                (set("/path/BlockNumber", json!("x")), &["path.BlockNumber"]),
                (set("/path/BlockNumber", json!(hash("a"))), &["path.BlockNumber"]),
                (set("/path/TransactionDetailFlag", json!("yes")), &["path.TransactionDetailFlag"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/getAccount/{Address}/{BlockNumber}/",
            request: json!({"path": {"Address": ALICE, "BlockNumber": "0"}, "query": {}}),
            edits: vec![
                (set("/path/Address", json!("0x1")), &["path.Address"]),
                (set("/path/BlockNumber", json!("pending")), &["path.BlockNumber"]),
                (set("/path/BlockNumber", json!("x")), &["path.BlockNumber"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/getBalance/{Address}/",
            request: json!({"path": {"Address": ALICE}, "query": {}}),
            edits: vec![
                (set("/path/Address", json!("0x1")), &["path.Address"]),
                (set("/query/BlockNumber", json!("x")), &["query.BlockNumber"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/events/",
            request: json!({"path": {}, "query": {"Stream": "logs"}}),
            edits: vec![
                (set("/query/Address", json!("0x1")), &["query.Address"]),
                (set("/query/Topic2", json!("0x1")), &["query.Topic2"]),
                (set("/query/FromBlock", json!("x")), &["query.FromBlock"]),
                (set("/query/LastEventId", json!("x")), &["query.LastEventId"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
        Operation {
            path: "/dev/mine/",
            request: json!({"body": {"Blocks": 1}, "query": {}}),
            edits: vec![
                (set("/body/Blocks", json!("x")), &["body.Blocks"]),
                (set("/body/Interval", json!(-1)), &["body.Interval"]),
                (set("/body/Withdrawals", json!([{"Address": ALICE}])), &["body.Withdrawals[0]"; 1]),
                (set("/body/foo", json!(1)), &["body.foo"]),
            ],
        },
        Operation {
            path: "/dev/sendTransaction/",
            request: json!({"body": {"Transaction": {"From": ALICE}}, "query": {}}),
            edits: vec![
                (remove("/body/Transaction/From"), &["body.Transaction"]),
                (set("/body/Transaction/Gas", json!("x")), &["body.Transaction.Gas"]),
                (set("/body/Transaction/Data", json!(long_data + "0")), &["body.Transaction.Data"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
    ]
}

/// Applies edits to a request.
fn edited(request: &Value, edits: &[&Edit]) -> Value {
    let mut request = request.clone();
    for (pointer, value) in edits.iter().flat_map(|(changes, _)| changes) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = request.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(name)),
            value => drop(parent.insert(name.to_owned(), value.clone())),
        }
    }
    request
}

/// Returns whether two edits change different parts of a request.
fn are_independent(one: &Edit, other: &Edit) -> bool {
    let overlap = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/")) || b.starts_with(&format!("{a}/"));
    one.0.iter().all(|(a, _)| other.0.iter().all(|(b, _)| !overlap(a, b)))
}

fn send(server: &Server, operation: &Operation, request: &Value) -> Response {
    let object = |part: &str| request[part].as_object().cloned().unwrap_or_else(Map::new);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut path = operation.path.to_owned();
    for (name, value) in object("path") {
        path = path.replace(&format!("{{{name}}}"), &text(&value));
    }
    let query: Vec<_> = object("query").iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    match request.get("body") {
        Some(body) => server.post(&path, body.to_string()),
        None => server.get(&path),
    }
}

/// Returns the value at a location.
fn at<'a>(request: &'a Value, location: &str) -> Option<&'a Value> {
    let mut value = request;
    for part in location.split('.') {
        let mut names = part.split('[');
        value = value.get(names.next()?)?;
        for index in names {
            value = value.get(index.strip_suffix(']')?.parse::<usize>().ok()?)?;
        }
    }
    Some(value)
}

/// Returns the faults in a response, after checking that each has its value as it was sent.
fn faults(response: &Response, request: &Value) -> Faults {
    assert_eq!(response.problem_faults(422), [""; 0], "{request}: {}", response.body);
    let errors = response.field("errors").as_array().unwrap();
    let fault = |error: &Value| {
        let location = error["location"].as_str().unwrap().to_owned();
        let sent = at(request, &location).unwrap_or_else(|| panic!("{location} is not in {request}"));
        let json = sent.to_string();
        match json.len() {
            ..=1_024 if location.starts_with("query.") && sent.as_str().unwrap().contains('%') => {}
            ..=1_024 => assert_eq!(error.get("value"), Some(sent), "{location} of {request}"),
            _ => {
                let cut = error["value"].as_str().and_then(|text| text.strip_suffix('…')).unwrap_or("?");
                assert!(json.trim_start_matches('"').starts_with(cut), "{error}");
            }
        }
        (location, error["message"].as_str().unwrap().to_owned())
    };
    errors.iter().map(fault).collect()
}

#[test]
fn problems_list_the_faults_of_all_parts() {
    let server = Server::dev([""; 0]);
    assert_eq!(server.post("/dev/mine/", json!({"Blocks": "3"}).to_string()).status, 200);
    for operation in operations() {
        let Operation { path, request, edits } = &operation;
        let edits: Vec<_> = edits.iter().filter(|(_, locations)| !locations.is_empty()).collect();
        let alone: Vec<Faults> = edits
            .iter()
            .map(|edit| {
                let request = edited(request, &[edit]);
                let found = faults(&send(&server, &operation, &request), &request);
                let locations: BTreeSet<_> = found.iter().map(|(location, _)| location.as_str()).collect();
                assert_eq!(locations, edit.1.iter().copied().collect(), "{path}: {request}");
                found
            })
            .collect();
        let mut sets: Vec<Vec<usize>> = (0..edits.len()).map(|first| vec![first]).collect();
        // All pairs of independent edits, and for each edit as many others as are independent of one another.
        for first in 0..edits.len() {
            sets.extend((first + 1..edits.len()).map(|second| vec![first, second]));
            let mut many = vec![first];
            for next in (0..edits.len()).map(|step| (first + step) % edits.len()) {
                if many.iter().all(|index| are_independent(edits[*index], edits[next])) {
                    many.push(next);
                }
            }
            sets.push(many);
        }
        for set in sets {
            let chosen: Vec<_> = set.iter().map(|index| edits[*index]).collect();
            if chosen
                .iter()
                .enumerate()
                .any(|(at, one)| chosen[at + 1..].iter().any(|other| !are_independent(one, other)))
            {
                continue;
            }
            let request = edited(request, &chosen);
            let expected: Faults = set.iter().flat_map(|index| alone[*index].clone()).collect();
            assert_eq!(faults(&send(&server, &operation, &request), &request), expected, "{path}: {request}");
        }
    }
}
