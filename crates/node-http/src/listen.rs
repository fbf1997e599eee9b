//! Accepts connections, up to the point where HTTP begins.
//!
//! This replaces actix-web's own acceptor. It limits the number of connections and the time to the first byte, and
//! handles TLS and the choice between HTTP/1.1 and HTTP/2.

use crate::bare;
use crate::clients::Permit;
use crate::config::HttpConfig;
use crate::encode;
use crate::h2_header_limit::HeaderLimit;
use crate::problem::HttpError;
use crate::report::Reporter;
use crate::sender::Peer;
use crate::sent::Sent;
use crate::service::Service;
use crate::tls::Encrypted;
use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_web::rt::net::TcpStream;
use actix_web::web;
use socket2::SockRef;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use uuid::Uuid;

/// The first bytes of an HTTP/2 connection that was not negotiated by TLS (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2";

/// How long a client over the connection limit has to read the error.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Most bytes of a connection that wait in the system to be sent. What clients do not read stays in responses, which are
/// counted.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MAX_UNSENT: u32 = 64 * 1024;

/// A connection, plain or encrypted, with the permit that counts it as open.
pub(crate) struct Connection {
    stream: Stream,
    peer: Peer,
    /// Whether the client must read before more can be written. Until then nothing is read from it either: HTTP/2 would
    /// accept requests and collect the responses.
    is_blocked: bool,
    /// `None` for HTTP/1.1, whose headers actix-http limits itself.
    header_limit: Option<HeaderLimit>,
    service: web::Data<Service>,
    /// What is left of a problem that is sent in place of a bare response.
    problem: Option<Vec<u8>>,
    _permit: Permit,
}

impl Connection {
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Notes whether a write was blocked. Reading continues when it is not any more.
    fn note<T>(&mut self, context: &Context<'_>, written: Poll<T>) -> Poll<T> {
        let was_blocked = mem::replace(&mut self.is_blocked, written.is_pending());
        if was_blocked && !self.is_blocked {
            context.waker().wake_by_ref();
        }
        written
    }

    /// Writes a problem in place of a bare response of `length` bytes.
    fn poll_write_problem(&mut self, cx: &mut Context<'_>, status: u16, length: usize) -> Poll<io::Result<usize>> {
        let Self { service, stream, problem, .. } = self;
        let rest = problem.get_or_insert_with(|| {
            let error = bare::error(status, &service.config);
            if let Some(limit) = error.limit() {
                service.metrics.record_refusal(limit);
            }
            canned_response(service, &error)
        });
        while !rest.is_empty() {
            let written = match stream {
                Stream::Plain(stream) => Pin::new(stream).poll_write(cx, rest),
                Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, rest),
            };
            match std::task::ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(rest.drain(..written)),
            }
        }
        Poll::Ready(Ok(length))
    }

    /// Returns an error if the connection must be closed. What it has not sent is then discarded.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.peer.closer.check(context).inspect_err(|_| {
            let socket = match &self.stream {
                Stream::Plain(socket) => socket,
                Stream::Encrypted(stream) => stream.socket(),
            };
            if let Err(error) = SockRef::from(socket).set_linger(Some(Duration::ZERO)) {
                tracing::debug!(%error, "cannot discard unsent data");
            }
        })
    }
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<dyn Encrypted>),
}

/// What actix-http's service accepts: the connection, its protocol, and the address of the client.
pub(crate) type Accepted = (Connection, Protocol, Option<SocketAddr>);

/// Prepares an accepted socket for HTTP, unless there are too many connections. `header_timeout` also limits the time until
/// the first byte or the end of the TLS handshake.
pub(crate) async fn accept(socket: TcpStream, service: web::Data<Service>) -> Result<Accepted, DispatchError> {
    let config = &service.config;
    set_options(&socket, config);
    let address = socket.peer_addr().ok();
    let peer = Peer::new(address.map(|address| address.ip()), &service.clients, &config.trusted_proxies);
    let connections = &service.connections;
    let permit =
        if peer.is_proxy { connections.take_unshared(&peer.client, 1) } else { connections.take(&peer.client, 1) };
    let permit = match permit {
        Ok(permit) => permit,
        Err(exhausted) => {
            reject(socket, &service, &exhausted.into()).await?;
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded).into());
        }
    };
    let mut closing = service.closing.subscribe();
    let handshake = async {
        match &service.tls {
            None => {
                let mut start = [0; PREFACE.len()];
                let length = socket.peek(&mut start).await?;
                let protocol = if start[..length] == *PREFACE { Protocol::Http2 } else { Protocol::Http1 };
                Ok((Stream::Plain(socket), protocol))
            }
            Some(tls) => {
                let (stream, protocol) = tls.accept(socket).await?;
                Ok::<_, io::Error>((Stream::Encrypted(stream), protocol))
            }
        }
    };
    let result = tokio::select! {
        done = timeout(config.header_timeout, handshake) => done.map_err(|_| DispatchError::SlowRequestTimeout)?,
        // Shutdown does not wait for clients that have sent nothing yet.
        _ = closing.wait_for(|closing| *closing) => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let (stream, protocol) =
        result.inspect_err(|error| tracing::debug!(%error, ?address, "connection failed before the first request"))?;
    let header_limit = matches!(protocol, Protocol::Http2).then(|| HeaderLimit::new(config.max_headers));
    Ok((
        Connection { stream, peer, is_blocked: false, header_limit, service, problem: None, _permit: permit },
        protocol,
        address,
    ))
}

/// Sends an error without reading a request, and closes the connection.
async fn reject(mut socket: TcpStream, service: &Service, error: &HttpError) -> io::Result<()> {
    if let Some(limit) = error.limit() {
        service.metrics.record_refusal(limit);
    }
    // A TLS client could not read a plain response.
    if service.tls.is_some() {
        return Ok(());
    }
    let Ok(_permit) = service.rejections.try_acquire() else { return Ok(()) };
    let response = canned_response(service, error);
    let send = async {
        socket.write_all(&response).await?;
        socket.shutdown().await?;
        // Closing with unread data would reset the connection, and the client might lose the response.
        let mut rest = [0; 4_096];
        while socket.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    timeout(REJECTION_TIMEOUT, send).await.unwrap_or(Ok(()))
}

/// A complete HTTP/1.1 response for a client whose request is not read.
fn canned_response(service: &Service, error: &HttpError) -> Vec<u8> {
    let base_url = encode::url_with_authority(&service.config, &service.listening);
    let reporter = Reporter { operation: "none", id: Uuid::new_v4(), base_url, sent: Sent::default() };
    let (status, body) = reporter.problem(error);
    service.metrics.record_response(reporter.operation, status, Duration::ZERO);
    let retry_after = error.retry_after().map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         x-request-id: {}\r\n{retry_after}connection: close\r\n\r\n",
        body.len(),
        reporter.id,
    );
    [head.as_bytes(), &body].concat()
}

fn set_options(socket: &TcpStream, config: &HttpConfig) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    limit_writing(socket, config.write_timeout);
}

/// Makes the system hold few unsent bytes, and close the connection if the client acknowledges nothing for `timeout`.
/// Otherwise an event stream to a client that is gone would never end.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_writing(socket: &TcpStream, timeout: Duration) {
    let socket = SockRef::from(socket);
    let set = socket.set_tcp_user_timeout(Some(timeout)).and_then(|()| socket.set_tcp_notsent_lowat(MAX_UNSENT));
    if let Err(error) = set {
        tracing::debug!(%error, "cannot limit unsent data");
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_writing(_socket: &TcpStream, _timeout: Duration) {}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        if self.is_blocked {
            // The blocked write wakes the task.
            return Poll::Pending;
        }
        let Self { stream, header_limit, .. } = &mut *self;
        let before = buf.filled().len();
        let read = match stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if let Some(limit) = header_limit
            && !limit.accept(&buf.filled()[before..])
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the headers are too long")));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let bare = if self.header_limit.is_none() { bare::find(bytes) } else { None };
        let bytes = match bare {
            Some((0, status)) => {
                let written = self.poll_write_problem(cx, status, bytes.len());
                return self.note(cx, written);
            }
            Some((at, _)) => &bytes[..at],
            None => bytes,
        };
        let written = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        self.note(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let written = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        };
        self.note(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            // There is nothing to flush.
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Encrypted(stream) => {
                let flushed = Pin::new(stream).poll_flush(cx);
                self.note(cx, flushed)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
