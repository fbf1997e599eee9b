//! What a server is doing: starting, serving, or shutting down.

use parking_lot::RwLock;
use std::sync::Arc;
use tokio::sync::watch::{Receiver, Sender};

/// The progress of a startup task of a server that is already listening. Until it has finished, `/ready` returns 503,
/// and so does everything else except `/health`, unless
/// [`serve_while_starting`](crate::HttpConfig::serve_while_starting) is set. Clones share the progress.
#[derive(Clone, Debug, Default)]
pub struct Starting(Arc<RwLock<Option<String>>>);

impl Starting {
    /// Marks the server as not ready. `progress` is the reason and the progress that `/ready` reports.
    pub fn set(&self, progress: String) {
        *self.0.write() = Some(progress);
    }

    /// Marks the task as finished and the server as ready.
    pub fn finish(&self) {
        *self.0.write() = None;
    }

    pub(crate) fn current(&self) -> Option<String> {
        self.0.read().clone()
    }
}

/// The phases in the life of a server, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Requests are still served, but load balancers and clients should use another server. Event streams and
    /// WebSockets end.
    Draining,
    /// Requests in progress are finished; new ones are not accepted.
    Closing,
}

/// The phase of a server.
#[derive(Debug)]
pub(crate) struct Phases(Sender<Phase>);

impl Phases {
    pub(crate) fn new() -> Self {
        Self(Sender::new(Phase::Serving))
    }

    /// Enters `phase`, unless a later one has been entered.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|current| {
            let later = phase > *current;
            *current = phase.max(*current);
            later
        });
    }

    pub(crate) fn current(&self) -> Phase {
        *self.0.borrow()
    }

    /// Returns a waiter for the phase `Closing`.
    pub(crate) fn closing(&self) -> Closing {
        Closing { phases: self.0.subscribe(), phase: Phase::Closing }
    }

    /// Returns a waiter for the time at which a client that is connecting now should disconnect. A client that
    /// connects while the server is draining would reconnect if it had to leave, so it may stay until the server
    /// closes.
    pub(crate) fn leaving(&self) -> Closing {
        let phase = if self.current() == Phase::Serving { Phase::Draining } else { Phase::Closing };
        Closing { phase, ..self.closing() }
    }
}

/// Waits for a phase.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    phases: Receiver<Phase>,
    phase: Phase,
}

impl Closing {
    /// Returns when the server has reached the phase. May be cancelled and called again.
    pub(crate) async fn wait(&mut self) {
        // This fails only if the server no longer exists.
        let _ = self.phases.wait_for(|phase| *phase >= self.phase).await;
    }
}
