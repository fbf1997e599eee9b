//! Event streams over HTTP: events arrive, and clients can resume from any event.

use crate::events::{Event, Events, data};
use crate::generator::{CONTRACT, EVENT, Generator, Shape};
use crate::server::Server;
use crate::wallet::{hex, sign, transfer};
use node_chain::{BlockImporter, Imported, dev_genesis};
use node_core::backend::{MemoryBackend, StateBackend};
use node_core::context::Context;
use node_core::node::Node;
use node_evm::EvmExecutor;
use node_http::{HttpConfig, RequestLimits};
use node_types::consensus::{Block, TransactionBody};
use serde_json::{Value, json};
use std::fs::File;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A shape with several logs per block.
fn shape(seed: u64) -> Shape {
    Shape { transactions_per_block: 6, seed, ..Shape::default() }
}

fn listen(server: &Server, query: &str, last: Option<&str>) -> Events {
    Events::listen(&format!("{}/events/{query}", server.url()), last)
}

fn head(server: &Server) -> String {
    server.get("/getBlockByNumber/latest/").body["Block"]["Hash"].as_str().unwrap().to_owned()
}

/// All logs of the chain, from getLogs.
fn all_logs(server: &Server) -> Vec<Value> {
    let response = server.post("/getLogs/", json!({"FromBlock": "0"}).to_string());
    assert_eq!(response.status, 200, "{}", response.body);
    response.field("Logs").as_array().unwrap().clone()
}

/// The event id of a log.
fn id_of(log: &Value) -> String {
    format!("{}:{}", log["BlockHash"].as_str().unwrap(), log["LogIndex"].as_str().unwrap())
}

#[test]
fn resumes_across_restarts_and_reorganizations() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (seed, blocks) in [(0, 12), (1, 15)] {
        let mut file = File::create(path(&format!("chain{seed}.rlp"))).unwrap();
        Generator::new(shape(seed)).write(blocks, &mut file).unwrap();
    }
    let start = |import: Option<&str>| {
        let import = import.map(|name| ["--strict".to_owned(), "--import".to_owned(), path(name)]);
        Server::start(["--data-dir".to_owned(), path("data")].into_iter().chain(import.into_iter().flatten()))
    };
    let server = start(Some("chain0.rlp"));
    let first_chain = all_logs(&server);
    let middle = first_chain.iter().position(|log| log["LogIndex"] == "1" && log["BlockNumber"] == "6").unwrap();

    // From the start: each log with its id.
    let reported = listen(&server, "?FromBlock=earliest", None).up_to(&head(&server));
    assert_eq!(data(&reported), first_chain);
    for (event, log) in reported.iter().zip(&first_chain) {
        assert_eq!((event.name.as_str(), event.id.as_deref()), ("log", Some(id_of(log).as_str())));
    }
    // From within a block, by the header and by the parameter, before and after a restart.
    let last = id_of(&first_chain[middle]);
    let check_rest = |server: &Server| {
        for (query, header) in [("", Some(last.as_str())), (format!("?LastEventId={last}").as_str(), None)] {
            let rest = listen(server, query, header).up_to(&head(server));
            assert_eq!(data(&rest), first_chain[middle + 1..], "{query}");
        }
    };
    check_rest(&server);
    assert!(server.end("TERM").success());
    let server = start(None);
    check_rest(&server);
    assert!(server.end("TERM").success());

    // Another chain wins. Exactly the logs that the client has received are removed.
    let server = start(Some("chain1.rlp"));
    let events = listen(&server, "", Some(&last)).up_to(&head(&server));
    let (removed, added): (Vec<_>, Vec<_>) = data(&events).into_iter().partition(|log| log["Removed"] == true);
    let mut expected = first_chain[..=middle].to_vec();
    expected.iter_mut().for_each(|log| log["Removed"] = true.into());
    assert_eq!(removed, expected);
    assert_eq!(added, all_logs(&server));
    assert_eq!(data(&events)[..removed.len()], removed, "removed logs come first");
    let genesis = server.get("/getBlockByNumber/0/").body["Block"]["Hash"].clone();
    let ids: Vec<_> = events[..removed.len()].iter().filter_map(|event| event.id.clone()).collect();
    assert_eq!(ids, [genesis.as_str().unwrap()], "only the last removed log has an id");
}

#[test]
fn filters_by_address_and_topics() {
    let mut chain = tempfile::NamedTempFile::new().unwrap();
    Generator::new(shape(0)).write(4, &mut chain).unwrap();
    let server = Server::start(["--strict", "--import", &chain.path().display().to_string()]);
    let (contract, event) = (hex(CONTRACT.as_bytes()), hex(EVENT.as_bytes()));
    let logs = all_logs(&server);
    let topic = logs[1]["Topics"][1].as_str().unwrap();
    let cases = [
        (format!("Address={contract}&Topic0={event}"), json!({"Address": contract, "Topics": [event]})),
        (format!("Topic1={topic},{event}"), json!({"Topics": [null, [topic, event]]})),
        (format!("Address={event:.42}"), json!({"Address": event[..42]})),
    ];
    for (query, mut filter) in cases {
        filter["FromBlock"] = "0".into();
        let expected = server.post("/getLogs/", filter.to_string());
        let reported = listen(&server, &format!("?FromBlock=0&{query}"), None).up_to(&head(&server));
        assert_eq!(data(&reported), *expected.field("Logs").as_array().unwrap(), "{query}");
    }
}

/// Sends a transaction. Returns its hash.
fn send(server: &Server, nonce: u64) -> String {
    let transaction = sign(TransactionBody::Legacy(transfer(nonce)));
    let sent = server.post("/sendRawTransaction/", json!({"Data": hex(&transaction.encode())}).to_string());
    assert_eq!(sent.status, 200, "{}", sent.body);
    hex(transaction.hash().as_bytes())
}

#[test]
fn pending_transactions_arrive_and_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir".to_owned(), folder.path().display().to_string()];
    let server = Server::start(&arguments);
    let query = "?Stream=pendingTransactions";
    let mut events = listen(&server, query, None);
    assert_eq!(events.next_event().unwrap().name, "", "where it begins");
    let mut reported = Vec::new();
    for nonce in 0..3 {
        let hash = send(&server, nonce);
        let event = events.next_event().unwrap();
        assert_eq!((event.name.as_str(), &event.data), ("transaction", &json!(hash)));
        reported.push(event);
    }
    let first = reported[0].id.clone().unwrap();
    let last = reported[2].id.clone().unwrap();
    assert_eq!(listen(&server, query, Some(&first)).up_to(&last), reported[1..]);
    assert!(server.end("TERM").success());
    let server = Server::start(&arguments);
    assert_eq!(listen(&server, query, Some(&first)).up_to(&last), reported[1..], "after a restart");
}

/// Query, headers, status, locations of the faults.
type Refused<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, &'a [&'a str]);

#[test]
fn refuses_invalid_streams() {
    let server = Server::start::<&str>([]);
    let hash = format!("0x{}", "09".repeat(32));
    let cases: [Refused<'_>; 7] = [
        ("?Stream=all&Topics=1&Address=0x", &[], 422, &["query.Stream", "query.Address", "query.Topics"]),
        ("?Topic0=7&Topic0=8&Topic3=%", &[], 422, &["query.Topic0", "query.Topic0", "query.Topic3"]),
        ("?Stream=blocks&Topic0=7", &[], 422, &["query.Topic0"]),
        ("?FromBlock=2", &[], 422, &["query.FromBlock"]),
        ("?LastEventId=7", &[], 422, &["query.LastEventId"]),
        ("", &[("Last-Event-ID", "é")], 422, &["header.Last-Event-ID"]),
        ("?Stream=pendingTransactions", &[("Last-Event-ID", &hash)], 422, &["header.Last-Event-ID"]),
    ];
    for (query, headers, status, locations) in cases {
        let response = server.send("GET", &format!("/events/{query}"), headers, "");
        assert_eq!(response.problem_faults(status), Vec::<String>::new(), "{query} {headers:?}: {}", response.text);
        assert_eq!(response.locations(), locations, "{query} {headers:?}");
    }
    for method in ["HEAD", "POST", "DELETE"] {
        assert_eq!(server.send(method, "/events/", &[], "").status, 405, "{method}");
    }
}

#[test]
fn streams_are_limited() {
    let server = Server::start(["--max-streams", "1"]);
    let mut only = listen(&server, "", None);
    let start = only.next_event().unwrap();
    assert_eq!(start, Event { id: Some(head(&server)), ..Event::default() });
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert!(only.headers.contains(&(name.to_owned(), value.to_owned())), "{name} in {:?}", only.headers);
    }
    let refused = server.get("/events/");
    assert_eq!(refused.problem_faults(503), Vec::<String>::new());
    assert!(refused.header("retry-after").is_some());
    let wrong = server.get("/events/?Stream=all");
    assert_eq!(wrong.status, 422, "invalid parameters are reported first");
    drop(only);
    // The server notices a moment later.
    while let Err(error) = Events::try_listen(&format!("{}/events/", server.url()), None) {
        assert!(matches!(error, ureq::Error::StatusCode(503)), "{error}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn streams_end_with_the_server() {
    // Longer than the test waits for the end.
    let server = Server::start(["--shutdown-timeout", "10m"]);
    let mut streams = ["", "?Stream=blocks", "?Stream=pendingTransactions"].map(|query| listen(&server, query, None));
    for events in &mut streams {
        assert!(events.next_event().is_some());
    }
    assert!(server.end("TERM").success());
    for mut events in streams {
        let last = events.next_event().unwrap();
        assert_eq!((last.name.as_str(), &last.data["status"]), ("problem", &json!(503)));
        assert_eq!(events.next_event(), None);
    }
}

/// A node with a chain on the development genesis, in this process. Returns the address of its server.
fn importing(config: HttpConfig) -> (BlockImporter, String) {
    let genesis = dev_genesis();
    let backend: Arc<dyn StateBackend> = Arc::new(MemoryBackend::new(genesis.block()).unwrap());
    let spec = Arc::new(genesis.spec);
    let executor = Arc::new(EvmExecutor::new(spec.clone()));
    let chain = BlockImporter::new(backend.clone(), executor.clone(), executor.clone(), spec.clone());
    let node = Node::builder(backend, executor, spec).open();
    let node = Arc::new(node.unwrap());
    (chain, super::in_process::serve(node, config).url().to_owned())
}

fn blocks(seed: u64, count: usize) -> Vec<Block> {
    let mut generator = Generator::new(shape(seed));
    (0..count)
        .map(|_| {
            let block = generator.next_block().unwrap();
            let transactions = block.body.transactions.iter().map(|recovered| recovered.transaction.clone()).collect();
            let header = block.header.header.clone();
            Block { header, transactions, ommers: Vec::new(), withdrawals: block.body.withdrawals.clone() }
        })
        .collect()
}

#[test]
fn open_streams_get_events_at_once() {
    let (chain, url) = importing(HttpConfig::default());
    let mut logs = Events::listen(&format!("{url}/events/"), None);
    let mut heads = Events::listen(&format!("{url}/events/?Stream=blocks"), None);
    let genesis = logs.next_event().unwrap().id;
    assert_eq!(heads.next_event().unwrap().id, genesis);
    let mut reported = Vec::new();
    let (old, new) = (blocks(0, 3), blocks(1, 4));
    for block in old {
        let hash = hex(block.header.hash().as_bytes());
        assert_eq!(chain.import_block(&Context::unbounded(), block).unwrap(), Imported::Appended);
        let event = heads.next_event().unwrap();
        assert_eq!((event.name.as_str(), &event.data, event.id.as_ref()), ("block", &json!(hash), Some(&hash)));
        reported.extend(data(&logs.up_to(&hash)));
    }
    assert!(reported.len() > 3 && reported.iter().all(|log| log["Removed"] == false), "{reported:?}");

    // The longer branch wins with its last block.
    let last = hex(new[3].header.hash().as_bytes());
    for block in new {
        chain.import_block(&Context::unbounded(), block).unwrap();
    }
    assert_eq!(data(&heads.up_to(&last)).len(), 4);
    let after = data(&logs.up_to(&last));
    reported.iter_mut().for_each(|log| log["Removed"] = true.into());
    assert_eq!(after[..reported.len()], reported);
    assert!(after[reported.len()..].iter().all(|log| log["Removed"] == false) && after.len() > reported.len());
}

#[test]
fn a_stream_waits_for_the_block_of_its_last_event_id() {
    let (chain, url) = importing(HttpConfig::default());
    let all = blocks(0, 4);
    let hashes: Vec<_> = all.iter().map(|block| hex(block.header.hash().as_bytes())).collect();
    let unknown = format!("{}:0", hashes[2]);
    let mut heads = Events::listen(&format!("{url}/events/?Stream=blocks"), Some(&hashes[2]));
    let mut logs = Events::listen(&format!("{url}/events/"), Some(&unknown));
    for events in [&mut heads, &mut logs] {
        assert_eq!(events.next_line().as_deref(), Some(": waiting for the block of the last event id"));
    }
    for block in all {
        chain.import_block(&Context::unbounded(), block).unwrap();
    }
    assert_eq!(data(&heads.up_to(&hashes[3])), [json!(hashes[3])]);
    let reported = data(&logs.up_to(&hashes[3]));
    let after: Vec<_> = reported.iter().map(|log| (log["BlockHash"].clone(), log["LogIndex"].clone())).collect();
    assert_eq!(after[0], (json!(hashes[2]), json!("1")), "the rest of the block, and the next one");
    assert!(after.iter().any(|(hash, _)| *hash == hashes[3]), "{after:?}");
}

#[test]
fn a_stream_whose_block_does_not_arrive_ends() {
    let stream_wait = Duration::from_millis(50);
    let requests = RequestLimits { stream_wait, ..Default::default() };
    let (_chain, url) = importing(HttpConfig { requests, ..HttpConfig::default() });
    let unknown = format!("0x{}", "09".repeat(32));
    for query in ["", "?Stream=blocks"] {
        let mut events = Events::listen(&format!("{url}/events/{query}"), Some(&unknown));
        let last = events.next_event().unwrap();
        assert_eq!((last.name.as_str(), &last.data["status"]), ("problem", &json!(503)), "{query}");
        assert!(last.id.is_none() && events.next_event().is_none(), "the client keeps its id, and connects again");
    }
    // A number that another node has assigned to an arrival.
    let pending = format!("{url}/events/?Stream=pendingTransactions");
    let first = Events::listen(&pending, Some(&u64::MAX.to_string())).next_event().unwrap();
    assert_eq!(first, Events::listen(&pending, None).next_event().unwrap(), "from now on");
}

#[test]
fn idle_streams_get_comments() {
    let stream_keep_alive = Duration::from_millis(1);
    let (_chain, url) = importing(HttpConfig {
        requests: RequestLimits { stream_keep_alive, ..Default::default() },
        ..HttpConfig::default()
    });
    let mut events = Events::listen(&format!("{url}/events/"), None);
    assert!(events.next_event().is_some());
    for line in [": keep-alive", "", ": keep-alive", ""] {
        assert_eq!(events.next_line().as_deref(), Some(line));
    }
}
