//! The problem of a request with several faults lists those that each of its parts has alone, with the values as they
//! were sent.

use crate::server::{Response, Server};
use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_types::U256;
use node_types::consensus::{LegacyTransaction, TransactionBody};
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
    let beyond_128_bits = json!((U256::one() << 128).to_string());
    let call = || {
        let transaction = json!({"From": ALICE, "To": BOB});
        let request = json!({"body": {"Transaction": transaction, "Object": {ALICE: {"Balance": "1"}}}, "query": {}});
        let beyond_128_bits = beyond_128_bits.clone();
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
            (set("/body/Transaction/GasPrice", beyond_128_bits.clone()), &["body.Transaction.GasPrice"]),
            (set("/body/Transaction/MaxFeePerGas", beyond_128_bits.clone()), &["body.Transaction.MaxFeePerGas"]),
            (set("/body/Transaction/MaxFeePerBlobGas", beyond_128_bits), &["body.Transaction.MaxFeePerBlobGas"]),
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
    let unpayable = LegacyTransaction { gas_price: 1.into(), value: U256::MAX, ..transfer(0) };
    let topic_faults: &[&str] =
        &["body.Topics[0][1]", "body.Topics[1]", "body.Topics[3]", "body.Topics[4]", "body.Topics"];
    let mut operations = vec![
        Operation {
            path: "/getLogs/",
            request: json!({"body": {"FromBlock": "0", "ToBlock": "1", "Address": ALICE, "Topics": [null]}, "query": {}}),
            edits: vec![
                (set("/body/Address", json!("x")), &["body.Address"]),
                (set("/body/Address", json!([ALICE, 5])), &["body.Address[1]"]),
                (set("/body/Address", addresses.clone().into()), &["body.Address"]),
                (set("/body/Address", json!(vec![ALICE; 1_001].join(","))), &["body.Address"]),
                (
                    set("/body/Address", json!(format!("0x1,{ALICE}, x,"))),
                    &["body.Address[0]", "body.Address[2]", "body.Address[3]"],
                ),
                (set("/body/Topics", json!([null, "0x1,"])), &["body.Topics[1][0]", "body.Topics[1][1]"]),
                (set("/body/FromBlock", json!("x")), &["body.FromBlock"]),
                (set("/body/FromBlock", json!(zero_word)), &["body.FromBlock"]),
                (set("/body/ToBlock", json!({})), &["body.ToBlock"]),
                (set("/body/ToBlock", json!("99")), &["body.ToBlock"]),
                (set("/body/ToBlock", json!("20000000")), &["body.ToBlock"]),
                (vec![("/body/FromBlock", json!("0x2")), ("/body/ToBlock", json!(1))], &["body.FromBlock"]),
                (vec![("/body/FromBlock", Value::Null), ("/body/ToBlock", json!("1"))], &["body.ToBlock"]),
                (vec![("/body/FromBlock", json!("99")), ("/body/ToBlock", json!("latest"))], &["body.FromBlock"]),
                (vec![("/body/FromBlock", json!("99")), ("/body/ToBlock", json!("pending"))], &["body.FromBlock"]),
                (vec![("/body/FromBlock", json!("4")), ("/body/ToBlock", json!("safe"))], &["body.FromBlock"]),
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
                (set("/query/Cursor", json!("0".repeat(160))), &["query.Cursor"]),
                (set("/query/foo", json!("1 %")), &["query.foo"]),
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
                (
                    set("/body/FilterObject/Address", json!("0x1,0x2")),
                    &["body.FilterObject.Address[0]", "body.FilterObject.Address[1]"],
                ),
                (remove("/body/FilterObject/FromBlock"), &["body.FilterObject"]),
                (set("/body/FilterObject/FromBlock", json!("x")), &["body.FilterObject.FromBlock"]),
                (set("/body/FilterObject/ToBlock", json!("y")), &["body.FilterObject.ToBlock"]),
                (
                    vec![("/body/FilterObject/FromBlock", json!("0x2")), ("/body/FilterObject/ToBlock", json!(1))],
                    &["body.FilterObject.FromBlock"],
                ),
                (
                    vec![("/body/FilterObject/FromBlock", json!("9")), ("/body/FilterObject/ToBlock", json!("safe"))],
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
            request: json!({"body": {"Data": signed(transfer(0))}, "query": {}}),
            edits: vec![
                (remove("/body/Data"), &["body"]),
                (set("/body/Data", json!("hello")), &["body.Data"]),
                // What the pool rejects.
                (set("/body/Data", json!("0x00")), &["body.Data"]),
                (set("/body/Data", json!(signed(unpayable))), &["body.Data"; 1]),
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
                (set("/query/Stream", json!("x")), &["query.Stream"]),
                (set("/query/Address", json!("0x1")), &["query.Address"]),
                (set("/query/Address", json!(format!("x,{ALICE},"))), &["query.Address[0]", "query.Address[2]"]),
                (set("/query/Topic1", json!("0x1,0x2")), &["query.Topic1[0]", "query.Topic1[1]"]),
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
                (set("/body/Blocks", json!("1099511627776")), &["body.Blocks"]),
                (set("/body/Interval", json!(-1)), &["body.Interval"]),
                (set("/body/Interval", json!("9223372036854775808")), &["body.Interval"]),
                (
                    vec![("/body/Blocks", json!("1000000000")), ("/body/Interval", json!("1000000000000"))],
                    &["body.Interval"],
                ),
                (set("/body/Withdrawals", json!([{"Address": ALICE}])), &["body.Withdrawals[0]"; 1]),
                (set("/body/foo", json!(1)), &["body.foo"]),
            ],
        },
        Operation {
            path: "/dev/increaseTime/",
            request: json!({"body": {"Seconds": "1"}, "query": {}}),
            edits: of_control("/body/Seconds", &["body.Seconds"], &["x", "18446744073709551615"]),
        },
        Operation {
            path: "/dev/setNextBlockTimestamp/",
            request: json!({"body": {"Timestamp": "8000000000000"}, "query": {}}),
            edits: of_control("/body/Timestamp", &["body.Timestamp"], &["x", "9223372036854775808", "1"]),
        },
        Operation {
            path: "/dev/reorganize/",
            request: json!({"body": {"Blocks": "0"}, "query": {}}),
            edits: of_control("/body/Blocks", &["body.Blocks"], &["x", "1000", "4"]),
        },
        Operation {
            path: "/dev/sendTransaction/",
            request: json!({"body": {"Transaction": {"From": ALICE}}, "query": {}}),
            edits: vec![
                (remove("/body/Transaction/From"), &["body.Transaction"]),
                (set("/body/Transaction/From", json!("0x1")), &["body.Transaction.From"]),
                // Neither impersonated nor an account of the server.
                (set("/body/Transaction/From", json!(format!("0x{}", "1".repeat(40)))), &["body.Transaction.From"]),
                (set("/body/Transaction/Gas", json!("x")), &["body.Transaction.Gas"]),
                (set("/body/Transaction/MaxFeePerGas", beyond_128_bits), &["body.Transaction.MaxFeePerGas"]),
                (
                    vec![
                        ("/body/Transaction/MaxFeePerGas", json!("1")),
                        ("/body/Transaction/MaxPriorityFeePerGas", json!("2")),
                    ],
                    &["body.Transaction.MaxPriorityFeePerGas"],
                ),
                (set("/body/foo", json!(1)), &["body.foo"]),
                (set("/body/Transaction/Data", json!(long_data + "0")), &["body.Transaction.Data"]),
                (set("/query/foo", json!("1")), &["query.foo"]),
            ],
        },
    ];
    operations.extend(READS.map(read));
    operations
}

/// Returns the faults of an operation with one field, at `pointer`, of which `values` are faults.
fn of_control(pointer: &'static str, location: &'static [&'static str], values: &[&str]) -> Vec<Edit> {
    let values = values.iter().map(|value| (vec![(pointer, json!(value))], location));
    let others = [("/body/foo", &["body.foo"]), ("/query/foo", &["query.foo"])];
    let others = others.map(|(pointer, location)| (vec![(pointer, json!("1"))], &location[..]));
    values.chain(others).collect()
}

/// Reads with parameters in the path.
const READS: [&str; 17] = [
    "/getBlockByHash/{Hash}/{TransactionDetailFlag}/",
    "/getBlockReceipts/{BlockNumber}/",
    "/getBlockTransactionCountByHash/{Hash}/",
    "/getBlockTransactionCountByNumber/{BlockNumber}/",
    "/getHeader/{BlockNumber}/",
    "/getRawBlock/{BlockNumber}/",
    "/getRawHeader/{BlockNumber}/",
    "/getRawReceipts/{BlockNumber}/",
    "/getRawTransaction/{Hash}/",
    "/getTransactionByBlockHashAndIndex/{Hash}/{Index}/",
    "/getTransactionByBlockNumberAndIndex/{BlockNumber}/{Index}/",
    "/getTransactionByHash/{Hash}/",
    "/getTransactionCount/{Address}/{BlockNumber}/",
    "/getTransactionExtras/{Hash}/",
    "/getTransactionReceipt/{Hash}/",
    "/getTransactionStatus/{Hash}/",
    "/getUncleCountByBlockNumber/{BlockNumber}/",
];

/// Returns a read with each of its parameters malformed in turn.
fn read(path: &'static str) -> Operation {
    let parameters = [
        ("/path/Address", "path.Address", ALICE),
        ("/path/BlockNumber", "path.BlockNumber", "0"),
        ("/path/Hash", "path.Hash", "0x"),
        ("/path/Index", "path.Index", "0"),
        ("/path/TransactionDetailFlag", "path.TransactionDetailFlag", "true"),
    ];
    let mut request = json!({"path": {}, "query": {}});
    let mut edits: Vec<Edit> = vec![
        (vec![("/query/foo", json!("+ü"))], &["query.foo"]),
        (vec![("/query/BlockNumbe", json!("1"))], &["query.BlockNumbe"]),
    ];
    for (pointer, location, value) in parameters {
        let name = &pointer["/path/".len()..];
        if path.contains(&format!("{{{name}}}")) {
            request["path"][name] = if value == "0x" { hash("1").into() } else { value.into() };
            edits.push((vec![(pointer, json!("x y"))], Box::leak(Box::new([location]))));
        }
    }
    Operation { path, request, edits }
}

/// Returns a signed transaction of [`ALICE`] as hex.
fn signed(transaction: LegacyTransaction) -> String {
    hex(&sign(TransactionBody::Legacy(transaction)).encode())
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
        path = path.replace(&format!("{{{name}}}"), &encoded(&text(&value)));
    }
    let query = object("query")
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(&text(value))))
        .collect::<Vec<_>>();
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    match request.get("body") {
        Some(body) => server.post(&path, body.to_string()),
        None => server.get(&path),
    }
}

/// Returns a text with percent-encoding, also of some characters that do not need it.
fn encoded(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'n' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Returns the value at a location. The elements of a string are separated by commas.
fn at(request: &Value, location: &str) -> Option<Value> {
    let mut value = request.clone();
    for part in location.split('.') {
        let mut names = part.split('[');
        value = value.get(names.next()?)?.clone();
        for index in names {
            let index: usize = index.strip_suffix(']')?.parse().ok()?;
            value = match value {
                Value::String(list) => list.split(',').nth(index)?.into(),
                array => array.get(index)?.clone(),
            };
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
            ..=1_024 => assert_eq!(error.get("value"), Some(&sent), "{location} of {request}"),
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

#[test]
fn of_duplicate_properties_the_first_is_read() {
    let server = Server::dev([""; 0]);
    let response = server.post("/getLogs/", r#"{"FromBlock": "0", "ToBlock": "0x63", "ToBlock": "0x62"}"#);
    assert_eq!(response.problem_faults(422), [""; 0]);
    let expected = json!([
        {"location": "body.ToBlock", "message": "duplicate property", "value": "0x62"},
        {"location": "body.ToBlock", "message": "block range extends beyond current head block 0", "value": "0x63"},
    ]);
    assert_eq!(response.field("errors"), &expected);
}

#[test]
fn the_entry_that_counts_further_faults_has_a_value() {
    let server = Server::dev([""; 0]);
    let names = 0..150;
    let query: Vec<_> = names.clone().map(|name| format!("p{name}=1")).collect();
    let body: Map<_, _> = names.map(|name| (format!("B{name}"), json!(1))).collect();
    let response = server.post(&format!("/getLogs/?{}", query.join("&")), json!(body).to_string());
    assert_eq!(response.problem_faults(422), [""; 0]);
    let errors = response.field("errors").as_array().unwrap();
    let counts = errors.iter().filter(|error| error["message"] == "50 more faults");
    let counts: Vec<_> = counts.map(|error| (error["location"].as_str().unwrap(), &error["value"])).collect();
    let [("body", of_body), ("query", of_query)] = counts[..] else { panic!("{counts:?}") };
    assert!(of_query.as_str().unwrap().starts_with("p0=1&p1=1&"), "{of_query}");
    assert!(of_body.as_str().unwrap().starts_with(r#"{"B0":1,"#), "{of_body}");
    assert!(errors.iter().all(|error| error.get("value").is_some()), "{}", response.text);
}

#[test]
fn a_replacement_with_a_gas_price_has_one_fault() {
    let server = Server::dev(["--no-mining"]);
    let send = |gas_price: u64| {
        let data = signed(LegacyTransaction { gas_price: gas_price.into(), ..transfer(0) });
        server.post("/sendRawTransaction/", json!({"Data": data}).to_string())
    };
    assert_eq!(send(2_000_000_000).status, 200);
    let refused = send(2_000_000_001);
    assert_eq!(refused.problem_faults(422), [""; 0]);
    let errors = refused.field("errors").as_array().unwrap();
    let message = "replacement transaction underpriced: GasPrice 2000000001 does not replace 2000000000 with the same nonce, at least \
                   2200000000 is needed";
    assert_eq!(errors.iter().map(|error| &error["message"]).collect::<Vec<_>>(), [message]);
    assert_eq!(refused.field("detail"), message);
}
