//! How far a server is on its way to its end.

use tokio::sync::watch::{Receiver, Sender};

/// The phases in the life of a server, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Requests are still served, but load balancers and connections are asked to turn to another server.
    Draining,
    /// Event streams and WebSockets end. What runs is finished.
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
        Closing(self.0.subscribe())
    }
}

/// Waits for the phase `Closing`.
#[derive(Clone, Debug)]
pub(crate) struct Closing(Receiver<Phase>);

impl Closing {
    /// Returns when the server is closing. May be cancelled and called again.
    pub(crate) async fn wait(&mut self) {
        // It fails only if the server is gone.
        let _ = self.0.wait_for(|phase| *phase == Phase::Closing).await;
    }
}
