//! Status notifications for systemd (`Type=notify`). They do nothing if systemd did not start this process.

use super::reachable;
use sd_notify::NotifyState;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Time until the next notification is due during a long start.
const START_TIME: Duration = Duration::from_secs(120);

/// Time between two notifications during a long start.
const START_INTERVAL: Duration = Duration::from_secs(10);

/// The request of the watchdog to a server without TLS.
const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A TLS record (RFC 8446, section 5.1) with an empty ClientHello.
const MALFORMED_HANDSHAKE: &[u8] = &[22, 3, 1, 0, 4, 1, 0, 0, 0];

/// The content type of a record with an alert.
const ALERT: &[u8] = &[21];

/// Notifies systemd that the server is ready. If the unit has a watchdog, starts a thread that reports that the
/// server responds.
pub(crate) fn ready(address: SocketAddr, tls: bool) {
    notify(&[NotifyState::Ready, NotifyState::Status(&format!("listening on {address}"))]);
    if let Some(limit) = sd_notify::watchdog_enabled() {
        let watch = move || watch(reachable(address), tls, limit);
        if let Err(error) = thread::Builder::new().name("watchdog".to_owned()).spawn(watch) {
            tracing::error!("cannot start the watchdog: {error}");
        }
    }
}

/// Notifies systemd, at least twice within `limit`, for as long as the server responds.
fn watch(address: SocketAddr, tls: bool, limit: Duration) {
    loop {
        match responds(address, tls, limit / 2) {
            Ok(()) => notify(&[NotifyState::Watchdog]),
            // systemd restarts the service if this persists.
            Err(error) => tracing::error!("the server does not respond to the watchdog: {error}"),
        }
        thread::sleep(limit / 3);
    }
}

/// Checks that a connection is accepted and a worker responds. A server with TLS responds with an alert to a handshake
/// that is malformed, which needs no certificate and which it does not log as a request.
fn responds(address: SocketAddr, tls: bool, timeout: Duration) -> io::Result<()> {
    let (request, expected): (&[u8], &[u8]) = if tls { (MALFORMED_HANDSHAKE, ALERT) } else { (REQUEST, b"HTTP/") };
    let mut connection = TcpStream::connect_timeout(&address, timeout)?;
    connection.set_read_timeout(Some(timeout))?;
    connection.write_all(request)?;
    let mut start = vec![0; expected.len()];
    connection.read_exact(&mut start)?;
    if start == expected { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Notifies systemd that the start is still in progress, and asks for more time.
pub(crate) fn starting(status: impl Display) {
    let time = NotifyState::ExtendTimeoutUsec(START_TIME.as_micros().try_into().unwrap_or(u32::MAX));
    notify(&[time, NotifyState::Status(&status.to_string())]);
}

/// A part of the start that takes long, and reports to systemd at intervals that it makes progress.
pub(crate) struct LongStart {
    status: String,
    notified: Instant,
}

impl LongStart {
    /// Begins the part, which `status` describes.
    pub(crate) fn begin(status: String) -> Self {
        starting(&status);
        Self { status, notified: Instant::now() }
    }

    /// Notifies systemd, if the last notification was some time ago.
    pub(crate) fn progress(&mut self) {
        if self.notified.elapsed() >= START_INTERVAL {
            starting(&self.status);
            self.notified = Instant::now();
        }
    }
}

/// Notifies systemd that the server is shutting down.
pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping, NotifyState::Status("waiting for requests in progress")]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot notify systemd: {error}");
    }
}
