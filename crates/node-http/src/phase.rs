//! How far a server is on its way to its end.

use tokio::sync::watch::{Receiver, Sender};

/// The phases in the life of a server, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Requests are still served, but load balancers and clients are asked to turn to another server: event streams and WebSockets
    /// end.
    Draining,
    /// What runs is finished.
    Closing,
}

/// The phase of a server.
#[derive(Debug)]
pub(crate) struct Phases(Sender<Phase>);

impl Phases {
    pub(crate) fn new() -> Self {
        Self(Sender::new(Phase::Serving))
    }

    /// Enters `phase`, unless it is past.
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

    /// Something to wait on for the phase `Closing`.
    pub(crate) fn closing(&self) -> Closing {
        Closing { phases: self.0.subscribe(), phase: Phase::Closing }
    }

    /// Something to wait on until a client that is connected now should leave. One that came although the server was draining
    /// would come back, and may stay until the end.
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
        // It fails only if the server is gone.
        let _ = self.phases.wait_for(|phase| *phase >= self.phase).await;
    }
}
