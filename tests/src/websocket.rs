//! A client of JSON-RPC over WebSocket.

use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::handshake::client::Request;
use tungstenite::{ClientRequestBuilder, Message, WebSocket};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub struct Socket {
    socket: WebSocket<TcpStream>,
    sent: u64,
}

impl Socket {
    /// Connects to `/ws` of the server at `address`, with further headers.
    pub fn connect(address: &str, headers: &[(&str, &str)]) -> Result<Self, Box<tungstenite::Error>> {
        let uri = format!("ws://{address}/ws").parse().expect("an address");
        let request = headers
            .iter()
            .fold(ClientRequestBuilder::new(uri), |request, (name, value)| request.with_header(*name, *value));
        let request: Request =
            tungstenite::client::IntoClientRequest::into_client_request(request).map_err(Box::new)?;
        let stream = TcpStream::connect(address).map_err(|error| Box::new(error.into()))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| Box::new(error.into()))?;
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self { socket, sent: 0 }),
            Err(tungstenite::HandshakeError::Failure(error)) => Err(Box::new(error)),
            Err(error) => panic!("{error}"),
        }
    }

    /// The connection below.
    pub fn inner(&mut self) -> &mut WebSocket<TcpStream> {
        &mut self.socket
    }

    /// Sends a text.
    ///
    /// # Panics
    /// When the connection is broken.
    pub fn send(&mut self, text: impl ToString) {
        self.socket.send(Message::text(text.to_string())).expect("it is sent");
    }

    /// The next text as JSON.
    ///
    /// # Panics
    /// When something else comes, or nothing.
    pub fn receive(&mut self) -> Value {
        loop {
            match self.socket.read().expect("a message comes") {
                Message::Text(text) => return serde_json::from_str(&text).expect("it is JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The result of a method, with what was told before it came.
    ///
    /// # Panics
    /// When it fails.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": parameters}));
        let answer = self.receive();
        assert_eq!(answer["id"], self.sent, "{answer}");
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The next thing that a subscription tells.
    ///
    /// # Panics
    /// When something else comes.
    pub fn told(&mut self, subscription: &Value) -> Value {
        let message = self.receive();
        assert_eq!(message["method"], "eth_subscription", "{message}");
        assert_eq!(&message["params"]["subscription"], subscription, "{message}");
        message["params"]["result"].clone()
    }
}
