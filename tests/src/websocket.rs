//! A JSON-RPC client over WebSocket.

use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::handshake::client::Request;
use tungstenite::{ClientRequestBuilder, Message, WebSocket};

/// Timeout for a message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub struct Socket {
    socket: WebSocket<TcpStream>,
    sent: u64,
}

impl Socket {
    /// Connects to `/ws` of the server at `address`, with additional headers.
    pub fn connect(address: &str, headers: &[(&str, &str)]) -> Result<Self, Box<tungstenite::Error>> {
        Self::connect_to(address, "/ws", headers)
    }

    /// Connects to a path of the server at `address`, with additional headers.
    pub fn connect_to(address: &str, path: &str, headers: &[(&str, &str)]) -> Result<Self, Box<tungstenite::Error>> {
        let uri = format!("ws://{address}{path}").parse().expect("an address");
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

    /// The underlying connection.
    pub fn inner(&mut self) -> &mut WebSocket<TcpStream> {
        &mut self.socket
    }

    /// Sends a text message.
    ///
    /// # Panics
    /// If the connection is broken.
    pub fn send(&mut self, text: impl ToString) {
        self.socket.send(Message::text(text.to_string())).expect("it is sent");
    }

    /// Receives the next text message as JSON.
    ///
    /// # Panics
    /// If another kind of message or none arrives.
    pub fn receive(&mut self) -> Value {
        loop {
            match self.socket.read().expect("a message comes") {
                Message::Text(text) => return serde_json::from_str(&text).expect("it is JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Calls a method. Returns the result, and the notifications that arrived before it.
    ///
    /// # Panics
    /// If the request fails.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": parameters}));
        let response = self.receive();
        assert_eq!(response["id"], self.sent, "{response}");
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Receives the next notification of a subscription.
    ///
    /// # Panics
    /// If another message arrives.
    pub fn notification(&mut self, subscription: &Value) -> Value {
        let message = self.receive();
        assert_eq!(message["method"], "eth_subscription", "{message}");
        assert_eq!(&message["params"]["subscription"], subscription, "{message}");
        message["params"]["result"].clone()
    }
}
