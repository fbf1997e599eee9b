//! Control of a development chain under `/dev/`: what each operation does, and what it refuses.

use crate::server::{Response, Server, Transport, node_server};
use crate::wallet::{ALICE, BOB, hex, sign, transfer};
use node_chain::genesis::DEV_GENESIS;
use node_types::consensus::{LegacyTransaction, TransactionBody};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const NONE: [&str; 0] = [];

/// All operations with a body.
const POSTED: [&str; 15] = [
    "mine",
    "setNextBlockTimestamp",
    "increaseTime",
    "setNextBlockBaseFee",
    "snapshot",
    "revert",
    "reorganize",
    "impersonate",
    "stopImpersonating",
    "sendTransaction",
    "setBalance",
    "setNonce",
    "setCode",
    "setStorage",
    "dropTransaction",
];

fn control(server: &Server, operation: &str, body: Value) -> Response {
    server.post(&format!("/dev/{operation}/"), body.to_string())
}

/// Calls an operation that must succeed.
fn done(server: &Server, operation: &str, body: Value) -> Value {
    let response = control(server, operation, body);
    assert_eq!(response.status, 200, "{operation}: {}", response.body);
    response.body
}

fn send(server: &Server, transaction: LegacyTransaction) -> String {
    let raw = hex(&sign(TransactionBody::Legacy(transaction)).encode());
    let response = server.post("/sendRawTransaction/", json!({"Data": raw}).to_string());
    response.field("TransactionHash").as_str().unwrap_or_else(|| panic!("{}", response.body)).to_owned()
}

fn head(server: &Server) -> Value {
    server.get("/getBlockByNumber/latest/false/").field("Block").clone()
}

fn status(server: &Server, hash: &str) -> Value {
    server.get(&format!("/getTransactionStatus/{hash}/")).field("Status").clone()
}

fn number(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

#[test]
fn mines_blocks_and_sets_the_time() {
    let server = Server::dev(["--no-mining"]);
    let hash = send(&server, transfer(0));
    assert_eq!(status(&server, &hash), "pending");
    let mined = server.send("POST", "/dev/mine/", &[], "");
    assert_eq!((mined.status, mined.field("BlockNumber")), (200, &json!("1")), "no body is needed");
    assert_eq!(status(&server, &hash), "mined");
    let time = number(&head(&server)["Timestamp"]);
    let mined = done(&server, "mine", json!({"Blocks": "3", "Interval": 100}));
    assert_eq!((&mined["BlockNumber"], &mined["BlockHash"]), (&json!("4"), &head(&server)["Hash"]));
    assert!(number(&head(&server)["Timestamp"]) >= time + 201, "two intervals");
    assert_eq!(done(&server, "mine", json!({"Blocks": 0}))["BlockNumber"], "4", "zero blocks change nothing");

    let withdrawal = json!({"Address": BOB, "Amount": "5", "Index": 0, "ValidatorIndex": 7});
    done(&server, "mine", json!({"Withdrawals": [withdrawal.clone()]}));
    assert_eq!(head(&server)["Withdrawals"], json!([withdrawal]));

    let later = number(&head(&server)["Timestamp"]) + 1_000_000;
    done(&server, "setNextBlockTimestamp", json!({"Timestamp": later.to_string()}));
    done(&server, "setNextBlockBaseFee", json!({"BaseFee": "77"}));
    done(&server, "mine", json!({}));
    let block = head(&server);
    assert_eq!((&block["Timestamp"], &block["BaseFeePerGas"]), (&json!(later.to_string()), &json!("77")));
    done(&server, "increaseTime", json!({"Seconds": 5_000}));
    done(&server, "mine", json!({}));
    assert!(number(&head(&server)["Timestamp"]) >= later + 5_000, "time continues from there");
}

#[test]
fn snapshots_reorganizations_and_the_pool() {
    let server = Server::dev(["--no-mining"]);
    let first = send(&server, transfer(0));
    done(&server, "mine", json!({}));
    let snapshot = done(&server, "snapshot", json!({}))["SnapshotId"].clone();
    let before = head(&server);
    let second = send(&server, transfer(1));
    done(&server, "setBalance", json!({"Address": BOB, "Balance": "5"}));
    done(&server, "mine", json!({"Blocks": 2}));
    assert_eq!(done(&server, "revert", json!({"SnapshotId": snapshot}))["Result"], true);
    assert_eq!(head(&server), before);
    assert_ne!(server.get(&format!("/getBalance/{BOB}/")).field("Balance"), &json!("5"));
    assert_ne!(status(&server, &second), "mined");
    assert_eq!(
        done(&server, "revert", json!({"SnapshotId": snapshot}))["Result"],
        false,
        "a snapshot can be used once"
    );
    assert_ne!(done(&server, "snapshot", json!({}))["SnapshotId"], snapshot, "its id is not used again");

    let replaced = done(&server, "reorganize", json!({"Blocks": 1}));
    assert_eq!(replaced["Removed"], json!([before["Hash"]]));
    assert_eq!(replaced["Added"], json!([head(&server)["Hash"]]));
    assert_eq!(status(&server, &first), "pending", "transactions of the replaced block wait again");
    let content = server.get("/dev/poolContent/");
    assert_eq!((content.status, content.header("cache-control")), (200, Some("no-store")));
    assert_eq!(content.field("Pending")[0]["Hash"], json!(first));
    assert_eq!(content.field("Queued"), &json!([]));

    assert_eq!(done(&server, "dropTransaction", json!({"TransactionHash": first}))["Result"], true);
    let dropped = server.get(&format!("/getTransactionStatus/{first}/"));
    assert_eq!((dropped.field("Status"), dropped.field("Reason")), (&json!("dropped"), &json!("dropped on request")));
    assert_eq!(done(&server, "dropTransaction", json!({"TransactionHash": first}))["Result"], false);
    assert_eq!(send(&server, transfer(0)), first, "a dropped transaction can be sent again");
    assert_eq!(status(&server, &first), "pending");
    done(&server, "mine", json!({}));
    assert_eq!(send(&server, transfer(0)), first, "a mined transaction can be sent again, too");
    assert_eq!(status(&server, &first), "mined");
}

#[test]
fn edits_and_impersonation() {
    let server = Server::dev(NONE);
    // Returns SLOAD(0).
    let code = "0x60005460005260206000f3";
    let contract = "0x00000000000000000000000000000000000000c0";
    done(&server, "setCode", json!({"Address": contract, "Code": code}));
    done(&server, "setStorage", json!({"Address": contract, "Position": "0", "Value": "42"}));
    done(&server, "setBalance", json!({"Address": contract, "Balance": "1000000000000000000"}));
    done(&server, "setNonce", json!({"Address": contract, "Nonce": "9"}));
    let read = server.post("/call/", json!({"Transaction": {"To": contract}}).to_string());
    assert_eq!(read.field("Data"), &json!(format!("0x{:064x}", 42)));
    assert_eq!(server.get(&format!("/getCode/{contract}/")).field("Bytecode"), &json!(code));

    let sent = json!({"Transaction": {"From": contract, "To": BOB, "Value": "7"}});
    let refused = control(&server, "sendTransaction", sent.clone());
    assert_eq!(refused.problem_faults(422), NONE);
    assert_eq!(
        refused.field("detail"),
        &json!(format!("unknown account {contract}: the node has no key for it, and does not impersonate it"))
    );
    let own = done(&server, "sendTransaction", json!({"Transaction": {"From": ALICE, "To": BOB}}));
    assert_eq!(status(&server, own["TransactionHash"].as_str().unwrap()), "mined");
    assert_eq!(done(&server, "impersonate", json!({"Address": contract}))["Result"], true);
    assert_eq!(
        done(&server, "impersonate", json!({"Address": contract}))["Result"],
        false,
        "it is already impersonated"
    );
    let hash = done(&server, "sendTransaction", sent.clone())["TransactionHash"].as_str().unwrap().to_owned();
    assert_eq!(status(&server, &hash), "mined");
    let transaction = server.get(&format!("/getTransactionByHash/{hash}/")).field("Transaction").clone();
    assert_eq!((&transaction["From"], &transaction["Nonce"]), (&json!(contract), &json!("9")));
    assert_eq!(done(&server, "stopImpersonating", json!({"Address": contract}))["Result"], true);
    assert_eq!(control(&server, "sendTransaction", sent).problem_faults(422), NONE);

    let megabyte = format!("0x{}", "00".repeat(1 << 20));
    done(&server, "setCode", json!({"Address": contract, "Code": megabyte}));
    assert_eq!(server.get(&format!("/getCode/{contract}/")).field("Bytecode"), &json!(megabyte));
    done(&server, "setCode", json!({"Address": contract}));
    assert_eq!(server.get(&format!("/getCode/{contract}/")).field("Bytecode"), &json!("0x"));
}

#[test]
fn refusals_have_a_reason() {
    let server = Server::dev(NONE);
    send(&server, transfer(0));
    done(&server, "mine", json!({}));
    let least = number(&head(&server)["Timestamp"]) + 1;
    let cases = [
        (
            "mine",
            json!({"Blocks": "1000000000000000000"}),
            "body.Blocks: expected a number of at most 4294967296".to_owned(),
        ),
        ("reorganize", json!({"Blocks": 3}), "cannot replace 3 blocks: at most 2 can be replaced".to_owned()),
        (
            "setNextBlockTimestamp",
            json!({"Timestamp": 5}),
            format!("timestamp 5 is not after the head; the next block's is at least {least}"),
        ),
        (
            "setNextBlockTimestamp",
            json!({"Timestamp": u64::MAX.to_string()}),
            "timestamp 18446744073709551615 is too far ahead; the last is 8640000000000".to_owned(),
        ),
    ];
    for (operation, body, detail) in cases {
        let response = control(&server, operation, body.clone());
        assert_eq!(response.problem_faults(422), NONE, "{operation} {body}: {}", response.body);
        assert_eq!(response.field("detail"), &json!(detail), "{operation} {body}");
    }
    let far = control(&server, "increaseTime", json!({"Seconds": u64::MAX.to_string()}));
    assert_eq!(far.problem_faults(422), NONE);
    assert_eq!(control(&server, "revert", json!({"SnapshotId": "99"})).field("Result"), &json!(false));
    assert_eq!(number(&head(&server)["Number"]), 2, "nothing has changed");

    let old = Server::dev(["--hardfork", "berlin"]);
    for (operation, body, detail) in [
        ("setNextBlockBaseFee", json!({"BaseFee": 1}), "the next block has no base fee, because London is not active"),
        (
            "mine",
            json!({"Withdrawals": [{"Address": BOB, "Amount": "1", "Index": 0, "ValidatorIndex": 0}]}),
            "the next block has no withdrawals, because Shanghai is not active",
        ),
    ] {
        let response = control(&old, operation, body);
        assert_eq!((response.status, response.field("detail")), (422, &json!(detail)));
    }
}

#[test]
fn bad_bodies() {
    let server = Server::dev(NONE);
    let cases: Vec<(&str, &str, &[&str])> = vec![
        ("mine", r#"{"Blocks": true}"#, &["body.Blocks"]),
        ("mine", r#"{"Blocks": -1}"#, &["body.Blocks"]),
        ("mine", r#"{"blocks": 1}"#, &["body.blocks"]),
        ("mine", r#"{"Blocks": "18446744073709551616"}"#, &["body.Blocks"]),
        ("mine", r#"{"Withdrawals": [{}]}"#, &["body.Withdrawals[0]"; 4]),
        ("setNextBlockTimestamp", "{}", &["body"]),
        ("setNextBlockTimestamp", r#"{"Timestamp": "soon"}"#, &["body.Timestamp"]),
        ("increaseTime", r#"{"Seconds": "99999999999999999999"}"#, &["body.Seconds"]),
        ("setNextBlockBaseFee", r#"{"BaseFee": 1.5}"#, &["body.BaseFee"]),
        ("snapshot", r#"{"SnapshotId": 1}"#, &["body.SnapshotId"]),
        ("revert", r#"{"SnapshotId": []}"#, &["body.SnapshotId"]),
        ("reorganize", "[]", &["body"]),
        ("impersonate", r#"{"Address": "0x12"}"#, &["body.Address"]),
        ("stopImpersonating", "{}", &["body"]),
        ("sendTransaction", "{}", &["body"]),
        ("sendTransaction", r#"{"Transaction": {"Gas": "x"}}"#, &["body.Transaction", "body.Transaction.Gas"]),
        ("setBalance", "{}", &["body", "body"]),
        ("setNonce", r#"{"Nonce": {}}"#, &["body", "body.Nonce"]),
        ("setCode", r#"{"Code": "0x1"}"#, &["body", "body.Code"]),
        ("setStorage", r#"{}"#, &["body"; 3]),
        ("dropTransaction", r#"{"TransactionHash": "0x00"}"#, &["body.TransactionHash"]),
    ];
    for (operation, body, locations) in cases {
        let response = server.post(&format!("/dev/{operation}/"), body);
        assert_eq!(response.problem_faults(422), NONE, "{operation} {body}: {}", response.body);
        let mut found = response.locations();
        found.sort_unstable();
        assert_eq!(found, locations, "{operation} {body}: {}", response.body);
    }
    for operation in POSTED {
        let path = format!("/dev/{operation}/");
        assert_eq!(server.get(&path).problem_faults(405), NONE, "{operation}");
        let text = server.send("POST", &path, &[("Content-Type", "text/plain")], "{}");
        assert_eq!(text.problem_faults(415), NONE, "{operation}");
        assert_eq!(server.post(&path, "{").problem_faults(400), NONE, "{operation}");
    }
    assert_eq!(server.post("/dev/poolContent/", "{}").problem_faults(405), NONE);
    let long = json!({"Address": BOB, "Code": format!("0x{}", "00".repeat(3 << 20))}).to_string();
    let refused = server.send("POST", "/dev/setCode/", &[("Content-Type", "application/json")], &long);
    assert_eq!(refused.problem_faults(413), NONE);
    assert_eq!(server.get("/blockNumber/").field("BlockNumber"), &json!("0"));
}

#[test]
fn refused_unless_bound_to_loopback() {
    for transport in Transport::ALL {
        let open = Server::dev_over(transport, ["--host", "0.0.0.0"]);
        for operation in POSTED {
            assert_eq!(control(&open, operation, json!({})).problem_faults(403), NONE, "{operation}");
        }
        assert_eq!(open.get("/dev/poolContent/").problem_faults(403), NONE);
        assert_eq!(open.get("/blockNumber/").field("BlockNumber"), &json!("0"));
        let forced = Server::dev_over(transport, ["--host", "0.0.0.0", "--force-control"]);
        assert_eq!(done(&forced, "mine", json!({}))["BlockNumber"], "1");
        let imported = Server::over(transport, NONE);
        for operation in POSTED {
            assert_eq!(control(&imported, operation, json!({})).problem_faults(404), NONE, "{operation}");
        }
        assert_eq!(imported.get("/dev/poolContent/").problem_faults(404), NONE);
    }
}

#[test]
fn refused_for_pages_of_other_origins() {
    for transport in Transport::ALL {
        let server = Server::dev_over(transport, NONE);
        let own = server.url().to_owned();
        for (origin, status) in [("http://other.example", 403), ("null", 403), (&*own, 200)] {
            let headers = [("Origin", origin), ("Content-Type", "application/json")];
            assert_eq!(server.send("POST", "/dev/mine/", &headers, "{}").status, status, "{origin}");
        }
        assert_eq!(server.get("/blockNumber/").field("BlockNumber"), &json!("1"));
    }
}

#[test]
fn ids_of_snapshots_are_not_used_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || Server::dev(["--data-dir", data.to_str().unwrap()]);
    let take = |server: &Server| number(&done(server, "snapshot", json!({}))["SnapshotId"]);
    let revert =
        |server: &Server, id: u64| done(server, "revert", json!({"SnapshotId": id.to_string()}))["Result"] == true;
    let server = start();
    let first = take(&server);
    let second = take(&server);
    assert!(revert(&server, second));
    server.end("KILL");
    let server = start();
    assert!(!revert(&server, second), "it was used");
    let third = take(&server);
    assert!(third > second, "{third}");
    assert!(revert(&server, first));
    assert!(!revert(&server, third), "later snapshots are deleted as well");
    server.end("KILL");
    let server = start();
    let fourth = take(&server);
    assert!(fourth > third, "{fourth}");
    server.end("TERM");
    let server = start();
    assert!(revert(&server, fourth), "snapshots themselves survive");
    assert!(take(&server) > fourth);
}

/// Runs a command on a folder. Returns its result as JSON, and its log.
fn on_folder(data: &Path, arguments: &[&str]) -> (Value, String) {
    let output = node_server().args(arguments).arg("--data-dir").arg(data).output().unwrap();
    let last = String::from_utf8(output.stdout).unwrap().lines().last().unwrap_or("null").to_owned();
    (serde_json::from_str(&last).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn blocks_after_the_earliest_kept_state_can_be_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || Server::dev(["--data-dir", data.to_str().unwrap()]);
    let server = start();
    done(&server, "mine", json!({"Blocks": 10}));
    server.end("TERM");
    on_folder(&data, &["prune", "--json", "--before", "6"]);
    let server = start();
    let roll_back = |blocks: u64| {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "anvil_rollback", "params": [blocks]});
        server.post("/", request.to_string()).body["error"]["message"].clone()
    };
    // To a block that does not exist, to genesis, and to pruned blocks.
    let reason = "because the states before block 6 are not kept: they were pruned, or their blocks come from a dump";
    for blocks in [11, 10, 5] {
        let expected = format!("cannot replace {blocks} blocks: at most 4 can be replaced, {reason}");
        assert_eq!(roll_back(blocks), json!(expected));
    }
    assert_eq!(roll_back(4), Value::Null);
    assert_eq!(head(&server)["Number"], "6");
    assert_eq!(roll_back(1), json!(format!("cannot replace 1 blocks: at most 0 can be replaced, {reason}")));
}

#[test]
fn edits_survive_a_kill_and_verify_and_export_report_them() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::dev(["--data-dir", data.to_str().unwrap()]);
    send(&server, transfer(0));
    done(&server, "setBalance", json!({"Address": BOB, "Balance": "5"}));
    done(&server, "mine", json!({}));
    // An edit that no block includes yet.
    done(&server, "setStorage", json!({"Address": BOB, "Position": "3", "Value": "6"}));
    server.end("KILL");

    let server = Server::dev(["--data-dir", data.to_str().unwrap()]);
    assert_eq!(server.get(&format!("/getBalance/{BOB}/")).field("Balance"), &json!("5"));
    let slot = json!({"Address": BOB, "Position": "3"}).to_string();
    assert_eq!(server.post("/getStorageAt/", &slot).field("Value"), &json!(format!("0x{:064x}", 6)));
    done(&server, "mine", json!({}));
    assert_eq!(head(&server)["Number"], "3");
    let status = server.end("TERM");
    assert!(status.success(), "{status}");

    let (verified, log) = on_folder(&data, &["verify", "--json"]);
    assert_eq!((&verified["ok"], &verified["edited"]), (&json!(true), &json!([2, 3])), "{log}");
    let file = folder.path().join("chain.rlp");
    let (_, log) = on_folder(&data, &["export", file.to_str().unwrap()]);
    assert!(log.contains("error: block 2") && log.contains(" was edited by hand"), "{log}");
    assert!(!file.exists());
    let (exported, log) = on_folder(&data, &["export", "--to", "1", "--json", file.to_str().unwrap()]);
    assert_eq!(exported["to"], 1, "{log}");
}

#[test]
fn verify_counts_only_edits_of_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("genesis.json"), DEV_GENESIS).unwrap();
    let start = |data: &str| Server::dev(["--genesis", &path("genesis.json"), "--data-dir", &path(data)]);
    let verified = || {
        let output = node_server().args(["verify", "--data-dir", &path("edited")]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        (text, on_folder(Path::new(&path("edited")), &["verify", "--json"]).0["waiting_edits"].clone())
    };
    let server = start("edited");
    for (count, expected) in
        [(1, "; an edit is pending for the next block"), (2, "; 2 edits are pending for the next block")]
    {
        done(&server, "setBalance", json!({"Address": BOB, "Balance": "5"}));
        let (text, waiting) = verified();
        assert!(text.contains(expected) && text.contains("verified 1 block in "), "{text}");
        assert_eq!(waiting, json!(count));
    }
    server.end("TERM");
    let server = start("other");
    send(&server, transfer(0));
    server.end("TERM");
    on_folder(Path::new(&path("other")), &["export", "--json", &path("chain.rlp")]);
    let (imported, log) = on_folder(Path::new(&path("edited")), &["import", "--json", &path("chain.rlp")]);
    assert_eq!(imported["head"]["number"], 1, "{log}");
    let (text, waiting) = verified();
    assert!(!text.contains("pending") && text.contains("verified 2 blocks in "), "{text}");
    assert_eq!(waiting, 0);
}

#[test]
fn an_exported_chain_imports_to_the_same_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("genesis.json"), DEV_GENESIS).unwrap();
    let server = Server::dev(["--genesis", &path("genesis.json"), "--data-dir", &path("data")]);
    for nonce in 0..5 {
        send(&server, transfer(nonce));
    }
    done(&server, "reorganize", json!({"Blocks": 2}));
    let head = head(&server);
    assert!(!server.end("KILL").success());
    on_folder(Path::new(&path("data")), &["export", "--json", &path("chain.rlp")]);
    let (imported, log) = on_folder(
        Path::new(&path("copy")),
        &["import", "--json", "--genesis", &path("genesis.json"), &path("chain.rlp")],
    );
    assert_eq!(imported["head"]["hash"], head["Hash"], "{log}");
}

#[test]
fn importing_blocks_that_were_reverted_makes_them_canonical_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("genesis.json"), DEV_GENESIS).unwrap();
    let data = folder.path().join("data");
    let server = Server::dev(["--genesis", &path("genesis.json"), "--data-dir", &path("data")]);
    let snapshot = done(&server, "snapshot", json!({}));
    for nonce in 0..3 {
        send(&server, transfer(nonce));
    }
    let best = head(&server);
    server.end("TERM");
    on_folder(&data, &["export", "--json", &path("chain.rlp")]);
    let server = Server::dev(["--genesis", &path("genesis.json"), "--data-dir", &path("data")]);
    assert_eq!(done(&server, "revert", snapshot)["Result"], true);
    assert_eq!(head(&server)["Number"], "0");
    server.end("TERM");
    let (imported, log) =
        on_folder(&data, &["import", "--json", "--genesis", &path("genesis.json"), &path("chain.rlp")]);
    assert_eq!((&imported["head"]["hash"], &imported["imported"]), (&best["Hash"], &json!(3)), "{log}");
    assert_eq!(on_folder(&data, &["verify", "--json"]).0["ok"], true);
}
