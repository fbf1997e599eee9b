//! An endpoint that serves the states of a chain, and whatever else a test tells it.

use node_core::backend::{MemoryBackend, StateBackend, View};
use node_types::wire::StorageKey;
use node_types::{Address, Bytes, H256, KECCAK_EMPTY};
use node_upstream::{Upstream, UpstreamOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What an endpoint returns for a request.
type Method = dyn Fn(&Value) -> Result<Value, Value> + Send + Sync;

pub(super) struct Server {
    url: String,
    messages: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts an endpoint that returns what `method` returns for each request.
    pub(super) fn start(method: impl Fn(&Value) -> Result<Value, Value> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (method, messages): (Arc<Method>, Arc<Mutex<Vec<Value>>>) = (Arc::new(method), Arc::default());
        let server = Self { url, messages: Arc::clone(&messages) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (method, messages) = (Arc::clone(&method), Arc::clone(&messages));
                thread::spawn(move || serve(stream, &*method, &messages));
            }
        });
        server
    }

    /// Starts an endpoint with the states of a chain, whose proofs and codes `change` may change.
    pub(super) fn of(chain: &Arc<MemoryBackend>, change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Self {
        let chain = Arc::clone(chain);
        Self::start(move |request| {
            let method = request["method"].as_str().unwrap();
            let mut result = state(&*chain.view().unwrap(), method, &request["params"])?;
            change(method, &mut result);
            Ok(result)
        })
    }

    pub(super) fn upstream(&self) -> Upstream {
        upstream(&[self])
    }

    /// Returns the messages that were received.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.messages.lock().clone()
    }
}

pub(super) fn upstream(servers: &[&Server]) -> Upstream {
    let urls: Vec<_> = servers.iter().map(|server| server.url.as_str()).collect();
    let options = UpstreamOptions { retries: 0, retry_backoff: Duration::from_millis(1), ..UpstreamOptions::default() };
    Upstream::new(&urls, options).unwrap()
}

/// The response of an endpoint with the states of a chain.
pub(super) fn state(view: &dyn View, method: &str, params: &Value) -> Result<Value, Value> {
    let refused = |message: &str| json!({"code": -32601, "message": message});
    let address: Address = params[0].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
    let block = |id: &Value| {
        let hash: H256 = id["blockHash"].as_str().unwrap().parse().unwrap();
        view.header(hash.into()).unwrap().unwrap().header.number
    };
    match method {
        "eth_getProof" => {
            let keys = params[1].as_array().unwrap().iter();
            let slots: Vec<H256> = keys.map(|key| key.as_str().unwrap().parse::<StorageKey>().unwrap().0).collect();
            let proof = view.state(block(&params[2])).unwrap().proof(address, &slots).unwrap();
            let texts = |nodes: &[Bytes]| nodes.iter().map(|node| json!(node.to_string())).collect::<Value>();
            let storage = proof.storage.iter();
            let storage: Value = storage.map(|slot| json!({"proof": texts(&slot.proof)})).collect();
            Ok(json!({"accountProof": texts(&proof.proof), "storageProof": storage}))
        }
        "eth_getCode" => {
            let state = view.state(block(&params[1])).unwrap();
            let hash = state.account(address).unwrap().map_or(KECCAK_EMPTY, |account| account.code_hash);
            Ok(json!(state.code(hash).unwrap().unwrap_or_default().to_string()))
        }
        _ => Err(refused("the method does not exist")),
    }
}

fn serve(stream: TcpStream, method: &Method, messages: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    while let Some(message) = read_message(&mut reader) {
        messages.lock().push(message.clone());
        let one = |request: &Value| match method(request) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
        };
        let response = match &message {
            Value::Array(requests) => requests.iter().map(one).collect(),
            request => one(request),
        };
        let body = response.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        if reader.get_mut().write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
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
