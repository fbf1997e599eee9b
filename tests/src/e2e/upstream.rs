//! Verified reads from this project's server, and from one that lies.

use super::in_process::serve;
use crate::model::sidecar;
use crate::server::{Server, conformance_chain};
use crate::wallet::log_writer;
use node_core::backend::{AccountProof, View};
use node_core::block::BlockHashOrNumber;
use node_core::context::Context;
use node_core::node::TransactionRequest;
use node_core::producer::Mining;
use node_dev::DevNode;
use node_http::HttpConfig;
use node_types::consensus::{AccessListItem, Block, Withdrawal};
use node_types::wire::StorageKey;
use node_types::{Address, BlockId, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use node_upstream::{AccountRead, HashedHeader, ProvenState, Upstream, UpstreamError, UpstreamOptions};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const GWEI: u64 = 1_000_000_000;

fn context() -> Context {
    Context::unbounded().with_timeout(Duration::from_secs(120))
}

fn upstream(url: &str) -> Upstream {
    let options = UpstreamOptions { retries: 0, retry_backoff: Duration::ZERO, ..UpstreamOptions::default() };
    Upstream::new(&[url], options).unwrap()
}

/// A chain with transactions of all types, one that impersonates its sender, withdrawals, contracts with 0, 1, 2, 17 and 60 slots, and their server.
pub(super) fn chain() -> (DevNode, Server) {
    let chain = DevNode::builder().mining(Mining::Manual).spawn().unwrap();
    let (alice, bob) = (chain.accounts()[0].address(), chain.accounts()[3].clone());
    let plain = TransactionRequest { from: alice, to: Some(Address::from_low_u64_be(0xdd)), ..Default::default() };
    let access_list =
        vec![AccessListItem { address: bob.address(), storage_keys: vec![H256::zero(), H256::repeat_byte(1)] }];
    let (gas_price, gas) = (Some((5 * GWEI).into()), Some(100_000));
    let withdrawal =
        |index| Withdrawal { index, validator_index: 7, address: Address::from_low_u64_be(index), amount: 9 };
    let mine = |requests: Vec<TransactionRequest>, withdrawals| {
        for request in requests {
            chain.send_transaction(&context(), request).unwrap();
        }
        chain.producer().unwrap().mine(1, None, withdrawals).unwrap();
    };
    mine(
        vec![
            TransactionRequest { gas_price, value: U256::exp10(18), ..plain.clone() },
            TransactionRequest { gas_price, access_list: Some(access_list), gas, ..plain.clone() },
            plain.clone(),
            TransactionRequest { sidecar: Some(sidecar(1)), ..plain.clone() },
            TransactionRequest {
                authorization_list: Some(vec![bob.sign_authorization(chain.spec().chain_id, alice, 0)]),
                gas,
                ..plain.clone()
            },
            TransactionRequest { to: None, input: log_writer(0, 3).input, gas: Some(500_000), ..plain.clone() },
            // It fails.
            TransactionRequest { to: None, input: Bytes::from([0xfe]), gas, ..plain.clone() },
        ],
        vec![withdrawal(0), withdrawal(1)],
    );
    mine(Vec::new(), Vec::new());
    // A transaction without a signature.
    chain.producer().unwrap().impersonate_all(true);
    let impersonating = TransactionRequest { from: Address::from_low_u64_be(0xdd), to: Some(alice), ..plain.clone() };
    let deployments = [0, 1, 2, 17, 60].map(|slots| TransactionRequest {
        to: None,
        input: writer(slots),
        gas: Some(3_000_000),
        ..plain.clone()
    });
    mine(deployments.into_iter().chain([impersonating]).collect(), Vec::new());
    let server = serve(Arc::clone(chain.node()), HttpConfig::default());
    (chain, server)
}

/// Init code that stores 1, 2, … in the slots with these numbers, and deploys a contract of one byte.
fn writer(slots: u8) -> Bytes {
    // PUSH1 slot, PUSH1 slot, SSTORE; then PUSH1 1, PUSH1 0, RETURN
    let store = (1..=slots).flat_map(|slot| [0x60, slot, 0x60, slot, 0x55]);
    store.chain([0x60, 1, 0x60, 0, 0xf3]).collect()
}

/// Addresses that exist in the chain, and some that do not.
pub(super) fn addresses(view: &dyn View) -> Vec<Address> {
    let mut all: BTreeSet<_> = (0..10).map(|index| Address::from(keccak256([index]))).collect();
    for number in 0..=view.head().number {
        let changes = view.changes(number).unwrap();
        all.extend(changes.iter().flat_map(|changes| changes.accounts.keys().copied()));
    }
    all.into_iter().collect()
}

#[test]
fn everything_is_read_as_the_node_has_it() {
    let (chain, server) = chain();
    let view = chain.backend().view().unwrap();
    let upstream = upstream(server.url());
    assert_eq!(upstream.chain_id(&context()).unwrap(), chain.spec().chain_id);
    let head = upstream.header(&context(), BlockId::latest()).unwrap();
    let mut headers = upstream.ancestors(&context(), &head, u64::MAX).unwrap();
    headers.insert(0, head);
    assert_eq!(headers.len() as u64, view.head().number + 1);
    let addresses = addresses(&*view);
    let slots: Vec<_> = (0..70u64).map(|slot| StorageKey::from(slot).0).collect();
    for header in headers {
        let number = header.header().number;
        assert_eq!(view.canonical_hash(number).unwrap(), Some(header.hash()));
        assert_eq!(upstream.header(&context(), header.hash().into()).unwrap(), header);
        let body = view.body(number.into()).unwrap().unwrap();
        let block = upstream.block(&context(), &header).unwrap();
        assert_eq!(block, body.with_header(header.header()), "block {number}");
        let receipts = upstream.receipts(&context(), &header, &block.transactions).unwrap();
        assert_eq!(receipts, **view.receipts(number.into()).unwrap().unwrap(), "block {number}");

        let reads = addresses.iter().map(|address| AccountRead { address: *address, slots: slots.clone() });
        let state = ProvenState::new(upstream.clone(), header);
        let proofs = state.accounts(&context(), &reads.collect::<Vec<_>>()).unwrap();
        let stored = view.state(number).unwrap();
        for (address, proof) in addresses.iter().zip(&proofs) {
            assert_eq!(*proof, stored.proof(*address, &slots).unwrap(), "{address:#x} as of block {number}");
        }
        let code_hash = |proof: &AccountProof| proof.account.map_or(KECCAK_EMPTY, |account| account.code_hash);
        let hashes: Vec<_> = addresses.iter().copied().zip(proofs.iter().map(code_hash)).collect();
        for ((_, hash), code) in hashes.iter().zip(state.codes(&context(), &hashes).unwrap()) {
            assert_eq!(code, stored.code(*hash).unwrap().unwrap_or_default());
        }
    }
}

#[test]
#[ignore = "needs the recorded test data: ../shared, or the folder in NODE_SHARED"]
fn blocks_of_all_forks_are_read_whole() {
    let arguments = conformance_chain();
    let file = std::fs::read(&arguments[3]).unwrap();
    let server = Server::start(arguments);
    let upstream = upstream(server.url());
    let head = upstream.header(&context(), BlockId::latest()).unwrap();
    let mut headers = upstream.ancestors(&context(), &head, head.header().number - 1).unwrap();
    headers.insert(0, head);
    let mut blocks = Vec::new();
    for header in headers.iter().rev() {
        let block = upstream.block(&context(), header).unwrap();
        upstream.receipts(&context(), header, &block.transactions).unwrap();
        let touched = block.transactions.iter().filter_map(|transaction| transaction.to());
        let touched: BTreeSet<_> = touched.chain([header.header().beneficiary]).collect();
        let reads: Vec<_> =
            touched.into_iter().map(|address| AccountRead { address, slots: vec![H256::zero()] }).collect();
        ProvenState::new(upstream.clone(), header.clone()).accounts(&context(), &reads).unwrap();
        blocks.extend(block.encode());
    }
    assert!(blocks == file, "the blocks are those of the file");
}

/// Something that is read, as text, and its name.
type NamedRead = (&'static str, Box<dyn Fn(&Upstream) -> Result<String, UpstreamError>>);

fn text<T: Debug>(read: Result<T, UpstreamError>) -> Result<String, UpstreamError> {
    read.map(|read| format!("{read:?}"))
}

/// Reads of all kinds about the chain.
fn reads(view: &dyn View) -> Vec<NamedRead> {
    let header = |number| {
        let sealed = view.header(BlockHashOrNumber::Number(number)).unwrap().unwrap();
        HashedHeader::new(sealed.header.clone())
    };
    let (first, last) = (header(1), header(3));
    let block: Block = view.body(1.into()).unwrap().unwrap().with_header(first.header());
    let contract = addresses(view).into_iter().find(|address| {
        let state = view.state(3).unwrap();
        !state.storage(*address, StorageKey::from(17).0).unwrap().is_zero()
            && state.storage(*address, StorageKey::from(18).0).unwrap().is_zero()
    });
    let contract = contract.unwrap();
    let code_hash = view.state(3).unwrap().account(contract).unwrap().unwrap().code_hash;
    let slots = vec![StorageKey::from(5).0, StorageKey::from(999).0];
    let accounts = vec![
        AccountRead { address: contract, slots },
        AccountRead { address: Address::repeat_byte(9), slots: vec![H256::zero()] },
    ];
    let (hash, number) = (last.hash(), last.header().number);
    let [of_block, of_receipts, of_ancestors] = [first.clone(), first, last.clone()];
    let [of_accounts, of_code] = [last.clone(), last];
    vec![
        ("header by hash", Box::new(move |upstream| text(upstream.header(&context(), hash.into())))),
        ("ancestors", Box::new(move |upstream| text(upstream.ancestors(&context(), &of_ancestors, number)))),
        ("block", Box::new(move |upstream| text(upstream.block(&context(), &of_block)))),
        ("receipts", Box::new(move |upstream| text(upstream.receipts(&context(), &of_receipts, &block.transactions)))),
        (
            "accounts",
            Box::new(move |upstream| {
                text(ProvenState::new(upstream.clone(), of_accounts.clone()).accounts(&context(), &accounts))
            }),
        ),
        (
            "code",
            Box::new(move |upstream| {
                text(ProvenState::new(upstream.clone(), of_code.clone()).codes(&context(), &[(contract, code_hash)]))
            }),
        ),
    ]
}

/// The results of methods by their method and parameters.
type Results = BTreeMap<String, Value>;

/// An endpoint that serves what was recorded.
struct Endpoint {
    url: String,
    results: Arc<Mutex<Results>>,
}

/// Returns what identifies a request.
fn key(request: &Value) -> String {
    format!("{} {}", request["method"], request["params"])
}

/// Returns the responses to the requests of a message.
pub(super) fn responses(message: &Value, result: impl Fn(&Value) -> Value) -> Value {
    let one = |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "result": result(request)});
    match message {
        Value::Array(requests) => requests.iter().map(one).collect(),
        request => one(request),
    }
}

/// Serves messages over HTTP until the process ends, and returns the URL.
pub(super) fn serve_messages(respond: impl Fn(&Value) -> Value + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let respond = Arc::new(respond);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let respond = Arc::clone(&respond);
            thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some(message) = read_message(&mut reader) {
                    let body = respond(&message).to_string();
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    if reader.get_mut().write_all((head + &body).as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn read_message(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Records what `server` returns for what `read` requests.
fn record(server: &Arc<Server>, read: impl Fn(&Upstream)) -> Results {
    let recorded = Arc::new(Mutex::new(Results::new()));
    let (recording, server) = (Arc::clone(&recorded), Arc::clone(server));
    let url = serve_messages(move |message| {
        let responses = server.post("/", message.to_string()).body;
        let requests = message.as_array().cloned().unwrap_or_else(|| vec![message.clone()]);
        let all = responses.as_array().cloned().unwrap_or_else(|| vec![responses.clone()]);
        let mut recording = recording.lock().unwrap();
        for request in &requests {
            let response = all.iter().find(|response| response["id"] == request["id"]).unwrap();
            recording.insert(key(request), response["result"].clone());
        }
        responses
    });
    read(&upstream(&url));
    recorded.lock().unwrap().clone()
}

impl Endpoint {
    fn new(results: Results) -> Self {
        let results = Arc::new(Mutex::new(results));
        let served = Arc::clone(&results);
        let result = move |request: &Value| served.lock().unwrap().get(&key(request)).cloned().unwrap_or(Value::Null);
        Self { url: serve_messages(move |message| responses(message, &result)), results }
    }

    fn serve(&self, key: &str, result: Value) {
        self.results.lock().unwrap().insert(key.to_owned(), result);
    }
}

/// Returns every way to change one place of a JSON value, with a description.
fn changes(value: &Value) -> Vec<(String, Value)> {
    let mut changed =
        vec![("null".to_owned(), Value::Null), ("text".to_owned(), json!("0x0")), ("object".to_owned(), json!({}))];
    match value {
        Value::String(text) => {
            let digit = if text.ends_with('1') { '2' } else { '1' };
            let start = &text[..text.len().saturating_sub(1)];
            changed.extend([
                ("last digit".to_owned(), format!("{start}{digit}").into()),
                ("two digits more".to_owned(), format!("{text}01").into()),
                ("two digits less".to_owned(), text[..text.len().saturating_sub(2)].into()),
            ]);
        }
        Value::Bool(flag) => changed.push(("flag".to_owned(), (!flag).into())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let with = |item: Value| {
                    let mut items = items.clone();
                    items[index] = item;
                    Value::from(items)
                };
                changed.extend(changes(item).into_iter().map(|(name, item)| (format!("{index}/{name}"), with(item))));
                let mut fewer = items.clone();
                fewer.remove(index);
                changed.push((format!("{index} removed"), fewer.into()));
                let mut more = items.clone();
                more.insert(index, item.clone());
                changed.push((format!("{index} twice"), more.into()));
                let mut swapped = items.clone();
                swapped.swap(0, index);
                changed.push((format!("{index} swapped"), swapped.into()));
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let with = |member: Value| {
                    let mut members = members.clone();
                    members.insert(name.clone(), member);
                    Value::from(members)
                };
                changed
                    .extend(changes(member).into_iter().map(|(path, member)| (format!("{name}/{path}"), with(member))));
                let fewer: Map<_, _> = members.clone().into_iter().filter(|(other, _)| other != name).collect();
                changed.push((format!("{name} removed"), fewer.into()));
            }
        }
        Value::Null | Value::Number(_) => {}
    }
    changed.retain(|(_, changed)| changed != value);
    changed
}

#[test]
fn nothing_wrong_is_accepted() {
    let (chain, server) = chain();
    let server = Arc::new(server);
    for (name, read) in reads(&*chain.backend().view().unwrap()) {
        let recorded = record(&server, |upstream| _ = read(upstream).unwrap());
        let lying = Endpoint::new(recorded.clone());
        let upstream = upstream(&lying.url);
        let truth = read(&upstream).unwrap();
        let (mut refused, mut harmless) = (0, 0);
        for (key, result) in &recorded {
            for (change, lie) in changes(result) {
                lying.serve(key, lie);
                match read(&upstream) {
                    Ok(read) => {
                        assert!(read == truth, "{name}: {key} with another {change} is accepted: {read}");
                        harmless += 1;
                    }
                    Err(
                        UpstreamError::Wrong { .. }
                        | UpstreamError::NotFound { .. }
                        | UpstreamError::Unsupported { .. },
                    ) => {
                        refused += 1;
                    }
                    Err(error) => panic!("{name}: {key} with another {change}: {error}"),
                }
            }
            lying.serve(key, result.clone());
        }
        // What is not needed, such as the sender of a transaction, may have any value.
        println!("{name}: {refused} changes of {} results were refused, {harmless} make no difference", recorded.len());
        assert!(refused >= 3 * recorded.len(), "{name}");
        assert_eq!(read(&upstream).unwrap(), truth);
    }
}
