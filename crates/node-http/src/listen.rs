//! From a socket to a connection that speaks HTTP.
//!
//! What happens before the first request is decided here, and not by actix-web's own server: how many connections there
//! may be, how long a client may be silent, TLS, and which version of HTTP a client speaks.

use crate::config::HttpConfig;
use crate::header_blocks::HeaderBlocks;
use crate::problem::HttpError;
use crate::server::Service;
use actix_http::Protocol;
use actix_http::error::DispatchError;
use actix_web::rt::net::TcpStream;
use actix_web::web;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// How a connection begins that speaks HTTP/2 without having said so by TLS (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2";

/// How long a client that is turned away has to take the answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// Clients that are told at a time that there are too many; further ones are left without a word.
pub(crate) const FAREWELLS: usize = 64;

/// A connection, plain or encrypted, that counts as one as long as it lives.
pub(crate) struct Connection {
    stream: Stream,
    /// Follows what comes, where it is HTTP/2.
    blocks: Option<HeaderBlocks>,
    _permit: OwnedSemaphorePermit,
}

enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

/// What actix-http serves.
pub(crate) type Accepted = (Connection, Protocol, Option<SocketAddr>);

/// Makes a connection of what was accepted, if there may be one more. The client has as long for its first byte, or for
/// the handshake of TLS, as for the headers of a request.
pub(crate) async fn accept(socket: TcpStream, service: web::Data<Service>) -> Result<Accepted, DispatchError> {
    let config = &service.config;
    set_options(&socket, config);
    let peer = socket.peer_addr().ok();
    let Ok(permit) = Arc::clone(&service.connections).try_acquire_owned() else {
        turn_away(socket, &service).await?;
        return Err(io::Error::from(io::ErrorKind::QuotaExceeded).into());
    };
    let mut closing = service.closing.subscribe();
    let begun = async {
        match &service.tls {
            None => {
                let mut start = [0; PREFACE.len()];
                let length = socket.peek(&mut start).await?;
                let protocol = if start[..length] == *PREFACE { Protocol::Http2 } else { Protocol::Http1 };
                Ok((Stream::Plain(socket), protocol))
            }
            Some(acceptor) => {
                let stream = acceptor.accept(socket).await?;
                let protocol = match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => Protocol::Http2,
                    _ => Protocol::Http1,
                };
                Ok::<_, io::Error>((Stream::Encrypted(Box::new(stream)), protocol))
            }
        }
    };
    let begun = tokio::select! {
        begun = timeout(config.header_timeout, begun) => begun.map_err(|_| DispatchError::SlowRequestTimeout)?,
        // Who has sent nothing yet is not waited for at the end.
        _ = closing.wait_for(|closing| *closing) => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let (stream, protocol) = begun.inspect_err(|error| tracing::debug!(%error, ?peer, "a connection did not begin"))?;
    let blocks = matches!(protocol, Protocol::Http2).then(|| HeaderBlocks::new(config.max_headers));
    Ok((Connection { stream, blocks, _permit: permit }, protocol, peer))
}

/// Answers before a request was read, and closes.
async fn turn_away(mut socket: TcpStream, service: &web::Data<Service>) -> io::Result<()> {
    let error = HttpError::TooManyConnections { limit: service.config.max_connections };
    service.metrics.refused(&error);
    // A client that speaks TLS would not understand it.
    if service.tls.is_some() {
        return Ok(());
    }
    let Ok(_permit) = service.farewells.try_acquire() else { return Ok(()) };
    let answer = service.canned(&error);
    let farewell = async {
        socket.write_all(&answer).await?;
        socket.shutdown().await?;
        // Closing while the request is still unread would take the answer back.
        let mut rest = [0; 4_096];
        while socket.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    timeout(FAREWELL, farewell).await.unwrap_or(Ok(()))
}

fn set_options(socket: &TcpStream, config: &HttpConfig) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a connection sends with delay");
    }
    close_when_stuck(socket, config.write_timeout);
}

/// Lets the system close a connection whose client takes nothing for so long. Otherwise a stream of events to it would never
/// end.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn close_when_stuck(socket: &TcpStream, timeout: Duration) {
    if let Err(error) = SockRef::from(socket).set_tcp_user_timeout(Some(timeout)) {
        tracing::debug!(%error, "a connection has no write timeout");
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn close_when_stuck(_socket: &TcpStream, _timeout: Duration) {}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, blocks, .. } = &mut *self;
        let before = buf.filled().len();
        let read = match stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if let Some(blocks) = blocks
            && !blocks.follow(&buf.filled()[before..])
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "headers that are too long")));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
