//! Signals to a server other than those for shutdown.

use crate::server::ServeError;
use rustix::process::Signal;
use std::thread;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

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
