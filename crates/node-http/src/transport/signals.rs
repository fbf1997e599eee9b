//! Signals to the process: for shutdown, from the start of the program on, and others.

use crate::transport::server::ServeError;
use actix_web::rt;
use node_core::context::Context;
use rustix::process::Signal;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Time after the first signal in which others have no effect: a terminal and a program that passes signals on may both
/// send one.
const SAME: Duration = Duration::from_secs(1);

/// Becomes active when SIGINT or SIGTERM arrives. A further signal ends the delay of the shutdown. Without a delay, one that
/// arrives more than a second later ends the process at once, with status 1.
#[derive(Debug)]
pub struct Shutdown {
    context: Context,
    /// The number of signals that have arrived, at most two.
    signals: watch::Receiver<u32>,
    /// Whether the next signal ends a delay.
    delays: Arc<AtomicBool>,
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
        let delays = Arc::new(AtomicBool::new(false));
        let delayed = Arc::clone(&delays);
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
            let first = Instant::now();
            loop {
                next();
                sender.send_replace(2);
                if !delayed.swap(false, Ordering::SeqCst) && first.elapsed() > SAME {
                    process::exit(1);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(ServeError::Signal)?;
        Ok(Self { context, signals: received, delays })
    }

    /// Returns a context for work before the server runs. It is cancelled when a signal arrives.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until `count` signals have arrived, at most two.
    pub(crate) async fn wait(&mut self, count: u32) {
        // The sender is never dropped, so this cannot fail.
        let _ = self.signals.wait_for(|signals| *signals >= count).await;
    }

    /// Waits for `delay`, or until a second signal arrives.
    pub(crate) async fn delay(&mut self, delay: Duration) {
        self.delays.store(true, Ordering::SeqCst);
        let _ = rt::time::timeout(delay, self.wait(2)).await;
        self.delays.store(false, Ordering::SeqCst);
    }
}

/// A signal that does not request a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnixSignal {
    /// SIGHUP.
    Hangup,
    /// SIGUSR1.
    User1,
}

impl UnixSignal {
    /// Makes writing beyond the file size limit fail like writing to a full disk. By default, the signal SIGXFSZ ends
    /// the process.
    ///
    /// # Errors
    /// [`ServeError::Signal`] if the signal handler cannot be installed.
    pub fn survive_file_size_limit() -> Result<(), ServeError> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(ServeError::Signal)?;
        let _inside = runtime.enter();
        // The handler stays installed when the stream of signals is dropped.
        signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop).map_err(ServeError::Signal)
    }

    /// Calls `callback` for each of these signals, on a separate thread. The signals no longer end the process.
    ///
    /// # Errors
    /// [`ServeError::Signal`] if the signal handlers cannot be installed or the thread cannot be started.
    pub fn handle(callback: impl Fn(Self) + Send + 'static) -> Result<(), ServeError> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build().map_err(ServeError::Signal)?;
        let signals = {
            let _inside = runtime.enter();
            [SignalKind::hangup(), SignalKind::user_defined1()].map(signal)
        };
        let [hangup, user] = signals;
        let (mut hangup, mut user) = (hangup.map_err(ServeError::Signal)?, user.map_err(ServeError::Signal)?);
        let listen = move || loop {
            let signal = runtime.block_on(async {
                tokio::select! {
                    _ = hangup.recv() => Self::Hangup,
                    _ = user.recv() => Self::User1,
                }
            });
            callback(signal);
        };
        thread::Builder::new().name("reload".to_owned()).spawn(listen).map(drop).map_err(ServeError::Signal)
    }
}
