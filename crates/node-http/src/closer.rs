//! Closing a connection from outside of the task that reads and writes it.

use futures_util::task::AtomicWaker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;

#[derive(Debug, Default)]
pub(crate) struct Closer {
    closed: AtomicBool,
    waker: AtomicWaker,
}

impl Closer {
    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns an error if the connection must be closed. Otherwise registers the task of `context`, which is woken
    /// when that happens.
    pub(crate) fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.waker.register(context.waker());
        if self.closed.load(Ordering::Acquire) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}
