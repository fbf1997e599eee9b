//! Reading from and writing to connections.
//!
//! A connection limits what actix-http does not: how much is read before it is processed, and how long a
//! client may take to read what was written.

use crate::admission::clients::Permit;
use crate::admission::sender::Peer;
use crate::exchange::encode;
use crate::exchange::request_id::RequestId;
use crate::exchange::request_log::Responded;
use crate::exchange::transfer;
use crate::problem::report::Reporter;
use crate::problem::sent::Sent;
use crate::problem::{self, HttpError};
use crate::service::Service;
use crate::transport::bare;
use crate::transport::framing::Framing;
use crate::transport::tls::Encrypted;
use actix_web::rt::net::TcpStream;
use actix_web::web;
use socket2::SockRef;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_util::either::Either;

/// Maximum number of bytes of a connection that the operating system may hold unsent. Data that clients do not read
/// stays in responses, which are counted.
pub(crate) const MAX_UNSENT: u32 = 64 * 1024;

/// A connection, plain or encrypted, with the permit that counts it as open.
pub(crate) struct Connection {
    stream: Stream,
    peer: Peer,
    /// Whether the client must read before more can be written. Until then nothing is read from it either.
    is_blocked: bool,
    /// While a write is not complete, ends when it should be.
    write_limit: Option<Pin<Box<Sleep>>>,
    framing: Framing,
    /// While the headers of a request are incomplete, ends when they should be complete.
    head_limit: Option<Pin<Box<Sleep>>>,
    service: web::Data<Service>,
    received: bare::Received,
    /// The unsent rest of a problem that replaces a bare response.
    problem: Option<Vec<u8>>,
    _permit: Permit,
}

impl Connection {
    /// `permit` counts the connection as open.
    pub(crate) fn new(stream: Stream, peer: Peer, service: web::Data<Service>, permit: Permit) -> Self {
        Self {
            stream,
            peer,
            is_blocked: false,
            write_limit: None,
            framing: Framing::default(),
            head_limit: None,
            service,
            received: bare::Received::default(),
            problem: None,
            _permit: permit,
        }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Records whether a write was blocked. Reading continues once writes are no longer blocked.
    fn note<T>(&mut self, context: &Context<'_>, written: Poll<T>) -> Poll<T> {
        let was_blocked = mem::replace(&mut self.is_blocked, written.is_pending());
        if was_blocked && !self.is_blocked {
            context.waker().wake_by_ref();
        }
        written
    }

    /// Like [`Self::note`], for a write of `length` bytes. Fails if the client has not read them, or an earlier part of
    /// them, for too long.
    fn note_write(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(written)) if written >= length) {
            self.write_limit = None;
        } else if written.is_pending() {
            let config = &self.service.config;
            let begin = || Box::pin(sleep(transfer::time_limit(MAX_UNSENT as usize, config)));
            if self.write_limit.get_or_insert_with(begin).as_mut().poll(cx).is_ready() {
                transfer::report_slow_client(&self.service.metrics);
                self.discard_unsent();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.note(cx, written)
    }

    /// Reads a part of a request. After a request, the next one is read when the response begins.
    fn poll_read_request(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, framing, peer: Peer { connection, .. }, .. } = self;
        let mut read = |buf: &mut ReadBuf<'_>| Pin::new(&mut *stream).poll_read(cx, buf);
        if connection.has_hung_up() {
            return Poll::Ready(Ok(()));
        }
        if connection.is_upgraded() {
            framing.upgrade();
        } else if framing.is_complete() {
            if connection.is_ending() {
                // What follows is discarded: unread data would reset the connection, and the response might be lost.
                let mut space = [0; 1_024];
                loop {
                    let mut rest = ReadBuf::new(&mut space);
                    ready!(read(&mut rest))?;
                    if rest.filled().is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            if !connection.next_request() {
                let ended = framing.read_ahead(&mut read);
                if framing.is_ahead() {
                    connection.wait();
                }
                return ended;
            }
            framing.begin();
        }
        let before = buf.filled().len();
        let read = framing.read(buf, read);
        self.received.add(&buf.filled()[before..]);
        self.check_head(cx)?;
        read
    }

    /// Fails if the headers of a request take too long. actix-http checks only those of the first request.
    fn check_head(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.framing.is_in_head() {
            self.head_limit = None;
            return Ok(());
        }
        let limit = self.service.config.requests.header_timeout;
        if self.head_limit.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(cx).is_pending() {
            return Ok(());
        }
        let response = canned_response(&self.service, &self.peer, &HttpError::HeadersTimeout);
        // If the client reads, there is space for it.
        let _ = self.poll_write_raw(cx, &response);
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Writes a problem in place of a bare response of `length` bytes.
    fn poll_write_problem(&mut self, cx: &mut Context<'_>, status: u16, length: usize) -> Poll<io::Result<usize>> {
        let Self { service, stream, peer, problem, received, .. } = self;
        let rest = problem.get_or_insert_with(|| {
            let error = received.error(status, &service.config);
            if let Some(limit) = error.limit() {
                service.metrics.record_refusal(limit);
            }
            canned_response(service, peer, &error)
        });
        while !rest.is_empty() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(rest.drain(..written)),
            }
        }
        Poll::Ready(Ok(length))
    }

    /// Writes to the socket without checking limits.
    fn poll_write_raw(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// Returns an error if the connection must be closed. Unsent data is then discarded.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.peer.connection.check(context).inspect_err(|_| self.discard_unsent())
    }

    /// Makes the operating system discard unsent data when the connection is closed.
    fn discard_unsent(&self) {
        let socket = match &self.stream {
            Stream::Left(socket) => socket,
            Stream::Right(stream) => stream.socket(),
        };
        if let Err(error) = SockRef::from(socket).set_linger(Some(Duration::ZERO)) {
            tracing::debug!(%error, "cannot discard unsent data");
        }
    }
}

/// A plain socket, or an encrypted one.
pub(crate) type Stream = Either<TcpStream, Box<dyn Encrypted>>;

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        if self.is_blocked {
            // The blocked write wakes the task.
            return Poll::Pending;
        }
        self.poll_read_request(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let bytes = match bare::find(bytes) {
            Some((0, status)) => {
                let written = self.poll_write_problem(cx, status, bytes.len());
                return self.note_write(cx, bytes.len(), written);
            }
            Some((at, _)) => &bytes[..at],
            None => bytes,
        };
        self.received.clear();
        let written = self.poll_write_raw(cx, bytes);
        self.note_write(cx, bytes.len(), written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            // There is nothing to flush, and a blocked write stays blocked.
            Stream::Left(_) => Poll::Ready(Ok(())),
            Stream::Right(stream) => {
                let flushed = Pin::new(stream).poll_flush(cx);
                self.note(cx, flushed)
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Returns a complete response for a client whose request is not read, and records it.
pub(crate) fn canned_response(service: &Service, peer: &Peer, error: &HttpError) -> Vec<u8> {
    let base_url = encode::url_with_authority(&service.config, &service.listening);
    let reporter = Reporter { operation: "none", id: RequestId::new(), base_url, sent: Sent::default() };
    let (status, body) = reporter.problem(error);
    Responded {
        id: &reporter.id,
        trace: None,
        client: peer.client.network(),
        line: None,
        operation: reporter.operation,
        status,
        problem: Some(&problem::detail(error)),
        calls: &[],
        bytes: Some(body.len() as u64),
        elapsed: Duration::ZERO,
        remote: Default::default(),
    }
    .record(&service.metrics);
    let retry_after = error.retry_after().map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\
         x-request-id: {}\r\n{retry_after}connection: close\r\n\r\n",
        body.len(),
        reporter.id,
    );
    [head.as_bytes(), &body].concat()
}
