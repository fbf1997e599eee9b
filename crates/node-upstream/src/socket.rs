//! Exchanges over WebSocket.

use parking_lot::Mutex;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, HandshakeError, Message, WebSocket, client::client_with_config};
use ureq::http::{HeaderMap, Uri};

/// The connections to an endpoint. Each serves one exchange at a time, so what arrives belongs to what was sent.
pub(crate) struct Sockets {
    url: Uri,
    headers: HeaderMap,
    timeout: Duration,
    response_bytes: usize,
    /// Maximum number of idle connections.
    connections: usize,
    idle: Mutex<Vec<Socket>>,
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ClientConfig>>,
}

/// A connection.
struct Socket {
    socket: WebSocket<Box<dyn Duplex>>,
    /// When the exchange must have ended.
    deadline: Arc<Mutex<Instant>>,
}

trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

impl fmt::Debug for Sockets {
    // The URL may contain a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

impl Sockets {
    /// Prepares connections to a URL that starts with `ws://`, or with `wss://` if the feature `tls` is enabled.
    pub(crate) fn new(
        url: Uri,
        headers: HeaderMap,
        timeout: Duration,
        response_bytes: usize,
        connections: usize,
    ) -> Self {
        #[cfg(feature = "tls")]
        let tls = (url.scheme_str() == Some("wss")).then(tls_config).flatten();
        Self {
            url,
            headers,
            timeout,
            response_bytes,
            connections,
            idle: Mutex::default(),
            #[cfg(feature = "tls")]
            tls,
        }
    }

    /// Sends a message, and returns the next one.
    pub(crate) fn exchange(&self, body: &str) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + self.timeout;
        while let Some(socket) = { self.idle.lock().pop() } {
            match self.exchange_over(socket, body, deadline) {
                // The server may have closed it since it was last used.
                Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_) | Error::Protocol(_))
                    if Instant::now() < deadline => {}
                exchanged => return exchanged,
            }
        }
        self.exchange_over(self.connect(deadline)?, body, deadline)
    }

    /// Keeps the connection if the exchange succeeds.
    fn exchange_over(&self, mut socket: Socket, body: &str, deadline: Instant) -> Result<Vec<u8>, Error> {
        *socket.deadline.lock() = deadline;
        socket.socket.send(Message::text(body))?;
        let received = loop {
            match socket.socket.read()? {
                Message::Text(text) => break text.as_bytes().to_vec(),
                Message::Binary(bytes) => break bytes.to_vec(),
                Message::Close(_) => return Err(Error::ConnectionClosed),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        };
        let mut idle = self.idle.lock();
        if idle.len() < self.connections {
            idle.push(socket);
        }
        Ok(received)
    }

    fn connect(&self, deadline: Instant) -> Result<Socket, Error> {
        let is_secure = self.url.scheme_str() == Some("wss");
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let tcp = connect(host, port, deadline)?;
        let deadline = Arc::new(Mutex::new(deadline));
        let stream = Timed { tcp, deadline: Arc::clone(&deadline) };
        let stream: Box<dyn Duplex> = if is_secure { self.secure(host, stream)? } else { Box::new(stream) };
        let mut request = self.url.clone().into_client_request()?;
        request.headers_mut().extend(self.headers.clone());
        let limit = Some(self.response_bytes);
        let config = WebSocketConfig::default().max_message_size(limit).max_frame_size(limit);
        match client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => Ok(Socket { socket, deadline }),
            Err(HandshakeError::Failure(error)) => Err(error),
            Err(HandshakeError::Interrupted(_)) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }

    #[cfg(feature = "tls")]
    fn secure(&self, host: &str, stream: Timed) -> Result<Box<dyn Duplex>, Error> {
        let invalid = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        let name = rustls::pki_types::ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = self.tls.clone().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let connection = rustls::ClientConnection::new(config, name).map_err(invalid)?;
        Ok(Box::new(rustls::StreamOwned::new(connection, stream)))
    }

    #[cfg(not(feature = "tls"))]
    fn secure(&self, _: &str, _: Timed) -> Result<Box<dyn Duplex>, Error> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }
}

/// Returns the configuration that requests over HTTPS have as well: certificates of Mozilla's authorities.
#[cfg(feature = "tls")]
fn tls_config() -> Option<Arc<rustls::ClientConfig>> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Connects to the first address of a host that accepts.
fn connect(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => {
                // A message is sent as a whole.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the time until a deadline, which has not passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A stream on which nothing takes longer than until the deadline, even if a peer sends byte by byte.
struct Timed {
    tcp: TcpStream,
    deadline: Arc<Mutex<Instant>>,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        left(*self.deadline.lock())
    }
}

/// Converts the error of a read or write that took too long, which would otherwise mean that it can be repeated.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(Some(self.left()?))?;
        self.tcp.read(buffer).map_err(timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(Some(self.left()?))?;
        self.tcp.write(buffer).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}
