//! An HTTP server that does what a test tells it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the server does after a request.
pub(super) enum Script {
    /// Responds with status 200 and a message.
    Reply(Value),
    /// Responds with a status, header lines and a body.
    Status(u16, &'static str, Vec<u8>),
    /// Sends bytes and closes the connection.
    Raw(&'static str),
    /// Never responds.
    Silence,
}

pub(super) struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts a server. `script` decides about each message, given their number so far.
    pub(super) fn start(script: impl Fn(usize, &Value) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/path/with/secret", listener.local_addr().unwrap());
        let (script, requests) = (Arc::new(script), Arc::new(Mutex::new(Vec::new())));
        let server = Self { url, requests: Arc::clone(&requests) };
        let count = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, requests, count) = (Arc::clone(&script), Arc::clone(&requests), Arc::clone(&count));
                // The client may close the connection at any time.
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some(message) = read_message(&mut reader) {
                        requests.lock().unwrap().push(message.clone());
                        let script = script(count.fetch_add(1, Ordering::SeqCst), &message);
                        if !script.perform(reader.get_mut()) {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    /// Starts a server that responds to each request with what `method` returns.
    pub(super) fn of(method: impl Fn(&Value) -> Result<Value, Value> + Send + Sync + 'static) -> Self {
        Self::start(move |_, message| respond(message, &method))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the messages that were received.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

impl Script {
    /// Returns whether the connection stays open.
    fn perform(self, stream: &mut TcpStream) -> bool {
        let (status, headers, body) = match self {
            Self::Reply(message) => (200, "Content-Type: application/json\r\n", message.to_string().into_bytes()),
            Self::Status(status, headers, body) => (status, headers, body),
            Self::Raw(bytes) => {
                let _ = stream.write_all(bytes.as_bytes());
                return false;
            }
            Self::Silence => {
                let _ = stream.read(&mut [0]);
                return false;
            }
        };
        let head = format!("HTTP/1.1 {status} Scripted\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).is_ok()
    }
}

/// Responds to a message with what `method` returns for each of its requests.
pub(super) fn respond(message: &Value, method: impl Fn(&Value) -> Result<Value, Value>) -> Script {
    let one = |request: &Value| match method(request) {
        Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
    };
    Script::Reply(match message {
        // Responses may have any order.
        Value::Array(requests) => requests.iter().rev().map(one).collect(),
        request => one(request),
    })
}

fn read_message(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}
