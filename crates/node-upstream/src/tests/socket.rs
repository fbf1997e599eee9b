//! Endpoints over WebSocket.

use super::{context, forward, options};
use crate::{Upstream, UpstreamError, UpstreamOptions};
use node_types::BlockId;
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::{Message, WebSocket, accept_hdr};

/// What the server does after a message.
enum Script {
    Reply(Value),
    /// Responds, and closes the connection.
    Last(Value),
    /// Closes the connection.
    Close,
    /// Never responds.
    Silence,
    /// Begins a long message, and sends a byte of it from time to time.
    Drip,
}

struct Server {
    url: String,
    connections: Arc<AtomicUsize>,
    messages: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts a server. `refusal` returns the status with which a connection is refused, and `script` decides about each
    /// message, both given the numbers of those before.
    #[expect(clippy::result_large_err, reason = "the type of the library")]
    fn start(
        refusal: impl Fn(usize, &Request) -> Option<u16> + Send + Sync + 'static,
        script: impl Fn(usize, &Value) -> Script + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/path/with/secret", listener.local_addr().unwrap());
        let (connections, messages) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<Value>>>::default());
        let server = Self { url, connections: connections.clone(), messages: messages.clone() };
        let (refusal, script) = (Arc::new(refusal), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (refusal, script, messages) = (refusal.clone(), script.clone(), messages.clone());
                let number = connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    let admit = |request: &Request, response: Response| match refusal(number, request) {
                        None => Ok(response),
                        Some(status) => {
                            let mut refusal = ErrorResponse::new(None);
                            *refusal.status_mut() = status.try_into().unwrap();
                            Err(refusal)
                        }
                    };
                    let Ok(mut socket) = accept_hdr(stream, admit) else { return };
                    loop {
                        let text = match socket.read() {
                            Ok(Message::Text(text)) => text,
                            Ok(Message::Pong(_)) => continue,
                            _ => return,
                        };
                        let message: Value = serde_json::from_str(&text).unwrap();
                        let count = {
                            let mut messages = messages.lock().unwrap();
                            messages.push(message.clone());
                            messages.len() - 1
                        };
                        if !script(count, &message).perform(&mut socket) {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    /// Starts a server that admits all connections.
    fn of(script: impl Fn(usize, &Value) -> Script + Send + Sync + 'static) -> Self {
        Self::start(|_, _| None, script)
    }

    /// Starts a server that responds to each request with its first parameter, or without one with its method.
    fn echo() -> Self {
        Self::of(|_, message| Script::Reply(echo(message)))
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn echo(message: &Value) -> Value {
    let one = |request: &Value| {
        let result = request["params"].get(0).unwrap_or(&request["method"]);
        json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
    };
    match message {
        // Responses may have any order.
        Value::Array(requests) => requests.iter().rev().map(one).collect(),
        request => one(request),
    }
}

impl Script {
    /// Returns whether the connection stays open.
    fn perform(self, socket: &mut WebSocket<TcpStream>) -> bool {
        match self {
            Self::Reply(message) => {
                socket.send(Message::Ping(Vec::new().into())).is_ok() && socket.send(message.to_string().into()).is_ok()
            }
            Self::Last(message) => {
                let _ = socket.send(message.to_string().into());
                let _ = socket.close(None);
                let _ = socket.flush();
                false
            }
            Self::Close => false,
            Self::Silence => {
                let _ = socket.read();
                false
            }
            Self::Drip => {
                // A text of 1,000 bytes.
                let stream = socket.get_mut();
                let mut bytes = [&[0x81, 126, 3, 232][..], &[b' '; 1_000]].concat().into_iter();
                while bytes.next().is_some_and(|byte| stream.write_all(&[byte]).is_ok()) {
                    thread::sleep(Duration::from_millis(10));
                }
                false
            }
        }
    }
}

fn upstream(servers: &[&Server], options: UpstreamOptions) -> Upstream {
    let urls: Vec<_> = servers.iter().map(|server| &server.url).collect();
    Upstream::new(&urls, options).unwrap()
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = Server::echo();
    let upstream = upstream(&[&server], options());
    for method in ["eth_a", "eth_b", "eth_c"] {
        assert_eq!(forward(&upstream, method), Ok(format!("\"{method}\"")));
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn requests_are_batched_and_responses_matched() {
    let server = Server::echo();
    let upstream = upstream(&[&server], options());
    let questions = (0..250).map(|number| {
        let needed = crate::Needed::Header(BlockId::number(number));
        crate::upstream::Question::new(needed, "eth_x", format!("[{number}]"))
    });
    let results = upstream.ask(&context(), questions.collect(), |index, result| {
        assert_eq!(result.get(), index.to_string());
        Ok(())
    });
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(server.messages.lock().unwrap().len(), 3);
}

#[test]
fn a_connection_that_was_closed_is_replaced() {
    let server = Server::of(|_, message| Script::Last(echo(message)));
    // That is not a failure, so nothing has to be repeated.
    let upstream = upstream(&[&server], UpstreamOptions { retries: 0, ..options() });
    for _ in 0..4 {
        assert!(forward(&upstream, "eth_a").is_ok());
    }
    assert_eq!(server.connections(), 4);
}

#[test]
fn failures_are_repeated() {
    let failures: [fn() -> Script; 3] =
        [|| Script::Close, || Script::Reply(json!("nothing")), || Script::Reply(json!({"id": 7, "result": 1}))];
    for (index, failure) in failures.into_iter().enumerate() {
        let script = move |count, message: &Value| if count < 2 { failure() } else { Script::Reply(echo(message)) };
        let server = Server::of(script);
        assert_eq!(forward(&upstream(&[&server], options()), "eth_a").as_deref(), Ok("\"eth_a\""), "failure {index}");
        let server = Server::of(move |_, _| failure());
        let error = forward(&upstream(&[&server], options()), "eth_a").unwrap_err();
        assert!(error.starts_with("the upstream is unavailable: 127.0.0.1:"), "{error}");
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(server.messages.lock().unwrap().len(), 3);
    }
}

#[test]
fn a_server_that_does_not_respond_in_time_is_left() {
    for script in [|| Script::Silence, || Script::Drip] {
        let slow = Server::of(move |_, _| script());
        let options = UpstreamOptions { retries: 0, timeout: Duration::from_millis(100), ..options() };
        let error = forward(&upstream(&[&slow], options.clone()), "eth_a").unwrap_err();
        assert!(error.contains("timed out"), "{error}");
        let echo = Server::echo();
        let upstream = upstream(&[&slow, &echo], options);
        for _ in 0..3 {
            assert!(forward(&upstream, "eth_a").is_ok());
        }
        assert_eq!(echo.messages.lock().unwrap().len(), 3);
    }
}

#[test]
fn long_responses_are_refused() {
    let long = |_: usize, message: &Value| {
        Script::Reply(json!({"jsonrpc": "2.0", "id": message["id"], "result": "x".repeat(5_000)}))
    };
    let server = Server::of(long);
    let options = UpstreamOptions { response_bytes: 4_000, ..options() };
    let params = serde_json::value::RawValue::from_string("[]".to_owned()).unwrap();
    let refused = upstream(&[&server], options).forward(&context(), "eth_a", &params);
    assert!(matches!(refused, Err(UpstreamError::TooLarge { .. })), "{refused:?}");
}

#[test]
fn headers_are_sent_and_a_refused_connection_is_repeated() {
    let refusal = |number: usize, request: &Request| {
        assert_eq!(request.headers()["x-key"], "s3cret");
        assert_eq!(request.uri().path(), "/path/with/secret");
        [429, 503].get(number).copied()
    };
    let server = Server::start(refusal, |_, message| Script::Reply(echo(message)));
    let with_header = || UpstreamOptions { headers: vec!["X-Key: s3cret".parse().unwrap()], ..options() };
    assert!(forward(&upstream(&[&server], with_header()), "eth_a").is_ok());
    assert_eq!(server.connections(), 3);
}
