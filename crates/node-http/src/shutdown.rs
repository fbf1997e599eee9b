//! When to end: signals, heard from the first moment of a program on.

use crate::server::ServeError;
use node_core::context::Context;
use std::thread;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Asks a program to end, once SIGINT or SIGTERM has come.
#[derive(Debug)]
pub struct Shutdown {
    context: Context,
    asked: watch::Receiver<bool>,
}

impl Shutdown {
    /// Listens to both signals from now on, on a thread of its own: they end nothing by themselves any more.
    ///
    /// # Errors
    /// [`ServeError::Signal`] when signals cannot be received, or the thread cannot be started.
    pub fn on_signals() -> Result<Self, ServeError> {
        Self::on_signals_then(|| {})
    }

    /// The same; `told` is called first when a signal has come.
    pub fn on_signals_then(told: impl FnOnce() + Send + 'static) -> Result<Self, ServeError> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(ServeError::Signal)?;
        let signals = {
            let _inside = runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate()].map(signal)
        };
        let [interrupt, terminate] = signals;
        let mut interrupt = interrupt.map_err(ServeError::Signal)?;
        let mut terminate = terminate.map_err(ServeError::Signal)?;
        let (sender, asked) = watch::channel(false);
        let context = Context::unbounded();
        let cancelled = context.clone();
        let listen = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            told();
            cancelled.cancel();
            sender.send_replace(true);
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(ServeError::Signal)?;
        Ok(Self { context, asked })
    }

    /// Bounds for work before the server runs: it is cancelled when the program is asked to end.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until the program is asked to end; at once if it was.
    pub(crate) async fn wait(&mut self) {
        // Without a sender nobody would ask any more; it lives until it has asked.
        let _ = self.asked.wait_for(|asked| *asked).await;
    }
}
