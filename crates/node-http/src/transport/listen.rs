//! Accepting connections, up to the point where HTTP begins.
//!
//! This replaces actix-web's own acceptor. It limits the number of connections and the time to the first byte, and
//! handles TLS.

use crate::admission::sender::Peer;
use crate::config::HttpConfig;
use crate::problem::HttpError;
use crate::service::Service;
use crate::transport::connection::{Connection, MAX_UNSENT, Stream, canned_response};
use actix_http::error::DispatchError;
use actix_web::rt::net::TcpStream;
use actix_web::web;
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// How long a client over the connection limit has to read the error.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The input of actix-http's service: the connection, and the address of the client.
pub(crate) type Accepted = (Connection, Option<SocketAddr>);

/// Prepares an accepted socket for HTTP, unless there are too many connections. `header_timeout` also limits the time
/// until the first byte or the end of the TLS handshake. `is_at_control` is whether the socket was accepted on the
/// control address.
pub(crate) async fn accept(
    socket: TcpStream,
    service: web::Data<Service>,
    is_at_control: bool,
) -> Result<Accepted, DispatchError> {
    let config = &service.config;
    set_options(&socket, config);
    let address = socket.peer_addr().ok();
    let peer = Peer::new(address.map(|address| address.ip()), &service.clients, &config.listen.trusted_proxies);
    let peer = Peer { is_at_control, ..peer };
    let connections = &service.connections;
    let permit =
        if peer.is_proxy { connections.take_unshared(&peer.client, 1) } else { connections.take(&peer.client, 1) };
    let permit = match permit {
        Ok(permit) => permit,
        Err(exhausted) => {
            reject(socket, &service, &peer, &exhausted.into()).await?;
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded).into());
        }
    };
    let mut closing = service.phases.closing();
    let handshake = async {
        match &service.tls {
            None => {
                socket.readable().await?;
                Ok(Stream::Left(socket))
            }
            Some(tls) => {
                if is_plain(&socket).await? {
                    send_and_close(socket, &service, &peer, &HttpError::NoTls).await?;
                    return Err(io::ErrorKind::InvalidData.into());
                }
                Ok::<_, io::Error>(Stream::Right(tls.accept(socket).await?))
            }
        }
    };
    let result = tokio::select! {
        biased;
        done = timeout(config.requests.header_timeout, handshake) => done.map_err(|_| DispatchError::SlowRequestTimeout)?,
        // Shutdown does not wait for clients that have not sent anything yet.
        () = closing.wait() => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let stream =
        result.inspect_err(|error| tracing::debug!(%error, ?address, "connection failed before the first request"))?;
    Ok((Connection::new(stream, peer, service, permit), address))
}

/// Returns whether a connection to a TLS server begins with a letter, like an HTTP method, rather than with a
/// handshake.
async fn is_plain(socket: &TcpStream) -> io::Result<bool> {
    let mut start = [0];
    let length = socket.peek(&mut start).await?;
    Ok(length > 0 && start[0].is_ascii_alphabetic())
}

/// Refuses a connection without reading a request.
async fn reject(socket: TcpStream, service: &Service, peer: &Peer, error: &HttpError) -> io::Result<()> {
    if let Some(limit) = error.limit() {
        service.metrics.record_refusal(limit);
    }
    // A TLS client could not read a plain response.
    if service.tls.is_some() {
        return Ok(());
    }
    send_and_close(socket, service, peer, error).await
}

/// Sends an error without reading a request, and closes the connection.
async fn send_and_close(mut socket: TcpStream, service: &Service, peer: &Peer, error: &HttpError) -> io::Result<()> {
    let Ok(_permit) = service.rejections.try_acquire() else { return Ok(()) };
    let response = canned_response(service, peer, error);
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

fn set_options(socket: &TcpStream, config: &HttpConfig) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    limit_writing(socket, config.requests.write_timeout);
}

/// Makes the operating system hold few unsent bytes, and close the connection if the client acknowledges nothing for
/// `timeout`. Otherwise an event stream to a vanished client would never end.
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
