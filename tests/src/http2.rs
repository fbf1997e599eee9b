//! An HTTP/2 client that sends one request per connection, over plain TCP or TLS.

use crate::server::{Response, Server};
use bytes::Bytes;
use h2::client::{self, ResponseFuture};
use h2::{RecvStream, SendStream};
use h2_types::{HeaderValue, Request, Uri};
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

/// Time limit for each step of a request.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;

/// A request whose body is not complete.
pub struct Begun {
    runtime: Runtime,
    response: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Begun {
    /// Connects from `source` and sends a request with the start of its body.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn new(
        server: &Server,
        source: IpAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        start: &[u8],
        ends: bool,
    ) -> Result<Self, Failure> {
        // One thread drives the connection while the test does something else.
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let request = request(server, method, path, headers)?;
        let begin = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((source, 0).into())?;
            let stream = socket.connect(server.address().parse()?).await?;
            match server.identity() {
                Some(identity) => {
                    let stream = identity.connect_async(stream, b"h2").await?;
                    open(stream, request).await
                }
                None => open::<TcpStream>(stream, request).await,
            }
        };
        let (response, mut body) = runtime.block_on(async { timeout(PATIENCE, begin).await? })?;
        body.send_data(Bytes::copy_from_slice(start), ends)?;
        Ok(Self { runtime, response, body })
    }

    /// Waits for the head of the response. Returns its status, and what keeps the connection open.
    ///
    /// # Errors
    /// If the connection or the stream ends.
    pub fn head(self) -> Result<(u16, impl Sized + 'static), Failure> {
        let Self { runtime, response, body } = self;
        let (parts, stream) = runtime.block_on(async { timeout(PATIENCE, response).await })??.into_parts();
        Ok((parts.status.as_u16(), (stream, body, runtime)))
    }

    /// Reads a response as far as flow control allows the server to send it, without ever allowing more, until the
    /// server gives up. Returns whether it does so before the response is complete.
    ///
    /// # Errors
    /// If there is no response, or the server waits for longer than a minute.
    pub fn is_given_up(self) -> Result<bool, Failure> {
        let Self { runtime, response, body } = self;
        runtime.block_on(async move {
            let _open = body;
            let mut stream = timeout(PATIENCE, response).await??.into_body();
            loop {
                match timeout(PATIENCE, stream.data()).await? {
                    Some(Ok(_)) => {}
                    ended => return Ok(ended.is_some()),
                }
            }
        })
    }

    /// Sends the rest of the body, as far as the server accepts it, and returns the response.
    ///
    /// # Errors
    /// If the connection or the stream ends without a complete response.
    pub fn finish(self, rest: Option<&[u8]>) -> Result<Response, Failure> {
        let Self { runtime, response, mut body } = self;
        let rest = rest.map(Bytes::copy_from_slice);
        runtime.block_on(async move {
            let sending = async move {
                if let Some(rest) = rest {
                    let _ = body.send_data(rest, true);
                }
                // Dropping it would reset the stream.
                body
            };
            let receiving = async {
                let (parts, stream) = response.await?.into_parts();
                Ok::<_, Failure>((parts, read(stream).await?))
            };
            let (_body, received) = timeout(PATIENCE, async { tokio::join!(sending, receiving) }).await?;
            let (parts, bytes) = received?;
            let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            Ok(Response::new(parts.status.as_u16(), headers, String::from_utf8_lossy(&bytes).into_owned()))
        })
    }
}

async fn open<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    request: Request<()>,
) -> Result<(ResponseFuture, SendStream<Bytes>), Failure> {
    let (sender, connection) = client::handshake(stream).await?;
    tokio::spawn(connection);
    Ok(sender.ready().await?.send_request(request, false)?)
}

/// The first `Host` header becomes the authority. `path` may be a URL, which then has the authority and the scheme.
fn request(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Request<()>, Failure> {
    let is_host = |(name, _): &&(&str, &str)| name.eq_ignore_ascii_case("host");
    let authority = headers.iter().find(is_host).map_or(server.address(), |(_, host)| host);
    let scheme = if server.identity().is_some() { "https" } else { "http" };
    let uri = match path.starts_with('/') {
        true => Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build()?,
        false => path.parse()?,
    };
    let mut request = Request::builder().method(method).uri(uri);
    let first = headers.iter().position(|header| is_host(&header));
    for (_, (name, value)) in headers.iter().enumerate().filter(|(at, _)| Some(*at) != first) {
        request = request.header(*name, *value);
    }
    Ok(request.body(())?)
}

async fn read(mut stream: RecvStream) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
