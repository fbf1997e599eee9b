//! Invalid requests: every fault is listed, and nothing panics.

use crate::wire::*;
use proptest::prelude::*;
use serde_json::json;

fn faults<T: Decode>(body: &str) -> Vec<ErrorDetail> {
    match decode_body::<T>(body.as_bytes()) {
        Err(BodyError::Invalid(faults)) => faults,
        Err(other) => panic!("{body}: {other}"),
        Ok(_) => panic!("{body}: accepted"),
    }
}

/// Checks that `body` has exactly one fault, with this location and message.
#[track_caller]
fn refuses<T: Decode>(body: serde_json::Value, location: &str, message: &str) {
    let faults = faults::<T>(&body.to_string());
    let found: Vec<_> = faults.iter().map(|fault| (&fault.location[..], &fault.message[..])).collect();
    assert_eq!(found, [(location, message)], "{body}");
}

const A: &str = "0xaa00000000000000000000000000000000000000";

#[test]
fn lists_every_fault() {
    let body = r#"{
        "Address": 5, "address": "0x", "FromBlock": "ten", "ToBlock": -1, "ToBlock": "2",
        "Topics": ["0x00", [7, null], true], "$schema": "ignored"
    }"#;
    let address = "expected string or array";
    let block = "expected a block number, earliest, latest, pending, safe or finalized";
    let topic = "expected 0x and 64 hex digits";
    let expected = [
        ErrorDetail::new("body.address", "unexpected property").with_value(&"0x"),
        ErrorDetail::new("body.ToBlock", "duplicate property").with_value(&"2"),
        ErrorDetail::new("body.Address", address).with_value(&5),
        ErrorDetail::new("body.FromBlock", block).with_value(&"ten"),
        ErrorDetail::new("body.ToBlock", block).with_value(&-1),
        ErrorDetail::new("body.Topics[0]", topic).with_value(&"0x00"),
        ErrorDetail::new("body.Topics[1][0]", "expected string").with_value(&7),
        ErrorDetail::new("body.Topics[2]", "expected null, string or array").with_value(&true),
    ];
    assert_eq!(faults::<GetLogsInput>(body), expected);
}

#[test]
fn lists_are_limited_whether_or_not_their_elements_are_valid() {
    let limit = |most| ListLimit { most, option: Some("max-logs") };
    let limits = RequestLimits {
        addresses: limit(1),
        topics: limit(2),
        storage_keys: limit(3),
        percentiles: ListLimit { most: 4, option: None },
        fee_history_blocks: 5,
        ..RequestLimits::default()
    };
    let found = |result: Result<(), BodyError>| match result {
        Err(BodyError::Invalid(faults)) => {
            faults.into_iter().map(|fault| (fault.location, fault.message)).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let logs = |body: serde_json::Value| {
        found(decode_body_within::<GetLogsInput>(body.to_string().as_bytes(), limits).map(drop))
    };
    let hash = HashData::default();
    let too_many = "expected at most 1 addresses, got 2 (`max-logs`)";
    let expected = [
        ("body.Address[1]".to_owned(), "expected string".to_owned()),
        ("body.Address".to_owned(), too_many.to_owned()),
    ];
    assert_eq!(logs(json!({ "Address": [A, 5] })), expected);
    assert_eq!(logs(json!({ "Address": format!("{A},{A}") })), expected[1..]);
    let too_many = ("body.Topics[1]".to_owned(), "expected at most 2 topics, got 3 (`max-logs`)".to_owned());
    assert_eq!(logs(json!({ "Topics": [[hash, hash], [hash, hash, hash]] })), [too_many]);
    let proof = json!({ "Address": A, "StorageKeys": ["1", "x", "3", "4"], "BlockNumber": "pending" }).to_string();
    let proof = found(decode_body_within::<GetProofInput>(proof.as_bytes(), limits).map(drop));
    let messages: Vec<_> = proof.iter().map(|(_, message)| message.as_str()).collect();
    let key = "expected a decimal number, or 0x and at most 64 hex digits";
    assert_eq!(messages, ["the pending block has no proofs", key, "expected at most 3 keys, got 4 (`max-logs`)"]);
    let history = json!({ "BlockCount": "6", "RewardPercentiles": [50, "x", 40, 101, 60] }).to_string();
    let history = found(decode_body_within::<FeeHistoryInput>(history.as_bytes(), limits).map(drop));
    let messages: Vec<_> = history.iter().map(|(_, message)| message.as_str()).collect();
    let expected = [
        "expected a number from 1 to 5",
        "expected a decimal number",
        "invalid reward percentile: expected at least 50, the preceding percentile",
        "invalid reward percentile: expected a number from 0 to 100",
        "expected at most 4 percentiles, got 5",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn faults_repeat_what_was_sent() {
    let cases = [
        (json!({ "StateDiff": "5" }), json!("5")),
        (json!({ "StateDiff": "[]" }), json!("[]")),
        (json!({ "State": 5 }), json!(5)),
        (json!({ "State": "{" }), json!("{")),
    ];
    for (object, value) in cases {
        let [fault] = &faults::<CallInput>(&json!({ "Transaction": { "To": A }, "Object": object }).to_string())[..]
        else {
            panic!("{object}");
        };
        assert_eq!(fault.message, "expected an object, or a string that holds one", "{object}");
        assert_eq!(fault.value, EchoedValue::new(&value), "{object}");
    }
}

#[test]
fn rejects_wrong_shapes() {
    type Logs = GetLogsInput;
    let hash = HashData::default();
    let missing = |name: &str| format!("expected required property {name} to be present");

    refuses::<Logs>(json!([]), "body", "expected object");
    refuses::<Logs>(json!(null), "body", "expected object");
    let twice = faults::<Logs>(r#"{"$schema": 5, "$schema": "x"}"#);
    assert_eq!(twice, [ErrorDetail::new("body.$schema", "duplicate property").with_value(&"x")]);
    assert!(decode_body::<Logs>(br#"{"$schema": 5}"#).is_ok());
    refuses::<Logs>(json!({ "Topics": "0x00" }), "body.Topics", "expected array");
    refuses::<Logs>(
        json!({ "Topics": [null, null, null, null, null] }),
        "body.Topics",
        "expected at most 4 positions, got 5",
    );
    let beside = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";
    refuses::<Logs>(json!({ "BlockHash": hash, "FromBlock": "1" }), "body.FromBlock", beside);
    refuses::<Logs>(json!({ "BlockHash": hash, "ToBlock": "1" }), "body.ToBlock", beside);
    let tag = "0x and 64 hex digits are taken for a block hash, which is not allowed here: expected a block number, earliest, \
               latest, pending, safe or finalized";
    refuses::<Logs>(json!({ "FromBlock": hash }), "body.FromBlock", tag);
    refuses::<FeeHistoryInput>(json!({ "NewestBlock": hash }), "body.NewestBlock", tag);

    refuses::<CallInput>(json!({}), "body", &missing("Transaction"));
    refuses::<CallInput>(json!({ "Transaction": null }), "body.Transaction", "expected object");
    let call = |call: serde_json::Value| json!({ "Transaction": call });
    refuses::<CallInput>(call(json!({ "Gas": 1.5 })), "body.Transaction.Gas", "expected an integer, or a string");
    refuses::<CallInput>(call(json!({ "Gas": true })), "body.Transaction.Gas", "expected an integer, or a string");
    refuses::<Logs>(json!({ "FromBlock": true }), "body.FromBlock", "expected an integer, or a string");
    let keys = json!({ "Address": A, "StorageKeys": [null] });
    refuses::<GetProofInput>(keys, "body.StorageKeys[0]", "expected an integer, or a string");
    refuses::<CallInput>(
        call(json!({ "Data": "0x01", "Input": "0x02" })),
        "body.Transaction.Input",
        "expected the value of Data, which has the same meaning",
    );

    refuses::<NewFilterInput>(
        json!({ "FilterObject": { "Address": "", "FromBlock": "", "Topics": [] } }),
        "body.FilterObject",
        &missing("ToBlock"),
    );
    for cap in ["MaxFeePerGas", "MaxPriorityFeePerGas"] {
        refuses::<CallInput>(
            call(json!({ "GasPrice": "1", cap: "1" })),
            &format!("body.Transaction.{cap}"),
            "both GasPrice and (MaxFeePerGas or MaxPriorityFeePerGas) specified",
        );
    }
    let authorization = json!({ "Address": A, "ChainId": 1, "Nonce": 0, "R": "1", "S": "1", "V": 0 });
    let blob = format!("0x01{:062x}", 7);
    for fields in [json!({ "AuthorizationList": [authorization] }), json!({ "BlobVersionedHashes": [blob] })] {
        refuses::<CallInput>(call(fields), "body.Transaction", &missing("To"));
    }
    refuses::<GetStorageAtInput>(json!({ "Address": A }), "body", &missing("Position"));
    refuses::<SendRawTransactionInput>(
        json!({ "Data": "" }),
        "body.Data",
        "expected 0x and an even number of hex digits",
    );
    let endless = "9".repeat(400);
    for bad in ["inf", "1e1", "+5", ".", "-", "-0", "1-2", "", "NaN", &endless] {
        let body = json!({ "RewardPercentiles": [1, bad] });
        refuses::<FeeHistoryInput>(body, "body.RewardPercentiles[1]", "expected a decimal number");
    }
}

#[test]
fn rejects_inconsistent_overrides() {
    type Estimate = EstimateGasInput;
    let with = |object: serde_json::Value| json!({ "Object": object, "Transaction": {} });
    let missing = |name: &str, of: &str| {
        format!("expected required property {name} to be present, because Object overrides its {of}")
    };

    let mixed = "expected either addresses or the properties of one override, not both";
    refuses::<Estimate>(with(json!({ A: {}, "Balance": "1" })), "body.Object", mixed);
    refuses::<Estimate>(with(json!({ "Balance": "1" })), "body.Transaction", &missing("From", "Balance or Nonce"));
    refuses::<Estimate>(with(json!({ "Nonce": "1" })), "body.Transaction", &missing("From", "Balance or Nonce"));
    refuses::<Estimate>(with(json!({ "Code": "0x" })), "body.Transaction", &missing("To", "Code, State or StateDiff"));
    refuses::<Estimate>(with(json!({ "State": {} })), "body.Transaction", &missing("To", "Code, State or StateDiff"));
    refuses::<Estimate>(with(json!({ "foo": {} })), "body.Object.foo", "unexpected property");
    let both = json!({ A: { "State": {}, "StateDiff": {} } });
    refuses::<Estimate>(with(both), &format!("body.Object.{A}.StateDiff"), "unexpected property beside State");
    let upper = format!("0x{}", A[2..].to_uppercase());
    let twice = json!({ A: {}, upper: {} });
    assert_eq!(faults::<Estimate>(&with(twice).to_string())[0].message, "duplicate property");
    let slot = format!("body.Object.{A}.State.0xzz");
    refuses::<Estimate>(
        with(json!({ A: { "State": { "0xzz": 1 } } })),
        &slot,
        "expected a storage slot as the name of the property",
    );
    for text in ["{", "[", "x", "{}{}"] {
        let location = format!("body.Object.{A}.State");
        let message = "expected an object, or a string that holds one";
        refuses::<Estimate>(with(json!({ A: { "State": text } })), &location, message);
    }
}

#[test]
fn rejects_bodies_that_are_not_json() {
    for body in ["", " ", "\n\t\r "] {
        assert_eq!(decode_body::<GetLogsInput>(body.as_bytes()), Err(BodyError::Empty), "{body:?}");
    }
    let malformed = ["{", "{]", "{\"a\":}", "{} {}", "nul", "{\"a\" 1}", "{'a':1}", "[1,]", "{\"a\":01}", "\u{feff}{}"];
    for body in malformed {
        let result = decode_body::<GetLogsInput>(body.as_bytes());
        assert!(matches!(result, Err(BodyError::Malformed { .. })), "{body:?}: {result:?}");
    }
    let invalid_utf8 = decode_body::<GetLogsInput>(b"{\"Address\": \"\xff\"}");
    assert!(matches!(invalid_utf8, Err(BodyError::Malformed { .. })), "{invalid_utf8:?}");
    let Err(error) = decode_body::<GetLogsInput>(b"{\n  \"Address\": ?\n}") else { panic!("accepted") };
    assert_eq!(error.to_string(), "malformed JSON: expected value at line 2, column 14");
}

#[test]
fn survives_hostile_bodies() {
    // An echoed value must not break the parser of the response.
    let readable = |faults: &[ErrorDetail]| {
        let json = serde_json::to_string(faults).unwrap();
        assert!(json.len() < 200_000, "{} bytes", json.len());
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    };

    for depth in [100, 200, 10_000, 100_000] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        for nested in [&arrays, &objects] {
            readable(&faults::<CallInput>(&format!("{{\"Transaction\": {{\"Gas\": {nested}}}}}")));
            readable(&faults::<GetLogsInput>(&format!("{{\"Topics\": {nested}}}")));
            readable(&faults::<EstimateGasInput>(&format!("{{\"Object\": {nested}, \"Transaction\": {{}}}}")));
        }
        readable(&faults::<GetLogsInput>(&arrays));
        assert!(matches!(decode_body::<GetLogsInput>("[".repeat(depth).as_bytes()), Err(BodyError::Malformed { .. })));
    }

    let digits = "7".repeat(300);
    let fault = &faults::<FeeHistoryInput>(&format!("{{\"BlockCount\": {digits}}}"))[0];
    assert_eq!(fault.message, "expected a number below 2^64");
    assert_eq!(fault.value.as_ref().unwrap().0.get(), digits);
    readable(&faults::<FeeHistoryInput>(&format!("{{\"BlockCount\": {}}}", "7".repeat(100_000))));
    readable(&faults::<FeeHistoryInput>("{\"BlockCount\": 1e999999}"));
    readable(&faults::<FeeHistoryInput>("{\"RewardPercentiles\": [1e999999]}"));

    let many = faults::<GetLogsInput>(&format!("{{\"Address\": [{}1]}}", "1,".repeat(100_000)));
    assert_eq!(many.len(), 101);
    assert_eq!(many[100].message, "99901 more faults");
    readable(&many);

    readable(&faults::<GetLogsInput>(&format!("{{\"{}\": 1}}", "n".repeat(100_000))));
    readable(&faults::<GetLogsInput>(&format!("{{\"Address\": \"{}\"}}", "ä\\n".repeat(100_000))));
    let broken = faults::<GetLogsInput>(r#"{"Address": "\ud800"}"#);
    assert_eq!(broken[0].value, EchoedValue::new(&r#""\ud800""#), "the text as it was sent, quotes and all");
    readable(&broken);
    readable(&faults::<GetLogsInput>(r#"{"\ud800": 1}"#));
}

fn decode_all(body: &[u8]) {
    fn check<T: Decode>(body: &[u8]) {
        if let Err(BodyError::Invalid(faults)) = decode_body::<T>(body) {
            assert!(!faults.is_empty());
            assert!(faults.iter().all(|fault| fault.location.starts_with("body") && !fault.message.is_empty()));
        }
    }
    check::<GetLogsInput>(body);
    check::<EstimateGasInput>(body);
    check::<FeeHistoryInput>(body);
    check::<CallInput>(body);
    check::<GetProofInput>(body);
    check::<GetStorageAtInput>(body);
    check::<SendRawTransactionInput>(body);
    check::<NewFilterInput>(body);
}

/// JSON with the property names of requests and values of every kind.
fn json_like_requests() -> impl Strategy<Value = serde_json::Value> {
    let names = proptest::sample::select(vec![
        "Address",
        "BlockHash",
        "FromBlock",
        "ToBlock",
        "Topics",
        "Object",
        "Transaction",
        "BlockCount",
        "NewestBlock",
        "RewardPercentiles",
        "BlockNumber",
        "StorageKeys",
        "Position",
        "Data",
        "Input",
        "From",
        "To",
        "Gas",
        "Value",
        "Balance",
        "Code",
        "Nonce",
        "State",
        "StateDiff",
        "FilterObject",
        "$schema",
        "other",
        A,
        "0x1",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        proptest::sample::select(vec!["", "0x", "0x01", "latest", "1", "-1", A, "{\"1\": 2}", "{"])
            .prop_map(|value| json!(value)),
        ".{0,10}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|values| json!(values)),
            proptest::collection::vec((names.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn never_panics_on_any_json(value in json_like_requests()) {
        decode_all(value.to_string().as_bytes());
    }

    #[test]
    fn never_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        decode_all(&bytes);
    }

    #[test]
    fn never_panics_on_damaged_requests(value in json_like_requests(), place: prop::sample::Index, byte: u8) {
        let mut body = value.to_string().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        decode_all(&body);
        decode_all(&body[..place]);
    }
}
