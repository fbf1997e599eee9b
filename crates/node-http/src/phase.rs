//! The phases of a server's shutdown.

use tokio::sync::watch::{Receiver, Sender};

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
