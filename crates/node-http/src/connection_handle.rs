//! What the tasks of requests can do with the connection: close it, and stop reading from it.

use futures_util::task::AtomicWaker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Context;

#[derive(Debug, Default)]
pub(crate) struct ConnectionHandle {
    closed: AtomicBool,
    /// Whether a response has announced the end of the connection.
    ending: AtomicBool,
    /// Number of requests on which threads are working.
    working: AtomicUsize,
    waker: AtomicWaker,
}

impl ConnectionHandle {
    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns an error if the connection must be closed. Otherwise registers the task of `context`, which is woken
    /// when that happens, or when nobody works on a request any more.
    pub(crate) fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.waker.register(context.waker());
        if self.closed.load(Ordering::Acquire) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Records that a response announces the end of the connection. Further requests must not be processed (RFC 9112,
    /// section 9.6), but actix-http passes on those that have arrived.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns whether a response has announced the end of the connection.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Marks a request whose body was read as being worked on, until the result is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Working {
        self.working.fetch_add(1, Ordering::Relaxed);
        Working(self.clone())
    }

    /// Returns whether a request is being worked on.
    pub(crate) fn is_working(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }
}

/// The work on a request.
pub(crate) struct Working(Arc<ConnectionHandle>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Relaxed);
        self.0.waker.wake();
    }
}
