//! Shutdown on SIGINT and SIGTERM, from the start of the program on.

use crate::server::ServeError;
use node_core::context::Context;
use std::thread;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes active when SIGINT or SIGTERM arrives. The second signal ends the delay of the shutdown.
#[derive(Debug)]
pub struct Shutdown {
    context: Context,
    /// The number of signals that have arrived.
    signals: watch::Receiver<u32>,
}

impl Shutdown {
    /// Installs handlers for both signals, which then no longer end the process by themselves. The signals are
    /// handled on a separate thread.
    ///
    /// # Errors
    /// [`ServeError::Signal`] if the signal handlers cannot be installed or the thread cannot be started.
    pub fn on_signals() -> Result<Self, ServeError> {
        Self::on_signals_then(|| {})
    }

    /// Like [`on_signals`](Self::on_signals), but calls `callback` first when a signal arrives.
    ///
    /// # Errors
    /// Those of [`on_signals`](Self::on_signals).
    pub fn on_signals_then(callback: impl FnOnce() + Send + 'static) -> Result<Self, ServeError> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(ServeError::Signal)?;
        let signals = {
            let _inside = runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
        };
        let [interrupt, terminate] = signals;
        let mut interrupt = interrupt.map_err(ServeError::Signal)?;
        let mut terminate = terminate.map_err(ServeError::Signal)?;
        let (sender, received) = watch::channel(0);
        let context = Context::unbounded();
        let cancelled = context.clone();
        let listen = move || {
            let mut next = || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                });
            };
            next();
            callback();
            cancelled.cancel();
            sender.send_replace(1);
            next();
            sender.send_replace(2);
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(ServeError::Signal)?;
        Ok(Self { context, signals: received })
    }

    /// Returns a context for work before the server runs. It is cancelled when a signal arrives.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until `count` signals have arrived, at most two.
    pub(crate) async fn wait(&mut self, count: u32) {
        // The sender is dropped only after the second signal, so this cannot fail.
        let _ = self.signals.wait_for(|signals| *signals >= count).await;
    }
}
