//! What is shared between a connection and the requests that arrive on it.

use actix_web::http::header::HeaderValue;
use futures_util::task::AtomicWaker;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

#[derive(Debug, Default)]
pub(crate) struct ConnectionHandle {
    closed: AtomicBool,
    /// Whether a response has announced the end of the connection.
    ending: AtomicBool,
    /// Whether the protocol is no longer HTTP.
    upgraded: AtomicBool,
    /// Whether what the client still sends is not read.
    hung_up: AtomicBool,
    /// Whether the response to the current request has begun.
    responded: AtomicBool,
    /// Whether the connection waits for the response to the current request, to pass on the next one.
    waiting: AtomicBool,
    waker: AtomicWaker,
    /// The `Host` of the first request that was admitted, with the base of the URLs in its response.
    addressed: OnceLock<(HeaderValue, String)>,
}

impl ConnectionHandle {
    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns an error if the connection must be closed. Otherwise registers the task of `context`, which is woken
    /// when that happens, or when it can continue to [wait](Self::wait).
    pub(crate) fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.waker.register(context.waker());
        if self.closed.load(Ordering::Acquire) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Records that a response announces the end of the connection. Further requests must not be processed (RFC 9112,
    /// section 9.6).
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether a response has announced the end of the connection.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Records that the protocol is no longer HTTP.
    pub(crate) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// Returns whether the protocol is no longer HTTP.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Ends the connection for reads, as if the client had closed it. Otherwise the server would wait for the client to
    /// do so.
    pub(crate) fn hang_up(&self) {
        self.hung_up.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns whether the connection has ended for reads.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Acquire)
    }

    /// Records that the response to the current request begins.
    pub(crate) fn respond(&self) {
        self.responded.store(true, Ordering::Release);
        if self.waiting.swap(false, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Returns whether the response to the current request has begun. The next request then becomes the current one.
    pub(crate) fn next_request(&self) -> bool {
        self.responded.swap(false, Ordering::AcqRel)
    }

    /// Returns the base of the URLs in responses to requests with this `Host`, or `None` if no such request was admitted
    /// first.
    pub(crate) fn base_url(&self, host: &HeaderValue) -> Option<&str> {
        self.addressed.get().filter(|(known, _)| known == host).map(|(_, base_url)| base_url.as_str())
    }

    /// Records the base of the URLs for a `Host` that was admitted, unless there is one already. Nearly all requests on
    /// a connection have the same host, which is then checked once.
    pub(crate) fn set_base_url(&self, host: &HeaderValue, base_url: impl FnOnce() -> String) {
        self.addressed.get_or_init(|| (host.clone(), base_url()));
    }

    /// Wakes the task of the connection when the response begins.
    pub(crate) fn wait(&self) {
        self.waiting.store(true, Ordering::Release);
    }
}
